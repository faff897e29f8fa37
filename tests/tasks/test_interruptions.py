"""Tasks that are interrupted, changed, reset and resumed at random, against a plain model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from snapstore import Store
from snapstore.engines.memory import MemoryEngine
from snapstore.tasks import Context, Phase, reset

NAMES = ("a", "b", "c", "d")


class CutOff(BaseException):
    """Stands for a kill."""


@dataclass
class Model:
    """What a task is, in a few lists."""

    versions: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    done: list[tuple[str, int, dict[str, int]]] = field(default_factory=list)
    """Name, version and the scratchpad that it began with, of a beginning of the phases."""
    pad: dict[str, int] = field(default_factory=dict)
    effects: set[str] = field(default_factory=set)

    def kept(self) -> int:
        """How many finished phases count."""
        for at, (name, version, _) in enumerate(self.done):
            if version != self.versions[name]:
                return at
        return len(self.done)

    def run(self, stop: str | None) -> list[str]:
        """The phases that run; stop is cut off."""
        kept = self.kept()
        if kept < len(self.done):
            self.pad = self.done[kept][2]
            del self.done[kept:]
        ran: list[str] = []
        for name in NAMES[kept:]:
            ran.append(name)
            self.effects.add(name)
            if name == stop:
                break
            self.done.append((name, self.versions[name], self.pad))
            self.pad = {**self.pad, name: self.pad.get(name, 0) + 1}
        return ran


class Interrupted(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.engine = MemoryEngine()
        self.model = Model()
        self.effects: list[str] = []

    def phases(self, ran: list[str], stop: str | None) -> list[Phase]:
        def run(ctx: Context) -> Any:
            ran.append(ctx.phase)
            ctx.once(ctx.phase, lambda: self.effects.append(ctx.phase))
            ctx.scratchpad[ctx.phase] = ctx.scratchpad.get(ctx.phase, 0) + 1
            assert list(ctx.results) == list(NAMES[: NAMES.index(ctx.phase)])
            if ctx.phase == stop:
                raise CutOff
            return ctx.phase.upper()

        return [Phase(name, run, version=self.model.versions[name]) for name in NAMES]

    @rule(stop=st.none() | st.sampled_from(NAMES))
    def run_it(self, stop: str | None) -> None:
        ran: list[str] = []
        store = Store(self.engine)
        expected = self.model.run(stop)
        try:
            report = store.run_task("t", self.phases(ran, stop))
        except CutOff:
            assert expected and expected[-1] == stop
        else:
            assert report.ran == expected
            assert report.results == {name: name.upper() for name in NAMES}
        assert ran == expected
        assert store.session("task/t").scratchpad == self.model.pad
        assert sorted(self.effects) == sorted(self.model.effects)

    @rule(name=st.sampled_from(NAMES))
    def change(self, name: str) -> None:
        self.model.versions[name] += 1

    @rule(name=st.sampled_from(NAMES))
    def reset_it(self, name: str) -> None:
        if self.effects:  # it ran at least once, so its phases are known
            reset(Store(self.engine), "t", name)
            places = [at for at, done in enumerate(self.model.done) if done[0] == name]
            if places:
                done = self.model.done[places[0]]
                self.model.done[places[0]] = (done[0], -1, done[2])

    @rule()
    def note(self) -> None:
        """A turn of somebody else's in between."""
        session = Store(self.engine).session("task/t")
        session.scratchpad["note"] = session.turn
        self.model.pad = {**self.model.pad, "note": session.turn}
        session.save("a note")


Interrupted.TestCase.settings = settings(deadline=None, max_examples=80, stateful_step_count=14)
TestInterrupted = Interrupted.TestCase
