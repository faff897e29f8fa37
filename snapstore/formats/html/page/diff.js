// What differs between two texts, line by line: Myers, "An O(ND) Difference Algorithm" (1986).

const MOST_STEPS = 1500;
const CONTEXT = 3;

/** Pairs of a sign (" ", "-", "+") and a line. */
function lineDiff(before, after) {
  const bothEnd = before.endsWith("\n") && after.endsWith("\n");
  const lines = (text) => (text ? (bothEnd ? text.slice(0, -1) : text).split("\n") : []);
  const old = lines(before),
    now = lines(after);
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (
    tail < old.length - head &&
    tail < now.length - head &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  )
    tail++;
  const same = (some) => some.map((line) => [" ", line]);
  return [
    ...same(old.slice(0, head)),
    ...middle(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...same(old.slice(old.length - tail)),
  ];
}

function middle(old, now) {
  const whole = [...old.map((line) => ["-", line]), ...now.map((line) => ["+", line])];
  if (!old.length || !now.length) return whole;
  const trace = [];
  let furthest = new Map([[1, 0]]);
  for (let d = 0; d <= old.length + now.length; d++) {
    if (d > MOST_STEPS) return whole;
    trace.push(new Map(furthest));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && furthest.get(k - 1) < furthest.get(k + 1));
      let x = down ? furthest.get(k + 1) : furthest.get(k - 1) + 1;
      while (x < old.length && x - k < now.length && old[x] === now[x - k]) x++;
      furthest.set(k, x);
      if (x >= old.length && x - k >= now.length) return walkedBack(trace, old, now);
    }
  }
  return whole;
}

function walkedBack(trace, old, now) {
  const out = [];
  let x = old.length,
    y = now.length;
  for (let d = trace.length - 1; d >= 0; d--) {
    const furthest = trace[d],
      k = x - y;
    const down = k === -d || (k !== d && furthest.get(k - 1) < furthest.get(k + 1));
    const from = down ? k + 1 : k - 1;
    const startX = d ? furthest.get(from) : 0,
      startY = d ? startX - from : 0;
    while (x > startX && y > startY && x > 0 && y > 0) {
      out.push([" ", old[--x]]);
      y--;
    }
    if (!d) break;
    if (down) out.push(["+", now[--y]]);
    else out.push(["-", old[--x]]);
  }
  return out.reverse();
}

/** A diff as a table: changed lines and a few around them. */
function diffView(before, after) {
  const lines = lineDiff(before, after);
  const near = new Array(lines.length).fill(false);
  lines.forEach(([sign], at) => {
    if (sign === " ") return;
    for (let n = Math.max(0, at - CONTEXT); n <= Math.min(lines.length - 1, at + CONTEXT); n++)
      near[n] = true;
  });
  const box = h("pre", {class: "diff", tabindex: "0", "aria-label": "What changed"});
  let skipped = 0;
  const gap = () =>
    skipped && box.append(h("span", {class: "gap"}, `⋯ ${plural(skipped, "line")} alike`));
  lines.forEach(([sign, line], at) => {
    if (!near[at]) {
      skipped++;
      return;
    }
    gap();
    skipped = 0;
    const kind = sign === "+" ? "add" : sign === "-" ? "del" : "same";
    box.append(h("span", {class: kind}, `${sign} ${line}`));
  });
  gap();
  return box;
}
