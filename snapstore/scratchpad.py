"""The scratchpad: a small key/value store that lives outside the history and survives trimming."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from snapstore import arguments, values
from snapstore.errors import UnsupportedValue
from snapstore.frozen import freeze
from snapstore.ids import object_id
from snapstore.model.maps import INLINE, Inline, Link, Value
from snapstore.objects import Objects, Stage


def key_bytes(key: str) -> bytes:
    """A key as it is stored. Lone surrogates pass."""
    return key.encode("utf-8", "surrogatepass")


def key_text(key: bytes) -> str:
    """A stored key as text."""
    return key.decode("utf-8", "surrogatepass")


def stored_value(objects: Objects, value: Value) -> Any:
    """The read-only value of a map entry."""
    encoded = value.content if isinstance(value, Inline) else objects.content(value.id)
    return freeze(values.decode(encoded))


class SavedScratchpad(Mapping[str, Any]):
    """The scratchpad of a snapshot, sorted by key. Read only."""

    def __init__(self, objects: Objects, root: bytes | None) -> None:
        self._objects = objects
        self._root = root
        self._changes: dict[bytes, bytes | None] = {}

    def __getitem__(self, key: str) -> Any:
        if not isinstance(key, str):
            raise KeyError(key)
        name = key_bytes(key)
        if name in self._changes:
            encoded = self._changes[name]
            if encoded is None:
                raise KeyError(key)
            return freeze(values.decode(encoded))
        value = self._objects.maps.get(self._root, name)
        if value is None:
            raise KeyError(key)
        return stored_value(self._objects, value)

    def __iter__(self) -> Iterator[str]:
        return iter([key_text(name) for name in self._names()])

    def _names(self) -> list[bytes]:
        names = {name for name, _ in self._objects.maps.items(self._root)}
        for name, encoded in self._changes.items():
            (names.discard if encoded is None else names.add)(name)
        return sorted(names)

    def __len__(self) -> int:
        if not self._changes:
            return self._objects.maps.count(self._root)
        return len(self._names())

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        name = key_bytes(key)
        if name in self._changes:
            return self._changes[name] is not None
        return self._objects.maps.get(self._root, name) is not None

    def __eq__(self, other: object) -> bool:
        return dict(self) == dict(other) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} keys>"

    def summary(self, max_chars: int = 2000) -> str:
        """The scratchpad as text to inject into a prompt: a line a key, at most max_chars.

        Long values are cut and say so; when there is no room for every key, the last line counts
        those left out. Empty when there is nothing.
        """
        lines: list[str] = []
        room = max(0, arguments.whole(max_chars, "max_chars"))
        keys = list(self)
        for n, key in enumerate(keys):
            left = len(keys) - n
            more = f"… and {left} more key{'s' if left > 1 else ''}"
            line = f"{key}: {_shown(self[key])}"
            fair = max(40, room // left)
            line = line if len(line) <= fair else line[: fair - 1] + "…"
            reserve = len(more) + 1 if left > 1 else 0
            if len(line) + reserve > room:
                if len(more) <= room:
                    lines.append(more)
                break
            lines.append(line)
            room -= len(line) + 1
        return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value.replace("\n", "\n  ")
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    try:
        return json.dumps(value, ensure_ascii=False, default=lambda b: f"({len(b)} bytes)")
    except RecursionError:
        return "(nested too deeply to show)"


class Scratchpad(SavedScratchpad, MutableMapping[str, Any]):
    """The scratchpad of a session as the next save will keep it."""

    def __setitem__(self, key: str, value: Any) -> None:
        name, encoded = _encoded(key, value)
        self._changes[name] = encoded

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._changes[key_bytes(key)] = None

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, after setting it to default if it is not there. Read only."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove every key."""
        self.assign({})

    def assign(self, entries: Mapping[str, Any]) -> None:
        """Hold these entries and no others. When one is refused nothing changes."""
        if not isinstance(entries, Mapping):
            raise UnsupportedValue("scratchpad", f"is a {type(entries).__name__}, not a dict")
        encoded = dict(_encoded(key, value) for key, value in entries.items())
        gone = dict.fromkeys([*self._changes, *self._names()])
        self._changes = {**gone, **encoded}

    # --- for the session that owns it -----------------------------------------------------------

    def edits(self) -> tuple[dict[str, Any], list[str]]:
        """The keys that were set since it was saved, with their values, and those removed."""
        decode = values.decode
        put = {key_text(k): decode(v) for k, v in self._changes.items() if v is not None}
        return put, [key_text(k) for k, v in self._changes.items() if v is None]

    @property
    def changed(self) -> bool:
        """Whether it differs from what is saved."""
        get = self._objects.maps.get
        return any(
            get(self._root, name) != _value(encoded) for name, encoded in self._changes.items()
        )

    def stage(self, stage: Stage) -> bytes | None:
        """Stage what is new; the root of the map as it is now."""
        if not self._changes:
            return self._root
        changes: dict[bytes, Value | None] = {}
        for name, encoded in self._changes.items():
            value = changes[name] = _value(encoded)
            if encoded is not None and isinstance(value, Link):
                stage.put_content(encoded, value.id)
        return self._objects.maps.update(self._root, changes, stage.put_node)


def _encoded(key: str, value: Any) -> tuple[bytes, bytes]:
    if not isinstance(key, str):
        raise UnsupportedValue(f"scratchpad[{key!r}]", "keys are strings")
    return key_bytes(key), values.encode(value, path=f"scratchpad[{key!r}]", allow_bytes=True)


def _value(encoded: bytes | None) -> Value | None:
    """An encoded value as the map keeps it."""
    if encoded is None:
        return None
    return Inline(encoded) if len(encoded) <= INLINE else Link(object_id(encoded))
