"""snapstore status, stats, verify and gc."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import Shell, plain

from snapstore import Store
from snapstore.engines.log.engine import LogEngine
from snapstore.values import encode


def segment(shell: Shell) -> Path:
    return max((shell.store / "log").glob("*.seg"))


def test_status_of_a_store_without_turns(shell: Shell) -> None:
    told = shell.ok("status", "--json").json
    assert told == {
        "schema": 1,
        "store": str(shell.store),
        "session": "main",
        "turn": 0,
        "head": None,
        "dirty": None,
        "pending_tool_calls": [],
        "failed_pushes": [],
        "interrupted_restores": [],
    }
    assert "none yet" in shell.ok("status").out


def test_status_tells_the_last_move(two_lines: Shell) -> None:
    two_lines.ok("rewind", "a@1")
    assert "rewind of a" in two_lines.ok("status").out


def test_stats_counts_what_sessions_share_once(two_lines: Shell) -> None:
    told = two_lines.ok("stats", "--json").json
    assert (told["sessions"], told["turns"]) == (2, 6)
    assert told.keys() >= {"schema", "objects", "bytes", "logical_bytes", "sessions", "turns"}
    assert "█" in two_lines.ok("stats", columns=80).out
    assert "█" not in two_lines.ok("stats").out


def test_stats_tell_bytes_by_kind_and_by_session(two_lines: Shell) -> None:
    (two_lines.folder / "notes.txt").write_text("a file" * 1000)
    two_lines.ok("save", "-s", "b", "--worktree", ".")
    told = two_lines.ok("stats", "--json").json
    with two_lines.open() as store:
        size = {
            name: sum(map(len, map(encode, store.resolve(name).history))) for name in ("a", "b")
        }
        shared = sum(map(len, map(encode, store.resolve("b@3").history)))
    assert told["by_session"] == size
    assert told["kinds"]["messages"] == size["a"] + size["b"] - shared
    assert 6000 <= told["kinds"]["contents"] < 6100 and told["kinds"]["structure"] > 0
    shown = plain(two_lines.ok("stats", columns=80).lines)
    assert any(row.startswith("files, values") and "█" in row for row in shown)
    assert [row.split()[0] for row in shown[-2:]] == ["a", "b"]


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_stats_fit_the_terminal(two_lines: Shell, columns: int) -> None:
    assert all(len(line) <= columns for line in plain(two_lines.ok("stats", columns=columns).lines))


def test_a_whole_store_verifies(two_lines: Shell) -> None:
    told = two_lines.ok("verify", "--json").json
    assert told["ok"] is True and told["problems"] == [] and told["objects"] > 20
    assert two_lines.ok("verify").lines[-1].endswith("all is well")


def test_damage_is_exit_5_and_names_file_and_offset(two_lines: Shell) -> None:
    path = segment(two_lines)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)
    result = two_lines("verify", "--json")
    assert result.code == 5 and result.json["ok"] is False
    assert any(
        path.name in (problem["path"] or "") and problem["offset"] is not None
        for problem in result.json["problems"]
    )
    assert path.name in two_lines("verify").out
    refused = two_lines("save", "-s", "a", "--set", "x=1", "--json")
    assert refused.code == 5 and refused.error["code"] == "corrupt"


def hurt(shell: Shell) -> None:
    """Damage what was acknowledged: the middle of the log."""
    path = segment(shell)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def test_reading_a_damaged_store_warns_that_an_older_state_is_shown(two_lines: Shell) -> None:
    hurt(two_lines)
    for command in ("status", "log", "sessions", "show a", "op log"):
        told = two_lines.ok(*command.split())
        assert told.err.count("warning") == 1 and "snapstore repair" in told.err
        assert two_lines.ok(*command.split(), "-q").err == ""
    assert two_lines("verify", "--quick").code == 5


def test_nobody_goes_on_from_a_state_that_damage_made_older(two_lines: Shell) -> None:
    hurt(two_lines)
    for command in ("resume a", "resume a --json", "chat a --api none", "chat --continue"):
        refused = two_lines(*command.split(), stdin="a question\n")
        assert (refused.code, refused.out) == (5, "")
        assert "snapstore repair" in refused.err


def test_a_problem_names_its_place_once(two_lines: Shell) -> None:
    hurt(two_lines)
    told = two_lines("verify")
    assert told.out.count(segment(two_lines).name) == 1
    assert "sessions/" in told.out and "snapstore repair" in told.err


@pytest.fixture
def sealed(shell: Shell) -> Shell:
    """Sessions a and b whose turns lie in several segments, of which the last is written to."""
    with Store(LogEngine(shell.store, seal_at=4000)) as store:
        for turn in range(12):
            for name in "ab":
                session = store.session(name)
                session.history.append({"role": "user", "content": f"{name} {turn} " * 30})
                session.save(f"turn {turn}")
    assert len(list((shell.store / "log").glob("*.seg"))) > 1
    return shell


def hurt_sealed(shell: Shell, share: float) -> Path:
    """Damage a byte of a sealed segment in which old turns were saved."""
    path = sorted((shell.store / "log").glob("*.seg"))[0]
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 0xFF
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.99])
def test_damage_in_a_sealed_segment_is_a_problem_that_verification_goes_on_from(
    sealed: Shell, share: float
) -> None:
    path = hurt_sealed(sealed, share)
    for way in ((), ("--quick",), ("--read-data", "99")):
        result = sealed("verify", *way, "--json")
        assert result.code == 5 and result.json["ok"] is False, way
        problems = result.json["problems"]
        assert any(path.name in (problem["path"] or "") for problem in problems), way


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.99])
def test_status_and_doctor_do_not_fail_over_damage_in_a_sealed_segment(
    sealed: Shell, share: float
) -> None:
    hurt_sealed(sealed, share)
    assert sealed.ok("status", "--json").json["turn"] == 12
    assert "b" in sealed.ok("status").out
    told = sealed("doctor", "--json")
    assert told.code in (0, 1) and told.json["signs"]


def test_a_torn_tail_is_a_warning(two_lines: Shell) -> None:
    with segment(two_lines).open("ab") as file:
        file.write(b"half a batch")
    result = two_lines.ok("verify", "--json")
    assert result.json["ok"] is True and result.json["problems"]
    assert "warning" in two_lines.ok("verify").err


def test_gc_shows_what_nothing_reaches_and_removes_nothing(two_lines: Shell) -> None:
    assert two_lines.ok("gc", "--json").json == {
        "schema": 1,
        "objects": 0,
        "bytes": 0,
        "applied": False,
        "freed": 0,
        "trash": 0,
    }
    two_lines.ok("rewind", "a@1")
    two_lines.ok("delete", "b")
    assert two_lines.ok("gc", "--json").json["objects"] == 0
    with two_lines.open() as store:
        from snapstore.objects import Stage

        stage = Stage(store.objects)
        stage.put_content(b"left over")
        stage.commit()
    told = two_lines.ok("gc", "--json").json
    assert (told["objects"], told["bytes"]) == (1, len(b"left over"))
    assert two_lines.ok("gc", "--json").json == told


def test_gc_applied_removes_what_it_showed(two_lines: Shell) -> None:
    two_lines.ok("delete", "b")
    two_lines.ok("rewind", "a@2")
    shown = two_lines.ok("gc", "--grace", "0", "--json").json
    done = two_lines.ok("gc", "--grace", "0", "--apply", "--json").json
    assert shown["objects"] == done["objects"] > 0
    assert done["applied"] is True
    assert two_lines.ok("show", "a", "--json").json["turn"] == 2
    assert two_lines("undo", "-s", "a").code == 1
    assert two_lines.ok("verify", "--json").json["ok"] is True


def test_gc_and_doctor_tell_what_takes_room_and_what_removes_it(two_lines: Shell) -> None:
    told = two_lines.ok("gc").out
    assert told == (
        "no object that nothing reaches; nothing was changed: "
        "--apply packs the store where that helps\n"
    )
    with two_lines.open() as store:
        from snapstore.objects import Stage

        stage = Stage(store.objects)
        stage.put_content(b"left over")
        stage.commit()
    told = two_lines.ok("gc").out
    assert told == (
        "1 object that nothing reaches, 9 B; nothing was changed: "
        "--apply does it, and packs the rest\n"
    )
    assert "ok: 1 object, 9 B, that nothing reaches" in two_lines.ok("doctor").out
    done = two_lines.ok("gc", "--apply").out
    trash = sum(path.stat().st_size for path in (two_lines.store / "trash").iterdir())
    assert trash > 1000
    expected = f"; trash/ holds {trash / 1000:.1f} kB more of replaced files, removed by the first"
    assert done.startswith("1 object that nothing reaches, 9 B, removed; the store is ")
    assert expected in done
    assert expected in two_lines.ok("gc").out
    assert two_lines.ok("gc", "--json").json["trash"] == trash
    two_lines.ok("delete", "b")
    shown = two_lines.ok("gc", "--grace", "0").out
    assert "nothing was changed: --apply does it, and packs the rest" in shown
    assert ", removed; the store is " in two_lines.ok("gc", "--grace", "0", "--apply").out
    assert two_lines.ok("gc", "--json").json["trash"] == 0
    assert "ok: 0 objects, 0 B, that nothing reaches" in two_lines.ok("doctor").lines


def test_a_time_that_is_none_is_a_usage_error(two_lines: Shell) -> None:
    assert two_lines("gc", "--grace", "soon").code == 2
    assert two_lines("forget").code == 2


@pytest.mark.parametrize("how", [["--quick"], ["--read-data", "30"]])
def test_verify_can_do_less(two_lines: Shell, how: list[str]) -> None:
    assert two_lines.ok("verify", *how, "--json").json["ok"] is True


def test_repair_shows_and_then_goes_on_with_what_is_whole(two_lines: Shell) -> None:
    assert "nothing is damaged" in two_lines.ok("repair").out
    path = segment(two_lines)
    data = bytearray(path.read_bytes())
    data[len(data) * 2 // 3] ^= 0xFF
    path.write_bytes(data)
    shown = two_lines.ok("repair", "--json").json
    assert shown["applied"] is False and shown["damaged"][0]["path"] == str(path)
    assert two_lines("verify").code == 5
    two_lines.ok("repair", "--apply")
    two_lines.ok("verify")
    two_lines.save("after", "goes on")


def test_doctor_says_that_all_is_well_or_what_to_do(two_lines: Shell) -> None:
    assert all(line.startswith("ok") for line in two_lines.ok("doctor").lines[1:])
    segment(two_lines).chmod(0o644)
    told = two_lines("doctor", "--json")
    assert told.code == 1
    (ill,) = [sign for sign in told.json["signs"] if not sign["well"]]
    assert "chmod" in ill["advice"]


def test_doctor_tells_of_damage(two_lines: Shell) -> None:
    (two_lines.store / "MANIFEST").write_bytes(b"{}")
    told = two_lines("doctor")
    assert told.code == 1
    assert "repair" in told.out


def test_recover_finds_nothing_in_a_store_that_was_only_used(two_lines: Shell) -> None:
    two_lines.ok("delete", "b")
    assert two_lines.ok("recover", "--json").json["sessions"] == []


def test_forget_deletes_by_rule_and_undo_brings_back(two_lines: Shell) -> None:
    two_lines.ok("switch", "b")
    two_lines.save("c", "newest")
    two_lines.ok("switch", "c")
    shown = two_lines.ok("forget", "--keep-last", "2", "--dry-run", "--json").json
    assert shown["deleted"] == ["a"]
    two_lines.ok("forget", "--keep-last", "2")
    assert two_lines("show", "a").code == 3
    two_lines.ok("undo", "-s", "a")
    two_lines.ok("show", "a")


def test_reading_commands_leave_the_store_as_it_is(two_lines: Shell) -> None:
    def picture() -> dict[Path, bytes]:
        files = (p for p in two_lines.store.rglob("*") if p.is_file())
        return {p: p.read_bytes() for p in files if "cache" not in p.parts}

    before = picture()
    for command in (
        "status", "sessions", "log --graph --all", "show a", "diff a b", "op log", "scratch list",
        "find question", "resume", "stats", "verify", "gc", "tag", "rewind a@1 --dry-run",
    ):  # fmt: skip
        two_lines.ok(*command.split())
    assert picture() == before


def test_a_damaged_session_does_not_hide_the_others(shell: Shell) -> None:
    shell.save("a", "x" * 400)
    end = segment(shell).stat().st_size
    shell.save("b", "y" * 400)
    path = segment(shell)
    data = path.read_bytes()
    path.write_bytes(data[:end] + bytes(64) + data[end + 64 :])
    for cached in (shell.store / "cache").glob("*"):
        cached.unlink()
    assert shell.ok("show", "a", "--json").json["messages"] == ["x" * 400]
    assert "a" in [entry["name"] for entry in shell.ok("sessions", "--json").json["sessions"]]


def test_without_a_choice_the_session_saved_last_is_looked_at_but_not_moved(shell: Shell) -> None:
    with shell.open() as store:
        for name in ("z-first", "fix-login"):
            session = store.session(name)
            session.save("here")
            session.save("again")
    assert "none chosen; last saved: fix-login" in shell.ok("status").out
    assert shell.ok("status", "--json").json["session"] == "fix-login"
    assert shell.ok("log", "--json").json["session"] == "fix-login"
    assert shell.ok("show", "@", "--json").json["turn"] == 2
    assert not any(info["current"] for info in shell.ok("sessions", "--json").json["sessions"])
    for move in (("undo",), ("rename", "other")):
        refused = shell(*move)
        assert refused.code == 3 and "-s fix-login" in refused.err
    assert shell.ok("status", "--json").json["turn"] == 2


def test_main_is_moved_without_a_choice_for_saves_go_there(shell: Shell) -> None:
    with shell.open() as store:
        store.session("main").save()
    assert shell.ok("undo", "--json").json["session"] == "main"


def test_status_of_a_session_that_is_not_there(shell: Shell) -> None:
    assert shell.ok("status", "-s", "new").out
    shell.save("a")
    assert shell("status", "-s", "zzz").code == 3


def test_status_says_what_became_of_a_current_session_that_is_gone(two_lines: Shell) -> None:
    two_lines.ok("delete", "b")
    told = two_lines.ok("status").out
    assert "b was deleted" in told and "undo -s b" in told and "snapstore switch" in told


def test_stats_compare_only_where_something_is_saved(shell: Shell) -> None:
    shell.save("a", {"role": "user", "content": "hi"})
    assert "as whole copies" not in shell.ok("stats").out
    for turn in range(40):
        shell.save("a", {"role": "user", "content": f"{turn} " * 200})
    assert "as whole copies" in shell.ok("stats").out
