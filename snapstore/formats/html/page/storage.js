// What takes the space: bytes that each turn brought, against bytes that it holds.

const KINDS = ["messages", "scratchpad", "files", "bookkeeping"];
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);

function storageView(name) {
  const chosen = store.named.find((one) => one.name === name);
  const turns = chosen ? lineOf(chosen.turn) : store.turns;
  const box = h("div", {class: "wide"}, h("h2", {}, "Storage"));
  const everything = h("option", {value: "", selected: !chosen}, "everything");
  const choice = sessionChoice(chosen ? chosen.name : "", (to) => {
    location.hash = `#/storage/${encodeURIComponent(to)}`;
  });
  choice.querySelector("select").prepend(everything);
  if (!chosen) choice.querySelector("select").value = "";
  box.append(choice);
  const unique = KINDS.map((_, kind) => sum(turns.map((turn) => turn.fresh[kind])));
  const logical = sum(turns.map((turn) => sum(turn.whole)));
  const behind = store.turns.filter((turn) => !turn.alive);
  const left = sum(behind.map((turn) => sum(turn.fresh)));
  box.append(
    h(
      "dl",
      {class: "numbers"},
      number(plural(turns.length, "turn"), "kept"),
      number(size(sum(unique)), "unique, before compression"),
      number(size(logical), "if every turn were a whole copy"),
      store.held && number(size(store.held.bytes), "on disk, the whole store"),
      behind.length
        ? number(size(left), `only in ${plural(behind.length, "turn")} left behind`)
        : null,
    ),
  );
  if (store.held) box.append(collection());
  box.append(h("h3", {}, "Unique bytes by kind"), kindBars(unique));
  box.append(h("h3", {}, "Over the turns"), curve(turns));
  box.append(h("h3", {}, "The largest turns"), largest(turns));
  return box;
}

/** What gc says that it would let go of: known to the page, asked of a live store, or for the
    reader to ask. */
function collection() {
  const told = h("p", {class: "quiet"}, "");
  const tell = (found) => {
    if (!found) {
      told.textContent = "What gc would let go of:";
      return;
    }
    const what = found.objects
      ? `${plural(found.objects, "object")}, ${size(found.bytes)} before compression`
      : "nothing";
    told.textContent = `Now gc would let go of ${what}. What undo can reach stays for 90 days.`;
  };
  tell(store.held.gc);
  if (live) {
    told.textContent = "Asking gc what it would let go of…";
    asked("gc")
      .then((answer) => answer.json())
      .then(tell, () => tell(null));
  }
  return h("div", {class: "gc"}, told, command("snapstore gc", "shows what gc would let go of"));
}

const number = (text, what) => h("div", {}, h("dd", {}, text), h("dt", {}, what));

function kindBars(unique) {
  const most = Math.max(...unique, 1);
  return h(
    "div",
    {class: "bars"},
    unique.map((bytes, kind) => {
      const fill = h("span", {class: `fill kind${kind}`});
      fill.style.width = `${(100 * bytes) / most}%`;
      return h(
        "div",
        {class: "barline"},
        h("span", {class: "name"}, KINDS[kind]),
        h("span", {class: "track"}, bytes > 0 && fill),
        h("span", {class: "amount"}, size(bytes)),
      );
    }),
  );
}

const WIDEST = 900,
  HIGH = 260,
  LEFT = 64,
  BOTTOM = 26;

/** Both sums on a scale of powers of ten: one grows with the turns, the other with their square. */
function curve(turns) {
  if (!turns.length) return h("p", {class: "quiet"}, "No turns.");
  const wide = Math.max(340, Math.min(WIDEST, innerWidth - 28));
  let unique = 0,
    logical = 0;
  const points = turns.map((turn) => [(unique += sum(turn.fresh)), (logical += sum(turn.whole))]);
  const low = Math.floor(Math.log10(Math.max(1, Math.min(...points[0].filter(Boolean), unique))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(10, unique, logical))));
  const x = (at) => LEFT + ((wide - LEFT - 8) * at) / Math.max(1, turns.length - 1);
  const y = (bytes) =>
    HIGH - BOTTOM - ((HIGH - BOTTOM - 8) * (Math.log10(Math.max(1, bytes)) - low)) / (high - low);
  const every = Math.max(1, Math.floor(points.length / 600));
  const kept = points
    .map((point, at) => [at, point])
    .filter(([at]) => at % every === 0 || at === points.length - 1);
  const path = (which) =>
    kept
      .map(([at, point], n) => `${n ? "L" : "M"}${x(at).toFixed(1)} ${y(point[which]).toFixed(1)}`)
      .join("");
  const picture = s("svg", {
    viewBox: `0 0 ${wide} ${HIGH}`,
    class: "curve",
    role: "img",
    "aria-label": `After ${turns.length} turns ${size(unique)} unique against ${size(logical)} as whole copies`,
  });
  for (let power = low; power <= high; power++) {
    picture.append(
      s("line", {x1: LEFT, x2: wide - 8, y1: y(10 ** power), y2: y(10 ** power), class: "axis"}),
      s("text", {x: LEFT - 8, y: y(10 ** power) + 4, "text-anchor": "end"}, size(10 ** power)),
    );
  }
  picture.append(
    s("text", {x: LEFT, y: HIGH - 6}, `turn ${turns[0].number}`),
    s("text", {x: wide - 8, y: HIGH - 6, "text-anchor": "end"}, plural(turns.length, "turn")),
    s("path", {d: path(1), class: "logical"}),
    s("path", {d: path(0), class: "unique"}),
  );
  return h(
    "figure",
    {},
    picture,
    h(
      "figcaption",
      {},
      h("span", {class: "key unique"}, "unique bytes"),
      h("span", {class: "key logical"}, "as whole copies"),
    ),
  );
}

function largest(turns) {
  const most = [...turns].sort((a, b) => sum(b.fresh) - sum(a.fresh)).slice(0, 10);
  return h(
    "table",
    {class: "facts-table"},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", {scope: "col"}, "Turn"),
        KINDS.map((kind) => h("th", {scope: "col", class: "amount"}, kind)),
      ),
    ),
    h(
      "tbody",
      {},
      most.map((turn) =>
        h(
          "tr",
          {},
          h(
            "th",
            {scope: "row"},
            turnLink(turn, `${turn.session || ""} ${turn.number}`),
            " ",
            h("span", {class: "quiet"}, turn.title.slice(0, 60)),
          ),
          turn.fresh.map((bytes) => h("td", {class: "amount"}, bytes ? size(bytes) : "–")),
        ),
      ),
    ),
  );
}
