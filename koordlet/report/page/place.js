// Where a reader is on the page: the address of a panel, pod, CPU or moment; what is folded and
// remembered; the search; keys for the whole page.
"use strict";

// What the address names after "#": panel, pod, cpu, at (Unix seconds), from and to, span.
const here = new URLSearchParams(location.hash.slice(1));

function place(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined) here.delete(name); else here.set(name, String(value));
  }
  history.replaceState(null, "", here.size ? `#${here}` : location.pathname);
}
// A heading that is its own address.
function anchor(id, words) {
  const link = make("a", { class: "anchor", href: `#panel=${id}`, title: "Address of this panel" }, words);
  link.addEventListener("click", (event) => { event.preventDefault(); place({ panel: id }); });
  return link;
}
function readAddress() {
  const read = new URLSearchParams(location.hash.slice(1)), number = (name) => (read.get(name) === null || read.get(name) === "" ? NaN : Number(read.get(name)));
  for (const name of [...here.keys()]) here.delete(name);
  for (const [name, value] of read) here.set(name, value);
  const span = number("span"), moment = number("at");
  if (SPANS.some(([, seconds]) => seconds === span)) timeline.span = span;
  timeline.zoomed = number("from") < number("to") ? [number("from"), number("to")] : null;
  if (Number.isFinite(moment)) {
    timeline.cursor = moment;
    if (!timeline.zoomed) timeline.zoomed = [moment - 120, moment + 120];
  }
  if (Number.isFinite(number("cpu")) && seen.topology) choose(number("cpu"), false);
  if (read.get("pod") !== null) openWorkload(read.get("pod"));
  if (read.get("panel")) goTo(read.get("panel"));
}
function goTo(id) {
  const target = at(id);
  if (!target) return;
  const panel = target.closest("section");
  if (panel) fold(panel, false);
  if (target.tabIndex === -1 && target.hasAttribute("tabindex")) target.focus({ preventScroll: true });
  target.scrollIntoView({ block: id.startsWith("chart-") ? "center" : "start" });
}

// Folding ------------------------------------------------------------------------------------------

const folded = new Map(Object.entries(kept("folded", {})));

// Folds or opens a panel; `chosen` by the reader, who is remembered, or because it is empty.
function fold(panel, closed, chosen = true) {
  if (chosen) {
    folded.set(panel.id, closed);
    keep("folded", Object.fromEntries(folded));
  }
  if (panel.classList.contains("folded") === closed) return;
  panel.classList.toggle("folded", closed);
  panel.querySelector(".fold").setAttribute("aria-expanded", String(!closed));
  if (!closed) timeline.changed("open");
}
// An empty panel is folded unless the reader opened it; one that has something is open unless closed.
function foldEmpty(id, empty) {
  const panel = at(id);
  panel.classList.toggle("empty", empty);
  fold(panel, folded.has(id) ? folded.get(id) : empty, false);
}
for (const panel of document.querySelectorAll("main section")) {
  const head = panel.querySelector("h2");
  if (!head || panel.id === "answers") continue;
  const words = head.textContent;
  const button = make("button", { type: "button", class: "fold", "aria-expanded": "true", "aria-label": `Fold or open: ${words}` }, "▾");
  button.addEventListener("click", () => fold(panel, !panel.classList.contains("folded")));
  head.replaceChildren(button, anchor(panel.id, words));
  if (folded.get(panel.id)) fold(panel, true, false);
}

// Search -------------------------------------------------------------------------------------------

// Everything with a name: workloads, CPUs, panels, charts.
function findAll(words) {
  const wanted = words.toLowerCase().trim(), results = [];
  if (!wanted || !seen.state) return results;
  const cpu = /^(?:cpu\s*)?(\d+)$/.exec(wanted);
  if (cpu && cellOf(Number(cpu[1]))) results.push([`CPU ${cpu[1]}`, ownerOf({ cpu: Number(cpu[1]) }).who, () => choose(Number(cpu[1]), true)]);
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
function showResults() {
  const box = at("results"), results = findAll(at("search").value);
  box.hidden = !at("search").value.trim();
  box.replaceChildren(...(results.length ? results.map(([name, kind, go], n) => {
    const row = make("li", { role: "option", id: `result-${n}`, "aria-selected": String(n === 0) }, make("b", {}, name), make("span", { class: "soft" }, ` ${kind}`));
    row.addEventListener("pointerdown", (event) => { event.preventDefault(); leaveSearch(); go(); });
    row.go = go;
    return row;
  }) : [make("li", { class: "soft" }, "Nothing has this name.")]));
}
function leaveSearch() {
  at("search").value = "";
  at("results").hidden = true;
  at("search").blur();
}
at("search").addEventListener("input", showResults);
at("search").addEventListener("blur", () => { at("results").hidden = true; });
at("search").addEventListener("focus", showResults);
at("search").addEventListener("keydown", (event) => {
  const rows = [...at("results").querySelectorAll("[role=option]")], now = rows.findIndex((row) => row.ariaSelected === "true");
  if (event.key === "Escape") { leaveSearch(); return; }
  if (event.key === "Enter" && rows[now]) { const { go } = rows[now]; leaveSearch(); go(); return; }
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!way || !rows.length) return;
  event.preventDefault();
  rows.forEach((row, n) => row.setAttribute("aria-selected", String(n === (now + way + rows.length) % rows.length)));
});

// Keys ---------------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  const index = SPANS.findIndex(([, seconds]) => seconds === timeline.span);
  const act = { "/": () => at("search").focus(), t: () => at("theme").click(), d: () => at("density").click(), Escape: () => { closeWorkload(); timeline.zoom(null, null); },
    "[": () => timeline.setSpan(SPANS[Math.max(0, index - 1)][1]), "]": () => timeline.setSpan(SPANS[Math.min(SPANS.length - 1, index + 1)][1]) }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
at("density").addEventListener("click", () => {
  const dense = document.documentElement.classList.toggle("dense");
  at("density").setAttribute("aria-pressed", String(dense));
  keep("dense", dense);
  timeline.redraw();
});
if (kept("dense", false)) {
  document.documentElement.classList.add("dense");
  at("density").setAttribute("aria-pressed", "true");
}
addEventListener("hashchange", () => { readAddress(); timeline.changed("range"); });
