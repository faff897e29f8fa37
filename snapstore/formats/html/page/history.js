// The history: rows of a fixed height, of which only those in sight are in the document.

const opened = new Set();
let rows = [],
  selected = null,
  wanted = "",
  listBox = null,
  turnBox = null,
  filterBox = null;

function historyView(turn) {
  if (!listBox || !listBox.isConnected) buildHistory();
  $("#main").classList.toggle("one-turn", !!turn);
  const chosen = turn || selected || newestTurn();
  select(chosen, !!turn);
  return null;
}

const newestTurn = () =>
  store.named
    .filter((one) => !one.isTag)
    .map((one) => one.turn)
    .sort((a, b) => b.time - a.time)[0] ||
  store.turns[store.turns.length - 1] ||
  null;

function buildHistory() {
  filterBox = h("input", {
    type: "search",
    id: "filter",
    spellcheck: "false",
    value: wanted,
    placeholder: "Filter: words  tool:Bash  path:src/  session:NAME",
    "aria-label": "Filter the history",
    oninput: () => {
      wanted = filterBox.value;
      refreshRows();
    },
  });
  listBox = h("div", {
    id: "rows",
    role: "listbox",
    tabindex: "0",
    "aria-label": "Turns, newest first",
    onscroll: paint,
    onkeydown: listKeys,
  });
  turnBox = h("div", {id: "turn"});
  $("#main").replaceChildren(
    h(
      "div",
      {class: "panes"},
      h(
        "div",
        {class: "list"},
        h("div", {class: "bar"}, filterBox, h("span", {id: "count", class: "quiet"})),
        listBox,
      ),
      turnBox,
    ),
  );
  layRows();
  new ResizeObserver(() => listBox.clientHeight !== painted && paint()).observe(listBox);
}

function refreshRows() {
  layRows();
  paint();
}

function layRows() {
  const test = filterOf(wanted);
  rows = test
    ? store.turns
        .filter(test)
        .reverse()
        .map((turn) => ({turn}))
    : graphRows(opened);
  const turns = test ? rows.length : store.turns.length;
  $("#count").textContent = plural(turns, "turn");
  const depth = rows.length * ROW;
  listBox.replaceChildren(h("div", {class: "depth", role: "presentation"}));
  listBox.firstChild.style.height = `${depth}px`;
}

function filterOf(text) {
  const tests = text
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => {
      const [, field, rest] = /^(?:(tool|path|session):)?(.*)$/.exec(word);
      const among = (names, numbers) => {
        const fit = new Set(
          names.flatMap((name, at) => (name.toLowerCase().includes(rest) ? [at] : [])),
        );
        return (turn) => numbers(turn).some((number) => fit.has(number));
      };
      if (field === "tool") return among(store.tools, (turn) => turn.tools);
      if (field === "path") return among(store.paths, (turn) => turn.files.map((cell) => cell[0]));
      if (field === "session") return (turn) => (turn.session || "").toLowerCase().includes(rest);
      return (turn) =>
        turn.title.toLowerCase().includes(rest) ||
        (rest.length >= 4 && turn.id.startsWith(rest)) ||
        turn.names.some((name) => name.toLowerCase().includes(rest));
    });
  return tests.length ? (turn) => tests.every((test) => test(turn)) : null;
}

let painted = 0;
function paint() {
  if (!listBox) return;
  painted = listBox.clientHeight;
  const first = Math.max(0, Math.floor(listBox.scrollTop / ROW) - 8);
  const last = Math.min(rows.length, first + Math.ceil((painted || 800) / ROW) + 16);
  const depth = listBox.firstChild;
  const chosen = chosenRow();
  depth.replaceChildren();
  for (let at = first; at < last; at++) {
    const row = rowView(rows[at], at, at === chosen);
    row.style.top = `${at * ROW}px`;
    depth.append(row);
  }
  const current = depth.querySelector("[aria-selected=true]");
  if (current) listBox.setAttribute("aria-activedescendant", current.id);
  else listBox.removeAttribute("aria-activedescendant");
}

