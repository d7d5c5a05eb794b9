// The first three questions: is the service safe, what does best-effort work get of what is idle,
// what did koordlet do last and why.
"use strict";

const LEVELS = { good: "✓", warn: "!", bad: "✗", unknown: "?" };

function answerService(answer) {
  const head = at("safe");
  head.className = `headline ${answer.level}`;
  const words = `${LEVELS[answer.level]} ${answer.headline}`;
  if (head.textContent !== words) head.textContent = words;
  at("safe-why").textContent = answer.detail;
  at("facts").replaceChildren(...answer.facts.map(([name, value]) => make("li", {}, make("span", { class: "soft" }, `${name} `), make("b", {}, value))));
}
// One bar: all CPUs, by who uses them; what nobody uses stays empty.
function answerBestEffort(answer, series) {
  at("gets").textContent = answer.headline;
  at("gets-why").textContent = answer.detail;
  const cpus = answer.cpus || series["node/cpus"];
  const parts = CLASSES.map(([name]) => [name, series[`${name}/cpuCores`]]).filter(([, cores]) => cores);
  at("share").hidden = !cpus || !parts.length;
  if (at("share").hidden) return;
  const used = parts.reduce((sum, [, cores]) => sum + cores, 0);
  at("share").replaceChildren(...parts.map(([name, cores]) => {
    const part = make("i", { class: `part-${name.toLowerCase()}`, title: `${name}: ${spell(cores, "cores")} CPUs` });
    part.style.width = `${Math.min(100, (100 * cores) / Math.max(cpus, used)).toFixed(2)}%`;
    return part;
  }));
  const got = answer.idle ? ` = ${percent(answer.used / answer.idle)} of what is idle` : "";
  at("share").setAttribute("aria-label", `${parts.map(([name, cores]) => `${name} ${spell(cores, "cores")}`).join(", ")} of ${cpus} CPUs`);
  at("share-words").textContent = `${parts.map(([name, cores]) => `${name} ${spell(cores, "cores")}`).join(" · ")} of ${cpus} CPUs${answer.idle ? `; best-effort ${spell(answer.used, "cores")}${got}` : ""}`;
}
function answerAction(marks, now) {
  const [newest, ...others] = marks;
  at("last").textContent = newest ? `${ago(now - newest.at)}: ${MARKS[newest.kind][2]}` : "Nothing yet";
  at("last-why").replaceChildren(newest ? markWords(newest) : "koordlet has changed nothing since it started.");
  at("before").replaceChildren(...others.slice(0, 2).map((mark) => make("li", {}, make("span", { class: "soft" }, `${ago(now - mark.at)} `), markWords(mark))));
}
function ago(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 2) return "now";
  if (whole < 120) return `${whole} s ago`;
  return whole < 7200 ? `${Math.round(whole / 60)} min ago` : `${Math.round(whole / 3600)} h ago`;
}
