// The table of workloads with a line of the last minutes each, and what is known about one of them.
"use strict";

// Key, heading, and what it means.
const COLUMNS = [
  ["key", "workload", "namespace and name"], ["qos", "class", "QoS class"], ["cpus", "CPUs", "CPUs on which it may run"],
  ["cpuCores", "cores", "CPU use, in cores"], ["trend", "cores, 5 min", "CPU use of the last five minutes; each line has its own scale"],
  ["memoryBytes", "memory", "working set: memory without inactive page cache"], ["throttledRatio", "throttled", "share of CPU periods in which it was throttled"],
  ["stalled", "CPU pressure", "share of time in which some of its tasks waited for a CPU"], ["pids", "threads", "processes and threads"],
];
const TEXTS = new Set(["key", "qos", "cpus", "trend"]);
const MOST_ROWS = 200;
// Of each workload: its row, and its newest samples, five seconds apart.
const drawn = new Map(), trends = new Map();
let trendAt = 0;

function drawHead() {
  at("columns").replaceChildren(...COLUMNS.map(([name, title, meaning]) => {
    if (name === "trend") return make("th", { scope: "col", title: meaning }, title);
    const sorted = seen.order[0] === name;
    return make("th", { scope: "col", title: meaning, class: TEXTS.has(name) ? "" : "number", "aria-sort": sorted ? (seen.order[1] > 0 ? "ascending" : "descending") : "none" },
      make("button", { type: "button", "data-column": name, on: { click: () => {
        seen.order = [name, sorted ? -seen.order[1] : name === "key" || name === "qos" ? 1 : -1];
        remember("order", seen.order);
        drawHead(); drawWorkloads();
        at("columns").querySelector(`[data-column="${name}"]`).focus();
      } } }, title + (sorted ? (seen.order[1] > 0 ? " ▲" : " ▼") : "")));
  }));
}
// A share of time: what was read a moment later than its clock may be a little more than all of it.
const atMostOne = (share) => (share === null || share === undefined ? share : Math.min(1, share));

function drawWorkloads() {
  if (!seen.state) return;
  const wanted = at("filter").value.toLowerCase(), [name, way] = seen.order;
  const all = seen.state.workloads.map((workload) => ({ ...workload, stalled: atMostOne(((workload.pressure || {}).cpu || {}).some) }))
    .filter((workload) => `${workload.key} ${workload.qos}`.toLowerCase().includes(wanted))
    .sort((a, b) => {
      const [p, q] = [a[name], b[name]];
      if (p === q) return a.key < b.key ? -1 : 1;
      if (p === null || p === undefined) return 1;
      if (q === null || q === undefined) return -1;
      return (p < q ? -1 : 1) * way;
    });
  const shown = all.slice(0, MOST_ROWS).map(workloadRow), there = new Set(shown);
  for (const [key, row] of drawn) if (!there.has(row)) drawn.delete(key);
  if (!shown.length) shown.push(make("tr", {}, make("td", { colspan: COLUMNS.length, class: "soft" },
    wanted ? "No workload matches." : `No workload is declared${seen.state.unmanaged ? `; ${seen.state.unmanaged} undeclared cgroups run` : ""}.`)));
  const body = at("rows"), same = body.children.length === shown.length && shown.every((row, n) => body.children[n] === row);
  if (!same) keepFocus(body, "workload", () => body.replaceChildren(...shown));
  at("more").textContent = all.length > MOST_ROWS ? `${all.length - MOST_ROWS} more: filter, or sort by another column.` : "";
  for (const workload of all.slice(0, MOST_ROWS)) spark(drawn.get(workload.uid || workload.key).canvas, trends.get(workload.key) || [], `${workload.qos.toLowerCase()}-line`);
}
function workloadRow(workload) {
  const id = workload.uid || workload.key;
  let row = drawn.get(id);
  if (!row) {
    const open = make("button", { type: "button", class: "open", "data-workload": workload.key }, workload.key);
    open.addEventListener("click", () => openWorkload(workload.key));
    const canvas = make("canvas", { class: "spark", "aria-hidden": "true" });
    row = make("tr", {}, make("td", {}, open), make("td", {}, make("span", { class: `badge ${style(workload.qos)}` }, workload.qos)), make("td"),
      make("td", { class: "number" }), make("td", {}, canvas), ...[0, 1, 2, 3].map(() => make("td", { class: "number" })));
    row.canvas = canvas;
    drawn.set(id, row);
  }
  row.cells[0].title = workload.cgroup || "no cgroup yet";
  const texts = { 2: workload.cpus || "–", 3: fixed(workload.cpuCores), 5: bytes(workload.memoryBytes), 6: percent(workload.throttledRatio), 7: percent(workload.stalled), 8: workload.pids === null ? "–" : String(workload.pids) };
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
  for (const workload of state.workloads) {
    here.add(workload.key);
    trends.set(workload.key, [...(trends.get(workload.key) || []), workload.cpuCores].slice(-60));
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
  opened.key = key;
  opened.basis = opened.words = "";
  box.replaceChildren(make("h3", {}, make("span", {}, key), close), make("ul", { class: "facts" }), charts,
    make("p", { class: "soft" }, "Recorded once a minute while it is among the 48 busiest workloads."));
  box.scrollIntoView({ block: "nearest" });
  for (const [name, title, unit, ink] of OF_ONE) {
    addChart({ id: name, title: `${title} of ${key}`, unit, series: [{ name, label: title, colour: ink, style: "line" }] }, charts, `${key}/`);
  }
  timeline.changed("open");
  await refreshFacts();
}
// The facts of the opened workload: asked for again when a state says something else of it.
const opened = { key: "", basis: "", words: "" };
async function refreshFacts() {
  const { key } = opened;
  if (at("detail").hidden || !seen.state) return;
  const { state } = seen, workload = state.workloads.find((each) => each.key === key), group = workload && workload.cgroup;
  const basis = JSON.stringify([state.epoch, state.revision, workload && [workload.uid, workload.qos, workload.cpus, group],
    Object.values(state.explanations).map((facts) => facts[key]), state.actions.filter((action) => group && action.target.includes(group))]);
  if (basis === opened.basis) return;
  // One that left after this state: the next one says so.
  const pod = workload ? await ask(`/api/v1/pod?name=${inQuery(key)}`).catch(() => null) : null;
  if (opened.key !== key || (workload && !pod)) return;
  const facts = pod ? factsOf(pod) : [["", "The agent knows no workload of this name now."]];
  opened.basis = basis;
  // What is being read or selected stays.
  const words = JSON.stringify(facts);
  if (opened.words === words) return;
  opened.words = words;
  at("detail").querySelector(".facts").replaceChildren(...facts.map(([name, value]) =>
    make("li", { class: name ? null : "bad" }, name ? make("span", { class: "soft" }, `${name} `) : "", value)));
}
function factsOf(pod) {
  const group = pod.cgroup || {};
  return [
    ["class", `${pod.qos}, from ${pod.qosFrom}`], ["cgroup", group.path || "none yet"], ["CPUs", group.effective || group.cpus || "–"],
    ...(pod.holds ? [["holds", `CPUs ${pod.holds.cpus}: ${pod.holds.reason} (${pod.holds.policy})`]] : []),
    ...Object.entries(pod.policies).map(([stem, why]) => [stem, why]),
    ...pod.actions.map((action) => ["planned", `${action.target}: ${action.value} – ${action.reason} (${action.policy})`]),
    ...pod.conditions.map((condition) => [condition.type, condition.message]), ...pod.problems.map((problem) => ["problem", problem])];
}
at("filter").addEventListener("input", drawWorkloads);
