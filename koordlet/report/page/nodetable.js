// The table of all nodes: sorts by every column, and has elements only for the rows in sight.
"use strict";

const BEFORE = 8;
const othersOf = (node) => Object.entries(node.others).map(([name, [all, used, held]]) => `${name} ${all - used - held}/${all}`).join(", ");

function shareCell(node, name) {
  const all = node[name], used = node[`${name}Used`], held = node[`${name}Reserved`], free = all - used - held;
  if (!all) return make("td", { class: "soft" }, "–");
  const words = `${amountText(name, used)} used, ${amountText(name, held)} reserved, ${amountText(name, free)} free`;
  return make("td", { title: words }, make("div", { class: "parts", role: "img", "aria-label": words }, barPart("used-part", used, all), barPart("reserved-part", held, all)),
    make("span", { class: free < 0 ? "bad" : "soft" }, free < 0 ? `${amountText(name, -free)} over` : `${percent((used + held) / all)}, ${amountText(name, free)}`));
}
const number = (words, bad = false) => make("td", { class: bad ? "number bad" : "number" }, words);
const COLUMNS = [
  { id: "name", words: "node", value: (node) => node.name, cell: (node) => make("td", {}, make("button", { class: "open", type: "button", title: node.name, "data-node": node.name }, node.name)) },
  { id: "cpu", words: "CPU requested, free", value: (node) => requested(node, "cpu"), cell: (node) => shareCell(node, "cpu") },
  { id: "cpuUse", words: "in use", meaning: "CPU use that the node reported in the last three minutes, of what is allocatable", value: (node) => inUse(node, "cpu"), number: true, cell: (node) => number(percent(inUse(node, "cpu"))) },
  { id: "memory", words: "memory requested, free", value: (node) => requested(node, "memory"), cell: (node) => shareCell(node, "memory") },
  { id: "memoryUse", words: "in use", meaning: "memory use that the node reported in the last three minutes, of what is allocatable", value: (node) => inUse(node, "memory"), number: true, cell: (node) => number(percent(inUse(node, "memory"))) },
  { id: "pods", words: "pods", value: (node) => node.pods, number: true, cell: (node) => number(`${node.pods}${node.podSlots ? ` of ${node.podSlots}` : ""}`) },
  { id: "fragmentation", words: "fragmentation", meaning: "difference between the requested shares of CPU and of memory", value: fragmentation, number: true, cell: (node) => number(percent(fragmentation(node))) },
  { id: "others", words: "other free", meaning: "extended resources: free, of all", value: othersOf, cell: (node) => make("td", { title: othersOf(node) }, othersOf(node) || "–") },
  { id: "state", words: "state", value: (node) => `${node.pressure} ${node.state}`, cell: (node) => {
    const words = [node.pressure ? `pressure: ${pressures(node)}` : "", node.state].filter(Boolean).join("; ");
    return make("td", { class: words ? "bad" : "soft", title: words }, words || "–");
  } },
];
const grid = { sort: recall("nodeOrder", ["name", 1]), rows: [], high: 0, top: 0, waiting: false };

function sortRows() {
  const [id, way] = grid.sort, column = COLUMNS.find((each) => each.id === id) || COLUMNS[0];
  const keyed = nodes.listed.map((node) => [column.value(node), node]);
  const compare = (a, b) => (typeof a === "string" ? inOrder.compare(a, b) : a - b);
  keyed.sort(([a], [b]) => (a === null) - (b === null) || (a === null ? 0 : way * compare(a, b)));
  grid.rows = keyed.map(([, node]) => node);
  at("listed").textContent = `${grid.rows.length} of ${counted((nodes.all || []).length, "node")}`;
  at("node-table").querySelector("table").setAttribute("aria-rowcount", grid.rows.length + 1);
  drawRows();
}
function drawHead() {
  at("columns").replaceChildren(...COLUMNS.map(({ id, words, meaning, number: right }) => {
    const way = grid.sort[0] === id ? grid.sort[1] : 0;
    return make("th", { scope: "col", title: meaning, class: right ? "number" : null, "aria-sort": way ? (way > 0 ? "ascending" : "descending") : "none" },
      make("button", { type: "button", on: { click: () => {
        grid.sort = [id, way ? -way : id === "name" || id === "state" ? 1 : -1];
        remember("nodeOrder", grid.sort);
        drawHead();
        at("node-table").scrollTop = 0;
        sortRows();
        at("columns").children[COLUMNS.findIndex((column) => column.id === id)].firstChild.focus();
      } } }, words, way ? (way > 0 ? " ▴" : " ▾") : ""));
  }));
}
function drawRows() {
  const frame = at("node-table");
  if (!grid.rows.length) {
    at("rows").replaceChildren(make("tr", {}, make("td", { colspan: COLUMNS.length, class: "soft" }, nodes.wanted ? "No node matches." : "No nodes.")));
    return;
  }
  grid.high = grid.high || parseFloat(getComputedStyle(document.documentElement).fontSize) * 1.75;
  grid.top = frame.scrollTop / grid.high;
  const first = Math.max(0, Math.floor(frame.scrollTop / grid.high) - BEFORE), count = Math.ceil(Math.max(frame.clientHeight, 10 * grid.high) / grid.high) + 2 * BEFORE;
  const spacer = (rows) => {
    const cell = make("td", { colspan: COLUMNS.length, class: "spacer" });
    cell.style.height = `${rows * grid.high}px`;
    return make("tr", { "aria-hidden": "true", class: "spacer" }, cell);
  };
  const seen = grid.rows.slice(first, first + count), after = grid.rows.length - first - seen.length;
  keepFocus(at("rows"), "node", () => at("rows").replaceChildren(...(first ? [spacer(first)] : []), ...seen.map((node, n) =>
    make("tr", { "aria-rowindex": first + n + 2, "aria-selected": node.name === nodes.chosen ? "true" : null }, ...COLUMNS.map(({ cell }) => cell(node)))),
  ...(after > 0 ? [spacer(after)] : [])));
}
function askRows() {
  if (grid.waiting) return;
  grid.waiting = true;
  requestAnimationFrame(() => { grid.waiting = false; drawRows(); });
}
function remeasure() { grid.high = 0; askRows(); }

at("rows").addEventListener("click", (event) => { const button = event.target.closest(".open"); if (button) chooseNode(button.dataset.node, "table"); });
at("node-table").addEventListener("scroll", () => {
  // Rows beyond both edges are there already.
  if (Math.abs(at("node-table").scrollTop / grid.high - grid.top) > BEFORE / 2) askRows();
}, { passive: true });
for (const event of ["dense", "opened", "resize"]) addEventListener(event, remeasure);
at("filter").addEventListener("input", () => {
  nodes.wanted = at("filter").value.trim();
  place({ filter: nodes.wanted || null });
  filterNodes();
  at("node-table").scrollTop = 0;
  sortRows();
  askHeat();
});
nodes.listeners.push((name, origin) => {
  const n = grid.rows.findIndex((node) => node.name === name);
  if (n >= 0 && origin !== "table") at("node-table").scrollTop = Math.max(0, n * (grid.high || 28) - at("node-table").clientHeight / 3);
  askRows();
});
drawHead();