function rowView(row, at, isChosen) {
  const attributes = {
    class: row.fold ? "row fold" : "row",
    role: "option",
    id: `row${at}`,
    "aria-setsize": rows.length,
    "aria-posinset": at + 1,
    "aria-selected": isChosen ? "true" : "false",
    onclick: () => act(row),
  };
  if (row.fold)
    return h("div", attributes, graphCell(row), h("span", {class: "title"}, `⋯ ${row.text}`));
  const {turn} = row;
  const tools = turn.tools.map((tool) => store.tools[tool]).join(", ");
  return h(
    "div",
    attributes,
    row.lane === undefined ? null : graphCell(row),
    h("span", {class: "number"}, turn.number),
    turn.names.map((name) => chip(name, "name")),
    h("span", {class: turn.labelled ? "title given-label" : "title"}, turn.title || "(no message)"),
    turn.files.length
      ? h(
          "span",
          {class: "mark", title: plural(turn.files.length, "path")},
          `±${turn.files.length}`,
        )
      : null,
    turn.tools.length
      ? h(
          "span",
          {class: "mark tools", title: tools},
          turn.tools.length === 1 ? tools : plural(turn.tools.length, "tool"),
        )
      : null,
    h("span", {class: "when"}, ago(turn.time)),
  );
}

let foldChosen = null;
const chosenRow = () =>
  rows.findIndex((row) =>
    foldChosen ? row.fold === foldChosen : row.turn && row.turn === selected,
  );

function act(row) {
  if (row.fold) {
    opened.add(row.fold);
    foldChosen = null;
    refreshRows();
    if (row.turns.length) move(row.turns[row.turns.length - 1]);
    return;
  }
  foldChosen = null;
  location.hash = `#/turn/${row.turn.id}`;
  listBox.focus({preventScroll: true});
}

/** Open the folds that hide a turn, and bring its row into sight. */
function reveal(turn) {
  let at = rows.findIndex((row) => row.turn === turn);
  if (at < 0) {
    const fold = rows.find((row) => row.fold && row.turns.includes(turn));
    if (fold) {
      opened.add(fold.fold);
      refreshRows();
      at = rows.findIndex((row) => row.turn === turn);
    }
  }
  if (at < 0) paint();
  else scrollTo(at);
}

function scrollTo(at) {
  const top = at * ROW,
    height = listBox.clientHeight;
  if (top < listBox.scrollTop) listBox.scrollTop = top;
  else if (top + ROW > listBox.scrollTop + height) listBox.scrollTop = top + ROW - height;
  paint();
}

let showing = 0;
async function select(turn, andReveal) {
  selected = turn;
  foldChosen = null;
  if (!turn) {
    turnBox.replaceChildren(h("p", {class: "quiet pad"}, "Nothing was saved yet."));
    return;
  }
  if (andReveal) reveal(turn);
  else paint();
  const mine = ++showing;
  try {
    const view = await turnView(turn);
    if (mine === showing) {
      turnBox.replaceChildren(view);
      turnBox.scrollTop = 0;
    }
  } catch (error) {
    if (mine === showing)
      turnBox.replaceChildren(
        h("p", {class: "pad", role: "alert"}, `This turn cannot be shown: ${error.message}`),
      );
  }
}

function move(turn) {
  location.replace(`#/turn/${turn.id}`);
}

function step(by) {
  const now = chosenRow();
  const at = Math.min(rows.length - 1, Math.max(0, now < 0 ? 0 : now + by));
  if (!rows[at]) return;
  if (rows[at].fold) {
    foldChosen = rows[at].fold;
    scrollTo(at);
    return;
  }
  foldChosen = null;
  scrollTo(at);
  // On a phone the list stays until a turn is opened.
  if (matchMedia("(max-width: 860px)").matches) {
    selected = rows[at].turn;
    paint();
  } else move(rows[at].turn);
}

function listKeys(event) {
  const page = Math.max(1, Math.floor(listBox.clientHeight / ROW) - 1);
  const by = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: page,
    PageUp: -page,
    Home: -rows.length,
    End: rows.length,
  }[event.key];
  if (by) {
    event.preventDefault();
    step(by);
  }
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    const row = rows[chosenRow()];
    if (row) act(row);
  }
}
