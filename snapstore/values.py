"""JSON values as bytes and back, exactly: the form messages and scratchpad values are kept in.

The format is msgpack. One value has one encoding: the shortest msgpack form of every length and
integer, every float as float64, object keys in the order given::

    null, true, false    nil, true, false
    integer              fixint, uint 8..64 or int 8..64; outside -2**63 .. 2**64 - 1 the ext type 1
    float                float 64, finite
    string               str, UTF-8; a lone surrogate as the three bytes of "surrogatepass"
    array, object        array, map; map keys are str
    bytes                bin (no JSON: only where the caller allows it)

    ext type 1           two's complement, big endian, in the fewest bytes that hold the sign:
                         2**64 is c7 09 01 | 01 00 00 00 00 00 00 00 00

Each direction has two ways that give the same result. The short one leaves the work to msgpack's C
code and serves nearly every message. Where that code has no answer (nesting beyond its stack, lone
surrogates, bytes, wide integers) or the value must be refused, the other one goes step by step,
without recursion, and knows the place it has come to.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from msgpack import ExtType, Packer, Unpacker, UnpackException, unpackb

from snapstore.errors import Corrupt, UnsupportedValue

WIDE_INT: Final = 1
"""Ext type of an integer that needs more than 64 bits."""

_WALK_DEPTH: Final = 64
"""Nesting that the short way follows: deep enough for messages, far from Python's own limit."""

_BUFFER: Final = 4096
"""Bytes a packer starts with; it grows by itself."""

_NO_LENGTH: Final = -2
"""A limit that every length exceeds, empty ones too (-1 stands for msgpack's default)."""

_LEAVES: Final = frozenset({str, int, bool, type(None)})
_SCALARS: Final = _LEAVES | {float, bytes}

_MAPS: Final = frozenset({*range(0x80, 0x90), 0xDE, 0xDF})
_ARRAYS: Final = frozenset({*range(0x90, 0xA0), 0xDC, 0xDD})
_STRINGS: Final = frozenset({*range(0xA0, 0xC0), 0xD9, 0xDA, 0xDB})
_FLOAT32: Final = 0xCA
_FLOAT64: Final = 0xCB

_ODD_FLOAT: Final = re.compile(rb"[\xca\xcb][\x7f\xff]")
"""How a NaN, an infinity and any float beyond 1e303 begin; UTF-8 never holds these two bytes."""


def encode(value: object, *, path: str = "value", allow_bytes: bool = False) -> bytes:
    """The bytes that stand for a JSON value.

    Subclasses of dict, list, str, int and float are written as their base type. ``path`` is how the
    caller calls the value, for the error.

    Raises UnsupportedValue with the exact place (``messages[3].content[0].input.when``) for what is
    not JSON: NaN and infinities, tuples, sets, other objects, keys that are no str, a value that
    contains itself, and bytes unless ``allow_bytes``.
    """
    try:
        if _is_plain((value,), _WALK_DEPTH):
            return _pack(value)
    except (ValueError, RecursionError):
        pass
    return _encode_stepwise(value, path, allow_bytes)


def encode_json(value: object, *, path: str = "value") -> bytes:
    """What ``encode`` gives, for a value that ``json.loads`` has just made.

    It is trusted to be JSON but for NaN and infinities, which ``json.loads`` accepts; these raise
    UnsupportedValue.
    """
    try:
        packed = _pack(value)
    except (ValueError, TypeError):
        return _encode_stepwise(value, path, allow_bytes=False)
    return packed if _is_finite(value, packed) else _encode_stepwise(value, path, allow_bytes=False)


