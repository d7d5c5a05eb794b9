// The nodes of a cluster: rows that /api/v1/nodes sends where they changed, measures of a node, words for amounts.
// CPUs are thousandths, memory is bytes.
"use strict";

const nodes = { revision: "", byName: new Map(), listed: [], chosen: null, wanted: "", listeners: [] };
const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

// Batch and mid CPUs are thousandths, too.
const OFFERED_CPU = /\/(batch|mid)-cpu$/;
function amountText(name, value) {
  if (value === undefined || value === null) return "–";
  if (name === "cpu" || OFFERED_CPU.test(name)) return value % 1000 ? `${(value / 1000).toFixed(2)} CPUs` : counted(value / 1000, "CPU");
  return /memory|storage|hugepages/.test(name) ? bytes(value) : name === "pods" ? counted(value, "pod") : String(value);
}
const amounts = (several) => Object.entries(several).map(([name, value]) => (name in { cpu: 1, memory: 1, pods: 1 }
  || /storage/.test(name) ? amountText(name, value) : `${name} ${amountText(name, value)}`)).join(", ");
const span = (seconds) => (seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min`
  : seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`);

// A part of a bar, as wide as its share.
function barPart(cls, value, whole) {
  const piece = make("i", { class: cls });
  piece.style.width = `${Math.max(0, Math.min(100, (100 * value) / whole)).toFixed(2)}%`;
  return piece;
}

// Measures -----------------------------------------------------------------------------------------

const share = (part, whole) => (whole ? part / whole : null);
const requested = (node, name) => share(node[`${name}Used`] + node[`${name}Reserved`], node[name]);
const inUse = (node, name) => (node[`${name}Use`] === null ? null : share(node[`${name}Use`], node[name]));
// What is free of one resource and cannot be used for want of the other.
function fragmentation(node) {
  const [cpu, memory] = [requested(node, "cpu"), requested(node, "memory")];
  return cpu === null || memory === null ? null : Math.abs(Math.min(1, cpu) - Math.min(1, memory));
}
const MEASURES = {
  requested: { words: "requested", of: (node, name) => requested(node, name), byResource: true },
  use: { words: "use", of: (node, name) => inUse(node, name), byResource: true },
  pressure: { words: "pressure", of: (node) => (node.pressure ? 2 : 0), byResource: false },
  fragmentation: { words: "fragmentation", of: (node) => fragmentation(node), byResource: false },
};
const RESOURCES = { cpu: "CPU", memory: "memory", fuller: "the fuller of both" };
const CHOICES = { measure: MEASURES, resource: RESOURCES, group: { none: "none", zone: "zone" }, order: { name: "name", value: "value" } };
const looks = { measure: "requested", resource: "fuller", group: "none", order: "name", ...recall("heat", {}) };

function measured(node) {
  const { of } = MEASURES[looks.measure] || MEASURES.requested;
  if (looks.resource !== "fuller") return of(node, looks.resource);
  const several = [of(node, "cpu"), of(node, "memory")].filter((value) => value !== null);
  return several.length ? Math.max(...several) : null;
}
const PRESSURES = { M: "memory", D: "disk", P: "PID" };
const pressures = (node) => [...node.pressure].map((letter) => PRESSURES[letter] || letter).join(", ");

// Rows ---------------------------------------------------------------------------------------------

const inOrder = new Intl.Collator("en", { numeric: true });

// Asks for what changed since the rows that are known; true where something did.
async function fetchNodes(revision) {
  if (revision === nodes.revision) return false;
  const answer = await ask(`/api/v1/nodes?since=${encodeURIComponent(nodes.revision)}`);
  if (answer.whole) nodes.byName.clear();
  for (const row of answer.rows) {
    const node = Object.fromEntries(answer.fields.map((name, n) => [name, row[n]]));
    nodes.byName.set(node.name, node);
  }
  nodes.revision = answer.revision;
  filterNodes();
  return true;
}
function filterNodes() {
  const words = nodes.wanted.toLowerCase();
  nodes.all = [...nodes.byName.values()].sort((a, b) => inOrder.compare(a.name, b.name));
  nodes.listed = words ? nodes.all.filter((node) => `${node.name} ${node.state} ${Object.keys(node.others).join(" ")}`.toLowerCase().includes(words)) : nodes.all;
}
// One node is chosen, or none: the heat map, the table and the panel of the node follow.
function chooseNode(name, origin) {
  nodes.chosen = name;
  place({ node: name });
  for (const listener of nodes.listeners) listener(name, origin);
}
