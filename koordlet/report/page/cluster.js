// The cluster as one scheduler sees it: draws the states that /api/v1/events tells once a second.
// Everything from outside becomes text (textContent, attributes), never markup.
"use strict";

let shown = null;
const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

function much(name, value) {
  if (value === undefined) return "–";
  if (name === "cpu") return value % 1000 ? `${(value / 1000).toFixed(2)} CPUs` : counted(value / 1000, "CPU");
  return /memory|storage|hugepages/.test(name) ? bytes(value) : name === "pods" ? counted(value, "pod") : String(value);
}
const amounts = (several) => Object.entries(several).map(([name, value]) => (name in { cpu: 1, memory: 1, pods: 1 }
  || /storage/.test(name) ? much(name, value) : `${name} ${value}`)).join(", ");

function bar(name, found) {
  if (!found) return make("td", {}, "–");
  const free = found.allocatable - found.used - found.reserved;
  const words = `${much(name, found.used)} used, ${much(name, found.reserved)} reserved, ${much(name, free)} free`;
  const part = (cls, value) => {
    const one = make("i", { class: cls });
    one.style.width = `${Math.max(0, Math.min(100, (100 * value) / found.allocatable)).toFixed(2)}%`;
    return one;
  };
  return make("td", {}, make("div", { class: "parts", role: "img", "aria-label": words, title: words },
    part("used-part", found.used), part("reserved-part", found.reserved)), make("span", { class: free < 0 ? "bad" : "soft" },
    free < 0 ? `${much(name, -free)} overcommitted` : `${much(name, free)} of ${much(name, found.allocatable)} free`));
}
function rows() {
  if (!shown) return;
  const wanted = at("filter").value.toLowerCase();
  const found = shown.nodes.filter((one) => `${one.name} ${one.taints.join(" ")}`.toLowerCase().includes(wanted));
  const lines = found.map((one) => {
    const { cpu, memory, pods, ...others } = one.resources;
    const state = [...(one.unschedulable ? ["unschedulable"] : []), ...one.taints].join(", ");
    return make("tr", {}, make("td", {}, one.name), bar("cpu", cpu), bar("memory", memory),
      make("td", { class: "number" }, `${one.pods}${pods ? ` of ${pods.allocatable}` : ""}`),
      make("td", {}, Object.entries(others)
        .map(([name, v]) => `${name}: ${much(name, v.allocatable - v.used - v.reserved)} free`).join(", ") || "–"),
      make("td", { class: state ? "bad" : "soft" }, state || "schedulable"));
  });
  if (!lines.length) lines.push(make("tr", {}, make("td", { colspan: 6, class: "soft" }, wanted ? "No node matches." : "No nodes.")));
  at("rows").replaceChildren(...lines);
}
function totals() {
  const words = Object.entries(shown.totals).filter(([name]) => name === "cpu" || name === "memory").map(([name, v]) =>
    `${much(name, v.allocatable - v.used - v.reserved)} free of ${much(name, v.allocatable)}, ${much(name, v.reserved)} reserved`);
  const hidden = shown.nodeCount - shown.nodes.length;
  at("totals").textContent = `${counted(shown.nodeCount, "node")}, ${counted(shown.pods, "pod")}. ${words.join("; ")}${hidden > 0 ? `. The ${hidden} nodes with the most free CPU are not shown.` : ""}`;
}
function pending() {
  at("queues").textContent = Object.entries(shown.queues).filter(([, n]) => n).map(([name, n]) => `${n} ${name}`).join(", ") || "The queues are empty.";
  at("pending").replaceChildren(...shown.pending.map((one) => make("li", {}, make("b", {}, one.pod),
    ` ${one.why || "waiting for its turn"} `, make("span", { class: "soft" },
      `${one.reservation ? "a reservation, " : ""}${one.queue}, priority ${one.priority}, ${counted(one.attempts, "attempt")} in ${Math.round(one.waitingSeconds)} s${
        one.nominated ? `, nominated to ${one.nominated}` : ""}; requests ${amounts(one.requests) || "nothing"}`))));
}
function reservations() {
  at("reservations").replaceChildren(...(shown.reservations.length ? shown.reservations.map((one) => make("li", {}, make("b", {}, one.name),
    ` ${one.phase}${one.node ? ` on ${one.node}` : ""}: ${amounts(one.allocatable) || "nothing"}`, make("span", { class: "soft" },
      `, in use ${amounts(one.allocated) || "nothing"}${one.owners.length ? ` by ${one.owners.join(", ")}` : ""}`),
    one.why ? make("span", { class: "bad" }, ` ${one.why}`) : "")) : [make("li", { class: "soft" }, "None.")]));
}
function gangs() {
  at("together").hidden = !shown.gangCount;
  at("gang-count").textContent = `${counted(shown.gangCount, "gang")}, ${shown.gangsWaiting} waiting.${
    shown.gangCount > shown.gangs.length ? ` ${shown.gangs.length} are shown, those that wait first.` : ""}`;
  at("gangs").replaceChildren(...shown.gangs.map((gang) => make("tr", {}, make("td", {}, gang.gang),
    make("td", { class: "number" }, `${gang.placed}/${gang.min ?? "?"}`), make("td", {}, gang.phase), make("td", {}, gang.since || "–"),
    make("td", { class: gang.message ? "bad" : "soft" }, [gang.member, gang.message].filter(Boolean).join(": ") || "–"))));
}
function decisions() {
  at("decisions").replaceChildren(...(shown.decisions.length ? shown.decisions.map((one) => make("li", {},
    moment(one.at), one.reservation ? "reservation " : "", make("b", {}, one.pod), one.message ? ` ${one.message}` : ` → ${one.node}`,
    one.message && one.node ? ` Nominated to ${one.node}; to be evicted: ${one.victims.join(", ") || "none"}.` : "",
    make("span", { class: "soft" }, one.scores ? ` of ${one.feasible} nodes; scores ${one.scores.map(([node, total]) => `${node} ${total}`).join(", ")}` : ""))) :
    [make("li", { class: "soft" }, "No decisions since this scheduler started.")]));
}

at("filter").addEventListener("input", rows);
links(["/api/v1/cluster", "/api/v1/reservations", "/api/v1/gangs", "/api/v1/quotas", "/metrics", "/healthz", "/readyz"]);
listen("scheduler", "/api/v1/events", (state) => {
  shown = state;
  settle(state.leading, `${state.leading ? "leading" : "not leading: waiting for the store, or another scheduler leads"}, version ${state.agent}`);
  totals(); rows(); pending(); reservations(); gangs(); drawQuotas(state); drawMoves(state); decisions();
});
