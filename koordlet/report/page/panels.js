// The panels that say what is so now: signals, cache ways, reservations, offers, plan, health.
"use strict";

const UNITS = { "": 1, "%": 1, m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 1024, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, cores: 1 };
function parseAmount(text) {
  const cores = /([0-9.]+) cores/.exec(text || ""), part = /^([0-9.]+)% of ([0-9.]+)$/.exec(text || "");
  if (cores) return { value: Number(cores[1]), unit: "cores" };
  if (part) return { value: (Number(part[1]) / 100) * Number(part[2]), unit: "cores" };
  const parts = /^\s*([0-9.]+)\s*([a-zA-Z%]*)/.exec(text || "");
  if (!parts || !(parts[2] in UNITS)) return null;
  return { value: Number(parts[1]) * UNITS[parts[2]], unit: parts[2] === "%" ? "%" : /i$/.test(parts[2]) ? "B" : "" };
}
function amountText(value, unit) {
  return unit === "B" ? bytes(value) : unit === "cores" ? `${value.toFixed(2)} cores` : unit === "%" ? `${value.toFixed(1)} %` : String(Math.round(value));
}
// How near a signal is to its threshold (1: there), and what is left until then.
function nearness(signal) {
  const observed = parseAmount(signal.observed), least = parseAmount(signal.threshold);
  if (!observed || !least || least.value <= 0) return null;
  const unit = observed.unit || least.unit;
  if (observed.unit && least.unit && observed.unit !== least.unit) return null;
  const falling = /(available|inodesFree|free)$/.test(signal.name);
  const left = falling ? observed.value - least.value : least.value - observed.value;
  const near = falling ? least.value / Math.max(observed.value, least.value / 100) : observed.value / least.value;
  return { near, words: left >= 0 ? `${amountText(left, unit)} left` : `${amountText(-left, unit)} ${falling ? "below the threshold" : "above the threshold"}` };
}
// Many digits of bytes say nothing to people.
function shortAmount(text, like) {
  const parsed = parseAmount(text), unit = parsed && (parsed.unit || (parseAmount(like) || {}).unit);
  return text && text.length > 6 && unit === "B" ? bytes(parsed.value) : text || "–";
}
function signalRow(signal) {
  const word = signal.met === null ? `unknown: ${signal.why || "no measurement"}` : signal.met ? "met" : "not met";
  const since = signal.since ? ` for ${Math.max(0, Math.round(seen.state.observedAt - signal.since))} s` : "";
  const row = make("li", { class: signal.met ? "met" : "" }, make("b", {}, signal.name),
    ` ${shortAmount(signal.observed)}, threshold ${shortAmount(signal.threshold, signal.observed)}${signal.spelled ? ` (${signal.spelled})` : ""}: ${word}${since}${signal.met && signal.why ? `; ${signal.why}` : ""}`);
  const distance = nearness(signal);
  if (distance === null) return row;
  const fill = make("i");
  fill.style.width = `${Math.min(100, distance.near * 100).toFixed(1)}%`;
  row.append(make("div", { class: "bar", role: "meter", "aria-label": `${signal.name}, share of the way to its threshold`,
    "aria-valuemin": 0, "aria-valuemax": 1, "aria-valuenow": Math.min(1, distance.near).toFixed(2), "aria-valuetext": distance.words }, fill),
  make("span", { class: "soft" }, distance.words));
  return row;
}
function drawSignals(signals, evictions) {
  foldEmpty("signals", !signals.length && !evictions.length);
  const known = signals.filter((signal) => signal.met !== null), unknown = signals.filter((signal) => signal.met === null);
  at("gauges").replaceChildren(...known.map(signalRow),
    ...(signals.length ? [] : [make("li", { class: "soft" }, "No policy watches signals.")]));
  const box = at("unknown");
  box.hidden = !unknown.length;
  box.firstChild.textContent = `${unknown.length} ${unknown.length === 1 ? "unknown signal" : "unknown signals"}`;
  box.lastChild.replaceChildren(...unknown.map(signalRow));
  at("evictions").replaceChildren(...evictions.map((eviction) => make("li", {}, make("b", {}, eviction.pod),
    ` ${eviction.held ? `not evicted yet: ${eviction.held}` : "selected for eviction"}; ${eviction.signal} is ${eviction.observed}, threshold ${eviction.threshold} (${eviction.policy})`)));
}
const KINDS = { BE: "be", LS: "ls", LSR: "lsr" };
function drawCaches(resctrl) {
  foldEmpty("cache", !resctrl || !resctrl.mounted);
  if (!resctrl || !resctrl.mounted) {
    at("ways").replaceChildren(make("p", { class: "soft" }, resctrl && resctrl.unsupported.length
      ? resctrl.unsupported.map((feature) => feature.why).join("; ") : "This machine cannot partition its caches."));
    return;
  }
  const colour = (name) => KINDS[name] || (name === "root" ? "nobody" : "lse");
  const domains = resctrl.domains.map((domain) => {
    const label = make("span", { class: "label" }, `${domain.resource} ${domain.domain} `);
    if (!domain.owners) {
      return make("div", { class: "row" }, label,
        Object.entries(domain.limits).map(([who, limit]) => `${who}: ${limit === null ? "–" : limit}`).join(", "), ` (${domain.unit})`);
    }
    const boxes = domain.owners.map((names, way) => {
      const own = names.filter((name) => name !== "root");
      const cls = own.length > 1 ? "both" : own.length ? colour(own[0]) : "nobody";
      return make("span", { class: `way ${cls}`, role: "img", title: `way ${way}: ${names.join(", ") || "nobody"}`,
        "aria-label": `way ${way}: ${names.join(", ") || "nobody"}` });
    });
    return make("div", { class: "row" }, label, ...boxes);
  });
  const sum = (rows, name) => rows.reduce((total, row) => (row[name] === null ? total : (total || 0) + row[name]), null);
  const classes = resctrl.groups.map((group) => make("li", {}, make("span", { class: `badge ${colour(group.name)}` }, group.name),
    ` ${Object.entries(group.schemata).map(([name, by]) => `${name} ${Object.entries(by).map(([n, v]) => `${n}=${v}`).join(" ")}`).join(", ")}`,
    make("span", { class: "soft" }, ` ${sum(Object.values(group.threads).map((n) => ({ n })), "n") || 0} threads${
      group.usage.length ? `, occupies ${bytes(sum(group.usage, "llc_bytes"))}` : ""}`)));
  at("ways").replaceChildren(...domains, make("ul", { "aria-label": "Classes" }, ...classes));
}
function drawReservations(reservations) {
  foldEmpty("held", !reservations.length);
  at("reservations").replaceChildren(...(reservations.length ? reservations.map((reservation) => {
    const much = [reservation.cpus ? `CPUs ${reservation.cpus}` : reservation.cpuCount ? `${reservation.cpuCount} whole CPUs` : "", reservation.match ? `for ${reservation.match}` : "",
      reservation.owners.length ? `${reservation.owners.length} owner selectors` : ""].filter(Boolean).join(", ");
    return make("li", {}, make("b", {}, reservation.name), ` ${reservation.phase || "unknown"}${reservation.holds ? "" : ", holds nothing"}`,
      make("span", { class: "soft" }, much ? `: ${much}` : ""), reservation.problems.length ? make("span", { class: "bad" }, ` ${reservation.problems.join("; ")}`) : "");
  }) : [make("li", { class: "soft" }, "None on this node.")]));
}
// Amounts as nodes offer them, thousandths of CPUs and bytes, are said in words, too.
function offered(name, much) {
  const words = /-cpu$/.test(name) ? `${(Number(much) / 1000).toFixed(2)} CPUs` : /-memory$/.test(name) ? bytes(Number(much)) : "";
  return /^\d+$/.test(much) && words ? `${much} (${words})` : much;
}
function drawOffers(offer) {
  const into = at("offers");
  foldEmpty("offered", !offer);
  if (!offer) {
    into.replaceChildren(make("li", { class: "soft" }, "Batch and mid resources are not computed."));
    return;
  }
  const named = Object.entries(offer.amounts).map(([name, much]) => make("li", {}, make("b", {}, name), ` ${offered(name, much)}`,
    make("span", { class: "soft" }, offer.reasons[name] ? ` ${offer.reasons[name]}` : "")));
  const zones = Object.entries(offer.zones).map(([zone, amounts]) => make("li", { class: "soft" },
    `NUMA node ${zone}: ${Object.entries(amounts).map(([name, much]) => `${name} ${offered(name, much)}`).join(", ")}`));
  const why = offer.degraded ? [make("li", { class: "bad" }, `reduced: ${offer.degraded}`)] : [];
  into.replaceChildren(...why, ...named, ...zones);
}
function limitWords(limit) {
  const would = limit && limit.wouldBe;
  return would ? `Best-effort work is not limited. ${would.policy} would limit it: ${would.reason} (${would.why})`
    : !limit || !limit.policy ? "Best-effort work is not limited."
    : `Best-effort work (${limit.policy}): ${limit.reason || "limited"}`;
}
function drawStatus(state) {
  at("best-effort").textContent = limitWords(state.bestEffort);
  at("banner").hidden = !state.banner.length;
  at("banner").replaceChildren(...state.banner.map((sentence) => make("li", {}, sentence)));
  const shadow = new Set(state.shadow);
  at("policies").replaceChildren(...Object.entries(state.explanations).map(([stem, facts]) => make("li", {}, make("b", {}, stem),
    shadow.has(stem) ? " (shadow mode, not enforced)" : "",
    ` ${Object.entries(facts).map(([name, fact]) => `${name}: ${fact}`).join("; ") || "no details"}`)));
  const judged = (item, detail) => make("li", {}, make("span", { class: item.ok ? "ok" : "bad" }, item.ok ? "✓ " : "✗ "), `${item.name} `,
    make("span", { class: "soft" }, detail || (item.ok ? "healthy" : "unhealthy")));
  at("checks").replaceChildren(...state.checks.map((check) => judged(check, check.detail)));
  at("sources").replaceChildren(...state.sources.map((source) => judged(source,
    source.problem || (source.ageSeconds === null ? "" : `last answer ${Math.round(source.ageSeconds)} s ago`))));
  at("conditions").replaceChildren(...state.conditions.filter((condition) => condition.status === "True").map((condition) =>
    make("li", {}, make("b", {}, condition.type), ` ${condition.subject}: ${condition.message}`)));
  at("unsupported").replaceChildren(...state.unsupported.map((row) => make("li", {}, make("b", {}, row.feature), ` ${row.why}`)));
  at("actions").replaceChildren(...(state.actions.length ? state.actions.map((action) =>
    make("li", {}, make("span", { class: "path" }, `${action.target}: ${action.was === null ? "" : `${action.was} → `}${action.value === null ? action.kind : action.value}`),
      ` ${action.reason} (${action.policy}${action.mode === "enforce" ? "" : `, ${action.mode}`})`)) : [make("li", { class: "soft" }, "No changes needed.")]));
}
function drawAudit() {
  at("audit").replaceChildren(...seen.audit.map((record) => make("li", {},
    moment(record.at),
    make("span", { class: "path" }, `${record.target || record.event || ""}${record.value === undefined ? "" : `: ${record.was === undefined || record.was === null ? "" : `${record.was} → `}${record.value}`}`),
    ` ${record.reason || record.verdict || ""}${record.policy ? ` (${record.policy})` : ""}`)));
}

