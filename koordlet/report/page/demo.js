// The demo's comparison: its phases without and with koordlet while they run, then the summary.
"use strict";

// `comparison` is null beside an agent that plays no demo, and before the first phase.
function drawDemo(comparison, now) {
  at("demo").hidden = !comparison;
  timeline.phases = comparison ? comparison.phases : [];
  if (!comparison) return;
  const { phases, running, settleSeconds, verdict, summary } = comparison;
  const arm = (phase) => (phase.on ? "With koordlet" : "Without koordlet");
  at("phase").textContent = running !== null ? `${arm(phases[running])}: ${Math.ceil(phases[running].to - now)} s left`
    : verdict || "The comparison is over.";
  at("phase-place").textContent = running === null ? "" : `Phase ${running + 1} of ${phases.length}. The first ${settleSeconds} s of a phase do not count.`;
  at("steps").replaceChildren(...phases.map((phase, number) => make("i", { class: phase.on ? "on" : "", title: arm(phase),
    "aria-current": number === running ? "step" : null })));
  const rounds = phases.filter((phase) => !phase.on).map((phase, number) => [phase, phases[2 * number + 1]]);
  const cells = (round, name, lost) => round.map(({ figures }) => make("td", { class: "number" },
    figures ? `${figures[name]}${lost && figures.refused !== "0" ? `, ${figures.refused} refused` : ""}` : "–"));
  at("rounds").replaceChildren(...rounds.map((round, number) => make("tr", { class: round.includes(phases[running]) ? "running" : "" },
    make("th", { scope: "row" }, String(number + 1)), ...cells(round, "p99", true), ...cells(round, "bestEffortCPUs", false))));
  at("paste").hidden = !summary.length;
  const words = summary.join("\n");
  if (at("summary").textContent !== words) at("summary").textContent = words;
}

// Where the browser refuses the clipboard, the summary is selected.
at("copy").addEventListener("click", async () => {
  getSelection().selectAllChildren(at("summary"));
  if (navigator.clipboard) await navigator.clipboard.writeText(at("summary").textContent).then(() => { at("copy").textContent = "Copied"; }, () => {});
});
