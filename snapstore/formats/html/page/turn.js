// One turn: what was asked and answered, tool calls beside their results, files, scratchpad.

const MOST_FORKS = 6;

async function turnView(turn) {
  const box = h("article", {class: "turn", "aria-label": `Turn ${turn.number}`}, turnHead(turn));
  const said = await Promise.all(addedMessages(turn).map(value));
  const dropped = turn.parent ? messageCount(turn.parent) - turn.keep : 0;
  if (dropped)
    box.append(
      h(
        "p",
        {class: "note"},
        `${plural(dropped, "message")} of the turn before went out of the history here.`,
      ),
    );
  if (said.length) box.append(h("section", {"aria-label": "Messages"}, messages(said)));
  else box.append(h("p", {class: "quiet"}, "No message was added in this turn."));
  if (turn.files.length) box.append(h("section", {}, h("h3", {}, "Files"), filesOf(turn)));
  box.append(h("section", {}, h("h3", {}, "Scratchpad"), scratchpadOf(turn)));
  return box;
}

function turnHead(turn) {
  const names = turn.names.map((name) => chip(name, "name"));
  const last = store.named.find((one) => one.name === turn.session);
  const facts = [
    turn.parent ? h("span", {}, "after ", turnLink(turn.parent)) : "the first of its line",
    ...turn.children.slice(0, MOST_FORKS).map((child) => followed(turn, child)),
    turn.children.length > MOST_FORKS && `${turn.children.length - MOST_FORKS} more forks`,
    last &&
      last.turn !== turn &&
      h("a", {href: `#/compare/${turn.id}/${last.turn.id}`}, `compare with ${turn.session}`),
    turn.parent &&
      h("a", {href: `#/compare/${turn.parent.id}/${turn.id}`}, "compare with the turn before"),
  ];
  return h(
    "header",
    {},
    h("a", {class: "back", href: "#/history"}, "‹ History"),
    h("h2", {}, `Turn ${turn.number}`, h("span", {class: "title"}, turn.title)),
    h(
      "p",
      {class: "facts"},
      h("code", {}, turn.id),
      " ",
      timeOf(turn),
      " ",
      names,
      !turn.alive && chip("left behind", "warn"),
    ),
    h(
      "p",
      {class: "facts"},
      facts.filter(Boolean).map((one) => h("span", {class: "fact"}, one)),
    ),
    commands(turn),
  );
}

function followed(turn, child) {
  const where = child.session || "left behind";
  if (turn.children.length === 1) return h("span", {}, "before ", turnLink(child));
  return h("span", {}, "forks to ", turnLink(child, `turn ${child.number} (${where})`));
}

function commands(turn) {
  const at = revision(turn);
  const before = turn.parent ? turn.parent.id : turn.id;
  return h(
    "details",
    {class: "commands"},
    h("summary", {}, "Commands"),
    command(`snapstore rewind ${at}`, "rewinds to this turn"),
    command(`snapstore fork ${at} NEW-NAME`, "forks a session from this turn"),
    command(`snapstore diff ${before} ${turn.id}`, "shows what this turn changed"),
    command(`snapstore show ${at}`, "shows this turn"),
  );
}

/** Messages with each result beside its call. */
function messages(said) {
  const results = new Map(),
    calls = new Set();
  for (const [, blocks] of said) {
    for (const one of blocks) {
      if (one[0] === "c") calls.add(one[1]);
      if (one[0] === "r" && !results.has(one[1])) results.set(one[1], one);
    }
  }
  const isShown = (one) => one[0] !== "r" || !calls.has(one[1]) || results.get(one[1]) !== one;
  return said.map(([role, blocks]) => {
    const kept = blocks.filter(isShown);
    if (!kept.length && blocks.length) return null;
    const who =
      role === "user" && kept.every((one) => one[0] === "r") && kept.length
        ? "tool"
        : role || "message";
    return h(
      "div",
      {class: `message ${["user", "assistant"].includes(who) ? who : "other"}`},
      h("h3", {class: "role"}, who),
      kept.map((one) => blockView(one, results)),
    );
  });
}

function blockView(one, results) {
  const [kind] = one;
  if (kind === "t") return h("div", {class: "said"}, block(one[1], "text"));
  if (kind === "h") {
    return h("details", {class: "thought"}, h("summary", {}, "Thinking"), block(one[1], "text"));
  }
  if (kind === "c") return callView(one, results.get(one[1]));
  if (kind === "r") return h("div", {class: "call"}, resultView(one));
  if (kind === "i") return pictureView(one);
  return h(
    "details",
    {class: "thought"},
    h("summary", {}, one[1] || "value"),
    block(one[2], "text"),
  );
}

