// The map of CPUs: who owns each, how busy it is, and why.
"use strict";

const OWNERS = {
  reserved: ["R", "reserved: for the system, no workload runs there"],
  system: ["Y", "system: pods of QoS class SYSTEM"],
  LSE: ["E", "LSE: exclusive to one workload"],
  LSR: ["X", "LSR: reserved for one workload; best-effort work may use idle time"],
  reservation: ["V", "reservation: held for pods to come"],
  LS: ["L", "LS pool: shared by latency-sensitive workloads"],
  both: ["S", "LS and BE pool: shared; latency-sensitive work has priority"],
  BE: ["B", "BE pool: best-effort work"],
  nobody: ["–", "in no pool"],
  outside: ["T", "outside: of the cgroup tree, no workload can have it"],
  offline: ["o", "offline"],
};

// Owners -------------------------------------------------------------------------------------------

function owners(state) {
  const byCpu = new Map();
  const put = (text, entry, over) => {
    for (const cpu of cpusIn(text)) if (over || !byCpu.has(cpu)) byCpu.set(cpu, entry);
  };
  const limit = state.bestEffort && state.bestEffort.cpus !== null ? new Set(cpusIn(state.bestEffort.cpus)) : null;
  const shadow = new Set(state.shadow);
  for (const claim of state.pools.claims) {
    const why = shadow.has(claim.policy) ? `${claim.reason}; not enforced, the policy is in shadow mode` : claim.reason;
    put(claim.cpus, { kind: claim.owner, who: claim.holder, why, policy: claim.policy });
  }
  const ls = new Set(), be = new Set();
  for (const pool of state.pools.shared) {
    for (const cpu of cpusIn(pool.cpus)) {
      if (pool.kind === "LS") ls.add(cpu);
      else if (limit === null || limit.has(cpu)) be.add(cpu);
    }
  }
  const words = { LS: "the LS pool", BE: "the BE pool", both: "the LS and the BE pool" };
  for (const cpu of new Set([...ls, ...be])) {
    const kind = ls.has(cpu) ? (be.has(cpu) ? "both" : "LS") : "BE";
    const why = limit !== null && kind === "LS" && state.bestEffort.reason
      ? `neither reserved nor exclusive; best-effort work: ${state.bestEffort.reason}`
      : "neither reserved nor exclusive";
    if (!byCpu.has(cpu)) byCpu.set(cpu, { kind, who: words[kind], why, policy: "shared_pools" });
  }
  put(state.cpus.outside, { kind: "outside", who: "no workload", why: "it is outside of the root of the cgroup tree", policy: "" });
  return byCpu;
}
function ownerOf(cpu) {
  if (cpu.online === false) return { kind: "offline", who: "no owner", why: "the CPU is offline", policy: "" };
  return seen.owners.get(cpu.cpu) || { kind: "nobody", who: "no owner", why: "no policy has assigned it yet", policy: "" };
}
const style = (kind) => kind.toLowerCase();

// The machine --------------------------------------------------------------------------------------

const CROWD = 512;
const painted = new Map(), cells = new Map();
function buildMap() {
  const map = at("map"), cpus = seen.topology.cpus;
  painted.clear();
  cells.clear();
  map.replaceChildren();
  at("machine").classList.toggle("wide", cpus.length > 96);
  map.className = cpus.length > CROWD ? "crowd" : cpus.length > 96 ? "many" : cpus.length > 24 ? "" : "few";
  const group = (all, name) => {
    const groups = new Map();
    for (const cpu of all) {
      const key = cpu[name] === undefined ? null : cpu[name];
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(cpu);
    }
    return [...groups].sort(([a], [b]) => (a === null) - (b === null) || a - b);
  };
  const titled = (cls, title, inside) =>
    make("div", { class: cls, role: "group", "aria-label": title }, make("div", { class: "label" }, title), ...inside);
  for (const [socket, inSocket] of group(cpus, "socket")) {
    const nodes = group(inSocket, "node").map(([node, inNode]) => {
      const caches = group(inNode, "l3").map(([l3, inCache]) => {
        const cores = group(inCache, "core").map(([, inCore]) =>
          make("div", { class: "core" }, ...inCore.map(cell)));
        const box = make("div", { class: "cores" }, ...cores);
        return l3 === null ? box : titled("cache", `L3 ${l3}`, [box]);
      });
      return node === null ? make("div", {}, ...caches) : titled("numa", `NUMA node ${node}`, caches);
    });
    map.append(titled("socket", socket === null ? "offline or unknown" : `socket ${socket}`, nodes));
  }
  const first = seen.chosen !== null && cellOf(seen.chosen) ? seen.chosen : cpus.length ? cpus[0].cpu : null;
  if (first === null) return;
  cellOf(first).tabIndex = 0;
  cellOf(first).setAttribute("aria-pressed", String(first === seen.chosen));
}
function cell(cpu) {
  const box = make("button", { type: "button", class: "cpu", tabindex: -1, "data-cpu": cpu.cpu, "aria-pressed": "false" },
    make("i"));
  // Thousands of cells are too small for text: their patterns tell owners apart.
  if (seen.topology.cpus.length <= CROWD) box.append(make("b", { "aria-hidden": "true" }, String(cpu.cpu)), make("s", { "aria-hidden": "true" }));
  cells.set(cpu.cpu, box);
  return box;
}
const cellOf = (cpu) => cells.get(cpu);

