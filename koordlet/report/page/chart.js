// A chart on a canvas: lines and stacked areas over time, a cursor that all charts share, zoom by
// dragging, marks. It knows nothing of the agent: data and colours are handed to it.
"use strict";

// Around the area of samples, by the size of the text; a stroke of small text is one pixel.
const padOf = (font) => ({ left: font * 4.5, right: font, top: font + 2, bottom: font + 8 });
const fontOf = (canvas) => parseFloat(getComputedStyle(canvas).fontSize);
// Samples further apart than so many periods are not joined.
const GAP = 3.5;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];

// Numbers ------------------------------------------------------------------------------------------

const UNITS_OF_CHARTS = {
  cores: (v) => (v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2)),
  CPUs: (v) => v.toFixed(0),
  ratio: (v) => percent(v),
  seconds: (v) => (v < 1 ? `${(v * 1000).toFixed(1)} ms` : `${v.toFixed(2)} s`),
  bytes: (v) => bytes(v),
  "bytes/s": (v) => `${bytes(v)}/s`,
  number: (v) => String(Math.round(v * 100) / 100),
};
function spell(value, unit) {
  return value === null || value === undefined ? "–" : UNITS_OF_CHARTS[unit](value);
}
// A round number that is not smaller; for bytes a round one of the binary unit.
function roundUp(value, unit) {
  if (!(value > 0)) return unit.startsWith("bytes") ? 1024 : unit === "ratio" ? 0.05 : 1;
  const base = unit.startsWith("bytes") ? 1024 ** Math.floor(Math.log(value) / Math.log(1024)) : 1;
  // A share of time is a part of one.
  if (unit === "ratio" && value > 0.5 && value < 1.1) return 1;
  const part = value / base, ten = 10 ** Math.floor(Math.log10(part));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * ten >= part * 0.999) * ten * base;
}
function clock(seconds, fine) {
  const text = new Date(seconds * 1000).toTimeString();
  return text.slice(0, fine ? 8 : 5);
}
// The first index whose time is not before a moment.
function indexAt(at, moment) {
  let low = 0, high = at.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle] < moment) low = middle + 1; else high = middle;
  }
  return low;
}
function nearest(at, moment, within) {
  const next = indexAt(at, moment);
  const best = next > 0 && (next === at.length || moment - at[next - 1] < at[next] - moment) ? next - 1 : next;
  return best < at.length && Math.abs(at[best] - moment) <= within ? best : -1;
}

// One chart ----------------------------------------------------------------------------------------

