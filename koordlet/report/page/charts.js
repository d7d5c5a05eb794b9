// The charts of the page: which quantities each shows, in which colours; the marks in words.
"use strict";

const CLASSES = [["LSE", "lse-line"], ["LSR", "lsr-line"], ["LS", "ls-line"], ["BE", "be-line"], ["system", "system-line"]];
const MORE = ["lsr-line", "be-line", "ls-line", "lse-line", "system-line", "bad", "ink"];
const byClass = (key, style, classes = CLASSES) => classes.map(([name, ink]) => ({ name: `${name}/${key}`, label: name, colour: ink, style }));
const pods = CLASSES.slice(0, 4);
// Series whose subjects are not known beforehand: each that matches, in the order of the colours.
const each = (pattern, label) => ({ pattern, label });
const pressures = (degree, style) => [["cpu", "lsr-line"], ["memory", "lse-line"], ["io", "be-line"]].map(([resource, ink]) => (
  { name: `node/pressure.${resource}.${degree}`, label: `${resource} ${degree}`, colour: ink, style }));

const CHARTS = [
  { id: "cpu", title: "CPU use by class", unit: "cores", tall: true, marks: true, top: "node/cpus", series: [
    ...byClass("cpuCores", "area"),
    { name: "BE/limitCores", label: "BE limit", colour: "ink", style: "dashed", words: (moment) => `BE limit${setBy(moment)}` },
    { name: "BE/offeredCores", label: "offered as batch-cpu", colour: "be-line", style: "dotted" } ] },
  { id: "latency", title: "Request latency", unit: "seconds", series: [
    { name: "LS/latencySeconds", label: "p99", colour: "ls-line", style: "line" }] },
  { id: "waiting", title: "CPU waiting of latency-sensitive work", unit: "ratio", series: [
    { name: "LS/waitingRatio", label: "of its CPU time", colour: "ls-line", style: "line" }] },
  { id: "class-pressure", title: "CPU pressure by class", unit: "ratio", series: byClass("pressure.cpu.some", "line", pods) },
  { id: "throttled", title: "CPU throttling by class", unit: "ratio", series: byClass("throttledRatio", "line", pods) },
  { id: "pressure", title: "Pressure of the node", unit: "ratio", series: [...pressures("some", "line"), ...pressures("full", "dotted")] },
  { id: "memory", title: "Memory by class", unit: "bytes", top: "node/memoryTotalBytes", series: byClass("memoryBytes", "area") },
  { id: "owned", title: "CPUs by owner", unit: "CPUs", top: "node/cpus", series: [each(/^(.+)\/ownedCPUs$/, (m) => m[1])] },
  { id: "disk", title: "Disk traffic by class", unit: "bytes/s", series: [
    ...byClass("readBytesPerSecond", "line", pods).map((series) => ({ ...series, label: `${series.label} read` })),
    ...byClass("writtenBytesPerSecond", "dashed", pods).map((series) => ({ ...series, label: `${series.label} written` }))] },
  { id: "network", title: "Network interfaces", unit: "bytes/s", series: [
    each(/^link (.+)\/receivedBytesPerSecond$/, (m) => `${m[1]} received`), each(/^link (.+)\/sentBytesPerSecond$/, (m) => `${m[1]} sent`)] },
  { id: "class-network", title: "Network traffic by class", unit: "bytes/s", series: [
    ...byClass("network.receivedBytesPerSecond", "line", pods).map((series) => ({ ...series, label: `${series.label} received` })),
    ...byClass("network.sentBytesPerSecond", "dashed", pods).map((series) => ({ ...series, label: `${series.label} sent` }))] },
  { id: "caches", title: "Cache occupancy by class", unit: "bytes", series: [each(/^(.+)\/cacheBytes$/, (m) => m[1])] },
  { id: "bandwidth", title: "Memory bandwidth by class", unit: "bytes/s", series: [each(/^(.+)\/memoryBandwidthBytesPerSecond$/, (m) => m[1])] },
  { id: "tasks", title: "Threads by class", unit: "number", series: byClass("pids", "area", pods) },
  { id: "space", title: "Disk space available", unit: "bytes", series: [each(/^disk (.+)\/availableBytes$/, (m) => m[1])] },
];
const hiddenSeries = new Set(recall("hidden", []));

