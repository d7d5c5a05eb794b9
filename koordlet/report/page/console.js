// The console of one koordlet agent: draws the states that /api/v1/events sends once a tick.
// Everything from outside becomes text (textContent, attributes), never markup.
"use strict";

const seen = { topology: null, state: null, owners: new Map(), chosen: null, order: recall("order", ["cpuCores", -1]), audit: [], writes: -1, revision: "", epoch: "" };

// What changes more rarely than a state is asked for when it did.
async function fetchRest(state) {
  const shape = `${state.epoch} ${state.cpus.present} ${state.cpus.online}`;
  if (shape !== seen.revision) {
    seen.topology = await ask("/api/v1/topology");
    seen.revision = shape;
    keepFocus(at("map"), "cpu", buildMap);
  }
  if (state.counters.writes !== seen.writes) {
    seen.writes = state.counters.writes;
    try {
      const answer = await ask("/api/v1/audit?limit=50");
      seen.audit = answer.records;
      drawAudit();
    } catch (error) { seen.audit = []; }
  }
}
// Another agent, or the first state: what was recorded is read anew. The first one leads to where the address says.
async function beginEpoch(state) {
  const first = !seen.epoch;
  seen.epoch = state.epoch;
  timeline.start = state.startedAt;
  forgetSamples();
  appendRow(state.history);
  await fillTrends();
  if (first) readAddress();
}
async function drawState(state) {
  await fetchRest(state);
  seen.state = state;
  seen.owners = owners(state);
  const bad = state.checks.filter((check) => !check.ok).map((check) => check.name);
  at("node").textContent = at("node").title = state.name;
  document.title = `${state.name} · koordlet`;
  showStatus(!bad.length, `${state.mode}${state.ready ? "" : ", not ready"}, cgroup ${state.cgroup}, version ${state.agent}${bad.length ? `; unhealthy: ${bad.join(", ")}` : ""}`);
  paintCpus();
  drawDemo(state.demo, state.observedAt);
  drawSignals(state.signals, state.evictions); drawCaches(state.resctrl); drawReservations(state.reservations); drawOffers(state.offer); drawStatus(state);
  answerService(state.answers.service);
  answerBestEffort(state.answers.bestEffort, state.history.series);
  if (state.epoch !== seen.epoch) await beginEpoch(state);
  else appendRow(state.history);
  answerAction([...timeline.events.values()].sort((a, b) => b.number - a.number).slice(0, 3), state.observedAt);
  appendTrends(state);
  drawWorkloads();
  await refreshFacts();
  await refreshCharts();
}
async function refreshCharts() {
  await fillCharts(Object.keys(seen.state.history.series));
  for (const chart of timeline.charts) showChart(chart);
  describeMarks();
}
let asked = 0;
timeline.changed = (what) => {
  if (what === "cursor") { describeMarks(); return; }
  place({ span: timeline.span === 900 ? null : timeline.span, from: timeline.zoomed ? Math.round(timeline.zoomed[0]) : null,
    to: timeline.zoomed ? Math.round(timeline.zoomed[1]) : null, at: null });
  remember("span", timeline.span);
  showSpan();
  clearTimeout(asked);
  if (seen.state) asked = setTimeout(() => refreshCharts().catch((error) => showError(`Cannot read the history: ${error.message}`)), 50);
  timeline.redraw();
};
function showSpan() {
  for (const button of at("spans").children) button.setAttribute("aria-pressed", String(!timeline.zoomed && Number(button.value) === timeline.span));
  at("unzoom").hidden = timeline.live();
  at("unzoom").textContent = timeline.live() ? "" : `${clock(timeline.from(), true)}–${clock(timeline.to(), true)} ✕`;
}

timeline.span = recall("span", 900);
at("spans").replaceChildren(...SPANS.map(([name, seconds]) => make("button", { type: "button", value: seconds, "aria-pressed": "false", on: { click: () => timeline.setSpan(seconds) } }, name)));
at("unzoom").addEventListener("click", () => timeline.zoom(null, null));
at("theme").addEventListener("click", () => { inks.clear(); timeline.redraw(); if (seen.state) drawWorkloads(); });
for (const spec of CHARTS) addChart(spec, at(spec.tall ? "chart" : "charts"));
showSpan();
links(["/api/v1/node", "/api/v1/topology", "/api/v1/plan", "/api/v1/audit", "/api/v1/history", "/metrics", "/healthz?verbose", "/readyz"]);
drawHead();
listen("agent", "/api/v1/events", drawState);