function callView([, , tool, input], result) {
  return h(
    "div",
    {class: "call"},
    h(
      "div",
      {class: "given"},
      h("h4", {}, tool),
      input.map(([name, text]) => [
        name && input.length > 1 && h("div", {class: "label"}, name),
        block(text, "code"),
      ]),
    ),
    result
      ? resultView(result)
      : h("div", {class: "result"}, h("h4", {class: "quiet"}, "no result in this turn")),
  );
}

function resultView([, , failed, parts]) {
  return h(
    "div",
    {class: failed ? "result failed" : "result"},
    h("h4", {}, failed ? "Error" : "Result"),
    parts.length
      ? parts.map((part) => (part[0] === "t" ? block(part[1], "code") : blockView(part, new Map())))
      : h("p", {class: "quiet"}, "nothing"),
  );
}

function pictureView([, type, data, url]) {
  if (!data)
    return h("p", {class: "quiet"}, `A picture that this page does not carry (${type || url})`);
  return h("img", {
    src: `data:${type};base64,${data}`,
    alt: "A picture in the conversation",
    loading: "lazy",
  });
}

// --- files and scratchpad --------------------------------------------------------------------

function filesOf(turn) {
  return h(
    "div",
    {class: "changes"},
    turn.files.map((cell) => {
      const before = cellBefore(turn, "files", cell[0]);
      return changeView(store.paths[cell[0]], before, cell, "files");
    }),
  );
}

/** A change that shows its difference when it is opened. */
function changeView(name, before, after, what) {
  const sign = !before ? "+" : isGone(after) ? "−" : "±";
  const word = {"+": "added", "−": "removed", "±": "changed"}[sign];
  const box = h(
    "details",
    {class: "change"},
    h(
      "summary",
      {},
      h("span", {class: `sign ${word}`, "aria-label": word}, sign),
      h("span", {class: "path"}, name),
      what === "files" &&
        !isGone(after) &&
        after[1] !== DIRECTORY &&
        h("span", {class: "quiet"}, size(after[3])),
    ),
  );
  box.addEventListener("toggle", async () => {
    if (box.open && box.childElementCount === 1) box.append(await changeBody(before, after, what));
  });
  return box;
}

async function changeBody(before, after, what) {
  if (what === "files") {
    const told = isGone(after) ? before : after;
    if (told && told[1] === DIRECTORY) return h("p", {class: "quiet"}, "a directory");
    if (told && told[1] === LINK) return h("p", {class: "quiet"}, "a symbolic link");
  }
  const [old, now] = await Promise.all([textOf(before, what), textOf(after, what)]);
  if (old === null || now === null) {
    const number = now === null ? contentOf(after) : contentOf(before);
    return h("p", {class: "quiet"}, `Not shown: ${WHY_NO_TEXT[number]}.`);
  }
  if (old === now) {
    return h(
      "p",
      {class: "quiet"},
      what === "files"
        ? `The content is the same; the mode went from ${mode(before)} to ${mode(after)}.`
        : "The same text.",
    );
  }
  return diffView(old, now);
}

const mode = (cell) => (cell && cell.length > 2 ? cell[2].toString(8) : "nothing");

function scratchpadOf(turn) {
  const state = stateAt(turn, "scratch");
  const changed = turn.scratch.map((cell) =>
    changeView(store.keys[cell[0]], cellBefore(turn, "scratch", cell[0]), cell, "scratch"),
  );
  if (!changed.length && !state.size) return h("p", {class: "quiet"}, "Empty.");
  const all = h(
    "details",
    {class: "all"},
    h("summary", {}, `All ${plural(state.size, "key")} at this turn`),
  );
  all.addEventListener("toggle", async () => {
    if (!all.open || all.childElementCount > 1) return;
    for (const cell of state.values()) {
      all.append(
        h("div", {class: "label"}, store.keys[cell[0]]),
        h("div", {}, block(await value(cell[1]), "code")),
      );
    }
  });
  return [
    changed.length
      ? h("div", {class: "changes"}, changed)
      : h("p", {class: "quiet"}, "Not changed in this turn."),
    state.size ? all : null,
  ];
}
