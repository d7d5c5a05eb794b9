// The time axis of the page: which span is shown, where the cursor is, which samples are known.
// The agent remembers an hour by seconds and a day by minutes; the page asks for the part that it
// shows, and appends the newest row of each state, so a page that is loaded anew has lost nothing.
"use strict";

const SPANS = [["5m", 300], ["15m", 900], ["1h", 3600], ["6h", 21600], ["24h", 86400]];
const HOUR = 3600;

// One for the whole page. `zoomed` is [from, to] in Unix seconds, or null while it follows the present.
// `phases` are those of the demo's comparison.
const timeline = { span: 900, zoomed: null, cursor: null, now: 0, start: 0, known: new Map(), events: new Map(), phases: [], charts: [], changed: () => {} };

timeline.to = () => (timeline.zoomed ? timeline.zoomed[1] : timeline.now);
// An agent that is younger than the span has nothing to show before its start.
timeline.from = () => {
  if (timeline.zoomed) return timeline.zoomed[0];
  return Math.max(timeline.now - timeline.span, Math.min(timeline.start, timeline.now - 60));
};
timeline.live = () => timeline.zoomed === null;
// Seconds of the newest hour are there one by one; what reaches back further has minutes.
timeline.resolution = () => (timeline.now - (timeline.zoomed ? timeline.zoomed[0] : timeline.now - timeline.span) > HOUR + 60 ? "1m" : "1s");
timeline.period = () => (timeline.resolution() === "1m" ? 60 : 1);
timeline.marks = () => [...timeline.events.values()].filter((mark) => mark.at >= timeline.from() && mark.at <= timeline.to());
timeline.redraw = () => { for (const chart of timeline.charts) chart.redraw(); };
timeline.point = (moment) => {
  timeline.cursor = moment;
  timeline.redraw();
  timeline.changed("cursor");
};
timeline.zoom = (from, to) => {
  timeline.zoomed = from === null ? null : [from, Math.max(to, from + 10)];
  timeline.changed("range");
};
timeline.setSpan = (span) => {
  timeline.span = span;
  timeline.zoomed = null;
  timeline.changed("range");
};
// Cursor to the sample before or after; at the edge the range goes along.
timeline.step = (way) => {
  const length = timeline.to() - timeline.from();
  timeline.cursor = (timeline.cursor === null ? timeline.to() : timeline.cursor) + (way * length) / 100;
  if (timeline.cursor < timeline.from()) timeline.zoom(timeline.from() - length / 4, timeline.to() - length / 4);
  else if (timeline.cursor > timeline.to()) {
    timeline.cursor = Math.min(timeline.cursor, timeline.now);
    if (!timeline.live()) timeline.zoom(timeline.from() + length / 4, Math.min(timeline.now, timeline.to() + length / 4));
  }
  timeline.point(timeline.cursor);
};
timeline.scale = (factor) => {
  const middle = timeline.cursor === null ? timeline.to() : timeline.cursor;
  const from = middle - (middle - timeline.from()) * factor, to = Math.min(timeline.now, middle + (timeline.to() - middle) * factor);
  timeline.zoom(Math.max(from, timeline.now - 86400), to);
};

// Of one workload the agent keeps minutes alone, so its charts show an hour at least.
const minutes = Object.create(timeline);
minutes.resolution = () => "1m";
minutes.period = () => 60;
Object.defineProperty(minutes, "span", { get: () => Math.max(HOUR, timeline.span) });
minutes.from = () => (timeline.zoomed ? timeline.zoomed[0] : Math.max(timeline.now - minutes.span, Math.min(timeline.start, timeline.now - 300)));

// Samples ------------------------------------------------------------------------------------------

// What was fetched for a question: times, and by name the values; `since` is from when on.
function samplesOf(question) {
  return timeline.known.get(question) || { at: [], series: new Map(), since: Infinity, resolution: "" };
}
// Fetches what a chart shows unless it is known; `names` are series, or beginnings that end in "/".
async function fetchSamples(question, names, axis) {
  const resolution = axis.resolution(), since = Math.floor(axis.live() ? timeline.now - axis.span : axis.from()) - 2 * axis.period(), have = samplesOf(question);
  if (have.resolution === resolution && have.since <= since + axis.period() && !have.stale) return have;
  const wanted = names.map(inQuery).join(",");
  const answer = await ask(`/api/v1/history?resolution=${resolution}&since=${since}&series=${wanted}`);
  const made = { at: answer.at, series: new Map(Object.entries(answer.series)), since, resolution, stale: false, read: answer.observedAt };
  timeline.known.set(question, made);
  takeMarks(answer.marks);
  return made;
}
function takeMarks(marks) {
  for (const mark of marks) timeline.events.set(mark.number, mark);
  while (timeline.events.size > 2000) timeline.events.delete(timeline.events.keys().next().value);
}
// Appends the newest row of a state to everything that is known by seconds.
function appendRow(history) {
  takeMarks(history.marks);
  if (history.at === null) return;
  timeline.now = history.at;
  for (const known of timeline.known.values()) {
    const last = known.at[known.at.length - 1];
    if (known.resolution === "1m") {
      if (history.at - (last || 0) > 61 && history.at - known.read > 10) known.stale = true;
      continue;
    }
    if (known.resolution !== "1s" || (last !== undefined && history.at - last < 0.5)) continue;
    // A page that slept, or was too slow for some states, asks for what it missed.
    if (last !== undefined && history.at - last > GAP) { known.stale = true; continue; }
    known.at.push(history.at);
    for (const [name, values] of known.series) values.push(name in history.series ? history.series[name] : null);
    for (const name of known.names || []) {
      if (!known.series.has(name) && name in history.series) {
        known.series.set(name, [...Array(known.at.length - 1).fill(null), history.series[name]]);
      }
    }
    const old = indexAt(known.at, history.at - HOUR - 120);
    if (old > 300) {
      known.at.splice(0, old);
      for (const values of known.series.values()) values.splice(0, old);
    }
  }
}
function forgetSamples() {
  timeline.known.clear();
  timeline.events.clear();
}
