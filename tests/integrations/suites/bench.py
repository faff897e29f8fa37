"""Where the frameworks' tests run: an environment that has the frameworks, and their sources.

Both are fetched once, at pinned versions, into a folder of the user's cache directory that is named
after what is in it; of this package it holds nothing, so every checkout can use it. It is made
beside its place and then moved there: whoever finds it finds it whole. It may be deleted at any
time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from platformdirs import user_cache_path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

PINNED = (
    "langgraph==1.2.24", "langgraph-checkpoint==4.3.2", "langgraph-checkpoint-sqlite==3.1.2",
    "langgraph-checkpoint-postgres==3.2.0", "langgraph-checkpoint-conformance==0.0.2",
    "openai-agents==0.24.0", "pydantic-ai-slim==2.68.0",
)  # fmt: skip
WITH_TESTS = ("langgraph", "openai-agents")
"""Whose source distributions hold tests that are run."""
NEEDED_BY_TESTS = (
    "pytest", "pytest-mock", "pytest-xdist", "pytest-repeat", "pytest-asyncio", "syrupy", "anyio",
    "httpx", "redis", "pycryptodome", "psycopg[binary]", "psycopg-pool", "inline-snapshot",
    "cryptography", "hypothesis",
)  # fmt: skip

WORKERS = ("-n", "3")
"""Many of these tests wait now and then, so one more than the cores of a small machine."""
LONGEST = 900
"""Seconds after which tests that have not come to an end are given up."""
MEMORY = Path("/dev/shm")
"""Where files are made, given room for it. Thousands of stores are made, each with some syncs, of
which these tests ask nothing: no power fails in them."""
ROOM = 512 << 20
PATIENCE = ("--timeout", "30", "--retries", "2")


class NotFetchedError(Exception):
    """A package index did not give what is needed, or there is no place for it."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of some tests."""

    passed: int = 0
    skipped: int = 0
    failed: tuple[str, ...] = ()


def default_folder() -> Path:
    """Where a bench is kept, by what it holds."""
    holds = [requirements(), sys.version, sys.base_prefix]
    digest = hashlib.sha256(json.dumps(holds).encode()).hexdigest()
    return user_cache_path("snapstore-tests") / f"frameworks-{digest[:12]}"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for what tests write, in memory if there is room."""
    roomy = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    with TemporaryDirectory(dir=MEMORY if roomy else None) as folder:
        yield Path(folder)


def requirements() -> list[str]:
    """What the environment holds: the frameworks, and what this package and the tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*PINNED, *NEEDED_BY_TESTS, *project["dependencies"]]


class Bench:
    """A folder with an environment and sources."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or default_folder()).resolve()
        self._refusal: NotFetchedError | None = None

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return _python(self.folder)

    def sources(self, package: str) -> Path:
        """The unpacked source distribution of a package."""
        return next((self.folder / package).iterdir())

    def prepare(self) -> None:
        """Fetch everything, unless it is there. Raises NotFetchedError, also when asked again."""
        if self._refusal is None and not self.folder.exists():
            try:
                self._make()
            except (NotFetchedError, OSError, subprocess.CalledProcessError) as reason:
                self._refusal = NotFetchedError(str(reason))
        if self._refusal is not None:
            raise self._refusal

    def _make(self) -> None:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="making-", dir=self.folder.parent) as made:
            whole = Path(made) / "bench"
            _fetch(whole)
            try:
                whole.rename(self.folder)
            except OSError:
                if not self.folder.exists():  # else another run was faster
                    raise

    def run(
        self, scratch: Path, *command: str | Path, where: Path = ROOT
    ) -> subprocess.CompletedProcess[str]:
        """Run Python in the environment, which has this package as it is here."""
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("PYTEST_", "PYTHON"))}
        paths = os.pathsep.join(map(str, (HERE, ROOT, ROOT / "cli")))
        given = {"PYTHONPATH": paths, "NO_DOCKER": "true", "TMPDIR": str(scratch)}
        return subprocess.run(
            [self.python, *command],
            cwd=where,
            env={**kept, **given},
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )

    def pytest(
        self,
        where: Path,
        *words: str,
        workers: Sequence[str] = WORKERS,
        excused: Collection[str] = (),
    ) -> Ran:
        """Run tests in a folder.

        A few of these tests tell the order of things by sleeping some milliseconds, so what failed
        is run once more, alone, unless it is excused.
        """
        with scratch_folder() as scratch:
            ran = self._pytest(where, scratch, [*workers, *words])
            if not ran.passed or set(ran.failed) <= set(excused):
                return ran
            again = self._pytest(where, scratch, ["--last-failed", *words])
            return Ran(ran.passed + again.passed, ran.skipped, again.failed)

    def _pytest(self, where: Path, scratch: Path, words: Sequence[str]) -> Ran:
        report = scratch / "report.xml"
        report.unlink(missing_ok=True)
        # Rewriting the assertions of a hundred thousand lines of tests takes longer than most runs.
        options = ("-q", "--assert=plain", "-o", f"cache_dir={scratch}", f"--junit-xml={report}",
                   "-o", "tmp_path_retention_policy=none")  # fmt: skip
        try:
            done = self.run(scratch, "-m", "pytest", *options, *words, where=where)
        except subprocess.TimeoutExpired:
            return Ran(failed=(f"did not come to an end in {LONGEST} s",))
        if not report.exists():
            last = (done.stdout + done.stderr).strip().splitlines()[-1:]
            return Ran(failed=tuple(last) or ("pytest did not run",))
        return _told(report)


def _fetch(folder: Path) -> None:
    venv.create(folder / "environment", with_pip=True)
    with ThreadPoolExecutor() as side_by_side:
        asked = [side_by_side.submit(_fetch_sources, folder, package) for package in WITH_TESTS]
        # What is imported is compiled then: that is a part of it.
        _pip(folder, "install", "--no-compile", *requirements())
        for sources in asked:
            sources.result()


def _fetch_sources(folder: Path, package: str) -> None:
    pinned = next(pin for pin in PINNED if pin.startswith(package + "=="))
    with TemporaryDirectory() as archives:
        _pip(folder, "download", "--no-deps", "--no-binary", package, "-d", archives, pinned)
        (folder / package).mkdir()
        for archive in Path(archives).iterdir():
            shutil.unpack_archive(archive, folder / package)


def _pip(folder: Path, command: str, *words: str) -> None:
    done = subprocess.run(
        [_python(folder), "-m", "pip", "-q", command, "--disable-pip-version-check", *PATIENCE,
         *words],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise NotFetchedError((done.stderr.strip() or done.stdout.strip()).splitlines()[-1])


def _python(folder: Path) -> Path:
    return folder / "environment" / "bin" / "python"


def _told(report: Path) -> Ran:
    passed = skipped = 0
    failed: list[str] = []
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(case.get("name", ""))
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return Ran(passed, skipped, tuple(failed))
