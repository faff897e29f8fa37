"""A stored value reads like the dict or list it is, and refuses every change at any depth."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from operator import add, or_
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.errors import ReadOnlyValue
from snapstore.frozen import FrozenDict, FrozenList, freeze, thaw

any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)


def message() -> dict[str, Any]:
    return {"role": "user", "content": [{"text": "hi", "tags": ["a"]}, 2, 1]}


def all_plain(value: object) -> bool:
    if isinstance(value, dict):
        return type(value) is dict and all(map(all_plain, value.values()))
    if isinstance(value, list):
        return type(value) is list and all(map(all_plain, value))
    return True


# --- reading ---------------------------------------------------------------------------------


@settings(deadline=None)
@given(any_json)
def test_a_frozen_value_prints_compares_and_dumps_like_the_plain_one(value: Any) -> None:
    for frozen in (freeze(value), freeze(thaw(freeze(value)))):
        assert frozen == value
        assert value == frozen
        assert repr(frozen) == repr(value)
        assert json.dumps(frozen) == json.dumps(value)
        assert json.dumps(frozen, indent=1, sort_keys=True) == json.dumps(
            value, indent=1, sort_keys=True
        )


def test_frozen_containers_are_dicts_and_lists() -> None:
    frozen = freeze(message())
    assert isinstance(frozen, dict)
    assert isinstance(frozen["content"], list)
    assert frozen != {"role": "user"}
    assert freeze(frozen) is frozen


@pytest.mark.parametrize("scalar", [None, True, 1, 1.5, "text", b"bytes"])
def test_scalars_are_given_back_as_they_are(scalar: object) -> None:
    assert freeze(scalar) is scalar
    assert thaw(scalar) is scalar


def test_reading_works_as_on_a_dict() -> None:
    frozen = freeze(message())
    assert list(frozen) == list(frozen.keys()) == ["role", "content"]
    assert frozen.get("role") == "user"
    assert frozen.get("none") is None
    default: dict[str, Any] = {}
    assert frozen.get("none", default) is default
    assert "role" in frozen
    assert len(frozen) == 2
    assert ("role", "user") in frozen.items()
    assert list(reversed(frozen.values())) == [message()["content"], "user"]
    with pytest.raises(KeyError):
        frozen["none"]


def test_reading_works_as_on_a_list() -> None:
    frozen = freeze([3, 1, [2]])
    assert frozen[-1] == [2]
    assert frozen.index(1) == 1
    assert frozen.count(3) == 1
    assert [2] in frozen
    assert frozen < [4]
    assert sorted(frozen[:2]) == sorted(freeze([3, 1])) == [1, 3]
    with pytest.raises(IndexError):
        frozen[3]


def test_a_member_is_the_same_object_each_time() -> None:
    frozen = freeze(message())
    assert frozen["content"] is frozen["content"] is dict(frozen.items())["content"]


def test_freezing_and_reading_leave_the_source_as_it_was() -> None:
    source = message()
    frozen = freeze(source)
    assert frozen["content"][0]["tags"] == ["a"]
    assert list(frozen.values())[1][0].get("text") == "hi"
    assert all_plain(source)


def test_frozen_containers_cannot_be_hashed() -> None:
    for frozen in (freeze({}), freeze([])):
        with pytest.raises(TypeError):
            hash(frozen)


# --- changing --------------------------------------------------------------------------------


def change_dict_in_place(d: Any) -> None:
    d |= {"k": 1}


def change_list_in_place(values: Any) -> None:
    values += [1]


def repeat_list_in_place(values: Any) -> None:
    values *= 2


DICT_CHANGES: dict[str, Callable[[Any], object]] = {
    "assign": lambda d: d.__setitem__("role", 1),
    "del": lambda d: d.__delitem__("role"),
    "|=": change_dict_in_place,
    "clear": lambda d: d.clear(),
    "pop": lambda d: d.pop("role"),
    "pop with a default": lambda d: d.pop("none", None),
    "popitem": lambda d: d.popitem(),
    "setdefault": lambda d: d.setdefault("role", 1),
    "update": lambda d: d.update(role=1),
}

LIST_CHANGES: dict[str, Callable[[Any], object]] = {
    "assign": lambda v: v.__setitem__(0, 1),
    "assign a slice": lambda v: v.__setitem__(slice(0, 1), []),
    "del": lambda v: v.__delitem__(0),
    "del a slice": lambda v: v.__delitem__(slice(None)),
    "+=": change_list_in_place,
    "*=": repeat_list_in_place,
    "append": lambda v: v.append(1),
    "clear": lambda v: v.clear(),
    "extend": lambda v: v.extend([1]),
    "insert": lambda v: v.insert(0, 1),
    "pop": lambda v: v.pop(),
    "remove": lambda v: v.remove(2),
    "reverse": lambda v: v.reverse(),
    "sort": lambda v: v.sort(key=str),
}


@pytest.mark.parametrize("change", DICT_CHANGES.values(), ids=DICT_CHANGES.keys())
def test_a_dict_refuses_every_change(change: Callable[[Any], object]) -> None:
    frozen = freeze(message())
    with pytest.raises(ReadOnlyValue):
        change(frozen)
    assert frozen == message()


@pytest.mark.parametrize("change", LIST_CHANGES.values(), ids=LIST_CHANGES.keys())
def test_a_list_refuses_every_change(change: Callable[[Any], object]) -> None:
    frozen = freeze(message())["content"]
    with pytest.raises(ReadOnlyValue):
        change(frozen)
    assert frozen == message()["content"]


def test_no_changing_method_of_dict_or_list_was_forgotten() -> None:
    reading = {
        dict: {"copy", "fromkeys", "get", "items", "keys", "values"},
        list: {"copy", "count", "index"},
    }
    for base, frozen in ((dict, FrozenDict), (list, FrozenList)):
        methods = {name for name in vars(base) if not name.startswith("_")} - reading[base]
        changing = methods | ({"__setitem__", "__delitem__", "__iadd__", "__imul__", "__ior__"})
        for name in changing & set(vars(base)):
            assert getattr(frozen, name) is not getattr(base, name), name


def test_the_error_says_how_to_change_a_value() -> None:
    with pytest.raises(ReadOnlyValue, match=r"copy\.deepcopy\(history\[3\]\)"):
        freeze(message())["role"] = "assistant"
    with pytest.raises(ReadOnlyValue, match=r'pad\["files"\] = \[\*pad\["files"\], x\]'):
        freeze([]).append("a.py")


def first(members: Any) -> Any:
    return members[0]


def updated(members: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    plain.update(members)
    return plain


def updated_in_place(members: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    plain |= members
    return plain


def extended(members: Any) -> list[Any]:
    plain: list[Any] = []
    plain.extend(members)
    return plain


def extended_in_place(members: Any) -> list[Any]:
    plain: list[Any] = []
    plain += members
    return plain


def assigned_to_a_slice(members: Any) -> list[Any]:
    plain: list[Any] = [0]
    plain[:1] = members
    return plain


def first_of_pattern(d: Any) -> Any:
    match d:
        case {"content": [head, *_]}:
            return head


WAYS_TO_A_DICT: dict[str, Callable[[Any], Any]] = {
    "d[k]": lambda d: d["content"][0],
    "get": lambda d: d.get("content")[0],
    "items": lambda d: dict(d.items())["content"][0],
    "values": lambda d: list(d.values())[1][0],
    "dict(d)": lambda d: dict(d)["content"][0],
    "{**d}": lambda d: {**d}["content"][0],
    "call with **d": lambda d: (lambda role, content: content)(**d)[0],
    "d.copy": lambda d: d.copy()["content"][0],
    "copy.copy": lambda d: copy.copy(copy.copy(d)["content"])[0],
    "d | plain": lambda d: (d | {"more": 1})["content"][0],
    "plain | d": lambda d: ({"more": 1} | d)["content"][0],
    "plain |= d": lambda d: updated_in_place(d)["content"][0],
    "plain.update(d)": lambda d: updated(d)["content"][0],
    "pattern": first_of_pattern,
    "iterate": lambda d: next(iter(d["content"])),
    "list(v)": lambda d: first(list(d["content"])),
    "tuple(v)": lambda d: first(tuple(d["content"])),
    "[*v]": lambda d: first([*d["content"]]),
    "unpack": lambda d: (lambda head, *_: head)(*d["content"]),
    "slice": lambda d: d["content"][:1][0],
    "reversed": lambda d: list(reversed(d["content"]))[-1],
    "v.copy": lambda d: d["content"].copy()[0],
    "v + plain": lambda d: add(d["content"], [1])[0],
    "plain + v": lambda d: add([], d["content"])[0],
    "v * 2": lambda d: (d["content"] * 2)[3],
    "2 * v": lambda d: (2 * d["content"])[3],
    "plain += v": lambda d: extended_in_place(d["content"])[0],
    "plain.extend(v)": lambda d: extended(d["content"])[0],
    "assign to a slice": lambda d: assigned_to_a_slice(d["content"])[0],
    "max": lambda d: max(d["content"], key=lambda v: isinstance(v, dict)),
}


@pytest.mark.parametrize("reach", WAYS_TO_A_DICT.values(), ids=WAYS_TO_A_DICT.keys())
def test_no_way_of_reading_gives_a_member_that_can_be_changed(reach: Callable[[Any], Any]) -> None:
    frozen = freeze(message())
    inner = reach(frozen)
    assert inner == message()["content"][0]
    with pytest.raises(ReadOnlyValue):
        inner["text"] = "changed"
    with pytest.raises(ReadOnlyValue):
        inner["tags"].append("changed")
    assert frozen == message()


def test_new_containers_made_from_frozen_ones_are_plain_at_the_top() -> None:
    frozen = freeze(message())
    for made in (frozen.copy(), copy.copy(frozen), frozen | {}, {} | frozen):
        made["role"] = "assistant"
        assert type(made) is dict
    values = frozen["content"]
    for made in (
        values.copy(),
        copy.copy(values),
        values[:],
        add(values, []),
        add([], values),
        values * 1,
    ):
        made.append(3)
        assert type(made) is list
    assert frozen == message()


def test_only_lists_and_dicts_are_joined() -> None:
    for left, right in ((freeze([1]), (2,)), ((2,), freeze([1]))):
        with pytest.raises(TypeError):
            add(left, right)
    for left, right in ((freeze({}), [("k", 1)]), ([("k", 1)], freeze({}))):
        with pytest.raises(TypeError):
            or_(left, right)


# --- copies that may be changed --------------------------------------------------------------

COPIES: dict[str, Callable[[Any], Any]] = {
    "thaw": thaw,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "oldest pickle": lambda value: pickle.loads(pickle.dumps(value, 0)),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
@settings(deadline=None, max_examples=30)
@given(any_json)
def test_deep_copies_are_equal_and_plain_throughout(
    copied: Callable[[Any], Any], value: Any
) -> None:
    once_read = freeze(value)
    repr(list(once_read) if isinstance(once_read, (list, dict)) else once_read)
    for frozen in (freeze(value), once_read):
        plain = copied(frozen)
        assert repr(plain) == repr(value)
        assert all_plain(plain)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_a_change_to_a_deep_copy_stays_there(copied: Callable[[Any], Any]) -> None:
    source = message()
    frozen = freeze(source)
    plain = copied(frozen)
    plain["content"][0]["tags"].append("b")
    plain["role"] = "assistant"
    assert frozen == source == message()


def test_deep_lists_are_copied_without_recursion() -> None:
    value: Any = []
    for _ in range(10_000):
        value = [value]
    for plain in (copy.deepcopy(freeze(value)), thaw(freeze(value)), thaw(value)):
        inner = plain
        for _ in range(10_000):
            (inner,) = inner
        assert inner == []
        inner.append("free to change")


def test_deep_dicts_are_copied_without_recursion() -> None:
    value: Any = {}
    for _ in range(10_000):
        value = {"in": value}
    for plain in (copy.deepcopy(freeze(value)), thaw(freeze(value)), thaw(value)):
        inner = plain
        for _ in range(10_000):
            inner = inner["in"]
        assert inner == {}
        inner["free"] = "to change"


def test_deep_values_are_read_to_the_bottom() -> None:
    value: Any = "end"
    for _ in range(100_000):
        value = [value]
    inner = freeze(value)
    while isinstance(inner, list):
        assert type(inner) is FrozenList
        (inner,) = inner
    assert inner == "end"
