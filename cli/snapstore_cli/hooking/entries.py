"""Our entries among the hooks in a harness's settings: put in, taken out, looked for.

Settings are of somebody else. An entry is ours when it runs ``snapstore hook``; all others stay as
they are and where they are.
"""

from __future__ import annotations

import copy
import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from snapstore import InvalidInput
from snapstore_cli.hooking.harnesses import Call

_NAMES = frozenset({"snapstore", "snapstore.exe"})


def is_ours(entry: Any) -> bool:
    """Whether this is an entry that runs ``snapstore hook``."""
    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that is not closed
        return False
    return len(words) > 1 and PurePath(words[0]).name in _NAMES and words[1] == "hook"


def installed(settings: dict[str, Any], calls: Mapping[str, Call], command: str) -> dict[str, Any]:
    """The settings with our entries, each as it is to be now, and once.

    Raises InvalidInput where the settings are not of the form that they must have.
    """
    wanted = {event: call.entry(command) for event, call in calls.items()}
    there = {event: _ours(groups) for event, groups in _events(settings)}
    if {event: groups for event, groups in there.items() if groups} == {
        event: [entry] for event, entry in wanted.items()
    }:
        return settings
    new = removed(settings)
    hooks = new.setdefault("hooks", {})
    for event, entry in wanted.items():
        hooks.setdefault(event, []).append(entry)
    return new


def removed(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without our entries and without what is empty for lack of them.

    Raises InvalidInput as ``installed`` does.
    """
    new = copy.deepcopy(settings)
    for event, groups in list(_events(new)):
        if not _ours(groups):
            continue
        for group in groups:
            if _runs(group):
                group["hooks"] = [entry for entry in group["hooks"] if not is_ours(entry)]
        before = _events_of(settings)[event]
        groups[:] = [
            group for group, old in zip(groups, before, strict=True) if group == old or _runs(group)
        ]
        if not groups:
            del new["hooks"][event]
    if "hooks" in new and not new["hooks"] and settings["hooks"]:
        del new["hooks"]
    return new


def commands(settings: dict[str, Any]) -> dict[str, list[str]]:
    """The commands of our entries, by event. Raises InvalidInput as ``installed`` does."""
    found = {
        event: [run["command"] for group in _ours(groups) for run in group["hooks"] if is_ours(run)]
        for event, groups in _events(settings)
    }
    return {event: named for event, named in found.items() if named}


def _events_of(settings: dict[str, Any]) -> dict[str, Any]:
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise _odd("hooks", "an object")
    return hooks


def _events(settings: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    for event, groups in _events_of(settings).items():
        if not isinstance(groups, list):
            raise _odd(f"hooks.{event}", "a list")
        yield event, groups


def _runs(group: Any) -> list[Any]:
    entries = group.get("hooks") if isinstance(group, dict) else None
    return entries if isinstance(entries, list) else []


def _ours(groups: list[Any]) -> list[Any]:
    return [group for group in groups if any(map(is_ours, _runs(group)))]


def _odd(place: str, expected: str) -> InvalidInput:
    return InvalidInput(
        f"{place} in the settings is not {expected}",
        hint="nothing was changed; mend the file, then try again",
    )
