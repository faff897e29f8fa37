"""Tool pairs: which result belongs to which call, and where a history can be cut.

A result belongs to the latest earlier call of its id that has no result yet. Ids come again later
in one history, so this is how brackets match, one kind of bracket an id: reading backwards from the
end of a history gives the same pairs as reading forwards from its start, and so the end of a long
history can be judged without its beginning. When every earlier call of the id has its result, one
more result is a *duplicate* and belongs to the latest of them; a result with no earlier call of its
id is an *orphan*, and a call without a result is *pending*.

Messages can be any JSON values; how calls and results look is the matter of ``toolshapes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from snapstore.errors import InvalidInput
from snapstore.toolshapes import (
    Call,
    Part,
    calls,
    interrupted_block,
    interrupted_message,
    is_from_model,
    only_thinks,
    parts,
    results,
    without,
)

__all__ = [
    "Call",
    "Orphan",
    "Pending",
    "Problem",
    "border_before",
    "calls",
    "is_border",
    "orphans",
    "pending",
    "repair",
    "results",
    "validate",
]


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that has no result yet; ``index`` is the position of its message."""

    id: str
    name: str
    index: int


@dataclass(frozen=True, slots=True)
class Orphan:
    """A result whose call is nowhere before it; ``index`` is the position of its message."""

    id: str
    index: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a model's API refuses in a history; ``index`` is the message's position."""

    kind: Literal["pending", "orphan", "duplicate"]
    id: str
    index: int
    message: str


@dataclass(slots=True)
class _Matching:
    """All calls and results of a history, each with the position of its message, and who is whose.

    ``spans`` holds (call, result) positions; duplicates are among them.
    """

    spans: list[tuple[int, int]] = field(default_factory=list)
    pending: list[tuple[int, Part]] = field(default_factory=list)
    orphans: list[tuple[int, Part]] = field(default_factory=list)
    duplicates: list[tuple[int, Part]] = field(default_factory=list)


def _match(messages: Iterable[object], start: int = 0) -> _Matching:
    found = _Matching()
    open_calls: dict[str, list[tuple[int, Part]]] = {}
    latest: dict[str, int] = {}
    unanswered: dict[tuple[int, Part], None] = {}
    for index, message in enumerate(messages, start):
        for part in parts(message):
            if part.is_call:
                open_calls.setdefault(part.id, []).append((index, part))
                unanswered[index, part] = None
                latest[part.id] = index
            elif waiting := open_calls.get(part.id):
                call = waiting.pop()
                del unanswered[call]
                found.spans.append((call[0], index))
            elif part.id in latest:
                found.spans.append((latest[part.id], index))
                found.duplicates.append((index, part))
            else:
                found.orphans.append((index, part))
    found.pending = list(unanswered)
    return found


def pending(messages: Iterable[object], start: int = 0) -> list[Pending]:
    """The calls that have no result yet, oldest first.

    ``start`` is the position of the first message, for a caller that hands over only a tail. A tail
    from a border on gives the same answer for its part as the whole history would.
    """
    return [Pending(part.id, part.name, index) for index, part in _match(messages, start).pending]


def orphans(messages: Iterable[object], start: int = 0) -> list[Orphan]:
    """The results that have no call before them, oldest first."""
    return [Orphan(part.id, index) for index, part in _match(messages, start).orphans]


def validate(messages: Iterable[object]) -> list[Problem]:
    """What is wrong with the tool pairs of a history, in its order; nothing when it is whole."""
    found = _match(messages)
    problems = [
        *(
            Problem("pending", part.id, index, f"call {part.id} ({part.name}) has no result")
            for index, part in found.pending
        ),
        *(
            Problem("orphan", part.id, index, f"result {part.id} has no call before it")
            for index, part in found.orphans
        ),
        *(
            Problem("duplicate", part.id, index, f"result {part.id} comes a second time")
            for index, part in found.duplicates
        ),
    ]
    return sorted(problems, key=lambda problem: problem.index)


# --- where a history can be cut --------------------------------------------------------------
#
# Cutting at index b keeps history[b:]. It cuts a pair when call < b <= result. It also cuts a call
# off from a result that is still to come, when the call is in flight: pending, in the last batch of
# calls, and followed by nothing but results. Parallel calls can be messages of their own, so the
# results that are there already do not hold on to a sibling that is still running.


def is_border(messages: Sequence[object], index: int) -> bool:
    """Whether ``messages[index:]`` cuts no pair, nor a call in flight from its result to come."""
    held = _in_flight(len(messages), messages.__getitem__)
    if held is not None and held < index:
        return False
    return not any(call < index <= result for call, result in _match(messages).spans)


def border_before(
    length: int, messages: Callable[[int], object] | Sequence[object], index: int
) -> int:
    """The last border at or before ``index``: keeping ``messages[border:]`` cuts no pair.

    ``messages`` is a sequence or a function from position to message. They are read from the end
    back to ``index``, and on to the call that belongs to the earliest result there, which is
    usually in the message before. Only when a result in that tail is an orphan or a duplicate is
    the history read to its beginning, since nothing less shows that no call waits for it; an orphan
    then holds nothing back, a duplicate stays with its call. An index outside the history counts as
    its nearer end. A call in flight is kept even by ``index == length``.
    """
    read = messages if callable(messages) else messages.__getitem__
    border = min(max(index, 0), length)
    held = _in_flight(length, read)
    if held is not None:
        border = min(border, held)
    # By id: positions of the results whose call has not been met, latest first, and how many of
    # these stand behind a call that was met, so that they are its duplicates if no other's.
    open_results: dict[str, list[int]] = {}
    claimed: dict[str, int] = {}
    for position in range(length - 1, -1, -1):
        if position < border and not _reaches(open_results, border):
            break
        for part in reversed(list(parts(read(position)))):
            if not part.is_call:
                open_results.setdefault(part.id, []).append(position)
            elif waiting := open_results.get(part.id):
                reach = waiting[min(claimed.get(part.id, 0), len(waiting) - 1)]
                if position < border <= reach:
                    border = position
                waiting.pop()
                claimed[part.id] = len(waiting)
                if not waiting:
                    del open_results[part.id]
    return border


def _reaches(open_results: dict[str, list[int]], border: int) -> bool:
    return any(waiting[0] >= border for waiting in open_results.values())


def _in_flight(length: int, read: Callable[[int], object]) -> int | None:
    """The position of the first call in flight, if there is one."""
    start = length
    while start and results(message := read(start - 1)) and not calls(message):
        start -= 1
    while start and (calls(message := read(start - 1)) or only_thinks(message)):
        start -= 1
    waiting = pending((read(position) for position in range(start, length)), start)
    return waiting[0].index if waiting else None


# --- repair ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Edits:
    """Changes to a history by position: what comes in before a message, what stands instead of it.

    Instead of a message can stand None: it goes away. Before ``len(messages)`` is behind the last.
    """

    before: dict[int, list[object]] = field(default_factory=dict)
    instead: dict[int, object | None] = field(default_factory=dict)

    def drops(self, index: int) -> bool:
        return index in self.instead and self.instead[index] is None

    def applied(self, messages: Sequence[object]) -> tuple[int, list[object]]:
        first = min([*self.before, *self.instead], default=len(messages))
        tail: list[object] = []
        for index in range(first, len(messages)):
            tail.extend(self.before.get(index, ()))
            if not self.drops(index):
                tail.append(self.instead.get(index, messages[index]))
        tail.extend(self.before.get(len(messages), ()))
        return first, tail


def repair(messages: Sequence[object], how: Literal["drop", "answer"]) -> tuple[int, list[object]]:
    """Make a history whole again: (position, what stands from there on instead).

    ``drop`` takes out the calls without a result and the results without a call; a message with
    nothing left in it goes away, and so does thinking that led to nothing but a call taken out,
    because no API takes it back alone. ``answer`` gives each pending call an "interrupted" result
    in the shape of the call, where the API expects it, and leaves orphans alone. All else, thinking
    and signatures among it, is the very same value as before, and so is all that stands before the
    position. When there was nothing to do, the position is ``len(messages)`` and the list empty.

    Raises InvalidInput when ``how`` is neither.
    """
    found = _match(messages)
    if how == "drop":
        return _dropped(messages, [*found.pending, *found.orphans]).applied(messages)
    if how == "answer":
        return _answered(messages, found.pending).applied(messages)
    raise InvalidInput(f"unknown way to repair: {how!r}", hint="use 'drop' or 'answer'")


def _dropped(messages: Sequence[object], lonely: list[tuple[int, Part]]) -> _Edits:
    removed: dict[int, list[Part]] = {}
    for index, part in lonely:
        removed.setdefault(index, []).append(part)
    edits = _Edits(instead={index: without(messages[index], removed[index]) for index in removed})
    for index in sorted(removed):
        if edits.drops(index) and any(part.is_call for part in removed[index]):
            _drop_thoughts_before(messages, index, edits)
    return edits


def _drop_thoughts_before(messages: Sequence[object], index: int, edits: _Edits) -> None:
    """Drop the messages of mere reasoning that led to the dropped call at index, and to no other.

    The Responses API refuses a reasoning item without the item that followed it.
    """
    after = index + 1
    while edits.drops(after):
        after += 1
    if after < len(messages) and is_from_model(messages[after]):
        return
    before = index - 1
    while before >= 0 and (edits.drops(before) or only_thinks(messages[before])):
        edits.instead[before] = None
        before -= 1


def _answered(messages: Sequence[object], waiting: list[tuple[int, Part]]) -> _Edits:
    edits = _Edits()
    replies: dict[int, list[object]] = {}
    blocks: dict[int, list[tuple[int, object]]] = {}
    for index, call in waiting:
        if call.field != "content":
            answer = interrupted_message(messages[index], call)
            edits.before.setdefault(_after_results(messages, index, call), []).append(answer)
        elif call.kind != "tool_use":
            blocks.setdefault(index, []).append((call.at + 1, interrupted_block(call)))
        else:
            # All results of parallel calls have to stand in the one user message after the reply.
            end = _end_of_reply(messages, index)
            if end < len(messages) and (place := _after_result_blocks(messages[end])):
                blocks.setdefault(end, []).append((place, interrupted_block(call)))
            else:
                replies.setdefault(end, []).append(interrupted_block(call))
    for end, content in replies.items():
        edits.before.setdefault(end, []).append({"role": "user", "content": content})
    for index, inserted in blocks.items():
        edits.instead[index] = _with_blocks(messages[index], inserted)
    return edits


def _after_results(messages: Sequence[object], index: int, call: Part) -> int:
    """Where a result that is a message goes: after the call's, and its siblings' results."""
    index += 1
    if call.field == "tool_calls":
        while index < len(messages) and any(part.kind == "tool" for part in parts(messages[index])):
            index += 1
    return index


def _end_of_reply(messages: Sequence[object], index: int) -> int:
    """Where the user message with the results of a ``tool_use`` stands, or has to.

    A reply that came as several messages is one to the API, which joins them.
    """
    index += 1
    while (
        index < len(messages)
        and is_from_model(messages[index])
        and all(part.field == "content" for part in parts(messages[index]))
    ):
        index += 1
    return index


def _after_result_blocks(message: object) -> int:
    """The place behind the last result block in a message's content; 0 when there is none."""
    places = [part.at + 1 for part in parts(message) if part.kind == "tool_result"]
    return max(places, default=0)


def _with_blocks(message: object, inserted: list[tuple[int, object]]) -> object:
    """The message with blocks put into its content, each before the block at its place."""
    assert isinstance(message, dict), "only a message with content has a place in it"
    content: list[object] = []
    for at, block in enumerate([*message["content"], None]):
        content.extend(new for place, new in inserted if place == at)
        content.append(block)
    return {**message, "content": content[:-1]}
