// The table of workloads with a line of the last minutes each, and what is known about one of them.
"use strict";

const COLUMNS = [
  ["key", "workload"], ["qos", "class"], ["cpus", "CPUs"], ["cpuCores", "cores"], ["trend", "five minutes"],
  ["memoryBytes", "memory"], ["throttledRatio", "throttled"], ["stalled", "CPU pressure"], ["pids", "threads"],
];
const TEXTS = new Set(["key", "qos", "cpus", "trend"]);
const MOST_ROWS = 200;
// Of each workload: its row, and its newest samples, five seconds apart.
const drawn = new Map(), trends = new Map();
let trendAt = 0;

function heads() {
  at("columns").replaceChildren(...COLUMNS.map(([name, title]) => {
    if (name === "trend") return make("th", { scope: "col" }, title);
    const sorted = seen.order[0] === name;
    return make("th", { scope: "col", class: TEXTS.has(name) ? "" : "number", "aria-sort": sorted ? (seen.order[1] > 0 ? "ascending" : "descending") : "none" },
      make("button", { type: "button", "data-column": name, on: { click: () => {
        seen.order = [name, sorted ? -seen.order[1] : name === "key" || name === "qos" ? 1 : -1];
        keep("order", seen.order);
        heads(); rows();
        at("columns").querySelector(`[data-column="${name}"]`).focus();
      } } }, title + (sorted ? (seen.order[1] > 0 ? " ▲" : " ▼") : "")));
  }));
}
// A share of time: what was read a moment later than its clock may be a little more than all of it.
const most = (share) => (share === null || share === undefined ? share : Math.min(1, share));

function rows() {
  if (!seen.state) return;
  const wanted = at("filter").value.toLowerCase(), [name, way] = seen.order;
  const all = seen.state.workloads.map((one) => ({ ...one, stalled: most(((one.pressure || {}).cpu || {}).some) }))
    .filter((one) => `${one.key} ${one.qos}`.toLowerCase().includes(wanted))
    .sort((a, b) => {
      const [p, q] = [a[name], b[name]];
      if (p === q) return a.key < b.key ? -1 : 1;
      if (p === null || p === undefined) return 1;
      if (q === null || q === undefined) return -1;
      return (p < q ? -1 : 1) * way;
    });
  const shown = all.slice(0, MOST_ROWS).map(rowOf), there = new Set(shown);
  for (const [key, row] of drawn) if (!there.has(row)) drawn.delete(key);
  if (!shown.length) shown.push(make("tr", {}, make("td", { colspan: COLUMNS.length, class: "soft" },
    wanted ? "No workload matches." : `No workload is declared${seen.state.unmanaged ? `; ${seen.state.unmanaged} undeclared cgroups run` : ""}.`)));
  const body = at("rows"), same = body.children.length === shown.length && shown.every((row, n) => body.children[n] === row);
  if (!same) body.replaceChildren(...shown);
  at("more").textContent = all.length > MOST_ROWS ? `${all.length - MOST_ROWS} more: filter, or sort by another column.` : "";
  for (const one of all.slice(0, MOST_ROWS)) spark(drawn.get(one.uid || one.key).canvas, trends.get(one.key) || [], `${one.qos.toLowerCase()}-line`);
}
function rowOf(one) {
  const id = one.uid || one.key;
  let row = drawn.get(id);
  if (!row) {
    const open = make("button", { type: "button", class: "open" }, one.key);
    open.addEventListener("click", () => openWorkload(one.key));
    const canvas = make("canvas", { class: "spark", "aria-hidden": "true" });
    row = make("tr", {}, make("td", {}, open), make("td", {}, make("span", { class: `badge ${style(one.qos)}` }, one.qos)), make("td"),
      make("td", { class: "number" }), make("td", {}, canvas), ...[0, 1, 2, 3].map(() => make("td", { class: "number" })));
    row.canvas = canvas;
    drawn.set(id, row);
  }
  row.cells[0].title = one.cgroup || "no cgroup yet";
  const texts = { 2: one.cpus || "–", 3: fixed(one.cpuCores), 5: bytes(one.memoryBytes), 6: percent(one.throttledRatio), 7: percent(one.stalled), 8: one.pids === null ? "–" : String(one.pids) };
  for (const [n, text] of Object.entries(texts)) if (row.cells[n].textContent !== text) row.cells[n].textContent = text;
  return row;
}
// The last five minutes come from the agent once; then each fifth second adds a sample.
async function fillTrends() {
  const answer = await ask("/api/v1/history?resolution=5s");
  for (const [name, values] of Object.entries(answer.series)) trends.set(name.slice(0, name.lastIndexOf("/")), values);
  trendAt = answer.observedAt;
}
function appendTrends(state) {
  if (state.observedAt - trendAt < 4.75) return;
  trendAt = state.observedAt;
  const here = new Set();
  for (const one of state.workloads) {
    here.add(one.key);
    trends.set(one.key, [...(trends.get(one.key) || []), one.cpuCores].slice(-60));
  }
  for (const key of trends.keys()) if (!here.has(key)) trends.delete(key);
}

// One workload -------------------------------------------------------------------------------------

const OF_ONE = [
  ["cpuCores", "CPU use", "cores", "lsr-line"], ["memoryBytes", "Memory", "bytes", "lse-line"],
  ["throttledRatio", "CPU throttling", "ratio", "be-line"], ["pressure.cpu.some", "CPU pressure", "ratio", "bad"]];

function closeWorkload() {
  if (at("detail").hidden) return;
  at("detail").hidden = true;
  dropCharts(at("detail").dataset.prefix);
  place({ pod: null });
}
async function openWorkload(key) {
  closeWorkload();
  place({ pod: key });
  const box = at("detail"), charts = make("div", { class: "charts" });
  const close = make("button", { type: "button", "aria-label": "Close this workload" }, "✕");
  close.addEventListener("click", closeWorkload);
  box.hidden = false;
  box.dataset.prefix = `${key}/`;
  const facts = make("ul", { class: "facts" });
  box.replaceChildren(make("h3", {}, make("span", {}, key), close), facts, charts,
    make("p", { class: "soft" }, "Recorded once a minute while it is among the 48 busiest workloads."));
  box.scrollIntoView({ block: "nearest" });
  for (const [name, title, unit, ink] of OF_ONE) {
    addChart({ id: name, title: `${title} of ${key}`, unit, series: [{ name, label: title, colour: ink, style: "line" }] }, charts, `${key}/`);
  }
  timeline.changed("open");
  if (!seen.state.workloads.some((one) => one.key === key)) {
    facts.replaceChildren(make("li", { class: "bad" }, "The agent knows no workload of this name now."));
    return;
  }
  const found = await ask(`/api/v1/pod?name=${encodeURIComponent(key)}`);
  facts.replaceChildren(...factsOf(found).map(([name, value]) => make("li", {}, make("span", { class: "soft" }, `${name} `), value)));
}
function factsOf(found) {
  const group = found.cgroup || {};
  return [
    ["class", `${found.qos}, from ${found.qosFrom}`], ["cgroup", group.path || "none yet"], ["CPUs", group.effective || group.cpus || "–"],
    ...(found.holds ? [["holds", `CPUs ${found.holds.cpus}: ${found.holds.reason} (${found.holds.policy})`]] : []),
    ...Object.entries(found.policies).map(([stem, why]) => [stem, why]),
    ...found.actions.map((one) => ["planned", `${one.target}: ${one.value} – ${one.reason} (${one.policy})`]),
    ...found.conditions.map((one) => [one.type, one.message]), ...found.problems.map((problem) => ["problem", problem])];
}
at("filter").addEventListener("input", rows);