function paintCpus() {
  const counts = new Map();
  const used = seen.state.usage.cpus || {};
  for (const cpu of seen.topology.cpus) {
    const owner = ownerOf(cpu), load = used[cpu.cpu];
    counts.set(owner.kind, (counts.get(owner.kind) || 0) + 1);
    const height = load === null || load === undefined ? 0 : Math.min(100, Math.round(load * 100));
    const words = `CPU ${cpu.cpu}, ${owner.kind}, ${owner.who}${load === undefined || load === null ? "" : `, ${height} % busy`}`;
    // Of thousands of CPUs few change in a second.
    if (painted.get(cpu.cpu) === words) continue;
    const box = cellOf(cpu.cpu);
    if (!box) continue;
    painted.set(cpu.cpu, words);
    const cls = `cpu ${style(owner.kind)}`;
    if (box.className !== cls) {
      box.className = cls;
      if (box.children[2]) box.children[2].textContent = (OWNERS[owner.kind] || ["?"])[0];
    }
    box.firstChild.style.height = `${height}%`;
    box.setAttribute("aria-label", words);
  }
  at("legend").replaceChildren(...Object.entries(OWNERS).filter(([kind]) => counts.has(kind)).map(([kind, [letter, words]]) =>
    make("li", { title: words }, make("span", { class: `swatch ${style(kind)}`, "aria-hidden": "true" }, letter),
      `${words.split(":")[0]} ${counts.get(kind)}`)));
  if (seen.chosen !== null) explainCpu(seen.chosen);
}
function explainCpu(number) {
  const cpu = seen.topology.cpus.find((each) => each.cpu === number);
  if (!cpu || !seen.state) return;
  const owner = ownerOf(cpu), load = (seen.state.usage.cpus || {})[number];
  const runs = seen.state.workloads.filter((workload) => workload.cpus !== null && cpusIn(workload.cpus).includes(number));
  const place = [["socket", cpu.socket], ["NUMA node", cpu.node], ["L3", cpu.l3], ["core", cpu.core]]
    .filter(([, n]) => n !== null && n !== undefined).map(([name, n]) => `${name} ${n}`).join(", ");
  const text = [
    make("b", {}, `CPU ${number}`), ` (${place || "position unknown"}): `,
    make("span", { class: `badge ${style(owner.kind)}` }, owner.kind === "both" ? "LS + BE" : owner.kind),
    ` ${owner.who}. `, make("span", {}, `Why: ${owner.why}${owner.policy ? ` (${owner.policy})` : ""}. `),
    `Busy: ${percent(load)}. `,
    `Workloads: ${runs.length ? runs.slice(0, 8).map((workload) => `${workload.key} [${workload.qos}]`).join(", ") + (runs.length > 8 ? ` and ${runs.length - 8} more` : "") : "no declared workload"}.`,
  ];
  const words = text.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
  if (at("why").textContent !== words) at("why").replaceChildren(...text);
}
function chooseCpu(number, focus) {
  for (const other of at("map").querySelectorAll('[aria-pressed="true"]')) other.setAttribute("aria-pressed", "false");
  for (const other of at("map").querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
  const box = cellOf(number);
  if (!box) return;
  seen.chosen = number;
  if (focus) place({ cpu: number });
  box.tabIndex = 0;
  box.setAttribute("aria-pressed", "true");
  if (focus) box.focus();
  explainCpu(number);
}
function moveByKey(event) {
  const all = [...at("map").querySelectorAll(".cpu")], here = all.indexOf(document.activeElement);
  if (here < 0) return;
  const box = (target) => target.getBoundingClientRect();
  const line = (step) => {
    const mine = box(all[here]);
    const rows = all.filter((target) => (box(target).top - mine.top) * step > mine.height / 2);
    if (!rows.length) return null;
    const near = Math.min(...rows.map((target) => Math.abs(box(target).top - mine.top)));
    return rows.filter((target) => Math.abs(Math.abs(box(target).top - mine.top) - near) < 2)
      .sort((a, b) => Math.abs(box(a).left - mine.left) - Math.abs(box(b).left - mine.left))[0];
  };
  const next = { ArrowRight: () => all[here + 1], ArrowLeft: () => all[here - 1], Home: () => all[0],
    End: () => all[all.length - 1], ArrowDown: () => line(1), ArrowUp: () => line(-1) }[event.key];
  if (!next) return;
  event.preventDefault();
  const target = next();
  if (target) chooseCpu(Number(target.dataset.cpu), true);
}

at("map").addEventListener("keydown", moveByKey);
at("map").addEventListener("focusin", (event) => { if (event.target.dataset.cpu) chooseCpu(Number(event.target.dataset.cpu), false); });
at("map").addEventListener("mouseover", (event) => { const box = event.target.closest(".cpu"); if (box) chooseCpu(Number(box.dataset.cpu), false); });
at("map").addEventListener("click", (event) => { const box = event.target.closest(".cpu"); if (box) chooseCpu(Number(box.dataset.cpu), true); });
