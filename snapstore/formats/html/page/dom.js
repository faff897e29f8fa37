// Building what is shown. Text only ever becomes text nodes: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";

// Characters that would reorder or hide what stands around them are written out.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const shown = (text) =>
  text.replace(HIDDEN, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);

function filled(element, attributes, children) {
  for (const [name, given] of Object.entries(attributes || {})) {
    if (given === null || given === undefined || given === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), given);
    else element.setAttribute(name, given === true ? "" : given);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(shown(String(child))));
  }
  return element;
}

const h = (tag, attributes, ...children) =>
  filled(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
  filled(document.createElementNS(SVG, tag), attributes, children);

const $ = (selector) => document.querySelector(selector);

const STEPS = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [7, "day"],
  [5, "week"],
];

/** How long ago something was, in words; the date when that is long. */
function ago(milliseconds) {
  if (!milliseconds) return "";
  let left = Math.floor((Date.now() - milliseconds) / 1000);
  if (left >= 0 && left < 10) return "just now";
  for (const [size, unit] of left < 0 ? [] : STEPS) {
    if (left < size) return `${left} ${unit}${left === 1 ? "" : "s"} ago`;
    left = Math.floor(left / size);
  }
  return new Date(milliseconds).toISOString().slice(0, 10);
}

function timeOf(turn) {
  if (!turn.time) return null;
  const exact = new Date(turn.time).toISOString();
  return h("time", {datetime: exact, title: exact}, ago(turn.time));
}

/** Orders names so that note-2 comes before note-10. */
const byName = new Intl.Collator("en", {numeric: true}).compare;

const plural = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  while (bytes >= 1000 && power < units.length - 1) {
    bytes /= 1000;
    power++;
  }
  return `${power ? bytes.toFixed(1) : bytes} ${units[power]}`;
}

function say(text) {
  const status = $("#status");
  status.textContent = text;
  status.classList.add("on");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => status.classList.remove("on"), 2500);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages opened from a file may not have the clipboard: the old way still works there.
    const area = h("textarea", {class: "offscreen", "aria-hidden": "true"});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say(`Copied: ${text}`);
}

function command(text, what) {
  const button = h(
    "button",
    {type: "button", "aria-label": `Copy the command that ${what}`, onclick: () => copy(text)},
    "Copy",
  );
  return h("div", {class: "command"}, h("code", {}, text), button);
}

const FOLD_AT = 24;

/** A text in a box; of a long one the beginning, and a button for the rest. */
function block(text, kind) {
  const lines = text.split("\n");
  if (lines.length <= FOLD_AT + 4 && text.length < 6000) return h("pre", {class: kind}, text);
  const start = lines.slice(0, FOLD_AT).join("\n").slice(0, 4000);
  const box = h("pre", {class: kind}, start);
  const more = h(
    "button",
    {type: "button", class: "more"},
    `Show all ${plural(lines.length, "line")}, ${plural(text.length, "character")}`,
  );
  more.addEventListener("click", () => {
    box.textContent = shown(text);
    more.remove();
  });
  return [box, more];
}

const chip = (text, kind) => h("span", {class: `chip ${kind || ""}`}, text);

function turnLink(turn, text) {
  return h("a", {href: `#/turn/${turn.id}`}, text || `turn ${turn.number}`);
}
