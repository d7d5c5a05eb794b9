// What both pages share: elements, words, the stream of states, the theme.
// Everything from outside becomes text (textContent, attributes), never markup.
"use strict";

const at = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") for (const [event, f] of Object.entries(value)) element.addEventListener(event, f);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((c) => c !== null && c !== undefined));
  return element;
}

// Draws a place anew. Who was on an element of it is then on the one that has the same `data-…`: on its successor.
function keepFocus(place, name, draw) {
  const held = place.contains(document.activeElement) ? document.activeElement.dataset[name] : undefined;
  draw();
  if (held === undefined || place.contains(document.activeElement)) return;
  const successor = [...place.querySelectorAll(`[data-${name}]`)].find((element) => element.dataset[name] === held);
  if (successor) successor.focus({ preventScroll: true });
}

// Words --------------------------------------------------------------------------------------------

function cpusIn(text) {
  const numbers = [];
  for (const part of (text || "").split(",")) {
    if (!part) continue;
    const [first, last] = part.split("-").map(Number);
    for (let n = first; n <= (last === undefined ? first : last); n += 1) numbers.push(n);
  }
  return numbers;
}
function ranges(numbers) {
  const parts = [];
  for (const n of [...numbers].sort((a, b) => a - b)) {
    const last = parts[parts.length - 1];
    if (last && last[1] === n - 1) last[1] = n; else parts.push([n, n]);
  }
  return parts.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(",");
}
function bytes(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  while (value >= 1024 && unit < 5) { value /= 1024; unit += 1; }
  return `${value >= 100 || !unit ? Math.round(value) : value.toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}
const fixed = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const percent = (value) => (value === null || value === undefined ? "–" : `${(value * 100).toFixed(value < 0.1 ? 1 : 0)} %`);
// A moment of today on the clock of whoever looks; the whole of it for machines.
function moment(seconds) {
  const when = new Date((seconds || 0) * 1000);
  return make("time", { class: "soft", datetime: when.toISOString(), title: when.toLocaleString() }, `${when.toTimeString().slice(0, 8)} `);
}

// Names and reasons may hold anything. What cannot be seen or turns the words around it is shown as its number, and
// words from right to left stay among themselves, so that a reader sees where each name ends.
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g;
const LEFTWARDS = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?:[ .,:'-]+[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*/g;
const numbered = (sign) => `⟨U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
const legible = (text) => text.replace(UNSEEN, numbered).replace(LEFTWARDS, "\u2068$&\u2069");
// The same as it was before; in a question.
const asWritten = (name) => name.replace(/[\u2068\u2069]/g, "").replace(/⟨U\+([0-9A-F]{4})⟩/g, (_, digits) => String.fromCharCode(parseInt(digits, 16)));
const inQuery = (name) => encodeURIComponent(asWritten(name));
// Escapes of what `legible` changes, as servers write them: nearly no document has any.
const SUSPECT = /\\u(?:00[01]|007f|00[89]|200[bef]|202[a-e]|206[06-9]|0[5-8]|f[b-e])/;
function parsed(text) {
  if (!SUSPECT.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key, value) => (typeof value === "string" ? legible(value)
    : value !== null && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [legible(name), inner])) : value));
}

// Talking to the server ----------------------------------------------------------------------------

async function ask(path) {
  const answer = await fetch(path, { headers: { accept: "application/json" }, cache: "no-cache" });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return parsed(await answer.text());
}
function showError(words) {
  at("state").className = "bad";
  at("state").textContent = words;
}
function showStatus(well, words) {
  const line = at("state");
  line.className = well ? "" : "bad";
  if (line.textContent !== words) line.textContent = words;
}
// Hands over each state; one that comes while the last is being drawn waits, and only the newest does.
function listen(who, path, draw) {
  let busy = false, waiting = null;
  const drawn = async (state) => {
    if (busy) { waiting = state; return; }
    busy = true;
    try {
      await draw(state);
      document.body.dataset.ready = "yes";
    } catch (error) {
      showError(`Cannot draw the page: ${error.message}`);
    } finally {
      busy = false;
      if (waiting !== null) { const next = waiting; waiting = null; drawn(next); }
    }
  };
  const open = () => {
    const source = new EventSource(path);
    source.addEventListener("state", (event) => drawn(parsed(event.data)));
    source.addEventListener("starting", () => showError(`the ${who} is starting …`));
    // The browser comes back by itself unless it was refused.
    source.onerror = () => {
      showError(`the ${who} does not answer; this is its last known state`);
      if (source.readyState === EventSource.CLOSED) setTimeout(open, 2000);
    };
  };
  open();
}
function links(several) {
  at("paths").replaceChildren(...several.flatMap((path) => [make("a", { href: path }, path), " "]));
}

// What a reader chose is remembered by the browser, where it allows that.
function recall(name, otherwise) {
  try {
    const text = localStorage.getItem(`koordlet.${name}`);
    return text === null ? otherwise : JSON.parse(text);
  } catch (error) {
    return otherwise;
  }
}
function remember(name, value) {
  try {
    localStorage.setItem(`koordlet.${name}`, JSON.stringify(value));
  } catch (error) {
    // A private window: it is forgotten with the page.
  }
}
if (["light", "dark"].includes(recall("theme", ""))) document.documentElement.dataset.theme = recall("theme", "");
at("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  remember("theme", root.dataset.theme);
});
