// The cluster as one scheduler sees it: draws the states that /api/v1/events tells once a second.
// Everything from outside becomes text (textContent, attributes), never markup.
"use strict";

let shown = null, begun = false;
const drawnOf = new Map();

// Draws a panel where what it shows differs from the last time: what is being read or selected stays.
// The past of quotas is on the timelines alone.
function drawChanged(name, data, drawPanel) {
  const text = JSON.stringify(data, (key, value) => (key === "past" ? undefined : /Seconds$/.test(key) ? span(value)
    : key === "at" && typeof value === "number" ? Math.round(value) : value));
  if (drawnOf.get(name) === text) return;
  drawnOf.set(name, text);
  drawPanel(shown);
}

function card(name, headline, words, cls = "") {
  return make("li", { class: "card" }, make("span", { class: "soft" }, name), make("b", { class: `headline ${cls}` }, headline), make("span", { class: "soft" }, words));
}
function totals(state) {
  const amount = (name, word) => {
    const v = state.totals[name], taken = v.used + v.reserved;
    return card(word, v.allocatable ? percent(taken / v.allocatable) : "–", `${amountText(name, v.allocatable - taken)} free of ${amountText(name, v.allocatable)}, ${amountText(name, v.reserved)} reserved`, taken > v.allocatable ? "bad" : "");
  };
  const waiting = Object.values(state.queues).reduce((sum, n) => sum + n, 0), longest = Math.max(0, ...state.groups.map((group) => group.longestSeconds));
  const closed = [state.nodesClosed ? `${state.nodesClosed} cordoned or tainted` : "", state.nodesPressed ? `${state.nodesPressed} under pressure` : ""].filter(Boolean).join(", ");
  at("totals").replaceChildren(card("Nodes", counted(state.nodeCount, "node"), state.nodeCount ? `${counted(state.pods, "pod")}. ${closed || "All are schedulable"}` : "The cluster lists none", state.nodesPressed ? "warn" : ""),
    amount("cpu", "CPU requested"), amount("memory", "Memory requested"),
    card("Pending", counted(waiting, "pod"), waiting ? `${counted(state.groupCount, "reason")}, longest ${span(longest)}` : "No pod is pending", waiting ? "warn" : ""));
}
function reservations(state) {
  at("reservations").replaceChildren(...(state.reservations.length ? state.reservations.map((reservation) => make("li", {}, make("b", {}, reservation.name),
    ` ${reservation.phase}${reservation.node ? ` on ${reservation.node}` : ""}: ${amounts(reservation.allocatable) || "nothing"}`, make("span", { class: "soft" },
      `, in use ${amounts(reservation.allocated) || "nothing"}${reservation.owners.length ? ` by ${reservation.owners.join(", ")}` : ""}`),
    reservation.why ? make("span", { class: "bad" }, ` ${reservation.why}`) : "")) : [make("li", { class: "soft" }, "None.")]));
  foldEmpty("held", !state.reservations.length);
}
function gangs(state) {
  at("together").hidden = !state.gangCount;
  at("gang-count").textContent = `${counted(state.gangCount, "gang")}, ${state.gangsWaiting} waiting.${
    state.gangCount > state.gangs.length ? ` ${state.gangs.length} are shown, those that wait first.` : ""}`;
  at("gangs").replaceChildren(...state.gangs.map((gang) => make("tr", {}, make("td", {}, gang.gang),
    make("td", { class: "number" }, `${gang.placed}/${gang.min ?? "?"}`), make("td", {}, gang.phase), make("td", {}, gang.since ? moment(seconds(gang.since)) : "–"),
    make("td", { class: gang.message ? "bad words" : "soft" }, [gang.member, gang.message].filter(Boolean).join(": ") || "–"))));
}
function decisions(state) {
  at("decisions").replaceChildren(...(state.decisions.length ? state.decisions.map((decision) => make("li", {},
    moment(decision.at), decision.reservation ? "reservation " : "", make("b", {}, decision.pod), decision.message ? ` ${decision.message}` : ` → ${decision.node}`,
    decision.message && decision.node ? ` Nominated to ${decision.node}; to be evicted: ${decision.victims.join(", ") || "none"}.` : "",
    make("span", { class: "soft" }, decision.scores ? ` of ${decision.feasible} nodes; scores ${decision.scores.map(([node, total]) => `${node} ${total}`).join(", ")}` : ""))) :
    [make("li", { class: "soft" }, "No decisions since this scheduler started.")]));
  foldEmpty("decided", !state.decisions.length);
}

