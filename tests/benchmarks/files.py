"""What capturing and restoring files costs, against git on the same tree in the same run.

    python -m tests.benchmarks.files [--quick] [--large]

git runs with its syncs off (``core.fsync=none``), as ``git add -A`` and ``git write-tree``: that is
what a capture does, but for the mtimes, modes and empty directories that git does not keep. Saves
are durable. Both see a warm cache. ``--quick`` takes a tenth of the files, ``--large`` adds a tree
of 200,000.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path

import snapstore
from tests.benchmarks.workload import bytes_in, clock, median, scratch, show

Row = tuple[str, str, str]
_WORDS = [f"word{n}" for n in range(3000)]
_EDITS = 7


def tree_of(root: Path, files: int, words: int = 1500) -> None:
    """A tree of text files, 50 in a directory."""
    rnd = random.Random(7)
    for n in range(files):
        folder = root / f"p{n % 40}/q{n % max(1, files // 50)}"
        folder.mkdir(parents=True, exist_ok=True)
        text = " ".join(rnd.choice(_WORDS) for _ in range(rnd.randrange(20, words)))
        (folder / f"f{n}.py").write_text(text)


class Git:
    """A bare repository beside a tree."""

    def __init__(self, repository: Path, tree: Path) -> None:
        self._base = ["git", "--git-dir", str(repository), "--work-tree", str(tree)]
        self.repository = repository
        subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)

    def capture(self) -> None:
        """What is the nearest to a save."""
        for words in (["add", "-A"], ["write-tree"]):
            command = [*self._base, "-c", "core.fsync=none", *words]
            subprocess.run(command, check=True, capture_output=True)


def edit(tree: Path, text: str) -> None:
    """Change one file, after the tick in which the last capture may have seen it."""
    time.sleep(0.05)
    next(iter(sorted(tree.rglob("f1.py")))).write_text(text)


def against_git(root: Path, files: int) -> list[Row]:
    """First capture, captures after one edit, and a restore of one changed file."""
    tree = root / "tree"
    tree_of(tree, files)
    git = Git(root / "git", tree)
    store = snapstore.open(root / "store")
    session = store.session("s")
    session.worktree = tree
    first, git_first = clock(lambda: session.save("first")), clock(git.capture)
    sizes = bytes_in(root / "store"), bytes_in(git.repository)
    one_edit: list[float] = []
    git_edit: list[float] = []
    for n in range(_EDITS):
        edit(tree, f"edit {n}")
        one_edit.append(clock(lambda n=n: session.save(f"edit {n}")))  # type: ignore[misc]
        git_edit.append(clock(git.capture))
    restores: list[float] = []
    for n in range(_EDITS):
        edit(tree, f"by hand {n}")
        restores.append(clock(lambda: session.restore(session.turn)))
    for n in range(100):
        edit(tree, f"again {n}")
        session.save(f"again {n}")
    grown = bytes_in(root / "store") / sizes[0]
    ours, theirs, back = median(one_edit), median(git_edit), median(restores)
    return [
        (f"first capture of {files:,} files", _pair(first, git_first), "0.5 x git"),
        ("capture after one edit", _pair(ours, theirs), "1.5 x git"),
        ("restore of one changed file", f"{back:.3f} s = {back / ours:.2f} x a capture", "1.0 x"),
        ("bytes of the store", f"{sizes[0] / sizes[1]:.2f} x git's", "1.05 x"),
        ("100 more captures, one file each", f"{grown:.3f} x the bytes of the first", "1.05 x"),
    ]


def insertion(root: Path, size: int) -> list[Row]:
    """800 bytes in the middle of a large file."""
    tree = root / "big"
    tree.mkdir()
    content = bytearray(random.Random(11).randbytes(size))
    (tree / "f").write_bytes(content)
    session = snapstore.open(root / "big-store").session("s")
    session.worktree = tree
    session.save()
    before = bytes_in(root / "big-store")
    content[size // 2 : size // 2] = b"inserted" * 100
    (tree / "f").write_bytes(content)
    session.save()
    grown = bytes_in(root / "big-store") - before
    return [(f"800 bytes inserted in {size / 1e6:.0f} MB", f"{grown / 1e3:.0f} KB", "200 KB")]


_IN_A_PROCESS = """
import resource, sys, time, snapstore
session = snapstore.open(sys.argv[1]).session("s")
session.worktree = sys.argv[2]
start = time.perf_counter()
session.save()
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def growth(root: Path, small: int, large: int) -> list[Row]:
    """One edit in a process of its own, on a tree ten times the size."""
    found: list[tuple[float, float]] = []
    for files in (small, large):
        tree, store = root / f"tree-{files}", root / f"store-{files}"
        tree_of(tree, files, words=60)
        command = [sys.executable, "-c", _IN_A_PROCESS, str(store), str(tree)]
        subprocess.run(command, check=True, capture_output=True)
        edit(tree, "warm")
        subprocess.run(command, check=True, capture_output=True)
        times: list[tuple[float, float]] = []
        for n in range(3):
            edit(tree, f"edit {n}")
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            took, memory = done.stdout.split()
            times.append((float(took), float(memory)))
        found.append(sorted(times)[1])
    (one, _), (other, memory) = found
    return [
        (
            f"{large:,} files, one edit",
            f"{other:.2f} s = {other / one:.1f} x that of {small:,}",
            "11 x",
        ),
        ("memory of that", f"{memory:.0f} MB", "500 MB"),
    ]


def _pair(ours: float, theirs: float) -> str:
    return f"{ours:.3f} s against {theirs:.3f} s = {ours / theirs:.2f} x"


def main() -> None:
    """Run what was asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true")
    asked = parser.parse_args()
    with scratch() as root:
        rows = against_git(root, 2_000 if asked.quick else 20_000)
        rows += insertion(root, 40_000_000)
        if asked.large:
            rows += growth(root, 20_000, 200_000)
    show(rows)


if __name__ == "__main__":
    main()
