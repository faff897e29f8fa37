"""What each part of the library may lean on, and what only one of them may do.

Read from the source, so that it holds for code that no test runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIBRARY = ROOT / "snapstore"
COMMAND_LINE = ROOT / "cli" / "snapstore_cli"

LAYERS = [
    {"errors", "_version"},
    {"arguments"},
    {"ids", "names", "times", "sizes", "plainfile"},
    {"disk"},
    {"outfile"},
    {"engine"},
    {"engines"},
    {"values", "frozen", "toolshapes", "deepjson"},
    {"pairs", "textdiff"},
    {"model"},
    {"chunks"},
    {"links"},
    {"objects"},
    {"history", "scratchpad"},
    {"snapshot", "trimming"},
    {"refs"},
    {"standing", "current", "latest"},
    {"saving"},
    {"worktree"},
    {"revisions"},
    {"session"},
    {"diff"},
    {"store"},
    {"maintenance", "tasks"},
    {"formats"},
    {"transfer"},
    {"integrations"},
]
"""The parts of the library, the lowest first: each imports from itself and those below it."""

LAZILY_UPWARDS = {
    "snapshot": {"worktree"},
    "store": {"maintenance", "tasks", "transfer"},
}
"""Who hands on to parts above it: at the call, so that whoever does not call need not load them."""

LONGEST = 400
"""Most lines of a module."""

OUTGROWN: dict[str, int] = {}
"""Modules that have more, and how many at most: to become shorter, not to become more."""

MODULES = sorted([*LIBRARY.rglob("*.py"), *COMMAND_LINE.rglob("*.py")])
OF_LIBRARY = [path for path in MODULES if LIBRARY in path.parents]


def name_of(path: Path) -> str:
    """A module as the tests are called after it."""
    return str(path.relative_to(ROOT))


def every(modules: list[Path]) -> pytest.MarkDecorator:
    """One test for each module."""
    return pytest.mark.parametrize("path", modules, ids=name_of)


# --- who imports whom ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Import:
    """A part of the library that a module imports."""

    part: str
    line: int
    lazy: bool


def imports(path: Path) -> Iterator[Import]:
    """The parts that a module imports when it runs: what only type checkers see does not count."""
    todo: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text()), False)]
    while todo:
        node, lazy = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        for part in _parts(node):
            yield Import(part, getattr(node, "lineno", 0), lazy)
        lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        todo += [(child, lazy) for child in ast.iter_child_nodes(node)]


def _parts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        names = [f"{module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        return
    for package, part, *_ in (f"{name}.__init__".split(".") for name in names):
        if package in ("snapstore", "snapstore_cli"):
            yield part if package == "snapstore" else package


def level(part: str) -> int:
    """Where a part stands; the package itself and all that is not listed stand on top."""
    return next((n for n, layer in enumerate(LAYERS) if part in layer), len(LAYERS))


def part_of(path: Path) -> str:
    """The part of the library that a module belongs to."""
    return path.relative_to(LIBRARY).parts[0].removesuffix(".py")


def test_every_part_has_its_layer() -> None:
    parts = {part_of(path) for path in OF_LIBRARY} - {"__init__"}
    listed = set().union(*LAYERS)
    assert parts <= listed
    assert sum(map(len, LAYERS)) == len(listed)


@every(OF_LIBRARY)
def test_imports_lead_downwards(path: Path) -> None:
    part = part_of(path)
    for found in imports(path):
        allowed = level(found.part) < level(part) or found.part == part
        if found.lazy:
            allowed = allowed or found.part in LAZILY_UPWARDS.get(part, ())
        assert allowed, f"line {found.line}: {part} must not import {found.part}"


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "from snapstore import refs, values\n"
        "import snapstore.engines.log as log\n"
        "import os, snapstore_cli.main\n"
        "if TYPE_CHECKING:\n    from snapstore.store import Store\n"
        "def later():\n    with x:\n        from snapstore.tasks import run\n"
    )
    found = {(found.part, found.lazy) for found in imports(module)}
    assert found == {
        ("refs", False), ("values", False), ("engines", False), ("snapstore_cli", False),
        ("tasks", True),
    }  # fmt: skip


# --- what only some may do -------------------------------------------------------------------

TALKING = {"print", "input", "breakpoint", "exit", "quit"}
SURROUNDINGS = {
    "os.environ", "os.environb", "os.getenv", "os.putenv", "os.path.expanduser",
    "os.path.expandvars", "sys.argv", "sys.stdin", "sys.stdout", "sys.stderr", "sys.exit",
    "Path.home", "getpass.getuser",
}  # fmt: skip
"""What belongs to the process and its user, and so to the command line."""

OS_WRITES = {
    "chmod", "chown", "copy_file_range", "fchmod", "fchown", "fdatasync", "fsync", "ftruncate",
    "lchmod", "lchown", "link", "makedirs", "mkdir", "mkfifo", "mknod", "posix_fallocate",
    "pwrite", "pwritev", "remove", "removedirs", "removexattr", "rename", "renames", "replace",
    "rmdir", "sendfile", "setxattr", "symlink", "sync", "truncate", "unlink", "utime", "write",
    "writev",
}  # fmt: skip
METHODS = {
    "chmod", "flock", "hardlink_to", "lchmod", "lockf", "mkdir", "rename", "rmdir", "symlink_to",
    "touch", "truncate", "unlink", "write", "write_bytes", "write_text", "writelines",
}  # fmt: skip
WRITERS = {"shutil", "tempfile", "fcntl", "msvcrt"}
"""Modules of which nothing is used outside of disk.py."""


def dotted(node: ast.AST) -> str:
    """A name with its attributes as it is written; what stands before them is left out."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def calls(path: Path) -> Iterator[ast.Call]:
    """Every call in a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield node


def writes(call: ast.Call) -> bool:
    """Whether a call, by its name, may change something on a disk."""
    name = dotted(call.func)
    owner, _, method = name.rpartition(".")
    if owner == "os":
        return method in OS_WRITES or (method == "open" and _opens_to_write(call))
    if owner.split(".")[0] in WRITERS:
        return True
    if owner == "refs" or any(map(_is_the_disk, [getattr(call.func, "value", None), *call.args])):
        return False  # refs are no files; and the disk is the door itself
    if method == "open":
        return _has_mode_to_write(call, built_in=owner in ("", "io"))
    one_path = len(call.args) == 1 and not call.keywords  # of a text it would be two
    return "." in name and (method in METHODS or (method == "replace" and one_path))


def _opens_to_write(call: ast.Call) -> bool:
    text = ast.dump(call)
    return any(flag in text for flag in ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"))


def _is_the_disk(node: ast.AST | None) -> bool:
    return node is not None and dotted(node).split(".")[-1].strip("_").lower() == "disk"


def _has_mode_to_write(call: ast.Call, *, built_in: bool) -> bool:
    at = 1 if built_in else 0  # what open is given first is the path, but not that of a path
    modes = [*call.args[at : at + 1], *(k.value for k in call.keywords if k.arg == "mode")]
    for mode in modes:
        if isinstance(mode, ast.Constant) and isinstance(mode.value, str):
            return bool(set(mode.value) & set("wax+"))
    return built_in and bool(modes)


@every(OF_LIBRARY)
def test_the_library_does_not_talk_and_knows_no_surroundings(path: Path) -> None:
    for call in calls(path):
        assert dotted(call.func) not in TALKING, f"line {call.lineno}"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            assert dotted(node) not in SURROUNDINGS, f"line {node.lineno}: {dotted(node)}"
            assert node.attr not in ("expanduser", "expandvars"), f"line {node.lineno}"
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "sys", "os.path"):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            assert not names & SURROUNDINGS, f"line {node.lineno}"


@every([path for path in OF_LIBRARY if path != LIBRARY / "disk.py"])
def test_only_disk_writes(path: Path) -> None:
    for call in calls(path):
        assert not writes(call), f"line {call.lineno}: {ast.unparse(call)}"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.module not in WRITERS, f"line {node.lineno}"
            from_os = {alias.name for alias in node.names} if node.module == "os" else set()
            assert not from_os & OS_WRITES, f"line {node.lineno}"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("os.write(fd, data)", True), ("os.open(p, os.O_RDWR)", True), ("os.read(fd, 9)", False),
        ("os.open(p, os.O_RDONLY | os.O_CLOEXEC)", False), ("open(p, 'w')", True),
        ("open(p)", False), ("open(p, 'rb')", False), ("open(p, mode)", True),
        ("path.open('a')", True), ("path.open('rb')", False), ("path.open(mode='r+b')", True),
        ("path.replace(other)", True), ("text.replace('a', 'b')", False),
        ("self._disk.rename(a, b)", False), ("DISK.remove(a)", False), ("path.unlink()", True),
        ("shutil.copy(a, b)", True), ("self.root.mkdir()", True), ("file.write(data)", True),
        ("fcntl.flock(fd, 2)", True), ("write(data)", False),
        ("journal.write(self._disk, path)", False), ("tree.open(parts)", False),
        ("refs.rename(old, new)", False),
    ],
)  # fmt: skip
def test_writes_are_known_by_their_names(code: str, expected: bool) -> None:
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert writes(call) == expected


# --- how a module looks ----------------------------------------------------------------------


@every(MODULES)
def test_a_module_has_one_idea_that_its_docstring_tells(path: Path) -> None:
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= OUTGROWN.get(name_of(path), LONGEST)


@every(MODULES)
def test_a_module_is_named_for_what_it_holds(path: Path) -> None:
    for word in ("util", "helper", "manager", "common", "misc"):
        assert word not in name_of(path)
