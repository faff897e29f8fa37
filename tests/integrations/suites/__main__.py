"""The frameworks' own test suites, run on our backends.

    python -m tests.integrations.suites [--whole] [--keep FOLDER] [conformance|langgraph|agents ...]

The suites come with the source distributions of the frameworks, which are fetched at pinned
versions into a temporary folder, with an environment of their own to run in; nothing of them is
kept here.
Prints a line for each suite and exits with 1 if one does not reach its bar. Where one cannot be
fetched the line says so, and nothing was judged. Of LangGraph's suite those tests are run whose
saver is replaced (a third of it); --whole runs all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]

PINNED = (
    "langgraph==1.2.24", "langgraph-checkpoint==4.3.2", "langgraph-checkpoint-sqlite==3.1.2",
    "langgraph-checkpoint-postgres==3.2.0", "langgraph-checkpoint-conformance==0.0.2",
    "openai-agents==0.24.0",
)  # fmt: skip
NEEDED_BY_THEIR_TESTS = (
    "pytest", "pytest-mock", "pytest-xdist", "pytest-repeat", "pytest-asyncio", "syrupy", "anyio",
    "httpx", "redis", "pycryptodome", "psycopg[binary]", "psycopg-pool", "numpy", "pandas",
    "inline-snapshot", "cryptography",
)  # fmt: skip

AGENT_TESTS = (
    "memory", "extensions/memory/test_encrypt_session.py", "sandbox/test_memory.py",
    "test_tool_batch_failure_history.py", "test_native_tool_failure_history.py",
    "test_agent_runner.py", "test_max_turns.py", "test_agent_runner_streamed.py",
    "test_programmatic_tool_calling.py", "test_run_impl_resume_paths.py",
    "test_tool_failure_boundaries.py", "test_soft_cancel.py",
)  # fmt: skip
FOR_THEIR_CLASS_ONLY = "test_encrypted_pop_cancellation_waits_for_authentication_rollback"
"""Its session is asked for a private method only if its class is the SDK's own."""


class NotFetchedError(Exception):
    """A package index did not give what is needed."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a suite says of our backend."""

    passed: int
    failed: tuple[str, ...]
    bar: int
    """How many must pass, at the least."""

    @property
    def good(self) -> bool:
        """Whether the bar is reached."""
        return not self.failed and self.passed >= self.bar


class Bench:
    """A folder with an environment that has the frameworks, and their sources."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "environment" / "bin" / "python"

    def prepare(self) -> None:
        """Make the environment, unless it is there. Raises NotFetchedError."""
        if self.python.exists():
            return
        venv.create(self.folder / "environment", with_pip=True)
        self._pip("install", "-e", str(ROOT), *PINNED, *NEEDED_BY_THEIR_TESTS)

    def sources(self, package: str) -> Path:
        """The unpacked source distribution of a pinned package. Raises NotFetchedError."""
        pinned = next(pin for pin in PINNED if pin.startswith(package + "=="))
        place = self.folder / pinned
        if not place.exists():
            archives = self.folder / "archives"
            self._pip("download", "--no-deps", "--no-binary", package, "-d", str(archives), pinned)
            name = pinned.replace("==", "-")
            found = [a for a in archives.iterdir() if a.name.replace("_", "-").startswith(name)]
            place.mkdir()
            subprocess.run(["tar", "xzf", found[0], "-C", place], check=True)
        return next(place.iterdir())

    def _pip(self, *words: str) -> None:
        done = subprocess.run(
            [self.python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NotFetchedError((done.stderr.strip() or done.stdout.strip()).splitlines()[-1])

    def pytest(self, where: Path, plugin: str, *words: str) -> tuple[int, tuple[str, ...]]:
        """Run tests in a folder: how many passed, and those that failed.

        A few of these tests tell the order of things by sleeping some milliseconds, so what failed
        is run once more, alone.
        """
        passed, failed = self._pytest(where, plugin, "-n", "2", *words)
        if failed and passed:
            again, failed = self._pytest(where, plugin, "--last-failed", *words)
            passed += again
        return passed, failed

    def _pytest(self, where: Path, plugin: str, *words: str) -> tuple[int, tuple[str, ...]]:
        report = self.folder / f"{plugin}.xml"
        report.unlink(missing_ok=True)
        options = ("-q", "-o", f"cache_dir={self.folder / plugin}", f"--junit-xml={report}")
        done = subprocess.run(
            [self.python, "-m", "pytest", "-p", plugin, *options, *words],
            cwd=where,
            env={**os.environ, "PYTHONPATH": str(HERE), "NO_DOCKER": "true"},
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.exists():
            last = (done.stdout + done.stderr).strip().splitlines()[-1:]
            return 0, tuple(last) or ("pytest did not run",)
        return _told(report)


def _told(report: Path) -> tuple[int, tuple[str, ...]]:
    passed = 0
    failed = []
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(case.get("name", ""))
        elif case.find("skipped") is None:
            passed += 1
    return passed, tuple(failed)


def conformance(bench: Bench, whole: bool) -> Judged:
    """The conformance suite of langgraph-checkpoint: all 81 tests."""
    done = subprocess.run(
        [bench.python, HERE / "conformance.py"], capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout.splitlines()[-1])
    return Judged(told["passed"], tuple(told["failed"]), 81)


def langgraph(bench: Bench, whole: bool) -> Judged:
    """LangGraph's tests: none may fail of those that our saver is used in."""
    where = bench.sources("langgraph")
    chosen = [] if whole else ["-k", "sqlite"]
    passed, failed = bench.pytest(where, "langgraph_plugin", "tests", "-o", "addopts=", *chosen)
    if whole:
        # The others judge savers of LangGraph's own, and one of them fails now and then under load.
        failed = tuple(name for name in failed if "sqlite" in name)
    return Judged(passed, failed, 2900 if whole else 1000)


def agents(bench: Bench, whole: bool) -> Judged:
    """The session tests of the OpenAI Agents SDK: all but the one that asks for its own class."""
    where = bench.sources("openai-agents")
    tests = [f"tests/{name}" for name in AGENT_TESTS]
    passed, failed = bench.pytest(where, "agents_plugin", *tests)
    return Judged(passed, tuple(name for name in failed if name != FOR_THEIR_CLASS_ONLY), 295)


SUITES: dict[str, Callable[[Bench, bool], Judged]] = {
    "conformance": conformance,
    "langgraph": langgraph,
    "agents": agents,
}


def judge(bench: Bench, name: str, whole: bool = False) -> Judged:
    """Run one suite. Raises NotFetchedError."""
    bench.prepare()
    return SUITES[name](bench, whole)


def main() -> int:
    """Run the suites and print what they say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", default=list(SUITES))
    parser.add_argument("--whole", action="store_true", help="all of LangGraph's tests")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where to fetch to, and keep")
    chosen = parser.parse_args()
    good = True
    with ExitStack() as stack:
        folder = chosen.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(folder.resolve())
        for name in chosen.suites:
            begun = time.monotonic()
            try:
                judged = judge(bench, name, chosen.whole)
            except NotFetchedError as reason:
                print(f"{name}: could not be fetched, nothing was judged: {reason}", flush=True)
                continue
            good = good and judged.good
            print(
                f"{name}: {judged.passed} passed, {len(judged.failed)} failed,"
                f" {time.monotonic() - begun:.0f} s",
                *judged.failed,
                sep="\n    ",
                flush=True,
            )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