def decode(data: bytes | memoryview) -> Any:
    """The value, in plain dicts, lists and scalars, that ``encode`` turned into these bytes.

    What it returns, ``encode`` accepts. Raises Corrupt for bytes that are no single value of this
    format. It does not look whether every length and integer has its shortest form: bytes whose id
    was verified are as their writer made them.
    """
    if type(data) is not bytes:
        data = bytes(data)
    try:
        # The limits turn away all that is not JSON of 64 bits, but for NaN and infinities. Of the
        # memory that an array header claims, msgpack (1.2.4) sets aside 80 KB at most beforehand.
        value = unpackb(
            data,
            unicode_errors="surrogatepass",
            max_bin_len=_NO_LENGTH,
            max_ext_len=_NO_LENGTH,
        )
    except ValueError:
        return _decode_stepwise(data)
    return value if _is_finite(value, data) else _decode_stepwise(data)


# --- the short way ---------------------------------------------------------------------------


def _is_plain(members: Iterable[Any], depth: int) -> bool:
    """Whether the members are JSON of exact types and little depth; False settles nothing."""
    for member in members:
        kind = type(member)
        if kind in _LEAVES:
            continue
        if kind is dict:
            for key in member:
                if type(key) is not str:
                    return False
            if not depth or not _is_plain(member.values(), depth - 1):
                return False
        elif kind is list:
            if not depth or not _is_plain(member, depth - 1):
                return False
        elif kind is not float or not isfinite(member):
            return False
    return True


def _pack(value: object) -> bytes:
    # A packer is not safe to share between threads and keeps the largest buffer it ever needed;
    # a new one costs a sixth of a microsecond.
    packed: bytes = Packer(default=pack_wide, strict_types=True, buf_size=_BUFFER).pack(value)
    return packed


