// What the page holds: the index of turns, and values that are inflated when they are looked at.
// The shapes are told in payload.py, blobs.py, blocks.py and filetexts.py.

const GONE = -1;
const WHY_NO_TEXT = {"-1": "binary", "-2": "too large for this page", "-3": "missing in the store"};
const DIRECTORY = 0,
  LINK = 2;

const live = !document.getElementById("index");
const token = new URLSearchParams(location.search).get("token");

const store = {turns: [], named: [], paths: [], keys: [], tools: [], starts: [], held: null};
let chunks = new Map();
let owners = null;

function bytesOf(element) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(element.textContent);
  const text = atob(element.textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

async function asked(name) {
  const answer = await fetch(`/${name}?token=${encodeURIComponent(token)}`);
  if (!answer.ok) throw new Error(`the server said ${answer.status}`);
  return answer;
}

async function inflated(name) {
  const held = document.getElementById(name);
  const {readable, writable} = new DecompressionStream("deflate");
  if (held) {
    // Not by way of a Blob: that would be a detour through another process of the browser.
    const writer = writable.getWriter();
    writer.write(bytesOf(held)).catch(() => {});
    writer.close().catch(() => {});
  } else {
    (await asked(name)).body.pipeTo(writable).catch(() => {});
  }
  return new Response(readable).json();
}

/** Read the index; again when a live store has moved. */
async function readIndex() {
  const index = await inflated("index");
  store.turns = index.turns.map(turnOf);
  Object.assign(store, {paths: index.paths, keys: index.keys, tools: index.tools});
  Object.assign(store, {starts: index.chunks, held: index.store});
  for (const turn of store.turns) {
    turn.parent = turn.above >= 0 ? store.turns[turn.above] : null;
    turn.number = turn.parent ? turn.parent.number + 1 : -turn.above;
    if (turn.parent) turn.parent.children.push(turn);
  }
  store.named = index.named.map(([name, at, isTag, from]) => ({
    name,
    turn: store.turns[at],
    isTag: !!isTag,
    from: from >= 0 ? store.turns[from] : null,
  }));
  // Turns that forks share belong to the session that they were forked from.
  const firstOnes = [...store.named].sort((a, b) => !!a.from - !!b.from);
  for (const one of firstOnes) {
    one.turn.names.push(one.name);
    for (let turn = one.turn; turn && !turn.alive; turn = turn.parent) turn.alive = true;
    if (one.isTag) continue;
    for (let turn = one.turn; turn && !turn.session; turn = turn.parent) turn.session = one.name;
  }
  owners = null;
}

function turnOf(row, at) {
  const [above, id, time, title, labelled, keep, runs, scratch, files, tools, fresh, whole] = row;
  return {
    at,
    above,
    id,
    time,
    title,
    labelled: !!labelled,
    keep,
    runs,
    scratch,
    files,
    tools,
    fresh,
    whole,
    children: [],
    names: [],
    alive: false,
    session: null,
    parent: null,
    number: 0,
  };
}

/** The value of a number. */
async function value(number) {
  let low = 0,
    high = store.starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (store.starts[middle] <= number) low = middle;
    else high = middle - 1;
  }
  return (await chunk(low))[number - store.starts[low]];
}

function chunk(at) {
  if (!chunks.has(at)) {
    if (chunks.size > 40) chunks.delete(chunks.keys().next().value);
    chunks.set(at, inflated(`chunk${at}`));
  }
  return chunks.get(at);
}

/** The content of a file: a text, or null where the page does not carry it. */
async function fileText(number) {
  if (number < 0) return null;
  const steps = [];
  let here = await value(number);
  while (typeof here !== "string") {
    steps.push(here);
    here = await value(here[0]);
  }
  let lines = here.split("\n");
  for (const [, head, tail, middle, count] of steps.reverse()) {
    const between = count ? middle.split("\n") : [];
    lines = [...lines.slice(0, head), ...between, ...lines.slice(lines.length - tail)];
  }
  return lines.join("\n");
}

/** Numbers of the messages that a turn added. */
function addedMessages(turn) {
  const numbers = [];
  for (let at = 0; at < turn.runs.length; at += 2) {
    for (let n = 0; n < turn.runs[at + 1]; n++) numbers.push(turn.runs[at] + n);
  }
  return numbers;
}

function messageCount(turn) {
  let count = turn.keep;
  for (let at = 1; at < turn.runs.length; at += 2) count += turn.runs[at];
  return count;
}

/** The turns of a line, oldest first. */
function lineOf(turn) {
  const line = [];
  for (let here = turn; here; here = here.parent) line.push(here);
  return line.reverse();
}

/** A line's state after a turn: Map of key or path number to its last cell. */
function stateAt(turn, what) {
  const state = new Map();
  for (const step of lineOf(turn)) {
    for (const cell of step[what]) {
      if (isGone(cell)) state.delete(cell[0]);
      else state.set(cell[0], cell);
    }
  }
  return state;
}

/** The cell that stood before a turn's own for the same key or path; undefined for none. */
function cellBefore(turn, what, number) {
  for (let here = turn.parent; here; here = here.parent) {
    const cell = here[what].find((one) => one[0] === number);
    if (cell) return isGone(cell) ? undefined : cell;
  }
  return undefined;
}

/** Scratchpad cells are [key, value], files [path, kind, mode, size, content]. */
const isGone = (cell) => cell.length === 1 || (cell.length === 2 && cell[1] === GONE);
const contentOf = (cell) => (cell ? cell[cell.length - 1] : GONE);

function textOf(cell, what) {
  if (!cell || isGone(cell)) return Promise.resolve("");
  return what === "files" ? fileText(contentOf(cell)) : value(contentOf(cell));
}

/** A turn by what a person writes: a name, NAME@12, NAME~3, or the beginning of an id. */
function resolve(text) {
  const [, name, , way, number] = /^(.*?)(([@~])(\d+))?$/.exec(text.trim());
  const named = store.named.find((one) => one.name === name);
  let turn = named ? named.turn : null;
  if (!turn && /^[0-9a-f]{4,}$/.test(name)) {
    turn = store.turns.find((one) => one.id.startsWith(name.slice(0, 16))) || null;
  }
  const wanted = way === "@" ? Number(number) : turn && way ? turn.number - Number(number) : 0;
  while (turn && way && turn.number > wanted) turn = turn.parent;
  return turn && way && turn.number !== wanted ? null : turn;
}

/** How a command names a turn. */
function revision(turn) {
  return turn.session ? `${turn.session}@${turn.number}` : turn.id;
}

function commonAncestor(one, other) {
  while (one && other && one !== other) {
    if (one.number >= other.number) one = one.parent;
    else other = other.parent;
  }
  return one && one === other ? one : null;
}

/** For each value the turn that brought it, and as what. */
function ownerOf(number) {
  if (!owners) {
    owners = [];
    for (const turn of store.turns) {
      for (const one of addedMessages(turn)) owners[one] ||= {turn, kind: "message", name: ""};
      for (const cell of turn.scratch) {
        if (!isGone(cell))
          owners[cell[1]] ||= {turn, kind: "scratchpad", name: store.keys[cell[0]]};
      }
      for (const cell of turn.files) {
        if (contentOf(cell) >= 0 && cell.length > 1) {
          owners[contentOf(cell)] ||= {turn, kind: "file", name: store.paths[cell[0]]};
        }
      }
    }
  }
  return owners[number];
}
