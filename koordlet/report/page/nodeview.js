// One node: its resources, its facts and its pods, as /api/v1/nodes?name= says while it is chosen.
"use strict";

const view = { name: null, revision: "" };

async function drawNode(force = false) {
  const name = nodes.chosen;
  at("node").hidden = name === null;
  document.body.classList.toggle("zoomed", name !== null);
  if (name === null || (!force && view.name === name && view.revision === nodes.revision)) return;
  [view.name, view.revision] = [name, nodes.revision];
  at("node-name").textContent = name;
  const { nodes: [node] } = await ask(`/api/v1/nodes?name=${inQuery(name)}`);
  if (nodes.chosen !== name) return;
  if (!node) {
    at("node-facts").replaceChildren(make("li", { class: "bad" }, "There is no node of this name."));
    for (const id of ["node-resources", "node-pods"]) at(id).replaceChildren();
    at("node-pods-title").textContent = "Pods";
    return;
  }
  const zone = node.labels["topology.kubernetes.io/zone"], kind = node.labels["node.kubernetes.io/instance-type"];
  const bad = [node.ready ? "" : "not ready", node.unschedulable ? "cordoned" : "", ...node.pressure, ...node.taints, ...node.problems].filter(Boolean);
  const facts = [[bad.join("; "), "bad"], [[zone, kind].filter(Boolean).join(", "), "soft"],
    [node.reservations.length ? `reservations: ${node.reservations.join(", ")}` : "", ""],
    [node.reportedAt === null ? "no fresh report of its use" : `in use ${amounts(node.use)}`, node.reportedAt === null ? "soft" : ""]];
  at("node-facts").replaceChildren(...facts.filter(([words]) => words).map(([words, cls]) => make("li", { class: cls }, words)));
  at("node-resources").replaceChildren(...Object.entries(node.resources).map(([resource, v]) => {
    const row = { [resource]: v.allocatable, [`${resource}Used`]: v.used, [`${resource}Reserved`]: v.reserved };
    return make("tr", {}, make("td", {}, resource), shareCell(row, resource));
  }));
  at("node-pods-title").textContent = `Pods: ${node.pods}${node.podList.length < node.pods ? `, the ${node.podList.length} largest` : ""}`;
  at("node-pods").replaceChildren(...node.podList.map((pod) => make("tr", {}, make("td", {}, pod.pod, pod.terminating ? make("span", { class: "bad" }, " terminating") : ""),
    make("td", { class: "number" }, String(pod.priority)), make("td", {}, amounts(pod.requests) || "nothing"))));
}
at("node-close").addEventListener("click", () => chooseNode(null));
nodes.listeners.push((name, origin) => {
  drawNode(true).catch((error) => showError(`Cannot read the node: ${error.message}`)).finally(() => {
    askHeat();
    if (name !== null && origin) at("node").scrollIntoView({ block: "nearest" });
  });
});