// Reader -------------------------------------------------------------------------------------------

// After "#": node, panel, measure, resource, order, filter, span (of the timelines, seconds).
function readAddress() {
  const read = rereadAddress();
  for (const [name, allowed] of Object.entries(CHOICES)) {
    if (read.get(name) in allowed) at(name).value = looks[name] = read.get(name);
  }
  if (LANE_SPANS.some(([, value]) => value === Number(read.get("span")))) lanes.span = Number(read.get("span"));
  setLaneSpan(lanes.span, shown);
  nodes.wanted = at("filter").value = read.get("filter") || "";
  filterNodes();
  rearrange();
  sortRows();
  const node = read.get("node");
  if (node === null) chooseNode(null); else chooseNode(legible(asWritten(node)), "address");
  if (read.get("panel")) goTo(read.get("panel"));
}
// Everything with a name: nodes, pending pods, reservations, gangs, quotas, panels.
function findAll(words) {
  const wanted = words.toLowerCase().trim(), results = [];
  if (!wanted || !shown) return results;
  const add = (several, nameOf, kind, go) => {
    let left = 6;
    for (const each of several) {
      const name = nameOf(each);
      if (left && name.toLowerCase().includes(wanted)) { results.push([name, kind, () => go(each)]); left -= 1; }
    }
  };
  const panel = (id) => () => { place({ panel: id }); goTo(id); };
  add(nodes.all || [], (node) => node.name, "node", (node) => chooseNode(node.name, "search"));
  add(shown.groups.flatMap((group) => group.pods.map((pod) => [pod.pod, group])), ([name]) => name, "pending pod", ([, group]) => {
    unfolded.set(`${group.queue} ${group.why}`, true);
    drawQueue(shown);
    panel("waiting")();
  });
  add(shown.reservations, (each) => each.name, "reservation", panel("held"));
  add(shown.gangs, (each) => each.gang, "gang", panel("together"));
  add([...shown.quotas, ...shown.idleQuotas], (each) => each.quota, "quota", panel("shares"));
  add(shown.moves || [], (each) => each.pod, "move", panel("moving"));
  add(shown.plans || [], (each) => each.name, "plan", panel("moving"));
  add([...document.querySelectorAll("main section:not([hidden]) .anchor")], (each) => each.textContent, "panel", (each) => panel(each.getAttribute("href").slice("#panel=".length))());
  return results.slice(0, 16);
}
pageKeys(() => ({ Escape: () => chooseNode(null), "+": () => zoomHeat(2), "-": () => zoomHeat(0.5) }));
addEventListener("hashchange", readAddress);
links(["/api/v1/cluster", "/api/v1/nodes", "/api/v1/reservations", "/api/v1/gangs", "/api/v1/quotas", "/metrics", "/healthz", "/readyz"]);
listen("scheduler", "/api/v1/events", async (state) => {
  shown = state;
  showStatus(state.leading, `${state.leading ? "leading" : "not leading: waiting for the store, or another scheduler leads"}, version ${state.agent}`);
  const changed = await fetchNodes(state.nodeRevision);
  drawChanged("totals", [state.nodeRevision, state.queues, state.groups], totals);
  drawChanged("waiting", [state.queues, state.groups, state.groupCount], drawQueue);
  drawChanged("held", state.reservations, reservations);
  drawChanged("together", [state.gangs, state.gangCount, state.gangsWaiting], gangs);
  drawChanged("shares", [state.quotas, state.quotaCount, state.idleQuotas, state.idleQuotaCount, state.calledBack, state.calledBackCount, state.callsBack, state.overcommitted], drawQuotas);
  drawChanged("moving", [state.moves, state.plan, state.plans], drawMoves);
  drawChanged("decided", state.decisions, decisions);
  drawLanes(state);
  for (const id of ["heat", "nodes"]) foldEmpty(id, !state.nodeCount);
  if (!begun) { begun = true; readAddress(); } else if (changed) { rearrange(); sortRows(); await drawNode(); }
});
