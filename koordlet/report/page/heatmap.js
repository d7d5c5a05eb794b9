// The heat map: a cell for each node on a canvas that draws only what is in sight. A cell tells its value by
// lightness, by a digit (tenths) where there is room, and by a bar; unknown is hatched.
"use strict";

const RAMPS = {
  light: ["#e6eef5", "#bcd5e8", "#8cb9da", "#5597c6", "#2a6fa5", "#123f6b"],
  dark: ["#1c2733", "#22415c", "#2b6189", "#4388b8", "#7db4da", "#cfe6f5"],
};
const OVER = { light: "#b3261e", dark: "#ff7b72" };
const STEPS = [0.2, 0.4, 0.6, 0.8, 0.95, 1.0001];
const heat = { zoom: 1, cursor: -1, order: [], groups: [], columns: 1, width: 10, height: 10, drawn: 0, waiting: false };

const dark = () => {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
const step = (value) => (value === null ? -1 : STEPS.findIndex((most) => value < most));
// Of a step: what fills the cell, and what is written on it.
function inkOf(n, mode) {
  if (n === 6) return [OVER[mode], mode === "dark" ? "#000000" : "#ffffff"];
  return [RAMPS[mode][n], (mode === "dark" ? n < 3 : n > 3) ? "#ffffff" : "#000000"];
}
function bucket(value) {
  if (value === null) return -1;
  const n = step(value);
  return n < 0 ? 6 : n;
}

// Shape --------------------------------------------------------------------------------------------

function shape() {
  const frame = at("map-frame"), rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const wide = Math.max(40, frame.clientWidth), high = Math.max(8 * rem, Math.min(innerHeight * 0.42, 34 * rem)), count = Math.max(1, heat.order.length);
  let side = Math.min(Math.sqrt((wide * high) / count), 6 * rem) * heat.zoom;
  const aspect = side > 3 * rem ? 2.2 : side > 1.8 * rem ? 1.5 : 1;
  side = Math.max(4, side);
  heat.columns = Math.max(1, Math.min(Math.round(wide / (side * Math.sqrt(aspect))), Math.max(count, Math.floor(wide / (14 * rem)))));
  heat.width = wide / heat.columns;
  // A group begins a row of its own, below its name. As long as nobody zooms, all rows are in sight.
  const head = heat.groups.some((group) => group.name !== null) ? 1.5 * rem : 0, rows = heat.groups.reduce((sum, group) => sum + Math.ceil(group.count / heat.columns), 0);
  const most = heat.zoom === 1 ? (high - head * heat.groups.length) / Math.max(1, rows) : Infinity;
  heat.height = Math.max(4, Math.min(side / Math.sqrt(aspect), 4 * rem, most));
  let tall = 0;
  for (const group of heat.groups) {
    group.top = tall + head;
    tall = group.top + Math.ceil(group.count / heat.columns) * heat.height;
  }
  const canvas = at("heat-map"), seen = Math.min(tall, high);
  frame.style.maxHeight = `${Math.ceil(high)}px`;
  // What is scrolled is as high as all rows; the canvas sticks to the part in sight.
  canvas.parentElement.style.height = `${Math.max(Math.ceil(seen), Math.round(tall))}px`;
  canvas.style.height = `${Math.ceil(seen)}px`;
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(wide * scale) || canvas.height !== Math.round(seen * scale)) {
    canvas.width = Math.round(wide * scale);
    canvas.height = Math.round(seen * scale);
  }
  return { canvas, frame, rem, scale };
}
const groupOf = (n) => heat.groups.findLast((group) => group.first <= n) || { first: 0, count: 0, top: 0 };
function boxOf(n, group = groupOf(n)) {
  const k = n - group.first;
  return [(k % heat.columns) * heat.width, group.top + Math.floor(k / heat.columns) * heat.height];
}
// The cell above (-1) or below (1); over the edge of a group, in the one beside it.
function beside(n, way) {
  const { columns, groups, order } = heat, group = groupOf(n), k = n - group.first, column = k % columns;
  const next = k + way * columns, row = (count) => Math.floor((count - 1) / columns);
  if (next >= 0 && next < group.count) return group.first + next;
  if (way > 0 && Math.floor(k / columns) < row(group.count)) return group.first + group.count - 1;
  const other = groups[groups.indexOf(group) + way];
  if (!other) return way < 0 ? 0 : order.length - 1;
  return other.first + Math.min(other.count - 1, (way < 0 ? row(other.count) * columns : 0) + column);
}
function arrange() {
  heat.order = nodes.all || [];
  if (looks.order === "value") {
    const value = (node) => { const share = measured(node); return share === null ? -1 : share; };
    heat.order = [...heat.order].sort((a, b) => value(b) - value(a));
  }
  const zoned = looks.group === "zone";
  if (zoned) heat.order = [...heat.order].sort((a, b) => !a.zone - !b.zone || inOrder.compare(a.zone, b.zone));
  heat.groups = [];
  heat.order.forEach((node, first) => {
    const name = zoned ? node.zone : null, last = heat.groups[heat.groups.length - 1];
    if (last && last.name === name) last.count += 1;
    else heat.groups.push({ name, first, count: 1, top: 0 });
  });
}

