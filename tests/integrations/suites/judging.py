"""The suites that judge our backends, and the bar of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from .bench import HERE, ROOT, Bench, Ran, scratch_folder

AGENT_TESTS = (
    "memory", "extensions/memory/test_encrypt_session.py", "sandbox/test_memory.py",
    "test_tool_batch_failure_history.py", "test_native_tool_failure_history.py",
    "test_agent_runner.py", "test_max_turns.py", "test_agent_runner_streamed.py",
    "test_programmatic_tool_calling.py", "test_run_impl_resume_paths.py",
    "test_tool_failure_boundaries.py", "test_soft_cancel.py",
)  # fmt: skip
FOR_THEIR_CLASS_ONLY = "test_encrypted_pop_cancellation_waits_for_authentication_rollback"
"""Its session is asked for a private method only if its class is the SDK's own."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a suite says of our backend."""

    passed: int
    failed: tuple[str, ...]
    bar: int
    """How many must pass, at the least."""
    excused: int = 0
    """How many failed that nobody but the framework's own class can pass."""

    @property
    def good(self) -> bool:
        """Whether the bar is reached."""
        return not self.failed and self.passed >= self.bar

    def __str__(self) -> str:
        of = self.passed + len(self.failed) + self.excused
        return f"{self.passed} of {of} passed, {self.bar} needed"


def conformance(bench: Bench, whole: bool) -> Judged:
    """The conformance suite of langgraph-checkpoint: all 81 tests."""
    with scratch_folder() as scratch:
        done = bench.run(scratch, HERE / "conformance.py")
    if done.returncode:
        return Judged(0, tuple(done.stderr.splitlines()[-1:]), 81)
    told = json.loads(done.stdout.splitlines()[-1])
    return Judged(told["passed"], tuple(told["failed"]), 81)


def langgraph(bench: Bench, whole: bool) -> Judged:
    """LangGraph's tests: none may fail of those that our saver is used in."""
    words = ["-p", "langgraph_plugin", "-o", "addopts=", "tests"]
    ran = bench.pytest(bench.sources("langgraph"), *words, *([] if whole else ["-k", "sqlite"]))
    # The others judge savers of LangGraph's own, and one of them fails now and then under load.
    failed = tuple(name for name in ran.failed if "sqlite" in name or not ran.passed)
    return Judged(ran.passed, failed, 2900 if whole else 1040)


def agents(bench: Bench, whole: bool) -> Judged:
    """The session tests of the OpenAI Agents SDK: all but the one that asks for its own class."""
    tests = [f"tests/{name}" for name in AGENT_TESTS]
    sources = bench.sources("openai-agents")
    ran = bench.pytest(sources, "-p", "agents_plugin", *tests, excused={FOR_THEIR_CLASS_ONLY})
    failed = tuple(name for name in ran.failed if name != FOR_THEIR_CLASS_ONLY)
    return Judged(ran.passed, failed, 295, excused=len(ran.failed) - len(failed))


def contract(bench: Bench, whole: bool) -> Judged:
    """What Pydantic AI asks of a store, of which it ships no tests: on its own and on ours."""
    return _ours(_tests_of_ours(bench, "test_pydantic_ai.py"))


def ours(bench: Bench, whole: bool) -> Judged:
    """Our own tests of the other backends, and the loops of the README."""
    files = ("test_langgraph*.py", "test_openai_agents*.py", "test_readme_loops.py")
    return _ours(_tests_of_ours(bench, *files))


def _tests_of_ours(bench: Bench, *patterns: str) -> Ran:
    folder = HERE.parent
    files = [str(file) for pattern in patterns for file in sorted(folder.glob(pattern))]
    # They are few: to start workers would take longer.
    return bench.pytest(ROOT, f"--confcutdir={folder}", *files, workers=())


def _ours(ran: Ran) -> Judged:
    """None of them may be skipped: what they need is there."""
    return Judged(ran.passed, ran.failed, max(1, ran.passed + ran.skipped))


SUITES: dict[str, Callable[[Bench, bool], Judged]] = {
    "conformance": conformance,
    "langgraph": langgraph,
    "agents": agents,
    "contract": contract,
    "ours": ours,
}


def judge(bench: Bench, name: str, whole: bool = False) -> Judged:
    """Run one suite. Raises NotFetchedError."""
    bench.prepare()
    return SUITES[name](bench, whole)
