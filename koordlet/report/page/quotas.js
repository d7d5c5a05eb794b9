// Quotas as a tree: what each uses and may use now, who lends to whom, what would be called back,
// and which are not in force.
// Amounts are those of nodes.js: CPUs in thousandths, bytes.
"use strict";

// Bars of siblings have one scale: the most that any of them has, may use or is sure of.
function quotaScales(quotas) {
  const scales = new Map();
  for (const quota of quotas) {
    for (const [name, v] of Object.entries(quota.amounts)) {
      const key = `${quota.tree}/${quota.parent}/${name}`;
      scales.set(key, Math.max(scales.get(key) || 1, v.min, v.used, bounded(v)));
    }
  }
  return (quota, name) => scales.get(`${quota.tree}/${quota.parent}/${name}`) || 1;
}
// Of a quota without a bound the runtime says nothing.
const bounded = (v) => (v.max === null && v.runtime > 2 ** 52 ? 0 : v.runtime);

function quotaBar(quota, name, scale) {
  const v = quota.amounts[name];
  if (!v || (v.max === undefined && !v.used)) return make("td", { class: "soft" }, "–");
  const runtime = bounded(v), lent = quota.lends[name] ? v.min - runtime : 0;
  const over = quota.over[name] || 0, borrowed = Math.max(0, (quota.borrows[name] || { amount: 0 }).amount - over), own = v.used - over - borrowed;
  const free = Math.max(0, runtime - v.used);
  const part = (cls, value) => barPart(cls, value, scale);
  const mark = make("i", { class: "mark" });
  mark.style.left = `${Math.min(100, (100 * v.min) / scale).toFixed(2)}%`;
  const most = v.max === null || v.max === undefined ? "no maximum" : `max ${amountText(name, v.max)}`;
  const may = runtime || v.max !== null ? `of ${amountText(name, runtime)}` : "used";
  const words = `${amountText(name, v.used)} ${may}`, bounds = `min ${amountText(name, v.min)}, ${most}`;
  const asked = `requests ${amountText(name, v.request)}`;
  return make("td", {}, make("div", { class: "parts", role: "img", title: `${words}, ${bounds}, ${asked}`,
    "aria-label": `${words}, ${bounds}, ${asked}` }, part("used-part", own), part("borrowed-part", borrowed),
  part("over-part", over), part("may-part", free), part("lent-part", lent), v.min ? mark : null),
  make("span", { class: over ? "bad" : "" }, words), make("span", { class: "soft" }, ` ${bounds}`));
}
function loans(quota) {
  const others = (loan) => (loan.of ? `${loan.with.join(", ")}${loan.of > loan.with.length ? ` and ${loan.of - loan.with.length} more` : ""}` : "");
  const loanWords = (verb, side, word) => Object.entries(side).map(([name, loan]) =>
    `${verb} ${amounts({ [name]: loan.amount })}${loan.of ? ` ${word} ${others(loan)}` : ""}`);
  const over = Object.entries(quota.over).map(([name, value]) => `over its runtime by ${amounts({ [name]: value })}`);
  const bad = [...over, ...(quota.waiting ? [`${counted(quota.waiting, "pod")} waiting`] : []),
    ...(quota.problem ? [`invalid: ${quota.problem}`] : [])];
  const lends = Object.fromEntries(Object.entries(quota.lends).filter(([, loan]) => loan.of));
  const well = [...loanWords("lends", lends, "to"), ...loanWords("borrows", quota.borrows, "from")];
  return make("td", { class: "words" }, ...(bad.length || well.length ? [make("span", { class: "bad" }, bad.join("; ")),
    bad.length && well.length ? "; " : "", well.join("; ")] : ["–"]));
}
function drawQuotas(state) {
  at("shares").hidden = !state.quotaCount && !state.idleQuotaCount;
  const hidden = state.quotaCount - state.quotas.length;
  at("share-count").textContent = `${counted(state.quotaCount, "quota")}, ${state.quotasOver} over ${state.quotasOver === 1 ? "its" : "their"} runtime.${
    hidden > 0 ? ` ${hidden} are not shown: those over come first, then invalid ones, then those that wait.` : ""}`;
  at("share-warning").hidden = !state.overcommitted;
  at("share-warning").textContent = state.overcommitted;
  const scale = quotaScales(state.quotas);
  at("quotas").replaceChildren(...state.quotas.map((quota) => {
    const name = make("td", {}, quota.isParent ? make("b", {}, quota.quota) : quota.quota,
      quota.tree && !quota.depth ? make("span", { class: "soft" }, ` tree ${quota.tree}`) : "");
    name.style.paddingLeft = `${0.5 + Math.min(quota.depth, 12)}rem`;
    return make("tr", {}, name, quotaBar(quota, "cpu", scale(quota, "cpu")), quotaBar(quota, "memory", scale(quota, "memory")),
      make("td", { class: "number" }, String(quota.pods)), loans(quota));
  }));
  at("idle").hidden = !state.idleQuotaCount;
  at("idle-title").textContent = `Not in force: ${counted(state.idleQuotaCount, "quota")}`;
  at("idle-quotas").replaceChildren(...state.idleQuotas.map((quota) => make("li", {}, make("b", {}, `${quota.namespace}/${quota.quota}`),
    make("span", { class: "bad" }, ` ${quota.problem}`))));
  at("back").hidden = !state.calledBackCount;
  at("back-title").textContent = state.callsBack ? `Called back: ${counted(state.calledBackCount, "pod")}`
    : `Would be called back, if quotas were monitored: ${counted(state.calledBackCount, "pod")}`;
  at("called-back").replaceChildren(...state.calledBack.map((pod) => make("li", {}, make("b", {}, pod.pod),
    make("span", { class: "soft" }, pod.in === pod.quota ? ` of ${pod.quota}` : ` of ${pod.in}, as ${pod.quota} is over`))));
}