def pack_wide(value: object) -> ExtType:
    """msgpack's hook for what it cannot pack, of which wide integers are allowed."""
    if type(value) is int:
        return ExtType(WIDE_INT, _wide_bytes(value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def _wide_bytes(number: int) -> bytes:
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _is_finite(value: object, packed: bytes) -> bool:
    """Whether the value, packed here, is free of NaN and infinities; False settles nothing."""
    # Looking for one byte costs 50 ns, the pattern microseconds: most messages hold no float.
    if _FLOAT64 not in packed and _FLOAT32 not in packed:
        return True
    return _ODD_FLOAT.search(packed) is None or _is_plain((value,), _WALK_DEPTH)


# --- encoding step by step -------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """A container that is being written: its members to come, and the one that is at hand."""

    container: object
    members: Iterator[tuple[str | int, Any]]
    step: str | int = 0


def _encode_stepwise(value: Any, path: str, allow_bytes: bool) -> bytes:
    packer = Packer(
        default=pack_wide, strict_types=True, unicode_errors="surrogatepass", buf_size=_BUFFER
    )
    pieces: list[bytes] = []
    trail: list[_Open] = []
    around: set[int] = set()
    try:
        while True:
            if isinstance(value, (dict, list)):
                if id(value) in around:
                    raise ValueError("the value contains itself")
                header, members = _open(packer, value)
                pieces.append(header)
                around.add(id(value))
                trail.append(_Open(value, members))
            else:
                pieces.append(packer.pack(_base_scalar(value, allow_bytes)))
            while trail:
                member = next(trail[-1].members, None)
                if member is not None:
                    break
                around.remove(id(trail.pop().container))
            else:
                return b"".join(pieces)
            step, value = member
            trail[-1].step = step
            if isinstance(step, str):
                pieces.append(packer.pack(step))
    except ValueError as refusal:
        place = path + "".join(_step_text(opened.step) for opened in trail)
        raise UnsupportedValue(place, str(refusal)) from None


def _open(
    packer: Packer, container: dict[Any, Any] | list[Any]
) -> tuple[bytes, Iterator[tuple[str | int, Any]]]:
    """The header of a container and its members, each under its key or index."""
    if isinstance(container, list):
        values = list(container)
        return packer.pack_array_header(len(values)), iter(enumerate(values))
    members = list(container.items())
    for key, _ in members:
        if not isinstance(key, str):
            raise ValueError(f"the key {reprlib.repr(key)} is not a str")
    return packer.pack_map_header(len(members)), ((str.__str__(k), v) for k, v in members)


def _base_scalar(value: object, allow_bytes: bool) -> str | int | float | bytes | None:
    """The scalar as its base type; ValueError with the reason if it is not to be stored."""
    if value is None or isinstance(value, bool):
        return value
    # The slots of the base types: str() of an enum member, say, gives its name.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        if isfinite(value):
            return float.__float__(value)
        raise ValueError(f"{float.__float__(value)} is not JSON")
    if isinstance(value, bytes):
        if allow_bytes:
            return bytes(value)
        raise ValueError("bytes are allowed in the scratchpad and in metadata only")
    if isinstance(value, tuple):
        raise ValueError("a tuple is not JSON and would come back as a list: make it one")
    raise ValueError(f"{type(value).__name__} is not JSON")


def _step_text(step: str | int) -> str:
    """One step of a path: ``[3]``, ``.name`` or ``["odd key"]``."""
    if isinstance(step, int):
        return f"[{step}]"
    if step.isidentifier():
        return f".{step}"
    return f"[{json.dumps(step, ensure_ascii=not step.isprintable())}]"


# --- decoding step by step -------------------------------------------------------------------


def _decode_stepwise(data: bytes) -> Any:
    unpacker = Unpacker(ext_hook=unpack_wide, unicode_errors="surrogatepass", max_buffer_size=0)
    unpacker.feed(data)
    try:
        value = _read_value(unpacker, data)
        if unpacker.tell() != len(data):
            raise ValueError("there is more after the value")
    except (ValueError, UnpackException) as fault:
        reason = str(fault) or type(fault).__name__
        raise Corrupt(f"not a stored value: {reason}, at byte {unpacker.tell()}") from fault
    return value


def _read_value(unpacker: Unpacker, data: bytes) -> Any:
    """The next value. What is set aside for a container grows with its members, not its claims."""
    root: list[Any] = []
    trail: list[tuple[Any, Iterator[int]]] = [(root, iter(range(1)))]
    while trail:
        parent, places = trail[-1]
        if next(places, None) is None:
            trail.pop()
            continue
        if type(parent) is dict:
            key = _read_key(unpacker, data)
            node, size = _read_node(unpacker, data)
            parent[key] = node
        else:
            node, size = _read_node(unpacker, data)
            parent.append(node)
        if size:
            trail.append((node, iter(range(size))))
    return root[0]


def _read_node(unpacker: Unpacker, data: bytes) -> tuple[Any, int]:
    """A scalar, or an empty container and the number of members that follow."""
    form = _form(unpacker, data)
    if form in _MAPS:
        return {}, unpacker.read_map_header()
    if form in _ARRAYS:
        return [], unpacker.read_array_header()
    scalar = unpacker.unpack()
    if type(scalar) not in _SCALARS:
        raise ValueError(f"{type(scalar).__name__} is not JSON")
    if type(scalar) is float and not isfinite(scalar):
        raise ValueError(f"{scalar} is not JSON")
    return scalar, 0


def _read_key(unpacker: Unpacker, data: bytes) -> str:
    # Looked at before it is unpacked: a container in its place could claim any amount of memory.
    if _form(unpacker, data) not in _STRINGS:
        raise ValueError("a key that is not a str")
    key: str = unpacker.unpack()
    return key


def _form(unpacker: Unpacker, data: bytes) -> int:
    """The byte that says what comes next."""
    at: int = unpacker.tell()
    if at >= len(data):
        raise ValueError("it ends too early")
    return data[at]


def unpack_wide(code: int, data: bytes) -> int:
    """msgpack's hook for ext types."""
    if code != WIDE_INT:
        raise ValueError(f"unknown ext type {code}")
    number = int.from_bytes(data, "big", signed=True)
    if -(2**63) <= number < 2**64 or _wide_bytes(number) != data:
        raise ValueError("an integer that is not in its shortest form")
    return number
