"""Objects can be read from the moment they are staged, by whoever staged them too."""

from __future__ import annotations

import pytest

from snapstore import ObjectMissing, RefMoved, Store
from snapstore.engine import Update
from snapstore.objects import Stage

CONTENTS = [b"small", b"large " * 50_000]


@pytest.mark.parametrize("content", CONTENTS, ids=["one object", "chunked"])
def test_a_staged_object_can_be_read_until_it_is_dropped(store: Store, content: bytes) -> None:
    with Stage(store.objects) as stage:
        content_id = stage.put_content(content)
        assert store.objects.content(content_id) == content
        assert not store.engine.contains(content_id)
    with pytest.raises(ObjectMissing):
        store.objects.content(content_id)


@pytest.mark.parametrize("content", CONTENTS, ids=["one object", "chunked"])
def test_what_two_stages_hold_stays_until_both_are_done(store: Store, content: bytes) -> None:
    one, other = Stage(store.objects), Stage(store.objects)
    content_id = one.put_content(content)
    assert other.put_content(content) == content_id
    one.drop()
    assert store.objects.content(content_id) == content
    other.commit()
    other.drop()
    assert store.objects.content(content_id) == content


def test_a_refused_commit_can_be_tried_with_another_update(store: Store) -> None:
    taken = Update("sessions/s", bytes(32), None, "save", 0)
    store.engine.commit([], taken)
    with Stage(store.objects) as stage:
        content_id = stage.put_content(CONTENTS[1])
        with pytest.raises(RefMoved):
            stage.commit(taken)
        assert store.objects.content(content_id) == CONTENTS[1]
        assert not store.engine.contains(content_id)
        stage.commit(taken._replace(ref="sessions/other"))
        assert store.engine.contains(content_id)
    assert store.objects.content(content_id) == CONTENTS[1]


def test_a_stage_is_empty_after_its_commit(store: Store) -> None:
    with Stage(store.objects) as stage:
        stage.put_content(b"first")
        stage.commit()
        second = stage.put_content(b"second")
        assert not store.engine.contains(second)
        stage.commit()
        assert store.engine.contains(second)
