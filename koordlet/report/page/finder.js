// The search box of a page: what `findAll` of the page returns for the words, as a list to choose from.
"use strict";

function showResults() {
  const box = at("results"), results = findAll(at("search").value);
  box.hidden = !at("search").value.trim();
  box.replaceChildren(...(results.length ? results.map(([name, kind, go], n) => {
    const row = make("li", { role: "option", id: `result-${n}`, "aria-selected": String(n === 0) }, make("b", {}, name), make("span", { class: "soft" }, ` ${kind}`));
    row.addEventListener("pointerdown", (event) => { event.preventDefault(); leaveSearch(); go(); });
    row.go = go;
    return row;
  }) : [make("li", { class: "soft" }, "Nothing has this name.")]));
}
function leaveSearch() {
  at("search").value = "";
  at("results").hidden = true;
  at("search").blur();
}
at("search").addEventListener("input", showResults);
at("search").addEventListener("blur", () => { at("results").hidden = true; });
at("search").addEventListener("focus", showResults);
at("search").addEventListener("keydown", (event) => {
  const rows = [...at("results").querySelectorAll("[role=option]")], now = rows.findIndex((row) => row.ariaSelected === "true");
  if (event.key === "Escape") { leaveSearch(); return; }
  if (event.key === "Enter" && rows[now]) { const { go } = rows[now]; leaveSearch(); go(); return; }
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!way || !rows.length) return;
  event.preventDefault();
  rows.forEach((row, n) => row.setAttribute("aria-selected", String(n === (now + way + rows.length) % rows.length)));
});