// Who set the limit of best-effort work at a moment: by the newest mark before it.
function setBy(moment) {
  let newest = null;
  for (const mark of timeline.events.values()) {
    if (mark.kind === "limit" && mark.at <= (moment || Infinity) && (newest === null || mark.number > newest.number)) newest = mark;
  }
  return newest && newest.policy ? ` (${newest.policy})` : "";
}
// Draws `spec` into a place; `prefix` stands before the names of its series.
function addChart(spec, into, prefix = "") {
  const toggle = (series) => {
    if (hiddenSeries.has(series.id)) hiddenSeries.delete(series.id); else hiddenSeries.add(series.id);
    remember("hidden", [...hiddenSeries]);
    showChart(chart);
  };
  const top = () => { const all = samplesOf(chart.question).series.get(spec.top); return (all && all[all.length - 1]) || 0; };
  const chart = makeChart(spec.title, spec.unit, prefix ? minutes : timeline, { tall: spec.tall, marks: spec.marks, top: spec.top ? top : null, toggle });
  chart.spec = spec;
  chart.prefix = prefix;
  chart.question = prefix + spec.id;
  chart.panel = make("div", { class: "chart-panel", id: `chart-${spec.id}` }, spec.tall ? null : make("h3", {}, anchor(`chart-${spec.id}`, spec.title)), chart.box);
  into.append(chart.panel);
  timeline.charts.push(chart);
  return chart;
}
function dropCharts(prefix) {
  for (const chart of timeline.charts.filter((other) => other.prefix === prefix)) timeline.known.delete(chart.question);
  timeline.charts = timeline.charts.filter((other) => other.prefix !== prefix);
}
// The names that a chart wants, given those of the newest row.
function namesOf(chart, present) {
  const fixed = chart.spec.series.filter((series) => series.name).map((series) => chart.prefix + series.name);
  const patterns = chart.spec.series.filter((series) => series.pattern);
  const matched = present.filter((name) => patterns.some((series) => series.pattern.test(name)));
  return [...fixed, ...matched, ...(chart.spec.top ? [chart.spec.top] : [])];
}
function showChart(chart) {
  const known = samplesOf(chart.question), series = [];
  const put = (shown, name) => {
    const values = known.series.get(name), id = `${chart.spec.id} ${name}`;
    if (values && values.some((value) => value)) series.push({ ...shown, id, values, hidden: hiddenSeries.has(id) });
  };
  for (const shown of chart.spec.series) {
    if (shown.name) { put(shown, chart.prefix + shown.name); continue; }
    for (const name of [...known.series.keys()].sort()) {
      const match = shown.pattern.exec(name);
      if (match) put({ label: shown.label(match), colour: inkOf(match[1], series.length), style: "line" }, name);
    }
  }
  chart.panel.hidden = !chart.spec.tall && !series.length;
  chart.show(known.at, series);
}
function inkOf(name, place) {
  const own = CLASSES.find(([cls]) => cls === name.split(" ")[0]);
  if (name === "reserved") return "ink";
  return own ? own[1] : MORE[place % MORE.length];
}
// Charts without samples, or of zeros alone, fold away; one line names them.
function nameQuiet() {
  const quiet = timeline.charts.filter((chart) => chart.panel.hidden && !chart.prefix).map((chart) => chart.spec.title.toLowerCase());
  at("quiet").textContent = quiet.length ? `Nothing recorded in this span: ${quiet.join(", ")}.` : "";
}

let fetching = false, again = false;
// Fetches what is missing for the charts that are on the page, one after the other, and shows it.
async function fillCharts(present) {
  if (fetching) { again = true; return; }
  fetching = true;
  try {
    for (const chart of [...timeline.charts]) {
      if (chart.panel.closest(".folded")) continue;
      const names = namesOf(chart, present);
      const known = await fetchSamples(chart.question, names, chart.axis);
      known.names = names;
      showChart(chart);
    }
    nameQuiet();
  } finally {
    fetching = false;
  }
  if (again) { again = false; await fillCharts(present); }
}

// Marks in words -----------------------------------------------------------------------------------

// Those near the cursor, else the newest ones of the span.
function describeMarks() {
  const near = (timeline.to() - timeline.from()) / 60, cursor = timeline.cursor;
  const chosen = timeline.marks().filter((mark) => cursor === null || Math.abs(mark.at - cursor) <= near)
    .sort((a, b) => b.number - a.number).slice(0, 4);
  const phase = timeline.phases.find(({ from, to }) => cursor !== null && from <= cursor && cursor < to);
  const head = cursor === null ? "Newest marks" : `Around ${clock(cursor, true)}${phase ? `, ${phase.on ? "with" : "without"} koordlet` : ""}`;
  const rows = chosen.map((mark) => make("li", {}, moment(mark.at), markWords(mark)));
  at("marks").replaceChildren(make("li", { class: "soft" }, chosen.length ? `${head}:` : `${head}: none.`), ...rows);
}
function markWords(mark) {
  const [sign, , kind] = MARKS[mark.kind];
  return make("span", {}, make("span", { class: `sign ${mark.kind}`, title: kind }, sign), ` ${mark.text}`,
    make("span", { class: "soft" }, `${mark.count > 1 ? ` ×${mark.count}` : ""} ${mark.reason}${mark.policy ? ` (${mark.policy})` : ""}`));
}
