// Where the page is (the part of its address behind #), keys, and news from a live store.

const VIEWS = ["history", "compare", "scratchpad", "files", "storage"];

const place = () => location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);

async function show() {
  const [view, ...rest] = place();
  const [one, other] = rest;
  const main = $("#main");
  const current = VIEWS.includes(view) ? view : view === "search" ? "" : "history";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view !== "search") searching++;
  if (current === "history") {
    historyView(view === "turn" ? resolve(one || "") : null);
    return;
  }
  main.classList.remove("one-turn");
  if (view === "search") {
    await searchView(rest.join("/"));
    return;
  }
  const views = {
    compare: () => compareView(one, other),
    scratchpad: () => gridView("scratchpad", one, other),
    files: () => gridView("files", one, other),
    storage: () => storageView(one),
  };
  const made = await views[view]();
  if (place()[0] === view) main.replaceChildren(made);
}

function keys(event) {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && !$("#keys").open) {
    if (typing) event.target.blur();
    location.hash = "#/history";
    setTimeout(() => listBox && listBox.focus());
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const turn = selected;
  const acts = {
    "/": () => $("#search").focus(),
    "?": () => $("#keys").showModal(),
    f: () => {
      location.hash = "#/history";
      setTimeout(() => filterBox && filterBox.focus());
    },
    j: () => listBox && listBox.isConnected && step(1),
    k: () => listBox && listBox.isConnected && step(-1),
    y: () => turn && copy(`snapstore rewind ${revision(turn)}`),
    c: () => {
      const last = turn && store.named.find((one) => one.name === turn.session);
      if (last) location.hash = `#/compare/${turn.id}/${last.turn.id}`;
    },
  };
  VIEWS.forEach((view, at) => {
    acts[at + 1] = () => {
      location.hash = `#/${view}`;
    };
  });
  if (event.key === "Enter" && event.target === document.body && listBox && listBox.isConnected) {
    const row = rows[chosenRow()];
    if (row) act(row);
  } else if (acts[event.key]) {
    event.preventDefault();
    acts[event.key]();
  }
}

/** Ask a live store now and then whether something was saved. */
async function follow() {
  let seen = await version();
  for (;;) {
    await new Promise((done) => setTimeout(done, document.hidden ? 5000 : 1000));
    const now = await version();
    if (now === null) {
      say("snapstore ui has stopped");
      continue;
    }
    if (now === seen) continue;
    seen = now;
    const turnId = selected && selected.id,
      wasNewest = selected && selected === newestTurn();
    chunks = new Map();
    await readIndex();
    selected =
      (!wasNewest && turnId && store.turns.find((turn) => turn.id === turnId)) || newestTurn();
    if (listBox) refreshRows();
    if (wasNewest && place()[0] !== "turn") reveal(selected);
    say(`Now ${plural(store.turns.length, "turn")}`);
    await show();
  }
}

async function version() {
  try {
    const answer = await fetch(`/version?token=${encodeURIComponent(token)}`);
    return answer.ok ? await answer.text() : null;
  } catch {
    return null;
  }
}

async function start() {
  try {
    await readIndex();
  } catch (error) {
    $("#main").replaceChildren(
      h("p", {class: "pad", role: "alert"}, `The page cannot be read: ${error.message}`),
    );
    return;
  }
  let typed;
  $("#search").addEventListener("input", (event) => {
    clearTimeout(typed);
    const text = event.target.value.trim();
    typed = setTimeout(() => {
      location.hash = text ? `#/search/${encodeURIComponent(text)}` : "#/history";
    }, 250);
  });
  $("#help").addEventListener("click", () => $("#keys").showModal());
  addEventListener("keydown", keys);
  addEventListener("hashchange", show);
  const {start} = document.documentElement.dataset;
  if (start && !location.hash) history.replaceState(null, "", `#/${start}`);
  await show();
  document.documentElement.dataset.ready = "yes";
  if (live) follow();
}

start();
