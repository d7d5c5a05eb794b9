// The console of one koordlet agent: draws the states that /api/v1/events tells once a tick.
// Everything from outside becomes text (textContent, attributes), never markup.
"use strict";

const OWNERS = {
  reserved: ["R", "reserved: for the system, no workload runs there"],
  system: ["Y", "system: pods of QoS class SYSTEM"],
  LSE: ["E", "LSE: exclusive to one workload"],
  LSR: ["X", "LSR: reserved for one workload; best-effort work may use idle time"],
  LS: ["L", "LS pool: shared by latency-sensitive workloads"],
  both: ["S", "LS and BE pool: shared; latency-sensitive work has priority"],
  BE: ["B", "BE pool: best-effort work"],
  nobody: ["–", "in no pool"],
  offline: ["o", "offline"],
};
const KEPT = 300;
const COLUMNS = [
  ["key", "workload"], ["qos", "class"], ["cpus", "CPUs"], ["cpuCores", "cores"],
  ["memoryBytes", "memory"], ["throttledRatio", "throttled"], ["stalled", "CPU pressure"],
  ["pids", "threads"],
];
const TEXTS = new Set(["key", "qos", "cpus"]);
const seen = { topology: null, state: null, owners: new Map(), chosen: null, past: [],
  order: ["cpuCores", -1], audit: [], writes: -1, revision: "" };

// Owners -------------------------------------------------------------------------------------------