// `axis` is what charts share: from(), to(), cursor, marks(), period(), point(t), zoom(a, b), step(n).
function makeChart(title, unit, axis, options) {
  const canvas = make("canvas", { class: "plot", tabindex: 0, role: "img" });
  const keys = make("ul", { class: "keys" });
  const box = make("figure", { class: options.tall ? "chart tall" : "chart" }, canvas, keys);
  const chart = { box, canvas, keys, title, unit, axis, options, at: [], series: [], asked: false, seen: false, drag: null };
  chart.show = (at, series) => { chart.at = at; chart.series = series; legend(chart); redraw(chart); };
  chart.redraw = () => redraw(chart);
  const moment = (event) => {
    const box = canvas.getBoundingClientRect(), pad = padOf(fontOf(canvas)), wide = box.width - pad.left - pad.right;
    const part = Math.min(1, Math.max(0, (event.clientX - box.left - pad.left) / wide));
    return axis.from() + part * (axis.to() - axis.from());
  };
  canvas.addEventListener("pointermove", (event) => {
    axis.point(moment(event));
    if (chart.drag !== null) redraw(chart);
  });
  canvas.addEventListener("pointerleave", () => { if (chart.drag === null) axis.point(null); });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button || event.pointerType === "touch") return;
    chart.drag = moment(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    const start = chart.drag, end = moment(event);
    chart.drag = null;
    if (start !== null && Math.abs(end - start) * canvas.clientWidth > 8 * (axis.to() - axis.from())) {
      axis.zoom(Math.min(start, end), Math.max(start, end));
    }
    redraw(chart);
  });
  canvas.addEventListener("pointercancel", () => { chart.drag = null; });
  canvas.addEventListener("dblclick", () => axis.zoom(null, null));
  canvas.addEventListener("keydown", (event) => {
    const act = { ArrowLeft: () => axis.step(-1), ArrowRight: () => axis.step(1), Escape: () => axis.zoom(null, null),
      "+": () => axis.scale(0.5), "=": () => axis.scale(0.5), "-": () => axis.scale(2) }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
  new ResizeObserver(() => redraw(chart)).observe(canvas);
  new IntersectionObserver((entries) => { chart.seen = entries[entries.length - 1].isIntersecting; redraw(chart); }).observe(canvas);
  return chart;
}
// Many changes of one frame are drawn once; a chart that is not on the screen is not drawn.
function redraw(chart) {
  if (chart.asked || !chart.seen) return;
  chart.asked = true;
  requestAnimationFrame(() => { chart.asked = false; if (chart.seen) drawChart(chart); });
}

function drawChart(chart) {
  const { canvas, axis, unit, options } = chart;
  const sharp = window.devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
  if (canvas.width !== Math.round(wide * sharp) || canvas.height !== Math.round(high * sharp)) {
    canvas.width = Math.round(wide * sharp);
    canvas.height = Math.round(high * sharp);
  }
  const pen = canvas.getContext("2d"), from = axis.from(), to = axis.to();
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  pen.clearRect(0, 0, wide, high);
  const font = fontOf(canvas), pad = padOf(font);
  pen.font = `${font}px system-ui, "Liberation Sans", sans-serif`;
  const first = Math.max(0, indexAt(chart.at, from) - 1), last = Math.min(chart.at.length, indexAt(chart.at, to) + 1);
  const view = pointsOf(chart, first, last, wide - pad.left - pad.right);
  const whole = options.top ? options.top() : 0, top = view.most <= whole * 1.02 ? whole : roundUp(view.most * 1.02, unit);
  const x = (t) => pad.left + ((t - from) / (to - from)) * (wide - pad.left - pad.right);
  const y = (v) => high - pad.bottom - (Math.min(v, top) / top) * (high - pad.bottom - pad.top);
  grid(pen, { from, to, x, y, top, unit, wide, high, pad, font, live: axis.live() });
  pen.save();
  pen.beginPath();
  pen.rect(pad.left, 0, wide - pad.left - pad.right, high - pad.bottom + 1);
  pen.clip();
  pen.lineJoin = "round";
  for (const area of view.areas) fillArea(pen, area, x, y, font / 12);
  for (const line of view.lines) strokeLine(pen, line, x, y, font / 12);
  drawPhases(pen, axis.phases, x, high - pad.bottom, font);
  drawMarks(pen, axis.marks(), options.marks, x, high - pad.bottom, font);
  if (chart.drag !== null && axis.cursor !== null) {
    pen.fillStyle = colour("focus");
    pen.globalAlpha = 0.15;
    pen.fillRect(x(chart.drag), 0, x(axis.cursor) - x(chart.drag), high - pad.bottom);
    pen.globalAlpha = 1;
  }
  if (axis.cursor !== null && axis.cursor >= from && axis.cursor <= to) {
    pen.strokeStyle = colour("soft");
    pen.beginPath();
    pen.moveTo(x(axis.cursor), pad.top - 4);
    pen.lineTo(x(axis.cursor), high - pad.bottom);
    pen.stroke();
  }
  pen.restore();
  legend(chart);
}

// The samples that are drawn: not more than two for each pixel, stacked where they are areas.
function pointsOf(chart, first, last, wide) {
  const every = Math.max(1, Math.ceil((last - first) / Math.max(1, wide))), gap = chart.axis.period() * (every + GAP);
  const buckets = [];
  for (let start = first; start < last; start += every) buckets.push([start, Math.min(last, start + every)]);
  const times = buckets.map(([start, end]) => chart.at[end - 1]);
  const fold = (values, how) => buckets.map(([start, end]) => {
    let sum = 0, most = null, count = 0;
    for (let n = start; n < end; n += 1) {
      const value = values[n];
      if (value === null || value === undefined) continue;
      sum += value; count += 1;
      if (most === null || value > most) most = value;
    }
    return count ? (how === "mean" ? sum / count : most) : null;
  });
  let most = 0, below = times.map(() => 0);
  const areas = [], lines = [];
  for (const series of chart.series) {
    if (series.hidden) continue;
    const values = fold(series.values, series.style === "area" ? "mean" : "most");
    if (series.style === "area") {
      const above = values.map((value, n) => (value === null ? below[n] : below[n] + value));
      areas.push({ ...series, times, gap, below, above, known: values.map((value) => value !== null) });
      below = above;
      most = Math.max(most, ...above);
    } else {
      lines.push({ ...series, times, gap, values });
      most = values.reduce((highest, value) => (value !== null && value > highest ? value : highest), most);
    }
  }
  return { areas, lines, most };
}
// Calls `draw` for each run of samples that belong together.
function runs(times, gap, known, draw) {
  let start = -1;
  for (let n = 0; n <= times.length; n += 1) {
    const broken = n === times.length || !known(n) || (start >= 0 && n > start && times[n] - times[n - 1] > gap);
    if (broken && start >= 0) { draw(start, n); start = -1; }
    if (n < times.length && known(n) && start < 0) start = n;
  }
}
function fillArea(pen, area, x, y, scale) {
  runs(area.times, area.gap, (n) => area.known[n], (start, end) => {
    pen.beginPath();
    for (let n = start; n < end; n += 1) pen.lineTo(x(area.times[n]), y(area.above[n]));
    pen.strokeStyle = colour(area.colour);
    pen.lineWidth = 1.25 * scale;
    pen.stroke();
    for (let n = end - 1; n >= start; n -= 1) pen.lineTo(x(area.times[n]), y(area.below[n]));
    pen.closePath();
    pen.fillStyle = colour(area.colour);
    pen.globalAlpha = 0.55;
    pen.fill();
    pen.globalAlpha = 1;
  });
}
function strokeLine(pen, line, x, y, scale) {
  pen.strokeStyle = colour(line.colour);
  pen.lineWidth = 1.75 * scale;
  pen.setLineDash((line.style === "dashed" ? [6, 4] : line.style === "dotted" ? [2, 3] : []).map((part) => part * scale));
  runs(line.times, line.gap, (n) => line.values[n] !== null, (start, end) => {
    pen.beginPath();
    if (end - start === 1) pen.rect(x(line.times[start]) - 1, y(line.values[start]) - 1, 2, 2);
    for (let n = start; n < end; n += 1) {
      if (line.style === "dashed" && n > start) pen.lineTo(x(line.times[n]), y(line.values[n - 1]));
      pen.lineTo(x(line.times[n]), y(line.values[n]));
    }
    pen.stroke();
  });
  pen.setLineDash([]);
}
function grid(pen, { from, to, x, y, top, unit, wide, high, pad, font, live }) {
  pen.fillStyle = colour("soft");
  pen.strokeStyle = colour("line");
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const part of high > 130 ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1]) {
    const height = Math.round(y(top * part)) + 0.5;
    pen.beginPath();
    pen.moveTo(pad.left, height);
    pen.lineTo(wide - pad.right, height);
    pen.stroke();
    pen.fillText(unit === "cores" ? String(Math.round(top * part * 100) / 100) : spell(top * part, unit).replace(/\.0 /, " "), pad.left - 6, height, pad.left - 8);
  }
  const step = STEPS.find((seconds) => (to - from) / seconds <= (wide - pad.left) / (font * 6)) || 86400;
  const zone = new Date(from * 1000).getTimezoneOffset() * 60;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  for (let t = Math.ceil((from - zone) / step) * step + zone; t <= to; t += step) {
    if (x(t) < pad.left + font || x(t) > wide - pad.right - font * (live ? (step < 60 ? 5.5 : 4) : 1.5)) continue;
    pen.globalAlpha = 0.5;
    pen.beginPath();
    pen.moveTo(Math.round(x(t)) + 0.5, y(0));
    pen.lineTo(Math.round(x(t)) + 0.5, y(0) + 4);
    pen.stroke();
    pen.globalAlpha = 1;
    pen.fillText(clock(t, step < 60), x(t), high - 3);
  }
  if (live) {
    pen.textAlign = "right";
    pen.fillText("now", wide - pad.right, high - 3);
  }
}
// The phases of a comparison in which koordlet acts are shaded, and each is named.
function drawPhases(pen, phases, x, bottom, font) {
  pen.textAlign = "center";
  pen.textBaseline = "bottom";
  for (const phase of phases) {
    const left = x(phase.from), wide = x(phase.to) - left;
    pen.fillStyle = colour(phase.on ? "good" : "soft");
    pen.globalAlpha = phase.on ? 0.14 : 0.04;
    pen.fillRect(left, font, wide, bottom - font);
    pen.globalAlpha = 1;
    pen.fillStyle = colour("ink");
    if (wide > font * 2.5) pen.fillText(phase.on ? "on" : "off", left + wide / 2, bottom - 2, wide);
  }
}
const MARKS = { plan: ["▾", "soft", "plan"], limit: ["◆", "be-line", "limit of best-effort work"],
  eviction: ["✕", "bad", "eviction"], rollback: ["↶", "bad", "rollback"] };
