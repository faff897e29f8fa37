"""Files for people: listings, what differs between two turns, what a restore did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from snapstore import Session, Snapshot
from snapstore.textdiff import unified
from snapstore_cli.render import words
from snapstore_cli.render.style import Look, Role

if TYPE_CHECKING:
    from snapstore.worktree.files import FileEntry, Files
    from snapstore.worktree.restore import Restored
    from snapstore.worktree.treediff import FilesDiff

_MOST_TEXT = 1 << 20
"""Bytes up to which a file is compared line by line."""
_SNIFFED = 8192
_LISTED = 20
"""Paths of a kind that status lists."""


def listing(entries: Iterable[tuple[str, FileEntry]], look: Look) -> Iterator[str]:
    """A line a path: mode, size, time, name."""
    for path, entry in entries:
        ends = {"dir": "/", "symlink": f" -> {entry.target}"}
        told = words.one_line(path + ends.get(entry.kind, ""))
        size = f"{entry.size:,}" if entry.kind == "file" else entry.kind
        when = words.rfc3339(entry.mtime, "seconds") if entry.mtime else ""
        row = f"{entry.mode:04o}  {size:>13}  {when:<20}"
        yield f"{look.style('dim', row)}  {told}"


def worktree(found: FilesDiff, session: Session, look: Look) -> Iterator[str]:
    """The lines of status that say whether the directory differs from HEAD, and how."""
    name, place = look.style("dim", f"{'worktree':<10}"), str(session.worktree)
    verb = "differs" if len(found) == 1 else "differ"
    told = f"{words.count(len(found), 'path')} {verb} from HEAD"
    if not found:
        told = f"as in turn {session.turn}"
    place = look.cut_middle(place, len(f"{'worktree':<10}    {told}"))
    yield f"{name}  {place}  {look.style('warning' if found else '', told)}"
    rows = [*_marked(found)]
    for role, mark, path in rows[:_LISTED]:
        yield "            " + look.style(role, f"{mark} {words.one_line(path)}")
    if len(rows) > _LISTED:
        yield f"            and {len(rows) - _LISTED} more"


def held(snapshot: Snapshot) -> str:
    """How many files a turn holds, and how many of them it changed; "" when it holds none."""
    found = snapshot.files_diff()
    if found is None or snapshot.files is None:
        return ""
    total = sum(entry.kind != "dir" for _, entry in snapshot.files.entries())
    new, gone, old = (
        sum(entry.kind != "dir" for entry in entries)
        for entries in (
            found.added.values(), found.removed.values(), [b for _, b in found.changed.values()],
        )
    )  # fmt: skip
    numbers = _numbers(new, new + old, gone)
    if not numbers:
        numbers = "only directories changed" if found else "as in the turn before"
    return f"{words.count(total, 'file')}: {numbers} (--files lists them)"


def changed(snapshot: Snapshot) -> str:
    """How many files a turn changed, as a log tells it; "" for none."""
    found = snapshot.files_diff()
    if not found:
        return ""
    entries = [*found.added.values(), *found.removed.values()]
    entries += [new for _, new in found.changed.values()]
    files = sum(entry.kind != "dir" for entry in entries)
    return words.count(files, "file") if files else words.count(len(entries), "dir")


def gone(place: str, session: str) -> str:
    """The warning that the directory of a session is no longer there, and what to do."""
    return (
        f"worktree {words.one_line(place)} is not there: bind the one it is now with "
        f"`snapstore save -s {words.one_line(session)} --worktree DIR`"
    )


def _marked(found: FilesDiff) -> Iterator[tuple[Role, str, str]]:
    yield from (("added", "+", path) for path in found.added)
    yield from (("removed", "-", path) for path in found.removed)
    yield from (("", "~", path) for path in found.changed)


def changes(found: FilesDiff, left: Snapshot, right: Snapshot, look: Look) -> Iterator[str]:
    """What differs between the files of two turns, with the lines of those that are text."""
    for path, old_path in found.renamed.items():
        yield f"> {words.one_line(old_path)} -> {words.one_line(path)}"
    renamed = {*found.renamed, *found.renamed.values()}
    for mark, role, entries in (("-", "removed", found.removed), ("+", "added", found.added)):
        for path, entry in entries.items():
            if path not in renamed:
                yield look.style(role, f"{mark} {words.one_line(path)}{_what(entry)}")  # type: ignore[arg-type]
    for path, (old, new) in found.changed.items():
        yield f"~ {look.style('name', words.one_line(path))}{_how(old, new)}"
        if old.kind == new.kind == "file" and old.id != new.id:
            yield from _contents(path, left.files, right.files, look)


def _what(entry: FileEntry) -> str:
    if entry.kind == "file":
        return f"  {words.size(entry.size)}"
    return "/" if entry.kind == "dir" else f"  ({entry.kind})"


def _how(old: FileEntry, new: FileEntry) -> str:
    told: list[str] = []
    if old.kind != new.kind:
        told.append(f"{old.kind} -> {new.kind}")
    if old.mode != new.mode:
        told.append(f"mode {old.mode:04o} -> {new.mode:04o}")
    if old.target != new.target and old.kind == new.kind:
        told.append(f"{old.target} -> {new.target}")
    if not told and old.id == new.id:
        told.append("only its time")
    return f"  {', '.join(told)}" if told else ""


def _contents(path: str, left: Files | None, right: Files | None, look: Look) -> Iterator[str]:
    assert left is not None and right is not None
    sizes = left[path].size, right[path].size
    texts = [_text(held, path) for held in (left, right)] if max(sizes) <= _MOST_TEXT else [None]
    if None in texts:
        yield f"  binary, {sizes[0]:,} -> {sizes[1]:,} bytes"
        return
    roles: dict[str, Role] = {"-": "removed", "+": "added", "@": "id"}
    for row in unified(texts[0] or "", texts[1] or "", path, path):
        yield "  " + look.style(roles.get(row[:1], ""), row)


def _text(held: Files, path: str) -> str | None:
    content = held.read(path)
    if b"\0" in content[:_SNIFFED]:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def summary(done: Restored) -> str:
    """What was done to files, in numbers."""
    if not done.written and not done.deleted:
        return "files: nothing differed"
    made, written = done.made, [p for p in done.written if p not in done.folders]
    folders = [path for path in done.written if path in done.folders]
    gone = [path for path in done.deleted if path not in done.folders]
    told = {
        "files": _numbers(len(made.intersection(written)), len(written), len(gone)),
        "directories": _numbers(
            len(made.intersection(folders)), len(folders), len(done.deleted) - len(gone)
        ),
    }
    text = "; ".join(f"{kind}: {numbers}" for kind, numbers in told.items() if numbers)
    return f"{text}; {len(done.kept):,} kept" if done.kept else text


def _numbers(made: int, written: int, deleted: int) -> str:
    told = {"new": made, "changed": written - made, "deleted": deleted}
    return ", ".join(f"{number:,} {how}" for how, number in told.items() if number)


def details(done: Restored, look: Look) -> Iterator[str]:
    """What was done to files, a line a path."""
    rows: list[tuple[Role, str, str]] = [
        ("added", "+", path) if path in done.made else ("", "~", path) for path in done.written
    ]
    rows += [("removed", "-", path) for path in done.deleted]
    for role, mark, path in rows:
        end = "/" if path in done.folders else ""
        yield look.style(role, f"{mark} {words.one_line(path)}{end}")
    for path in done.kept:
        yield look.style("dim", f"  {words.one_line(path)} (kept: no turn knows it, or ignored)")
