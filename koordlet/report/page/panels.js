// The panels that say what is so now: signals, cache ways, reservations, offers, plan, health.
"use strict";

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
  foldEmpty("signals", !signals.length && !evictions.length);
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
const KINDS = { BE: "be", LS: "ls", LSR: "lsr" };
function ways(found) {
  foldEmpty("cache", !found || !found.mounted);
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
  foldEmpty("held", !several.length);
  at("reservations").replaceChildren(...(several.length ? several.map((one) => {
    const much = [one.cpus ? `CPUs ${one.cpus}` : one.cpuCount ? `${one.cpuCount} whole CPUs` : "", one.match ? `for ${one.match}` : "",
      one.owners.length ? `${one.owners.length} owner selectors` : ""].filter(Boolean).join(", ");
    return make("li", {}, make("b", {}, one.name), ` ${one.phase || "unknown"}${one.holds ? "" : ", holds nothing"}`,
      make("span", { class: "soft" }, much ? `: ${much}` : ""), one.problems.length ? make("span", { class: "bad" }, ` ${one.problems.join("; ")}`) : "");
  }) : [make("li", { class: "soft" }, "None on this node.")]));
}
function offers(offer) {
  const into = at("offers");
  foldEmpty("offered", !offer);
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
function limitWords(limit) {
  const would = limit && limit.wouldBe;
  return would ? `Best-effort work is not limited. ${would.policy} would limit it: ${would.reason} (${would.why})`
    : !limit || !limit.policy ? "Best-effort work is not limited."
    : `Best-effort work (${limit.policy}): ${limit.reason || "limited"}`;
}
function lists(state) {
  at("best-effort").textContent = limitWords(state.bestEffort);
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