function drawMarks(pen, marks, all, x, bottom, font) {
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.lineWidth = 1;
  for (const mark of marks) {
    const [sign, name] = MARKS[mark.kind], strong = name === "bad";
    if (!all && !strong) continue;
    pen.strokeStyle = pen.fillStyle = colour(name);
    pen.globalAlpha = strong ? 0.9 : 0.35;
    pen.beginPath();
    pen.moveTo(x(mark.at), font);
    pen.lineTo(x(mark.at), strong ? bottom : font * 1.6);
    pen.stroke();
    pen.globalAlpha = 1;
    pen.fillText(sign, x(mark.at), 0);
  }
}

// Legend: the value at the cursor, else the newest -------------------------------------------------

function legend(chart) {
  const { axis, at, unit } = chart, moment = axis.cursor === null ? (axis.live() ? at[at.length - 1] : axis.to()) : axis.cursor;
  const index = at.length ? nearest(at, moment, axis.period() * GAP) : -1;
  const texts = chart.series.map((series) => {
    const value = index < 0 ? null : series.values[index], name = series.words ? series.words(moment) : series.label;
    return [`${name} `, spell(value, unit)];
  });
  while (chart.keys.children.length > texts.length) chart.keys.lastChild.remove();
  texts.forEach(([name, value], n) => {
    const series = chart.series[n];
    if (!chart.keys.children[n]) {
      const key = make("button", { type: "button", class: "key" }, make("i"), make("span"), make("b"));
      chart.keys.append(make("li", {}, key));
      key.addEventListener("click", () => chart.options.toggle(chart.series[n]));
    }
    const key = chart.keys.children[n].firstChild, [swatch, label, number] = key.children;
    const cls = `swatch-${series.style}`;
    if (swatch.className !== cls) swatch.className = cls;
    const ink = `var(--${series.colour})`;
    if (swatch.dataset.ink !== ink) { swatch.dataset.ink = ink; swatch.style.color = ink; }
    key.setAttribute("aria-pressed", series.hidden ? "false" : "true");
    if (label.textContent !== name) label.textContent = name;
    if (number.textContent !== value) number.textContent = value;
  });
  const words = `${chart.title}, ${clock(axis.from(), true)} to ${clock(axis.to(), true)}; at ${clock(moment || axis.to(), true)}: ${texts.map((pair) => pair.join("")).join(", ") || "no samples"}`;
  chart.canvas.setAttribute("aria-label", words);
}

