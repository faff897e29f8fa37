"""What every engine does, whatever it keeps its objects in."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from given import NOWHERE, chunked, content, head, holds_turn, node, save, snapshot, turn
from homes import Home, Opened

from snapstore.engine import Kind, Update
from snapstore.errors import ObjectMissing, RefMoved, SnapstoreError


class TestObjects:
    def test_are_read_as_they_were_committed(self, engine: Opened) -> None:
        parts = [content(b"part one, "), content(b"part two")]
        committed = [*parts, chunked(*parts), node(b"node"), snapshot(b"snapshot")]
        engine.commit(committed)
        assert [engine.read(o.id) for o in committed] == committed

    def test_of_any_size_come_back(self, engine: Opened) -> None:
        noise = random.Random(7).randbytes(300_000)
        committed = [content(noise[:n]) for n in (0, 1, 127, 128, 65_535, 65_536, 65_537, 300_000)]
        committed.append(content(b"the same thing over and over. " * 10_000))
        engine.commit(committed)
        assert engine.read_many([o.id for o in committed]) == committed

    def test_that_were_never_committed_are_missing(self, engine: Opened) -> None:
        engine.commit([content(b"something else")])
        assert not engine.contains(NOWHERE)
        with pytest.raises(ObjectMissing) as missing:
            engine.read(NOWHERE)
        assert missing.value.id == NOWHERE

    def test_are_missing_from_an_engine_with_nothing_in_it(self, engine: Opened) -> None:
        assert not engine.contains(NOWHERE)
        with pytest.raises(ObjectMissing):
            engine.read(NOWHERE)

    def test_committed_twice_are_kept_once(self, engine: Opened) -> None:
        same = content(b"said twice")
        engine.commit([same, same])
        engine.commit([same])
        assert engine.read(same.id) == same
        assert list(engine.ids(same.id, 64)) == [(same.id, Kind.CONTENT)]
        assert engine.stats().objects == 1

    def test_are_read_together_in_the_order_asked_for(self, engine: Opened) -> None:
        committed = [content(b"%d" % i) for i in range(20)]
        for i in range(0, 20, 2):
            engine.commit(committed[i : i + 2])
        wanted = [committed[i] for i in (3, 17, 3, 0, 19)]
        assert engine.read_many([o.id for o in wanted]) == wanted
        assert engine.read_many([]) == []

    def test_read_together_fail_when_one_is_missing(self, engine: Opened) -> None:
        there = content(b"there")
        engine.commit([there])
        with pytest.raises(ObjectMissing) as missing:
            engine.read_many([there.id, NOWHERE])
        assert missing.value.id == NOWHERE

    def test_are_found_by_the_first_digits_of_their_ids(self, engine: Opened) -> None:
        committed = [snapshot(b"%d" % i) for i in range(300)]
        for o in committed:
            engine.commit([o])
        for digits in (0, 1, 2, 3, 5, 16, 17, 64):
            wanted = committed[0].id
            fits = [o for o in committed if o.id.hex()[:digits] == wanted.hex()[:digits]]
            found = list(engine.ids(wanted, digits))
            assert found == sorted((o.id, o.kind) for o in fits)

    def test_are_counted(self, engine: Opened) -> None:
        assert engine.stats().objects == 0
        engine.commit([content(b"a"), node(b"b"), snapshot(b"c")])
        stats = engine.stats()
        assert stats.objects == 3
        assert stats.bytes >= 3


class TestCommit:
    def test_moves_a_ref_and_says_how(self, engine: Opened) -> None:
        snap = snapshot(b"first")
        move = engine.commit([snap], save("sessions/a", snap.id, None, info={"from": "here"}))
        assert move is not None
        assert (move.ref, move.gen, move.new, move.op) == ("sessions/a", 1, snap.id, "save")
        assert (move.base, move.redo, move.born) == (0, 0, 1)
        assert move.info == {"from": "here"}
        assert engine.tip("sessions/a") == move

    def test_without_an_update_moves_nothing(self, engine: Opened) -> None:
        assert engine.commit([content(b"loose")]) is None
        assert list(engine.reflog()) == []

    def test_without_objects_moves_the_ref(self, engine: Opened) -> None:
        first = turn(engine, "a", "one")
        engine.commit([], save("b", first.new, None))
        assert head(engine, "b") == first.new

    def test_with_nothing_to_do_is_a_success(self, engine: Opened) -> None:
        assert engine.commit([]) is None

    def test_of_a_moved_ref_changes_nothing(self, engine: Opened) -> None:
        first, second = turn(engine, "a", "one"), turn(engine, "a", "two")
        lost = [content(b"lost message"), snapshot(b"lost snapshot")]
        with pytest.raises(RefMoved) as moved:
            engine.commit(lost, save("a", lost[1].id, first.new))
        assert (moved.value.name, moved.value.expected) == ("a", first.new)
        assert moved.value.actual == second.new
        assert not any(engine.contains(o.id) for o in lost)
        assert list(engine.reflog()) == [second, first]

    def test_that_expects_no_ref_fails_where_there_is_one(self, engine: Opened) -> None:
        turn(engine, "a", "one")
        with pytest.raises(RefMoved):
            engine.commit([], save("a", NOWHERE, None))

    def test_that_expects_a_ref_fails_where_there_is_none(self, engine: Opened) -> None:
        lost = content(b"lost")
        with pytest.raises(RefMoved) as moved:
            engine.commit([lost], save("a", NOWHERE, lost.id))
        assert moved.value.actual is None
        assert not engine.contains(lost.id)

    def test_at_a_move_succeeds_only_right_after_that_move(self, engine: Opened) -> None:
        first = turn(engine, "a", "one")
        away = turn(engine, "a", "two")
        engine.commit([], save("a", first.new, away.new))
        back = head(engine, "a")
        assert back == first.new
        with pytest.raises(RefMoved):  # the head is the expected one, but the ref was elsewhere
            engine.commit([], save("a", away.new, back, at=1))
        move = engine.commit([], save("a", away.new, back, at=3))
        assert move is not None and move.gen == 4

    def test_at_move_zero_means_that_the_ref_never_was(self, engine: Opened) -> None:
        move = engine.commit([], save("a", NOWHERE, None, at=0))
        assert move is not None
        engine.commit([], save("a", None, NOWHERE))
        with pytest.raises(RefMoved):
            engine.commit([], save("a", NOWHERE, None, at=0))

    def test_keeps_what_undo_and_redo_need(self, engine: Opened) -> None:
        one, two = turn(engine, "a", "one"), turn(engine, "a", "two")
        undo = Update("a", one.new, two.new, "undo", 5, at=2, base=0, redo=2, born=1)
        move = engine.commit([], undo)
        assert move == engine.tip("a") == engine.move("a", 3)
        assert move is not None
        assert (move.op, move.time, move.base, move.redo, move.born) == ("undo", 5, 0, 2, 1)

    def test_takes_names_and_facts_of_any_script(self, engine: Opened) -> None:
        facts = {"größe": 2**63, "n": -1, "liste": [1, "zwei", None, True, 1.5], "bytes": b"\0\xff"}
        for name in ("sessions/größe/日本", "with\udc80surrogate", "x" * 500):
            move = engine.commit([], save(name, NOWHERE, None, info=facts))
            assert move is not None and move == engine.tip(name)
            assert move.info == facts


class TestRefs:
    def test_that_never_were_have_no_tip_and_no_moves(self, engine: Opened) -> None:
        assert engine.tip("a") is None
        assert engine.move("a", 1) is None
        assert list(engine.tips()) == []
        assert list(engine.reflog()) == []

    def test_are_listed_by_name_and_by_prefix(self, engine: Opened) -> None:
        moves = {name: turn(engine, name, name) for name in ("s/b", "t/a", "s/a", "s")}
        assert list(engine.tips()) == [moves[name] for name in ("s", "s/a", "s/b", "t/a")]
        assert list(engine.tips("s/")) == [moves["s/a"], moves["s/b"]]
        assert list(engine.tips("none")) == []

    def test_keep_every_move(self, engine: Opened) -> None:
        moves = [turn(engine, "a", f"turn {i}") for i in range(60)]
        assert [m.gen for m in moves] == list(range(1, 61))
        assert [engine.move("a", m.gen) for m in moves] == moves
        assert engine.move("a", 0) is None
        assert engine.move("a", 61) is None

    def test_show_all_their_moves_newest_first(self, engine: Opened) -> None:
        moves = [turn(engine, f"r{i % 3}", f"turn {i}") for i in range(60)]
        assert list(engine.reflog()) == moves[::-1]

    def test_that_were_deleted_stay_listed_and_count_on(self, engine: Opened) -> None:
        one = turn(engine, "a", "one")
        gone = engine.commit([], save("a", None, one.new))
        assert gone is not None
        assert engine.tip("a") == gone and gone.new is None and gone.gen == 2
        assert list(engine.tips()) == [gone]
        again = turn(engine, "a", "again")
        assert (again.gen, again.born, again.base) == (3, 3, 2)
        assert turn(engine, "a", "more").born == 3

    def test_come_in_hundreds(self, engine: Opened) -> None:
        names = [f"sessions/{i:03}" for i in range(400)]
        moves = {name: turn(engine, name, name) for name in random.Random(1).sample(names, 400)}
        assert list(engine.tips("sessions/")) == [moves[name] for name in names]
        assert [engine.tip(name) for name in names[::50]] == [moves[name] for name in names[::50]]
        for name in names[::40]:
            moves[name] = turn(engine, name, name + " again")
        assert list(engine.tips()) == [moves[name] for name in names]

    def test_can_be_moved_while_they_are_listed(self, engine: Opened) -> None:
        for i in range(10):
            turn(engine, f"r{i}", f"turn {i}")
        seen = []
        for move in engine.tips():
            seen.append(move.ref)
            turn(engine, "zzz", f"while at {move.ref}")
        assert seen == [f"r{i}" for i in range(10)]

    def test_can_be_moved_while_their_moves_are_read(self, engine: Opened) -> None:
        moves = [turn(engine, "a", f"turn {i}") for i in range(10)]
        seen = []
        for move in engine.reflog():
            seen.append(move)
            turn(engine, "a", f"while at {move.gen}")
        assert seen == moves[::-1]


class TestHandles:
    def test_see_what_an_earlier_one_committed(self, lasting: Home) -> None:
        before = lasting.open()
        moves = [turn(before, f"r{i % 4}", f"turn {i}") for i in range(80)]
        after = lasting.open()
        assert list(after.reflog()) == moves[::-1]
        assert list(after.tips()) == list(before.tips())
        assert all(holds_turn(after, f"turn {i}") for i in range(80))
        assert after.stats().objects == before.stats().objects

    def test_see_what_another_one_commits(self, lasting: Home) -> None:
        one, other = lasting.open(), lasting.open()
        for i in range(60):
            move = turn((one, other)[i % 2], "a", f"turn {i}")
            assert (other, one)[i % 2].tip("a") == move
            assert holds_turn((other, one)[i % 2], f"turn {i}")

    def test_refuse_what_another_one_overtook(self, lasting: Home) -> None:
        one, other = lasting.open(), lasting.open()
        first = turn(one, "a", "one")
        second = turn(other, "a", "two")
        with pytest.raises(RefMoved) as moved:
            one.commit([], save("a", NOWHERE, first.new))
        assert moved.value.actual == second.new

    def test_closed_take_nothing_more(self, home: Home) -> None:
        engine = home.open()
        turn(engine, "a", "one")
        engine.close()
        engine.close()
        uses: list[Callable[[], object]] = [
            lambda: engine.read(NOWHERE),
            lambda: engine.read_many([NOWHERE]),
            lambda: engine.contains(NOWHERE),
            lambda: list(engine.ids(b"", 0)),
            lambda: engine.commit([]),
            lambda: engine.tip("a"),
            lambda: engine.move("a", 1),
            lambda: list(engine.tips()),
            lambda: list(engine.reflog()),
            lambda: list(engine.verify()),
            lambda: engine.stats(),
            lambda: engine.create(),
        ]
        for use in uses:
            with pytest.raises(SnapstoreError, match="closed"):
                use()

    def test_verify_what_is_whole(self, home: Home) -> None:
        engine = home.open()
        for i in range(30):
            turn(engine, "a", f"turn {i}")
        seen: list[tuple[int, int]] = []
        assert list(engine.verify(lambda done, total: seen.append((done, total)))) == []
        assert all(0 <= done <= total for done, total in seen)
        assert seen == sorted(seen)