// Drawing ------------------------------------------------------------------------------------------

function drawHeat() {
  if (at("heat").classList.contains("folded")) return;
  const started = performance.now();
  const { canvas, frame, rem, scale } = shape();
  const context = canvas.getContext("2d"), mode = dark() ? "dark" : "light", top = frame.scrollTop;
  const style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--ink").trim(), soft = style.getPropertyValue("--soft").trim();
  const { width, height, columns } = heat, bottom = top + canvas.height / scale, gap = Math.min(width, height) > 7 ? 1 : Math.min(width, height) > 5 ? 0.5 : 0.25;
  context.setTransform(scale, 0, 0, scale, 0, -top * scale);
  context.clearRect(0, top, canvas.width / scale, canvas.height / scale);
  const hidden = nodes.wanted ? new Set(nodes.listed) : null, buckets = [[], [], [], [], [], [], [], []], w = width - gap, h = height - gap;
  for (const group of heat.groups) {
    if (group.top - 1.5 * rem > bottom) break;
    if (group.name !== null) groupName(context, group, ink, rem);
    const first = Math.max(0, Math.floor((top - group.top) / height)) * columns, last = Math.min(group.count, (Math.ceil((bottom - group.top) / height) + 1) * columns);
    for (let k = first; k < last; k += 1) buckets[bucket(measured(heat.order[group.first + k])) + 1].push([group.first + k, ...boxOf(group.first + k, group)]);
  }
  buckets.forEach((several, group) => {
    const [fill, text] = group ? inkOf(group - 1, mode) : [soft, soft];
    for (const [n, x, y] of several) {
      const node = heat.order[n];
      context.globalAlpha = hidden && !hidden.has(node) ? 0.18 : 1;
      context.fillStyle = fill;
      if (group) context.fillRect(x, y, w, h);
      else {
        context.strokeStyle = soft;
        context.lineWidth = 1;
        context.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
        context.beginPath();
        context.moveTo(x, y + h);
        context.lineTo(x + w, y);
        context.stroke();
      }
      // Digits in small cells are noise; signs of trouble are not.
      if (Math.min(h, w) > (group === 7 ? 0.5 : 0.8) * rem) label(context, node, group - 1, [x, y, w, h], group ? text : ink, rem);
    }
  });
  context.globalAlpha = 1;
  for (const [n, colour] of [[heat.order.findIndex((node) => node.name === nodes.chosen), ink], [heat.cursor, style.getPropertyValue("--focus").trim()]]) {
    if (n < 0 || n >= heat.order.length) continue;
    const [x, y] = boxOf(n);
    context.strokeStyle = colour;
    context.lineWidth = Math.max(2, rem / 6);
    context.strokeRect(x, y, w, h);
  }
  heat.drawn = performance.now() - started;
}
function groupName(context, group, ink, rem) {
  context.fillStyle = ink;
  context.font = `${rem * 0.85}px system-ui, sans-serif`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(`${group.name || "no zone"}: ${counted(group.count, "node")}`, 2, group.top - 0.7 * rem);
}
// Words that end with an ellipsis where they are wider than what they are written in.
function fitted(context, words, width) {
  const wide = (text) => context.measureText(text).width, whole = wide(words);
  if (whole <= width) return words;
  let count = Math.ceil((words.length * width) / whole);
  while (count > 0 && wide(`${words.slice(0, count)}…`) > width) count -= 1;
  return `${words.slice(0, count)}…`;
}
// What a cell says beside its colour, as its room allows: a digit or letters; then name, value and bar.
function label(context, node, group, [x, y, w, h], text, rem) {
  const value = measured(node), sign = looks.measure === "pressure" ? node.pressure : group < 0 ? "?" : group === 6 ? "!" : String(Math.min(9, Math.floor(value * 10)));
  context.fillStyle = text;
  if (w < 3.6 * rem) {
    context.font = `${Math.min(h * 0.75, w * 0.9, rem * 0.8)}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(sign, x + w / 2, y + h / 2);
    return;
  }
  context.save();
  context.beginPath();
  context.rect(x + 2, y, w - 4, h);
  context.clip();
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.font = `${rem * 0.75}px system-ui, sans-serif`;
  const room = w - rem * 0.6, two = h > 2 * rem, words = looks.measure === "pressure" ? pressures(node) || "none" : percent(value);
  // Nodes of one cloud share their domain; what tells them apart stands before it.
  const [name] = node.name.split(".");
  context.fillText(fitted(context, two ? name : `${words} ${name}`, room), x + rem * 0.35, y + h * (two ? 0.3 : 0.5));
  if (two) {
    context.fillText(fitted(context, words + (node.state ? " ⊘" : ""), room), x + rem * 0.35, y + h * 0.62);
    if (value !== null && looks.measure !== "pressure") context.fillRect(x + 2, y + h - rem * 0.2, (w - 4) * Math.min(1, value), rem * 0.2);
  }
  context.restore();
}
function askHeat() {
  if (heat.waiting) return;
  heat.waiting = true;
  requestAnimationFrame(() => { heat.waiting = false; drawHeat(); });
}
function rearrange() {
  const name = (heat.order[heat.cursor] || {}).name;
  arrange();
  if (name) heat.cursor = heat.order.findIndex((node) => node.name === name);
  scaleKeys();
  askHeat();
}

// Words --------------------------------------------------------------------------------------------

function scaleKeys() {
  const mode = dark() ? "dark" : "light", only = looks.measure === "pressure";
  const names = only ? [[0, "", "none"], [6, "M D P", "memory, disk, PID"]] : [[0, "0", "0–20 %"], [1, "2", "20–40"], [2, "4", "40–60"], [3, "6", "60–80"], [4, "8", "80–95"], [5, "9", "95–100"],
    ...(looks.measure === "fragmentation" ? [] : [[6, "!", "over 100"]]), [-1, "?", "unknown"]];
  at("scale").replaceChildren(...names.map(([n, sign, words]) => {
    const swatch = make("span", { class: `swatch${n < 0 ? " unknown" : ""}`, "aria-hidden": "true" }, sign);
    if (n >= 0) [swatch.style.background, swatch.style.color] = inkOf(n, mode);
    return make("li", {}, swatch, words);
  }));
  at("resource").disabled = !MEASURES[looks.measure].byResource;
}
function wordsOf(node) {
  const part = (name, word) => `${word} ${percent(requested(node, name))} requested${node[`${name}Use`] === null ? "" : `, ${percent(inUse(node, name))} in use`}`;
  return [node.name, node.zone ? `zone ${node.zone}` : "", part("cpu", "CPU"), part("memory", "memory"), counted(node.pods, "pod"),
    node.pressure ? `under pressure: ${pressures(node)}` : "", `fragmentation ${percent(fragmentation(node))}`, node.state].filter(Boolean).join("; ");
}
function pointAt(n) {
  heat.cursor = n;
  const node = heat.order[n];
  at("pointed").textContent = node ? wordsOf(node) : "Point at a node or use the arrow keys; Enter opens it.";
  askHeat();
}

// Reader -------------------------------------------------------------------------------------------

function cellAt(event) {
  const box = at("heat-map").getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left) / heat.width), y = event.clientY - box.top + at("map-frame").scrollTop;
  const group = heat.groups.findLast((each) => each.top <= y);
  if (!group || column < 0 || column >= heat.columns) return -1;
  const k = Math.floor((y - group.top) / heat.height) * heat.columns + column;
  return k < group.count ? group.first + k : -1;
}
function showCell(n) {
  const frame = at("map-frame"), [, y] = boxOf(n);
  if (y < frame.scrollTop) frame.scrollTop = y;
  else if (y + heat.height > frame.scrollTop + frame.clientHeight) frame.scrollTop = y + heat.height - frame.clientHeight;
}
function zoomHeat(factor) {
  heat.zoom = Math.max(1, Math.min(16, heat.zoom * factor));
  shape();
  if (heat.cursor >= 0) showCell(heat.cursor);
  askHeat();
}
at("heat-map").addEventListener("pointermove", (event) => { const n = cellAt(event); if (n !== heat.cursor) pointAt(n); });
at("heat-map").addEventListener("click", (event) => { const node = heat.order[cellAt(event)]; if (node) chooseNode(node.name, "heat"); });
at("heat-map").addEventListener("keydown", (event) => {
  const ways = { ArrowLeft: (n) => n - 1, ArrowRight: (n) => n + 1, ArrowUp: (n) => beside(n, -1), ArrowDown: (n) => beside(n, 1) }, end = heat.order.length - 1;
  let next = event.key in ways ? (heat.cursor < 0 || end < 0 ? 0 : ways[event.key](heat.cursor)) : { Home: 0, End: end }[event.key];
  if (event.key === "Enter" && heat.order[heat.cursor]) chooseNode(heat.order[heat.cursor].name, "heat");
  else if (event.key === "+" || event.key === "=") zoomHeat(2);
  else if (event.key === "-") zoomHeat(0.5);
  else if (next === undefined) return;
  event.preventDefault();
  if (next === undefined || end < 0) return;
  next = Math.max(0, Math.min(end, next));
  pointAt(next);
  showCell(next);
});
at("map-frame").addEventListener("scroll", askHeat, { passive: true });
at("closer").addEventListener("click", () => zoomHeat(2));
at("farther").addEventListener("click", () => zoomHeat(0.5));
for (const [name, allowed] of Object.entries(CHOICES)) {
  at(name).replaceChildren(...Object.entries(allowed).map(([value, choice]) => make("option", { value }, choice.words || choice)));
  at(name).value = looks[name];
  at(name).addEventListener("change", () => { looks[name] = at(name).value; remember("heat", looks); place({ [name]: looks[name] }); rearrange(); });
}
at("theme").addEventListener("click", rearrange);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rearrange);
for (const event of ["dense", "opened", "resize"]) addEventListener(event, askHeat);
nodes.listeners.push((name) => {
  const n = heat.order.findIndex((node) => node.name === name);
  if (n >= 0) { showCell(n); pointAt(n); }
  askHeat();
});