function owners(state) {
  const found = new Map();
  const put = (text, entry, over) => {
    for (const cpu of list(text)) if (over || !found.has(cpu)) found.set(cpu, entry);
  };
  const limit = state.bestEffort && state.bestEffort.cpus !== null ? new Set(list(state.bestEffort.cpus)) : null;
  const shadow = new Set(state.shadow);
  for (const claim of state.pools.claims) {
    const why = shadow.has(claim.policy) ? `${claim.reason}; not enforced, the policy is in shadow mode` : claim.reason;
    put(claim.cpus, { kind: claim.owner, who: claim.holder, why, policy: claim.policy });
  }
  const ls = new Set(), be = new Set();
  for (const pool of state.pools.shared) {
    for (const cpu of list(pool.cpus)) {
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
    if (!found.has(cpu)) found.set(cpu, { kind, who: words[kind], why, policy: "shared_pools" });
  }
  return found;
}
function ownerOf(cpu) {
  if (cpu.online === false) return { kind: "offline", who: "no owner", why: "the CPU is offline", policy: "" };
  return seen.owners.get(cpu.cpu) || { kind: "nobody", who: "no owner", why: "no policy has assigned it yet", policy: "" };
}
const style = (kind) => kind.toLowerCase();

// The machine --------------------------------------------------------------------------------------

function machine() {
  const map = at("map"), cpus = seen.topology.cpus;
  map.replaceChildren();
  map.className = cpus.length > 512 ? "crowd" : cpus.length > 96 ? "many" : "";
  const group = (all, name) => {
    const found = new Map();
    for (const one of all) {
      const key = one[name] === undefined ? null : one[name];
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(one);
    }
    return [...found].sort(([a], [b]) => (a === null) - (b === null) || a - b);
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
  if (first !== null) cellOf(first).tabIndex = 0;
}
function cell(cpu) {
  return make("button", { type: "button", class: "cpu", tabindex: -1, "data-cpu": cpu.cpu, "aria-pressed": "false" },
    make("i"), make("b", { "aria-hidden": "true" }, String(cpu.cpu)));
}
const cellOf = (cpu) => at("map").querySelector(`[data-cpu="${Number(cpu)}"]`);

function paint() {
  const counts = new Map();
  const used = seen.state.usage.cpus || {};
  for (const cpu of seen.topology.cpus) {
    const owner = ownerOf(cpu), box = cellOf(cpu.cpu), load = used[cpu.cpu];
    counts.set(owner.kind, (counts.get(owner.kind) || 0) + 1);
    if (!box) continue;
    const cls = `cpu ${style(owner.kind)}`;
    if (box.className !== cls) box.className = cls;
    const height = load === null || load === undefined ? 0 : Math.min(100, Math.round(load * 100));
    box.firstChild.style.height = `${height}%`;
    box.setAttribute("aria-label", `CPU ${cpu.cpu}, ${owner.kind}, ${owner.who}${load === undefined || load === null ? "" : `, ${height} % busy`}`);
  }
  at("legend").replaceChildren(...Object.entries(OWNERS).filter(([kind]) => counts.has(kind)).map(([kind, [letter, words]]) =>
    make("li", { title: words }, make("span", { class: `swatch ${style(kind)}`, "aria-hidden": "true" }, letter),
      `${words.split(":")[0]} ${counts.get(kind)}`)));
  if (seen.chosen !== null) why(seen.chosen);
}
function why(number) {
  const cpu = seen.topology.cpus.find((one) => one.cpu === number);
  if (!cpu || !seen.state) return;
  const owner = ownerOf(cpu), load = (seen.state.usage.cpus || {})[number];
  const runs = seen.state.workloads.filter((one) => one.cpus !== null && list(one.cpus).includes(number));
  const place = [["socket", cpu.socket], ["NUMA node", cpu.node], ["L3", cpu.l3], ["core", cpu.core]]
    .filter(([, n]) => n !== null && n !== undefined).map(([name, n]) => `${name} ${n}`).join(", ");
  const text = [
    make("b", {}, `CPU ${number}`), ` (${place || "position unknown"}): `,
    make("span", { class: `badge ${style(owner.kind)}` }, owner.kind === "both" ? "LS + BE" : owner.kind),
    ` ${owner.who}. `, make("span", {}, `Why: ${owner.why}${owner.policy ? ` (${owner.policy})` : ""}. `),
    `Busy: ${percent(load)}. `,
    `Workloads: ${runs.length ? runs.slice(0, 8).map((one) => `${one.key} [${one.qos}]`).join(", ") + (runs.length > 8 ? ` and ${runs.length - 8} more` : "") : "no declared workload"}.`,
  ];
  const words = text.map((one) => (typeof one === "string" ? one : one.textContent)).join("");
  if (at("why").textContent !== words) at("why").replaceChildren(...text);
}
function choose(number, focus) {
  for (const one of at("map").querySelectorAll('[aria-pressed="true"]')) one.setAttribute("aria-pressed", "false");
  for (const one of at("map").querySelectorAll('[tabindex="0"]')) one.tabIndex = -1;
  const box = cellOf(number);
  if (!box) return;
  seen.chosen = number;
  box.tabIndex = 0;
  box.setAttribute("aria-pressed", "true");
  if (focus) box.focus();
  why(number);
}
function onKey(event) {
  const all = [...at("map").querySelectorAll(".cpu")], here = all.indexOf(document.activeElement);
  if (here < 0) return;
  const box = (one) => one.getBoundingClientRect();
  const line = (step) => {
    const mine = box(all[here]);
    const rows = all.filter((one) => (box(one).top - mine.top) * step > mine.height / 2);
    if (!rows.length) return null;
    const near = Math.min(...rows.map((one) => Math.abs(box(one).top - mine.top)));
    return rows.filter((one) => Math.abs(Math.abs(box(one).top - mine.top) - near) < 2)
      .sort((a, b) => Math.abs(box(a).left - mine.left) - Math.abs(box(b).left - mine.left))[0];
  };
  const next = { ArrowRight: () => all[here + 1], ArrowLeft: () => all[here - 1], Home: () => all[0],
    End: () => all[all.length - 1], ArrowDown: () => line(1), ArrowUp: () => line(-1) }[event.key];
  if (!next) return;
  event.preventDefault();
  const one = next();
  if (one) choose(Number(one.dataset.cpu), true);
}

// Time ---------------------------------------------------------------------------------------------

function remember(state) {
  const shares = state.usage.shares || {}, cores = (name) => (shares[name] ? shares[name].cpuCores : null);
  const psi = (((state.usage.pressure || {}).cpu || {}).some);
  seen.past.push({ at: state.observedAt, used: state.usage.cpuCores, ls: cores("LS"), be: cores("BE"),
    limit: state.bestEffort ? (state.bestEffort.limitCores !== null ? state.bestEffort.limitCores
      : state.bestEffort.cpus !== null ? list(state.bestEffort.cpus).length : null) : null,
    psi: psi === null || psi === undefined ? null : psi });
  while (seen.past.length > KEPT) seen.past.shift();
}
function chart() {
  const wide = 600, high = 170, left = 34, bottom = 18;
  const cpus = seen.topology ? list(seen.topology.online).length : 1;
  const end = seen.past[seen.past.length - 1].at, start = Math.min(seen.past[0].at, end - 30);
  const x = (t) => left + ((t - start) / (end - start)) * (wide - left - 4);
  const y = (v, most) => high - bottom - (Math.min(v, most) / most) * (high - bottom - 6);
  const lines = [["used", "used", "all", cpus], ["ls", "line-ls", "LS", cpus], ["be", "line-be", "BE", cpus],
    ["limit", "line-limit", "BE limit", cpus], ["psi", "line-psi", "CPU pressure (some), scale 0 to 100 %", 1]];
  const known = lines.filter(([name]) => seen.past.some((one) => one[name] !== null && one[name] !== undefined));
  const picture = draw("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img",
    "aria-label": `CPU use of the last ${Math.round(end - start)} seconds, ${cpus} CPUs` });
  for (const part of [0, 0.5, 1]) {
    const height = y(cpus * part, cpus);
    picture.append(draw("line", { class: "axis", x1: left, x2: wide - 4, y1: height, y2: height }),
      draw("text", { x: 2, y: height + 4 }, String(Math.round(cpus * part * 10) / 10)));
  }
  picture.append(draw("text", { x: left, y: high - 4 }, `${Math.round(end - start)} s ago`),
    draw("text", { x: wide - 28, y: high - 4 }, "now"));
  for (const [name, cls, , most] of known) {
    let run = [];
    const flush = () => { if (run.length > 1) picture.append(draw("polyline", { class: cls, points: run.join(" ") })); run = []; };
    for (const one of seen.past) {
      if (one[name] === null || one[name] === undefined) flush();
      else run.push(`${x(one.at).toFixed(1)},${y(one[name], most).toFixed(1)}`);
    }
    flush();
  }
  const now = seen.past[seen.past.length - 1];
  const keys = make("ul", { class: "keys" }, ...known.map(([name, cls, words]) => {
    const key = draw("svg", { viewBox: "0 0 20 6", "aria-hidden": "true" }, draw("polyline", { class: cls, points: "0,3 20,3" }));
    return make("li", {}, key, ` ${words}: ${name === "psi" ? percent(now.psi) : fixed(now[name])}`);
  }));
  at("chart").replaceChildren(picture, keys);
  const limit = seen.state.bestEffort;
  const would = limit && limit.wouldBe;
  at("best-effort").textContent = would ? `Best-effort work is not limited. ${would.policy} would limit it: ${would.reason} (${would.why})`
    : !limit || !limit.policy ? "Best-effort work is not limited."
    : `Best-effort work (${limit.policy}): ${limit.reason || "limited"}`;
}

// Lists --------------------------------------------------------------------------------------------

// A number with its unit in a sentence; "65% of 8" cores is a number of cores.
const UNITS = { "": 1, "%": 1, m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 1024, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, cores: 1 };
function amount(text) {
  const cores = /([0-9.]+) cores/.exec(text || ""), part = /^([0-9.]+)% of ([0-9.]+)$/.exec(text || "");
  if (cores) return { value: Number(cores[1]), unit: "cores" };
  if (part) return { value: (Number(part[1]) / 100) * Number(part[2]), unit: "cores" };
  const found = /^\s*([0-9.]+)\s*([a-zA-Z%]*)/.exec(text || "");
  if (!found || !(found[2] in UNITS)) return null;
  return { value: Number(found[1]) * UNITS[found[2]], unit: found[2] === "%" ? "%" : /i$/.test(found[2]) ? "B" : "" };
}
function spelled(value, unit) {
  return unit === "B" ? bytes(value) : unit === "cores" ? `${value.toFixed(2)} cores` : unit === "%" ? `${value.toFixed(1)} %` : String(Math.round(value));
}
// How near a signal is to its threshold (1: there), and what is left until then.
function nearness(one) {
  const observed = amount(one.observed), least = amount(one.threshold);
  if (!observed || !least || least.value <= 0) return null;
  const unit = observed.unit || least.unit;
  if (observed.unit && least.unit && observed.unit !== least.unit) return null;
  const falling = /(available|inodesFree|free)$/.test(one.name);
  const left = falling ? observed.value - least.value : least.value - observed.value;
  const near = falling ? least.value / Math.max(observed.value, least.value / 100) : observed.value / least.value;
  return { near, words: left >= 0 ? `${spelled(left, unit)} left` : `${spelled(-left, unit)} ${falling ? "below the threshold" : "above the threshold"}` };
}
// Many digits of bytes say nothing to people.
function short(text, like) {
  const found = amount(text), unit = found && (found.unit || (amount(like) || {}).unit);
  return text && text.length > 6 && unit === "B" ? bytes(found.value) : text || "–";
}
function gauge(one) {
  const word = one.met === null ? `unknown: ${one.why || "no measurement"}` : one.met ? "met" : "not met";
  const since = one.since ? ` for ${Math.max(0, Math.round(seen.state.observedAt - one.since))} s` : "";
  const row = make("li", { class: one.met ? "met" : "" }, make("b", {}, one.name),
    ` ${short(one.observed)}, threshold ${short(one.threshold, one.observed)}${one.spelled ? ` (${one.spelled})` : ""}: ${word}${since}${one.met && one.why ? `; ${one.why}` : ""}`);
  const found = nearness(one);
  if (found === null) return row;
  const fill = make("i");
  fill.style.width = `${Math.min(100, found.near * 100).toFixed(1)}%`;
  row.append(make("div", { class: "bar", role: "meter", "aria-label": `${one.name}, share of the way to its threshold`,
    "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": Math.min(1, found.near).toFixed(2), "aria-valuetext": found.words }, fill),
  make("span", { class: "soft" }, found.words));
  return row;
}
function gauges(signals, evictions) {
  const known = signals.filter((one) => one.met !== null), unknown = signals.filter((one) => one.met === null);
  at("gauges").replaceChildren(...known.map(gauge),
    ...(signals.length ? [] : [make("li", { class: "soft" }, "No policy watches signals.")]));
  const box = at("unknown");
  box.hidden = !unknown.length;
  box.firstChild.textContent = `${unknown.length} ${unknown.length === 1 ? "unknown signal" : "unknown signals"}`;
  box.lastChild.replaceChildren(...unknown.map(gauge));
  at("evictions").replaceChildren(...evictions.map((one) => make("li", {}, make("b", {}, one.pod),
    ` ${one.held ? `not evicted yet: ${one.held}` : "selected for eviction"}; ${one.signal} is ${one.observed}, threshold ${one.threshold} (${one.policy})`)));
}
function heads() {
  at("columns").replaceChildren(...COLUMNS.map(([name, title]) => {
    const sorted = seen.order[0] === name;
    return make("th", { scope: "col", class: TEXTS.has(name) ? "" : "number", "aria-sort": sorted ? (seen.order[1] > 0 ? "ascending" : "descending") : "none" },
      make("button", { type: "button", "data-column": name, on: { click: () => {
        seen.order = [name, sorted ? -seen.order[1] : name === "key" || name === "qos" ? 1 : -1];
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
  const body = all.map((one) => make("tr", {}, make("td", { title: one.cgroup || "no cgroup yet" }, one.key),
    make("td", {}, make("span", { class: `badge ${style(one.qos)}` }, one.qos)), make("td", {}, one.cpus || "–"),
    make("td", { class: "number" }, fixed(one.cpuCores)), make("td", { class: "number" }, bytes(one.memoryBytes)),
    make("td", { class: "number" }, percent(one.throttledRatio)), make("td", { class: "number" }, percent(one.stalled)),
    make("td", { class: "number" }, one.pids === null ? "–" : String(one.pids))));
  if (!body.length) body.push(make("tr", {}, make("td", { colspan: COLUMNS.length, class: "soft" },
    wanted ? "No workload matches." : `No workload is declared${seen.state.unmanaged ? `; ${seen.state.unmanaged} undeclared cgroups run` : ""}.`)));
  at("rows").replaceChildren(...body);
}
const KINDS = { BE: "be", LS: "ls", LSR: "lsr" };
function ways(found) {
  if (!found || !found.mounted) {
    at("ways").replaceChildren(make("p", { class: "soft" }, found && found.unsupported.length
      ? found.unsupported.map((one) => one.why).join("; ") : "This machine cannot partition its caches."));
    return;
  }
  const colour = (name) => KINDS[name] || (name === "root" ? "nobody" : "lse");
  const domains = found.domains.map((one) => {
    const label = make("span", { class: "label" }, `${one.resource} ${one.domain} `);
    if (!one.owners) {
      return make("div", { class: "row" }, label,
        Object.entries(one.limits).map(([who, limit]) => `${who}: ${limit === null ? "–" : limit}`).join(", "), ` (${one.unit})`);
    }
    const boxes = one.owners.map((names, way) => {
      const own = names.filter((name) => name !== "root");
      const cls = own.length > 1 ? "both" : own.length ? colour(own[0]) : "nobody";
      return make("span", { class: `way ${cls}`, role: "img", title: `way ${way}: ${names.join(", ") || "nobody"}`,
        "aria-label": `way ${way}: ${names.join(", ") || "nobody"}` });
    });
    return make("div", { class: "row" }, label, ...boxes);
  });
  const sum = (several, name) => several.reduce((all, one) => (one[name] === null ? all : (all || 0) + one[name]), null);
  const classes = found.groups.map((one) => make("li", {}, make("span", { class: `badge ${colour(one.name)}` }, one.name),
    ` ${Object.entries(one.schemata).map(([name, by]) => `${name} ${Object.entries(by).map(([n, v]) => `${n}=${v}`).join(" ")}`).join(", ")}`,
    make("span", { class: "soft" }, ` ${sum(Object.values(one.threads).map((n) => ({ n })), "n") || 0} threads${
      one.usage.length ? `, occupies ${bytes(sum(one.usage, "llc_bytes"))}` : ""}`)));
  at("ways").replaceChildren(...domains, make("ul", { "aria-label": "Classes" }, ...classes));
}
function held(several) {
  at("reservations").replaceChildren(...(several.length ? several.map((one) => {
    const much = [one.cpus ? `CPUs ${one.cpus}` : one.cpuCount ? `${one.cpuCount} whole CPUs` : "", one.match ? `for ${one.match}` : "",
      one.owners.length ? `${one.owners.length} owner selectors` : ""].filter(Boolean).join(", ");
    return make("li", {}, make("b", {}, one.name), ` ${one.phase || "unknown"}${one.holds ? "" : ", holds nothing"}`,
      make("span", { class: "soft" }, much ? `: ${much}` : ""), one.problems.length ? make("span", { class: "bad" }, ` ${one.problems.join("; ")}`) : "");
  }) : [make("li", { class: "soft" }, "None on this node.")]));
}
function offers(offer) {
  const into = at("offers");
  if (!offer) {
    into.replaceChildren(make("li", { class: "soft" }, "Batch and mid resources are not computed."));
    return;
  }
  const named = Object.entries(offer.amounts).map(([name, much]) => make("li", {}, make("b", {}, name), ` ${much}`,
    make("span", { class: "soft" }, offer.reasons[name] ? ` ${offer.reasons[name]}` : "")));
  const zones = Object.entries(offer.zones).map(([zone, amounts]) => make("li", { class: "soft" },
    `NUMA node ${zone}: ${Object.entries(amounts).map(([name, much]) => `${name} ${much}`).join(", ")}`));
  const why = offer.degraded ? [make("li", { class: "bad" }, `reduced: ${offer.degraded}`)] : [];
  into.replaceChildren(...why, ...named, ...zones);
}
function lists(state) {
  at("banner").hidden = !state.banner.length;
  at("banner").replaceChildren(...state.banner.map((one) => make("li", {}, one)));
  const shadow = new Set(state.shadow);
  at("policies").replaceChildren(...Object.entries(state.explanations).map(([stem, facts]) => make("li", {}, make("b", {}, stem),
    shadow.has(stem) ? " (shadow mode, not enforced)" : "",
    ` ${Object.entries(facts).map(([name, fact]) => `${name}: ${fact}`).join("; ") || "no details"}`)));
  const judged = (one, detail) => make("li", {}, make("span", { class: one.ok ? "ok" : "bad" }, one.ok ? "✓ " : "✗ "), `${one.name} `,
    make("span", { class: "soft" }, detail || (one.ok ? "healthy" : "unhealthy")));
  at("checks").replaceChildren(...state.checks.map((one) => judged(one, one.detail)));
  at("sources").replaceChildren(...state.sources.map((one) => judged(one,
    one.problem || (one.ageSeconds === null ? "" : `last answer ${Math.round(one.ageSeconds)} s ago`))));
  at("conditions").replaceChildren(...state.conditions.filter((one) => one.status === "True").map((one) =>
    make("li", {}, make("b", {}, one.type), ` ${one.subject}: ${one.message}`)));
  at("unsupported").replaceChildren(...state.unsupported.map((one) => make("li", {}, make("b", {}, one.feature), ` ${one.why}`)));
  at("actions").replaceChildren(...(state.actions.length ? state.actions.map((one) =>
    make("li", {}, make("span", { class: "path" }, `${one.target}: ${one.was === null ? "" : `${one.was} → `}${one.value === null ? one.kind : one.value}`),
      ` ${one.reason} (${one.policy}${one.mode === "enforce" ? "" : `, ${one.mode}`})`)) : [make("li", { class: "soft" }, "No changes needed.")]));
}
function audit() {
  at("audit").replaceChildren(...seen.audit.map((one) => make("li", {},
    moment(one.at),
    make("span", { class: "path" }, `${one.target || one.event || ""}${one.value === undefined ? "" : `: ${one.was === undefined || one.was === null ? "" : `${one.was} → `}${one.value}`}`),
    ` ${one.reason || one.verdict || ""}${one.policy ? ` (${one.policy})` : ""}`)));
}

// Talking to the agent -----------------------------------------------------------------------------

async function look(state) {
  const shape = `${state.epoch} ${state.cpus.present} ${state.cpus.online}`;
  if (shape !== seen.revision) {
    seen.topology = await ask("/api/v1/topology");
    seen.revision = shape;
    machine();
  }
  if (state.counters.writes !== seen.writes) {
    seen.writes = state.counters.writes;
    try {
      const found = await ask("/api/v1/audit?limit=50");
      seen.audit = found.records;
      audit();
    } catch (error) { seen.audit = []; }
  }
}
async function take(state) {
  await look(state);
  seen.state = state;
  seen.owners = owners(state);
  const bad = state.checks.filter((one) => !one.ok).map((one) => one.name);
  at("node").textContent = state.name;
  document.title = `${state.name} · koordlet`;
  settle(!bad.length, `${state.mode}${state.ready ? "" : ", not ready"}, cgroup ${state.cgroup}, version ${state.agent}${bad.length ? `; unhealthy: ${bad.join(", ")}` : ""}`);
  paint(); remember(state); chart(); gauges(state.signals, state.evictions); rows(); ways(state.resctrl); held(state.reservations);
  offers(state.offer); lists(state);
}

at("map").addEventListener("keydown", onKey);
at("map").addEventListener("focusin", (event) => { if (event.target.dataset.cpu) choose(Number(event.target.dataset.cpu), false); });
at("map").addEventListener("mouseover", (event) => { const box = event.target.closest(".cpu"); if (box) choose(Number(box.dataset.cpu), false); });
at("map").addEventListener("click", (event) => { const box = event.target.closest(".cpu"); if (box) choose(Number(box.dataset.cpu), true); });
at("filter").addEventListener("input", rows);
links(["/api/v1/node", "/api/v1/topology", "/api/v1/plan", "/api/v1/audit", "/metrics", "/healthz?verbose", "/readyz"]);
heads();
listen("agent", "/api/v1/events", take);
