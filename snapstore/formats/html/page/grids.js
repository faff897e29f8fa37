// Scratchpad and files as grids: a row a key or path, a column a turn, a cell where it changed.

const MOST_COLUMNS = 80,
  MOST_ROWS = 300;

function gridView(what, name, end) {
  const sessions = store.named;
  const isFiles = what === "files",
    view = isFiles ? "files" : "scratchpad",
    cells = isFiles ? "files" : "scratch";
  const latest = [...sessions].sort((a, b) => b.turn.time - a.turn.time);
  const chosen =
    sessions.find((one) => one.name === name) ||
    latest.find((one) => lineOf(one.turn).some((turn) => turn[cells].length)) ||
    latest[0];
  const box = h("div", {class: "wide"}, h("h2", {}, isFiles ? "Files" : "Scratchpad"));
  if (!chosen) return box;
  box.append(
    sessionChoice(chosen.name, (to) => {
      location.hash = `#/${view}/${encodeURIComponent(to)}`;
    }),
  );
  const touched = lineOf(chosen.turn).filter((turn) => turn[cells].length);
  if (!touched.length) {
    box.append(
      h(
        "p",
        {class: "quiet"},
        isFiles ? "No turn of this session holds files." : "Nothing was noted in this session.",
      ),
    );
    return box;
  }
  const last = end ? Number(end) : touched.length;
  const turns = touched.slice(Math.max(0, last - MOST_COLUMNS), last);
  const detail = h(
    "div",
    {class: "detail", "aria-live": "polite"},
    h("p", {class: "quiet"}, "Choose a cell to see before and after."),
  );
  const page = (to, text) =>
    h("a", {href: `#/${view}/${encodeURIComponent(chosen.name)}/${to}`}, text);
  box.append(
    h(
      "p",
      {class: "facts"},
      `${plural(touched.length, "turn")} with changes`,
      last > MOST_COLUMNS ? [" · ", page(last - MOST_COLUMNS, "earlier turns")] : null,
      last < touched.length
        ? [" · ", page(Math.min(touched.length, last + MOST_COLUMNS), "later turns")]
        : null,
    ),
    grid(turns, cells, isFiles ? store.paths : store.keys, detail),
    detail,
  );
  return box;
}

function sessionChoice(name, choose) {
  const box = h(
    "select",
    {onchange: () => choose(box.value)},
    store.named.map((one) =>
      h(
        "option",
        {value: one.name, selected: one.name === name},
        one.isTag ? `${one.name} (tag)` : one.name,
      ),
    ),
  );
  return h("label", {class: "choice"}, h("span", {}, "Session"), box);
}

function grid(turns, what, names, detail) {
  const byRow = new Map();
  for (const turn of turns) {
    for (const cell of turn[what]) {
      if (what === "files" && cell[1] === DIRECTORY) continue;
      if (!byRow.has(cell[0])) byRow.set(cell[0], new Map());
      byRow.get(cell[0]).set(turn, cell);
    }
  }
  const numbers = [...byRow.keys()].sort((a, b) => byName(names[a], names[b]));
  const table = h(
    "table",
    {class: "grid", role: "grid", "aria-label": "Changes by turn"},
    h(
      "thead",
      {},
      h(
        "tr",
        {role: "row"},
        h("th", {scope: "col"}, what === "files" ? "Path" : "Key"),
        turns.map((turn) =>
          h(
            "th",
            {scope: "col", class: "turnno"},
            h("a", {href: `#/turn/${turn.id}`, title: turn.title}, turn.number),
          ),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      numbers.slice(0, MOST_ROWS).map((number) =>
        h(
          "tr",
          {role: "row"},
          h("th", {scope: "row"}, names[number]),
          turns.map((turn) =>
            gridCell(turn, byRow.get(number).get(turn), names[number], what, detail),
          ),
        ),
      ),
    ),
  );
  const first = table.querySelector("button");
  if (first) first.tabIndex = 0;
  table.addEventListener("keydown", gridKeys);
  return h(
    "div",
    {class: "scroll", tabindex: "0", role: "region", "aria-label": "Grid"},
    table,
    numbers.length > MOST_ROWS &&
      h("p", {class: "quiet"}, `and ${numbers.length - MOST_ROWS} more rows`),
  );
}

function gridCell(turn, cell, name, what, detail) {
  if (!cell) return h("td", {role: "gridcell"});
  const before = cellBefore(turn, what, cell[0]);
  const word = !before ? "added" : isGone(cell) ? "removed" : "changed";
  const button = h(
    "button",
    {
      type: "button",
      class: `cell ${word}`,
      tabindex: "-1",
      "aria-label": `${name}, turn ${turn.number}: ${word}`,
      onclick: async () => {
        const old = button.closest("table").querySelector("[aria-pressed=true]");
        if (old) old.removeAttribute("aria-pressed");
        button.setAttribute("aria-pressed", "true");
        detail.replaceChildren(
          h("h3", {}, name, " in ", turnLink(turn)),
          await changeBody(before, cell, what),
        );
      },
    },
    {added: "+", removed: "−", changed: "±"}[word],
  );
  return h("td", {role: "gridcell"}, button);
}

/** Arrows go to the next cell that holds something. */
function gridKeys(event) {
  const here = event.target.closest("button.cell");
  const way = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]}[
    event.key
  ];
  if (!here || !way) return;
  event.preventDefault();
  const body = here.closest("tbody");
  let column = here.closest("td").cellIndex,
    line = here.closest("tr").sectionRowIndex;
  for (;;) {
    column += way[0];
    line += way[1];
    const row = body.rows[line];
    if (!row || column < 1 || column >= row.cells.length) return;
    const cells = way[0]
      ? [row.cells[column]]
      : [...row.cells]
          .slice(1)
          .sort((a, b) => Math.abs(a.cellIndex - column) - Math.abs(b.cellIndex - column));
    const button = cells.map((cell) => cell.querySelector("button")).find(Boolean);
    if (!button) continue;
    here.tabIndex = -1;
    button.tabIndex = 0;
    button.focus();
    return;
  }
}
