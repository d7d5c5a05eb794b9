// Timelines: decisions, reservations, gangs, quotas and moves, a lane each, on one axis around now.
"use strict";

const LANE_SPANS = [["15 min", 900], ["1 h", 3600], ["6 h", 21600], ["1 d", 86400], ["7 d", 604800]];
const MOST_LANES = 60;
const lanes = { span: recall("laneSpan", 3600), drawn: "" };
const seconds = (text) => { const value = Date.parse(text) / 1000; return Number.isFinite(value) ? value : null; };

// What each kind has: a lane is a name, its state in words, bars with a kind, begin and end, and marks.
function lanesOf(state) {
  const marks = (several, bad) => several.map((decision) => ({ at: decision.at, bad, words: `${decision.pod}${decision.node ? ` → ${decision.node}` : ""}` }));
  const decisions = [["placed", state.decisions.filter((each) => !each.message), false], ["refused", state.decisions.filter((each) => each.message), true]]
    .filter(([, several]) => several.length).map(([name, several, bad]) => ({ name, words: counted(several.length, "decision"), bars: [], marks: marks(several, bad) }));
  const reservations = state.reservations.map((each) => ({ name: each.name, words: `${each.phase}${each.expiresAt ? "" : ", never expires"}`,
    bars: [{ kind: ["Succeeded", "Failed"].includes(each.phase) ? "over" : each.phase === "Pending" ? "wait" : "good", from: each.createdAt, to: each.expiresAt }], marks: [] }));
  const gangs = state.gangs.map((gang) => ({ name: gang.gang, words: `${gang.placed} of ${gang.min === null ? "?" : gang.min}`, marks: [],
    bars: [{ kind: gang.message ? "wait" : "good", from: gang.since ? seconds(gang.since) : null, to: state.observedAt }] }));
  const quotas = state.quotas.filter((quota) => quota.past).map(({ quota, past, waiting, over }) => ({ name: quota,
    words: Object.keys(over).length ? "over its runtime" : waiting ? `${waiting} waiting` : "within its runtime",
    bars: past.over.map((period) => ({ kind: "beyond", from: period.from, to: period.to === null ? state.observedAt : period.to })),
    marks: past.marks.map((mark) => ({ at: mark.at, bad: mark.what === "refused", words: `${mark.pod} ${mark.what}` })) }));
  const moves = (state.moves || []).map((job) => {
    const steps = job.timeline.map((step) => ({ at: seconds(step.at), bad: /failed|aborted/i.test(step.what), words: [step.what, step.message].filter(Boolean).join(": ") })).filter((step) => step.at !== null);
    const over = ["Succeeded", "Failed", "Aborted"].includes(job.phase);
    return { name: job.pod, words: job.phase, marks: steps,
      bars: [{ kind: over ? "over" : "good", from: steps.length ? steps[0].at : null, to: over && steps.length ? steps[steps.length - 1].at : state.observedAt }] };
  });
  return [["Decisions", decisions], ["Reservations", reservations], ["Gangs", gangs], ["Quotas", quotas], ["Moves", moves]].filter(([, several]) => several.length);
}
function drawLanes(state) {
  const kinds = lanesOf(state), now = state.observedAt, from = now - lanes.span, to = now + lanes.span / 4;
  foldEmpty("timelines", !kinds.length);
  // Nothing moves by a pixel in a hundredth of the span.
  const drawn = JSON.stringify([kinds.map(([, several]) => several.map((lane) => [lane.name, lane.words, lane.bars.map((bar) => bar.kind), lane.marks.length])), lanes.span, Math.floor(now / (lanes.span / 400))]);
  if (drawn === lanes.drawn) return;
  lanes.drawn = drawn;
  const left = (moment) => `${(100 * (Math.min(to, Math.max(from, moment)) - from)) / (to - from)}%`;
  const track = (lane) => {
    const children = [];
    for (const bar of lane.bars) {
      if (bar.from === null || bar.from >= to || (bar.to !== null && bar.to <= from)) continue;
      const piece = make("i", { class: `lane-bar ${bar.kind}` });
      piece.style.left = left(bar.from);
      piece.style.right = `calc(100% - ${left(bar.to === null ? to : bar.to)})`;
      children.push(piece);
    }
    for (const mark of lane.marks) {
      if (mark.at < from || mark.at > to) continue;
      const sign = make("b", { class: `lane-mark${mark.bad ? " bad" : ""}`, title: `${new Date(mark.at * 1000).toLocaleString()} ${mark.words}` }, mark.bad ? "✕" : "●");
      sign.style.left = left(mark.at);
      children.push(sign);
    }
    const line = make("i", { class: "lane-now" });
    line.style.left = left(now);
    const last = lane.bars[lane.bars.length - 1] || {};
    const ends = [last.from ? `since ${new Date(last.from * 1000).toLocaleString()}` : "", last.to && last.to > now ? `until ${new Date(last.to * 1000).toLocaleString()}` : ""];
    return make("div", { class: "lane-track", role: "img", "aria-label": [lane.words, ...ends, lane.marks.length ? counted(lane.marks.length, "mark") : ""].filter(Boolean).join(", "), title: ends.filter(Boolean).join(", ") }, line, ...children);
  };
  const scale = make("div", { class: "lane lane-axis", "aria-hidden": "true" }, make("span"), make("div", { class: "lane-track" },
    ...[[from, `−${span(lanes.span)}`], [now - lanes.span / 2, `−${span(lanes.span / 2)}`], [now, "now"]].map(([moment, words]) => {
      const tick = make("span", { class: "lane-tick" }, words);
      tick.style.left = left(moment);
      return tick;
    })), make("span"));
  at("lanes").replaceChildren(scale, ...kinds.flatMap(([title, several]) => [make("h3", {}, title), make("ul", { "aria-label": title }, ...several.slice(0, MOST_LANES).map((lane) =>
    make("li", { class: "lane" }, make("span", { class: "lane-name", title: lane.name }, lane.name), track(lane), make("span", { class: "soft lane-words" }, lane.words))),
  several.length > MOST_LANES ? make("li", { class: "soft" }, `and ${several.length - MOST_LANES} more`) : null)]));
}
function setLaneSpan(value, state) {
  lanes.span = value;
  remember("laneSpan", value);
  for (const button of at("lane-spans").children) button.setAttribute("aria-pressed", String(Number(button.value) === value));
  if (state) drawLanes(state);
}
at("lane-spans").replaceChildren(...LANE_SPANS.map(([name, value]) => make("button", { type: "button", value, on: { click: () => { setLaneSpan(value, shown); place({ span: value }); } } }, name)));
