// Two turns or sessions side by side, from where they part.

function compareView(leftText, rightText) {
  const sessions = store.named
    .filter((one) => !one.isTag)
    .sort((a, b) => b.turn.time - a.turn.time);
  const [second, first] = likelyPair(sessions);
  const left = leftText || first;
  const right = rightText || second;
  const one = resolve(left),
    other = resolve(right);
  const box = h("div", {class: "wide"}, h("h2", {}, "Compare"), sidesForm(left, right));
  if (!one || !other) {
    const unknown = !one ? left : right;
    box.append(
      h(
        "p",
        {role: "alert"},
        unknown ? `There is no turn ${unknown} in this page.` : "Name two turns.",
      ),
    );
    return box;
  }
  return compared(box, one, other);
}

/** The two that were saved last of those that share turns, else the two saved last. */
function likelyPair(sessions) {
  for (const one of sessions.slice(0, 50)) {
    const other = sessions.find((two) => two !== one && commonAncestor(one.turn, two.turn));
    if (other) return [one.name, other.name];
  }
  const [last = {name: ""}, before = last] = sessions;
  return [last.name, before.name];
}

function sidesForm(left, right) {
  const known = h(
    "datalist",
    {id: "names"},
    store.named.map((one) => h("option", {value: one.name})),
  );
  const side = (label, text) =>
    h(
      "label",
      {},
      h("span", {}, label),
      h("input", {list: "names", value: text, spellcheck: "false", onchange: go}),
    );
  const form = h(
    "div",
    {class: "sides"},
    side("Left", left),
    side("Right", right),
    known,
    h("button", {type: "button", onclick: go}, "Compare"),
  );
  function go() {
    const [one, other] = form.querySelectorAll("input");
    location.hash = `#/compare/${encodeURIComponent(one.value)}/${encodeURIComponent(other.value)}`;
  }
  return form;
}

async function compared(box, one, other) {
  const base = commonAncestor(one, other);
  const since = (turn) => lineOf(turn).filter((step) => !base || step.number > base.number);
  const left = since(one),
    right = since(other);
  box.append(
    h(
      "table",
      {class: "facts-table"},
      h("thead", {}, h("tr", {}, h("td"), heading(one), heading(other))),
      h(
        "tbody",
        {},
        fact("Turns since they part", plural(left.length, "turn"), plural(right.length, "turn")),
        fact("Messages in all", messageCount(one), messageCount(other)),
        fact("Tools called since", toolsUsed(left), toolsUsed(right)),
        fact("Files changed since", pathsTouched(left), pathsTouched(right)),
        fact("Time taken since", span(base, one), span(base, other)),
      ),
    ),
  );
  box.append(
    h("h3", {}, "Turns"),
    h(
      "div",
      {class: "columns"},
      h(
        "div",
        {class: "base"},
        base ? ["Both go on from ", turnLink(base), ` · ${base.title}`] : "They share no turn.",
      ),
      pairs(left, right),
    ),
  );
  box.append(...(await differences(one, other, "scratch", "Scratchpad", store.keys)));
  box.append(...(await differences(one, other, "files", "Files", store.paths)));
  box.append(
    command(`snapstore diff ${revision(one)} ${revision(other)}`, "shows this comparison"),
  );
  return box;
}

const heading = (turn) => h("th", {scope: "col"}, turnLink(turn, revision(turn)));
const fact = (name, left, right) =>
  h("tr", {}, h("th", {scope: "row"}, name), h("td", {}, left), h("td", {}, right));

function toolsUsed(turns) {
  const counts = new Map();
  for (const turn of turns)
    for (const tool of turn.tools) counts.set(tool, (counts.get(tool) || 0) + 1);
  const told = [...counts]
    .sort((a, b) => b[1] - a[1])
    .map(([tool, n]) => `${store.tools[tool]} in ${n}`);
  return told.slice(0, 8).join(", ") || "none";
}

function pathsTouched(turns) {
  return new Set(turns.flatMap((turn) => turn.files.map((cell) => cell[0]))).size;
}

function span(base, turn) {
  if (!base || base === turn) return "–";
  const minutes = Math.max(0, Math.round((turn.time - base.time) / 60000));
  if (minutes < 60) return plural(minutes, "minute");
  return minutes < 2880
    ? plural(Math.round(minutes / 60), "hour")
    : plural(Math.round(minutes / 1440), "day");
}

const MOST_PAIRS = 200;

function pairs(left, right) {
  const out = [];
  const most = Math.max(left.length, right.length);
  for (let at = 0; at < Math.min(most, MOST_PAIRS); at++) out.push(card(left[at]), card(right[at]));
  if (most > MOST_PAIRS)
    out.push(h("div", {class: "base"}, `and ${plural(most - MOST_PAIRS, "turn")} more`));
  return out;
}

function card(turn) {
  if (!turn) return h("div", {class: "card none"});
  const box = h(
    "details",
    {class: "card"},
    h("summary", {}, h("span", {class: "number"}, turn.number), " ", turn.title || "(no message)"),
  );
  box.addEventListener("toggle", async () => {
    if (!box.open || box.childElementCount > 1) return;
    box.append(
      h(
        "div",
        {},
        messages(await Promise.all(addedMessages(turn).map(value))),
        turn.files.length ? filesOf(turn) : null,
        h("p", {}, turnLink(turn, "Open the turn")),
      ),
    );
  });
  return box;
}

async function differences(one, other, what, title, names) {
  const left = stateAt(one, what),
    right = stateAt(other, what);
  const numbers = [...new Set([...left.keys(), ...right.keys()])].filter(
    (number) => JSON.stringify(left.get(number)) !== JSON.stringify(right.get(number)),
  );
  if (!left.size && !right.size) return [];
  const head = h("h3", {}, title);
  if (!numbers.length) return [head, h("p", {class: "quiet"}, "The same on both sides.")];
  numbers.sort((a, b) => byName(names[a], names[b]));
  return [
    head,
    h(
      "div",
      {class: "changes"},
      numbers.map((number) =>
        changeView(names[number], left.get(number), right.get(number) || [number], what),
      ),
    ),
  ];
}
