// Search through everything the page holds, chunk by chunk, so that the first finds show at once.

const MOST_FINDS = 300,
  AROUND = 80;
let searching = 0;

async function searchView(query) {
  const mine = ++searching;
  const list = h("ol", {class: "finds"}),
    told = h("p", {class: "quiet", role: "status"}, "Searching…");
  $("#main").replaceChildren(h("div", {class: "wide"}, h("h2", {}, `“${query}”`), told, list));
  const sought = query.toLowerCase();
  let found = 0;
  for (const turn of store.turns) {
    if (turn.title.toLowerCase().includes(sought) && found++ < MOST_FINDS)
      list.append(find(turn, "turn", "", turn.title, sought));
  }
  for (let at = 0; at < store.starts.length && found < MOST_FINDS; at++) {
    const values = await chunk(at);
    if (mine !== searching) return;
    for (let n = 0; n < values.length && found < MOST_FINDS; n++) {
      const text = textIn(values[n]).find((one) => one.toLowerCase().includes(sought));
      const owner = text === undefined ? null : ownerOf(store.starts[at] + n);
      if (owner) {
        found++;
        list.append(find(owner.turn, owner.kind, owner.name, text, sought));
      }
    }
    told.textContent = `Searched ${Math.round((100 * (at + 1)) / store.starts.length)} %…`;
  }
  if (mine === searching)
    told.textContent =
      found >= MOST_FINDS ? `The first ${MOST_FINDS} places.` : plural(found, "place");
}

/** The texts of a value: a message's blocks, a scratchpad value, the changed part of a file. */
function textIn(held) {
  const texts = [],
    todo = [held];
  while (todo.length) {
    const one = todo.pop();
    if (typeof one === "string") texts.push(one);
    else if (Array.isArray(one) && one[0] === "i") texts.push(one[3] || "");
    else if (Array.isArray(one)) todo.push(...one);
  }
  return texts.reverse();
}

function find(turn, kind, name, text, sought) {
  const at = Math.max(0, text.toLowerCase().indexOf(sought));
  const before = text.slice(Math.max(0, at - AROUND), at),
    after = text.slice(at + sought.length, at + sought.length + AROUND);
  return h(
    "li",
    {},
    h(
      "a",
      {href: `#/turn/${turn.id}`},
      h(
        "span",
        {class: "where"},
        `${turn.session || "left behind"} · turn ${turn.number} · ${kind} ${name}`,
      ),
      h(
        "span",
        {class: "snippet"},
        at > AROUND ? "…" : "",
        before,
        h("mark", {}, text.slice(at, at + sought.length)),
        after,
      ),
    ),
  );
}
