"""What frameworks call their threads, as names of sessions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore import InvalidInput, Store
from snapstore.engine import Update
from snapstore.engines.memory import MemoryEngine
from snapstore.ids import object_id
from snapstore.integrations.names import facts, outside_id, session_name
from snapstore.names import valid_name

IDS = st.one_of(
    st.text(), st.text("ab+/-._ 4E1"), st.builds(lambda t: "thread/" + t, st.text(max_size=9)),
    st.builds(lambda t, n: t * n, st.text(min_size=1, max_size=3), st.integers(1, 300)),
    st.text(st.characters(categories=["Cs"]), max_size=3),
)  # fmt: skip


@settings(deadline=None)
@given(IDS)
def test_every_id_leads_to_a_name_and_back(outside: str) -> None:
    name = session_name(outside)
    valid_name(name)
    engine = Store(MemoryEngine()).engine
    head = object_id(b"")
    move = engine.commit(
        [], Update("sessions/" + name, head, None, "save", 0, facts(outside, name))
    )
    assert move is not None
    assert outside_id(engine, move, name) == outside


@settings(deadline=None)
@given(IDS, IDS)
def test_two_ids_never_lead_to_one_name(one: str, other: str) -> None:
    assert (session_name(one) == session_name(other)) == (one == other)


@pytest.mark.parametrize("plain", ["main", "fix-login", "1", "a/b", "1f1ec058-8881-6ac7", "Zoë"])
def test_an_id_that_can_name_a_session_does(plain: str) -> None:
    assert session_name(plain) == plain


@pytest.mark.parametrize("odd", [None, 3, b"x"], ids=repr)
def test_an_id_that_is_no_text_is_refused(odd: Any) -> None:
    with pytest.raises(InvalidInput, match="is text, not"):
        session_name(odd)
