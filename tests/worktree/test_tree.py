"""The stored form of a directory, and how two of them are compared."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import snapstore
from snapstore import Corrupt
from snapstore.model.maps import Inline, Link
from snapstore.objects import Objects, Stage
from snapstore.worktree import tree
from snapstore.worktree.tree import Change, Entry, Root, Trees, decode_entry, join, put_root


def test_entries_are_stored_in_the_form_that_is_written_down() -> None:
    file = Entry(tree.FILE, 0o644, 1_700_000_000_000_000_000, 5, bytes(range(32)))
    assert file.packed().hex() == (
        "95" "01" "cd01a4" "cf17979cfe362a0000" "05" "c420" + bytes(range(32)).hex()
    )  # fmt: skip
    assert Entry(tree.DIR, 0o755).packed().hex() == "9500cd01ed0000c0"
    assert Entry(tree.SYMLINK, 0o777, 1, 0, b"a").packed().hex() == "9502cd01ff0100c40161"


def test_a_root_is_its_mode_and_its_entries() -> None:
    kept: list[bytes] = []
    put_root(Root(0o755, None), lambda content: kept.append(content) or b"")  # type: ignore[func-returns-value]
    assert kept[0].hex() == "92cd01edc0"


@pytest.mark.parametrize(
    "name", [b"", b".", b"..", b"a/b", b"/", b"a\0b", b".git", b".GIT", b".Git"]
)
def test_a_name_that_leads_elsewhere_or_into_a_repository_is_damage(name: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_entry(Inline(Entry(tree.DIR, 0o755).packed()), name)


@pytest.mark.parametrize(
    "entry",
    [
        Entry(tree.FILE, 0o644, 0, 5, b"short"),
        Entry(tree.FILE, 0o644, 0, -1, bytes(32)),
        Entry(tree.FILE, 0o10000, 0, 5, bytes(32)),
        Entry(tree.SYMLINK, 0o777, 0, 0, b""),
        Entry(tree.SYMLINK, 0o777, 0, 0, b"a\0b"),
        Entry(tree.DIR, 0o755, 0, 0, b"no id"),
        Entry(-1, 0o755),
    ],
)
def test_an_entry_that_contradicts_itself_is_damage(entry: Entry) -> None:
    with pytest.raises(Corrupt):
        decode_entry(Inline(entry.packed()), b"name")


@pytest.mark.parametrize("value", [Inline(b""), Inline(b"\xc1"), Inline(b"\x90"), Link(bytes(32))])
def test_what_is_no_entry_is_damage(value: Inline | Link) -> None:
    with pytest.raises(Corrupt):
        decode_entry(value, b"name")


def test_kinds_of_a_later_version_are_listed_and_not_held() -> None:
    entry = decode_entry(Inline(Entry(99, 0o600).packed()), b"name")
    assert entry.kind not in tree.HELD


# --- against a model ------------------------------------------------------------------------------

Model = dict[bytes, Entry]

NAMES = st.sampled_from([b"a", b"b", b"c", b"\xff"])
LEAVES = st.builds(
    lambda n: Entry(tree.FILE, 0o600 + n % 4, n, n, bytes([n]) * 32), st.integers(0, 9)
)


@st.composite
def trees_of_paths(draw: st.DrawFn) -> Model:
    """Paths with their entries; whatever lies above an entry is a directory."""
    found: Model = {}
    for path in draw(st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=8)):
        above = [b"/".join(path[:n]) for n in range(1, len(path))]
        if any(a in found and found[a].kind != tree.DIR for a in above):
            continue
        if any(key.startswith(b"/".join(path) + b"/") for key in found):
            continue
        for a in above:
            found.setdefault(a, Entry(tree.DIR, 0o755))
        found[b"/".join(path)] = draw(LEAVES | st.just(Entry(tree.DIR, 0o700)))
    return found


def stored(objects: Objects, stage: Stage, model: Model) -> bytes:
    def entries(folder: bytes) -> bytes | None:
        values = {}
        for path, entry in model.items():
            above, _, name = path.rpartition(b"/")
            if above == folder:
                if entry.kind == tree.DIR:
                    entry = entry._replace(target=entries(path))
                values[name] = Inline(entry.packed())
        return objects.maps.update(None, values, stage.put_node)

    return put_root(Root(0o755, entries(b"")), stage.put_node)


def alike(one: Entry | None, other: Entry | None) -> bool:
    strip = [e and (e._replace(target=None) if e.kind == tree.DIR else e) for e in (one, other)]
    return strip[0] == strip[1]


@settings(deadline=None)
@given(trees_of_paths(), trees_of_paths())
def test_walk_find_and_changes_say_what_a_plain_dictionary_says(old: Model, new: Model) -> None:
    objects = snapstore.open("memory://").objects
    trees, stage = Trees(objects), Stage(objects)
    roots = [stored(objects, stage, model) for model in (old, new)]
    for root, model in zip(roots, (old, new), strict=True):
        walked = dict(trees.walk(root))
        assert walked.keys() == model.keys()
        assert all(alike(walked[path], entry) for path, entry in model.items())
        for path in model.keys() | {b"a", b"c/c/c/c/c"}:
            assert alike(trees.find(root, path.split(b"/")), model.get(path))
        for folder in (path for path, entry in model.items() if entry.kind == tree.DIR):
            below = {path for path in model if path.startswith(folder + b"/")}
            assert {path for path, _ in trees.walk(root, folder)} == below
    found = trees.changes(*roots)
    assert [c.path for c in found] == sorted(
        path for path in old.keys() | new.keys() if not alike(old.get(path), new.get(path))
    )
    assert all(alike(c.old, old.get(c.path)) and alike(c.new, new.get(c.path)) for c in found)
    assert (roots[0] == roots[1]) == (not found)


def test_a_root_of_another_mode_is_a_change_of_the_empty_path() -> None:
    objects = snapstore.open("memory://").objects
    stage = Stage(objects)
    roots = [put_root(Root(mode, None), stage.put_node) for mode in (0o755, 0o700)]
    assert Trees(objects).changes(*roots) == [
        Change(b"", Entry(tree.DIR, 0o755), Entry(tree.DIR, 0o700))
    ]


def test_directories_deeper_than_python_recurses_are_walked() -> None:
    objects = snapstore.open("memory://").objects
    stage = Stage(objects)
    entries = None
    for _ in range(3000):
        value = Inline(Entry(tree.DIR, 0o755, target=entries).packed())
        entries = objects.maps.update(None, {b"d": value}, stage.put_node)
    root = put_root(Root(0o755, entries), stage.put_node)
    assert sum(1 for _ in Trees(objects).walk(root)) == 3000
    assert len(Trees(objects).changes(None, root)) == 3000


def test_the_path_of_what_lies_in_the_root_has_no_slash() -> None:
    assert join(b"", b"a") == b"a"
    assert join(b"a", b"b") == b"a/b"
