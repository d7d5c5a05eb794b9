// Where a reader of a page is: what its address names, panels that fold, the dense layout.
// The browser remembers what was folded and how dense.
"use strict";

// What the address names after "#", by name.
const here = new URLSearchParams(location.hash.slice(1));

function place(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined) here.delete(name); else here.set(name, String(value));
  }
  history.replaceState(null, "", here.size ? `#${here}` : location.pathname);
}
// A heading that is its own address.
function anchor(id, words) {
  const link = make("a", { class: "anchor", href: `#panel=${id}`, title: "Address of this panel" }, words);
  link.addEventListener("click", (event) => { event.preventDefault(); place({ panel: id }); });
  return link;
}
// Takes the address as it is now.
function rereadAddress() {
  const read = new URLSearchParams(location.hash.slice(1));
  for (const name of [...here.keys()]) here.delete(name);
  for (const [name, value] of read) here.set(name, value);
  return read;
}
function goTo(id) {
  const target = at(id);
  if (!target) return;
  const panel = target.closest("section");
  if (panel) fold(panel, false);
  if (target.tabIndex === -1 && target.hasAttribute("tabindex")) target.focus({ preventScroll: true });
  target.scrollIntoView({ block: id.startsWith("chart-") ? "center" : "start" });
}

// At once: the address would lead there a moment later, when the next key has gone elsewhere.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  goTo(event.target.hash.slice("#panel=".length));
});

// Folding ------------------------------------------------------------------------------------------

const folded = new Map(Object.entries(recall("folded", {})));

// Folds or opens a panel; `chosen` by the reader, who is remembered, or because it is empty.
function fold(panel, closed, chosen = true) {
  if (chosen) {
    folded.set(panel.id, closed);
    remember("folded", Object.fromEntries(folded));
  }
  if (panel.classList.contains("folded") === closed) return;
  panel.classList.toggle("folded", closed);
  panel.querySelector(".fold").setAttribute("aria-expanded", String(!closed));
  if (!closed) dispatchEvent(new CustomEvent("opened", { detail: panel.id }));
}
// An empty panel is folded unless the reader opened it; one that has something is open unless closed.
function foldEmpty(id, empty) {
  const panel = at(id);
  panel.classList.toggle("empty", empty);
  fold(panel, folded.has(id) ? folded.get(id) : empty, false);
}
for (const panel of document.querySelectorAll("main section")) {
  const head = panel.querySelector("h2");
  if (!head || head.parentElement !== panel) continue;
  const words = head.textContent;
  const button = make("button", { type: "button", class: "fold", "aria-expanded": "true", "aria-label": `Fold or open: ${words}` }, "▾");
  button.addEventListener("click", () => fold(panel, !panel.classList.contains("folded")));
  head.replaceChildren(button, anchor(panel.id, words));
  if (folded.get(panel.id)) fold(panel, true, false);
}

// Keys ---------------------------------------------------------------------------------------------

// Keys for the whole page: those of both pages, and the page's `own()` by key.
function pageKeys(own) {
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { "/": () => at("search").focus(), t: () => at("theme").click(), d: () => at("density").click(), ...own() }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

// Layout -------------------------------------------------------------------------------------------

at("density").addEventListener("click", () => {
  const dense = document.documentElement.classList.toggle("dense");
  at("density").setAttribute("aria-pressed", String(dense));
  remember("dense", dense);
  dispatchEvent(new CustomEvent("dense"));
});
if (recall("dense", false)) {
  document.documentElement.classList.add("dense");
  at("density").setAttribute("aria-pressed", "true");
}