// Colours come from the style sheet; they are read once for each theme.
const inks = new Map();
function colour(name) {
  if (!inks.has(name)) inks.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888");
  return inks.get(name);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => inks.clear());

// A line without axes, of values that are evenly apart.
function spark(canvas, values, ink) {
  const sharp = window.devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
  if (!wide) return;
  canvas.width = Math.round(wide * sharp);
  canvas.height = Math.round(high * sharp);
  const pen = canvas.getContext("2d");
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  const most = values.reduce((highest, value) => (value > highest ? value : highest), 0) || 1;
  const points = values.map((value, n) => (value === null || value === undefined ? null
    : [(n / Math.max(1, values.length - 1)) * wide, high - 1.5 - (value / most) * (high - 3)]));
  pen.strokeStyle = pen.fillStyle = colour(ink);
  pen.lineWidth = 1.25;
  runs(points.map((_, n) => n), 2, (n) => points[n] !== null, (start, end) => {
    pen.beginPath();
    for (let n = start; n < end; n += 1) pen.lineTo(...points[n]);
    pen.stroke();
    pen.lineTo(points[end - 1][0], high);
    pen.lineTo(points[start][0], high);
    pen.globalAlpha = 0.18;
    pen.fill();
    pen.globalAlpha = 1;
  });
}
