// Where a reader of the console is: what the address names, what the search finds, keys.
"use strict";

// After "#": panel, pod, cpu, at (Unix seconds), from and to, span.
function readAddress() {
  const read = rereadAddress(), number = (name) => (read.get(name) === null || read.get(name) === "" ? NaN : Number(read.get(name)));
  const span = number("span"), moment = number("at");
  if (SPANS.some(([, seconds]) => seconds === span)) timeline.span = span;
  timeline.zoomed = number("from") < number("to") ? [number("from"), number("to")] : null;
  if (Number.isFinite(moment)) {
    timeline.cursor = moment;
    if (!timeline.zoomed) timeline.zoomed = [moment - 120, moment + 120];
  }
  if (Number.isFinite(number("cpu")) && seen.topology) chooseCpu(number("cpu"), false);
  if (read.get("pod") !== null) openWorkload(legible(asWritten(read.get("pod"))));
  if (read.get("panel")) goTo(read.get("panel"));
}

// Search -------------------------------------------------------------------------------------------

// Everything with a name: workloads, CPUs, panels, charts.
function findAll(words) {
  const wanted = words.toLowerCase().trim(), results = [];
  if (!wanted || !seen.state) return results;
  const cpu = /^(?:cpu\s*)?(\d+)$/.exec(wanted);
  if (cpu && cellOf(Number(cpu[1]))) results.push([`CPU ${cpu[1]}`, ownerOf({ cpu: Number(cpu[1]) }).who, () => chooseCpu(Number(cpu[1]), true)]);
  for (const workload of seen.state.workloads) {
    if (results.length >= 12) break;
    if (workload.key.toLowerCase().includes(wanted)) results.push([workload.key, `${workload.qos} workload`, () => openWorkload(workload.key)]);
  }
  for (const link of document.querySelectorAll("main .anchor")) {
    const target = link.getAttribute("href").slice("#panel=".length);
    if (link.textContent.toLowerCase().includes(wanted)) results.push([link.textContent, target.startsWith("chart-") ? "chart" : "panel", () => { place({ panel: target }); goTo(target); }]);
  }
  return results.slice(0, 16);
}

// Keys ---------------------------------------------------------------------------------------------

pageKeys(() => {
  const index = SPANS.findIndex(([, seconds]) => seconds === timeline.span);
  return { Escape: () => { closeWorkload(); timeline.zoom(null, null); },
    "[": () => timeline.setSpan(SPANS[Math.max(0, index - 1)][1]), "]": () => timeline.setSpan(SPANS[Math.min(SPANS.length - 1, index + 1)][1]) };
});
// Before the first state there is nothing to go to; it reads the address.
addEventListener("hashchange", () => { if (seen.state) { readAddress(); timeline.changed("range"); } });
addEventListener("opened", () => timeline.changed("open"));
addEventListener("dense", () => timeline.redraw());
