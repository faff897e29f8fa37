// The history as rows with lanes. A lane is how deep a branch is nested: at a fork the line that a
// session lives on goes straight on, and each side branch is laid whole, one lane to the right,
// right above its fork. So hundreds of forks need as many lanes as they are nested deep.

const LONG = 120,
  LONG_TOP = 40,
  LONG_END = 20;
const LANE = 14,
  ROW = 34,
  MOST_LANES = 14;

/** Rows, newest first: {turn, lane, above, below, out, passing} or {fold, turns, ...}. */
function graphRows(opened) {
  weigh();
  const roots = store.turns.filter((turn) => !turn.parent);
  roots.sort((a, b) => a.newest - b.newest);
  const order = [];
  for (const root of roots) placed(root, order);
  return strokes(folded(order, opened).reverse());
}

function weigh() {
  for (const turn of store.turns)
    Object.assign(turn, {weight: 1, lives: turn.names.length > 0, newest: turn.time});
  for (let at = store.turns.length - 1; at >= 0; at--) {
    const {parent, weight, lives, newest} = store.turns[at];
    if (!parent) continue;
    parent.weight += weight;
    parent.lives ||= lives;
    parent.newest = Math.max(parent.newest, newest);
  }
}

/** Oldest first: a turn, then its side branches one after the other, then the line it goes on in. */
function placed(root, order) {
  const stack = [{turn: root, lane: 0, isSide: false}];
  while (stack.length) {
    const entry = stack.pop();
    order.push(entry);
    const goesOn = (child) => child.session === entry.turn.session;
    const children = [...entry.turn.children].sort(
      (a, b) =>
        a.lives - b.lives || goesOn(a) - goesOn(b) || a.weight - b.weight || a.newest - b.newest,
    );
    const main = children.pop();
    if (main) stack.push({turn: main, lane: entry.lane, isSide: false});
    children.sort((a, b) => b.newest - a.newest);
    for (const side of children) stack.push({turn: side, lane: entry.lane + 1, isSide: true});
  }
}

// What an import calls the lines that it found beside the live one.
const BESIDE = /\/(branch|sidechain)-\d+$/;

/** Why a side branch is folded; null when it is shown. */
function whyFolded(turns) {
  const names = turns.flatMap((turn) => turn.names);
  if (!names.length) return "left behind";
  return names.every((name) => BESIDE.test(name)) ? `in ${names.join(", ")}` : null;
}

/** Branches that nothing stands on, or only an import, become one row each, and so does the middle
    of a long run. */
function folded(order, opened) {
  const out = [];
  for (let at = 0; at < order.length;) {
    const {turn, lane, isSide} = order[at];
    const key = `side${turn.id}`;
    if (isSide && !opened.has(key)) {
      const turns = order.slice(at, at + turn.weight).map((entry) => entry.turn);
      const why = whyFolded(turns);
      if (why) {
        out.push({fold: key, turns, lane, isSide, text: `${plural(turns.length, "turn")} ${why}`});
        at += turn.weight;
        continue;
      }
    }
    const end = runEnd(order, at);
    const run = `run${turn.id}`;
    if (end - at > LONG && !opened.has(run)) {
      const hidden = order.slice(at + LONG_END, end - LONG_TOP);
      out.push(...order.slice(at, at + LONG_END));
      out.push({
        fold: run,
        turns: hidden.map((entry) => entry.turn),
        lane,
        isSide: false,
        text: `${plural(hidden.length, "turn")} more`,
      });
      out.push(...order.slice(end - LONG_TOP, end));
    } else {
      out.push(...order.slice(at, end));
    }
    at = end;
  }
  return out;
}

/** Where a straight run that begins here ends. */
function runEnd(order, at) {
  let end = at + 1;
  while (
    end < order.length &&
    !order[end].isSide &&
    order[end].turn.parent === order[end - 1].turn &&
    order[end - 1].turn.children.length === 1
  )
    end++;
  return end;
}

function strokes(rows) {
  const open = [];
  for (const row of rows) {
    const {lane} = row;
    row.above = !!open[lane];
    const bottom = row.fold ? row.turns[0] : row.turn;
    row.out = row.isSide;
    open[lane] = !row.isSide && !!bottom.parent;
    row.below = open[lane];
    row.passing = [];
    open.forEach((isOpen, at) => {
      if (isOpen && at !== lane) row.passing.push(at);
    });
    row.width = Math.min(MOST_LANES, Math.max(lane, ...row.passing, 0) + 1);
  }
  return rows;
}

function graphCell(row) {
  const x = (lane) => Math.min(lane, MOST_LANES - 1) * LANE + LANE / 2 + 2;
  const middle = ROW / 2,
    here = x(row.lane);
  const picture = s("svg", {
    class: "graph",
    width: row.width * LANE + 6,
    height: ROW,
    "aria-hidden": "true",
  });
  const line = (lane, path, dashed) =>
    picture.append(s("path", {d: path, class: `lane lane${lane % 6}${dashed ? " dashed" : ""}`}));
  for (const lane of row.passing) line(lane, `M${x(lane)} 0V${ROW}`);
  if (row.above) line(row.lane, `M${here} 0V${middle}`, row.fold);
  if (row.below) line(row.lane, `M${here} ${middle}V${ROW}`, row.fold);
  if (row.out) {
    const from = x(row.lane - 1);
    line(row.lane, `M${here} ${middle}C${here} ${ROW} ${from} ${middle + 4} ${from} ${ROW}`);
  }
  if (row.fold)
    picture.append(
      s("rect", {x: here - 4, y: middle - 4, width: 8, height: 8, rx: 2, class: "folded"}),
    );
  else
    picture.append(
      s("circle", {
        cx: here,
        cy: middle,
        r: row.turn.names.length ? 5 : 4,
        class: `dot lane${row.lane % 6}${row.turn.alive ? "" : " behind"}`,
      }),
    );
  return picture;
}
