"""Files on the command line: save --worktree, restore, rewind --what, show, diff, log, find."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from shell import Shell, plain

EVERYTHING = "messages,scratchpad,files"


@pytest.fixture
def project(shell: Shell) -> Path:
    """A directory with two saved turns of session p."""
    root = shell.folder / "project"
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").write_text("a = 1\n")
    (root / "src/gone.py").write_text("only in one\n")
    (root / "data.bin").write_bytes(b"\0\1\2")
    (root / "link").symlink_to("src/a.py")
    (root / ".gitignore").write_text("*.log\n")
    (root / "x.log").write_text("ignored")
    shell.ok("save", "-s", "p", "-m", "one", "--worktree", str(root))
    (root / "src/a.py").write_text("a = 2\nb = 3\n")
    (root / "src/gone.py").rename(root / "moved.py")
    (root / "data.bin").write_bytes(b"\0\1\2\3")
    (root / "new.txt").write_text("needle in a file\n")
    (root / "src/a.py").chmod(0o755)
    shell.ok("save", "-m", "two")
    return root


def test_a_save_captures_the_directory_that_head_remembers(shell: Shell, project: Path) -> None:
    files = shell.ok("show", "p@2", "--json").json["files"]
    assert files["new.txt"]["size"] == 17 and files["src/a.py"]["mode"] == 0o755
    assert files["link"] == {
        "kind": "symlink", "mode": 0o777, "size": 0, "id": None, "target": "src/a.py",
        "mtime": files["link"]["mtime"],
    }  # fmt: skip
    assert "x.log" not in files
    assert [s["files"] for s in shell.ok("log", "p", "--json").json["snapshots"]] == [5, 6]


def test_status_tells_whether_the_directory_differs_from_head_and_how(
    shell: Shell, project: Path
) -> None:
    assert shell.ok("status", "--json").json["dirty"] is False
    (project / "new.txt").unlink()
    (project / "src/b.py").write_text("b")
    assert shell.ok("status", "--json").json["dirty"] is True
    told = shell.ok("status").out
    assert "- new.txt" in told and "+ src/b.py" in told and "2 paths differ from HEAD" in told


def test_reading_files_of_a_turn_changes_nothing(shell: Shell, project: Path) -> None:
    def seen() -> dict[str, int]:
        paths = [p for p in shell.store.rglob("*") if "cache" not in p.parts]
        return {str(p): p.lstat().st_mtime_ns for p in [*paths, *project.rglob("*")]}

    before = seen()
    for command in (["status"], ["show", "p"], ["log", "p"], ["diff", "p@1", "p@2"], ["find", "x"]):
        shell(*command)
    for command in (["restore", "p@1"], ["rewind", "p@1", "--what", "files"]):
        shell.ok(*command, "--dry-run")
    assert seen() == before


def test_show_prints_a_file_to_the_byte_a_link_a_listing(shell: Shell, project: Path) -> None:
    assert shell.ok("show", "p@1:src/a.py").out == "a = 1\n"
    assert shell.ok("show", "p@1:data.bin").out == "\0\1\2"
    assert shell.ok("show", "p@1:link").out == "src/a.py\n"
    listed = [line.split()[-1] for line in shell.ok("show", "p@1:src").lines]
    assert listed == ["src/a.py", "src/gone.py"]
    assert len(shell.ok("show", "p@2", "--files").lines) == 7
    entry = shell.ok("show", "p@1:src/a.py", "--json").json["entry"]
    assert (entry["kind"], entry["size"]) == ("file", 6)
    for missing in ("p@1:nothing", "p@1:src/a.py/x"):
        assert shell("show", missing).code == 3


@pytest.mark.parametrize(
    "given", ["a.py", "./a.py", "src/a.py", "./../src/a.py", "../src/a.py", "/src/a.py"]
)
def test_a_path_after_a_revision_may_be_given_from_the_working_directory(
    shell: Shell, project: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.chdir(project / "src")
    assert shell.ok("show", f"p@1:{given}").out == "a = 1\n"
    assert shell.ok("show", f"p@1:{given}", "--json").json["path"] == "src/a.py"
    if not given.startswith("/"):
        done = shell.ok("restore", f"p@1:{given}", "--json").json
        assert done["files"]["written"] == ["src/a.py"]


def test_a_path_that_a_turn_does_not_hold_is_told_with_what_was_meant(
    shell: Shell, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "src")
    for command in (["show", "p@2:ab.py"], ["restore", "p@2:ab.py"]):
        missing = shell(*command, "--json")
        assert missing.code == 3
        expected = f"paths are relative to {project}; did you mean src/a.py?"
        assert missing.error["hint"] == expected
    shell.ok("save", "-s", "none", "-m", "no files")
    assert "--worktree" in shell("show", "none:a.py", "--json").error["hint"]


def test_show_and_log_tell_how_many_files_a_turn_changed(shell: Shell, project: Path) -> None:
    (project / "src").chmod(0o700)
    shell.ok("save", "-m", "three")
    shell.ok("save", "-m", "four")
    expected = [
        "5 files: 5 new", "6 files: 2 new, 2 changed, 1 deleted",
        "6 files: only directories changed", "6 files: as in the turn before",
    ]  # fmt: skip
    for turn, told in enumerate(expected, 1):
        assert f"  files   {told} (--files lists them)" in shell.ok("show", f"p@{turn}").lines
    rows = shell.ok("log", "p").rows
    assert [row[4:] for row in rows] == [["+0", "p"], ["+0", "", "1 dir"], ["+0", "", "5 files"],
                                         ["+0", "", "5 files"]]  # fmt: skip
    assert any("5 files  two" in row for row in plain(shell.ok("log", "p", columns=80).lines))
    shell.save("none", {"role": "user", "content": "hi"})
    assert "files" not in shell.ok("show", "none").out
    assert shell.ok("log", "none").rows[0][4:] == ["+1", "none"]


def test_diff_tells_added_removed_changed_and_renamed(shell: Shell, project: Path) -> None:
    found = shell.ok("diff", "p@1", "p@2", "--json").json
    files = found["files"]
    assert found["equal"] is False
    assert set(files["added"]) == {"moved.py", "new.txt"}
    assert set(files["removed"]) == {"src/gone.py"}
    assert set(files["changed"]) == {"data.bin", "src/a.py"}
    assert files["renamed"] == {"moved.py": "src/gone.py"}
    told = plain(shell.ok("diff", "p@1", "p@2", "--only", "files").lines)
    for line in (
        "> src/gone.py -> moved.py", "~ src/a.py  mode 0644 -> 0755", "  +b = 3", "  -a = 1",
        "  binary, 3 -> 4 bytes", "+ new.txt  17 B",
    ):  # fmt: skip
        assert line in told, told
    assert (
        "files       2 added, 1 removed, 2 changed" in shell.ok("diff", "p@1", "p@2", "--stat").out
    )
    assert shell("diff", "p@1", "p@2", "--only", "files", "--exit-code").code == 1
    assert shell("diff", "p@1", "p@1", "--exit-code").code == 0


def test_log_touched_lists_the_turns_that_changed_a_path(
    shell: Shell, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turns(path: str) -> list[int]:
        found = shell.ok("log", "p", "--touched", path, "--json").json["snapshots"]
        return [snapshot["turn"] for snapshot in found]

    assert turns("src/a.py") == [2, 1] and turns("./src/") == [2, 1]
    assert turns("new.txt") == [2] and turns("link") == [1] and turns("sr") == []
    monkeypatch.chdir(project / "src")
    assert turns("gone.py") == turns("./gone.py") == [2, 1] and turns("../new.txt") == [2]


def test_find_looks_into_files_and_tells_each_content_once(shell: Shell, project: Path) -> None:
    (project / "copy.txt").write_text("needle in a file\n")
    shell.ok("save", "-m", "three")
    matches = shell.ok("find", "needle", "--json").json["matches"]
    assert [(m["turn"], m["where"], m["text"]) for m in matches] == [
        (2, "files:new.txt", "needle in a file")
    ]


def test_rewind_with_files_and_undo_bring_the_files_along(shell: Shell, project: Path) -> None:
    (project / "src/a.py").write_text("by hand\n")
    moved = shell.ok("rewind", "p@1", "--what", EVERYTHING, "--json").json
    assert moved["turn"] == 1
    assert moved["files"]["written"] == ["data.bin", "src/a.py", "src/gone.py"]
    assert moved["files"]["deleted"] == ["moved.py", "new.txt"]
    assert moved["files"]["kept"] == ["x.log"]
    assert (project / "src/a.py").read_text() == "a = 1\n"
    back = shell.ok("undo", "-s", "p", "--json").json
    assert back["files"]["deleted"] == ["src/gone.py"]
    assert (project / "src/a.py").read_text() == "by hand\n"
    again = shell.ok("redo", "-s", "p", "--json").json
    assert again["turn"] == 1 and (project / "src/a.py").read_text() == "a = 1\n"


def test_only_the_files_can_go_back_and_head_stays(shell: Shell, project: Path) -> None:
    moved = shell.ok("rewind", "p@1", "--what", "files", "--json").json
    assert moved["turn"] == 2 and moved["from"] == moved["to"]
    assert (project / "src/a.py").read_text() == "a = 1\n"
    shell.ok("undo", "-s", "p")
    assert (project / "src/a.py").read_text() == "a = 2\nb = 3\n"


@pytest.mark.parametrize(
    ("part", "other"), [("messages", "scratchpad"), ("scratchpad", "messages")]
)
def test_files_do_not_go_back_with_half_a_turn_for_one_undo_would_not_bring_both_back(
    shell: Shell, project: Path, part: str, other: str
) -> None:
    for dry in ([], ["--dry-run"]):
        refused = shell("rewind", "p@1", "--what", f"{part},files", *dry, "--json")
        assert refused.code == 2 and f"add {other}" in refused.error["message"]
        assert f"rewind p@1 --what {part}" in refused.error["message"]
    assert (project / "src/a.py").read_text() == "a = 2\nb = 3\n"
    assert shell.ok("status", "-s", "p", "--json").json["turn"] == 2


def test_restore_brings_back_single_paths_wherever_it_is_called_from(
    shell: Shell, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "src")
    done = shell.ok("restore", "p@1", "src/a.py", "--store", str(shell.store), "--json").json
    assert done["files"]["written"] == ["src/a.py"]
    assert (project / "new.txt").exists()
    assert shell.ok("restore", "p@1:data.bin", "--store", str(shell.store)).code == 0
    assert (project / "data.bin").read_bytes() == b"\0\1\2"
    assert shell("restore", "p@1", "../else", "--store", str(shell.store)).code == 3


@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--force"]])
def test_restore_to_what_is_no_directory(shell: Shell, project: Path, more: list[str]) -> None:
    file = shell.folder / "file"
    file.write_text("precious")
    (shell.folder / "link").symlink_to("file")
    for given in ("file", "file/below", "link", "link/deep/below"):
        refused = shell("restore", "p@1", "--to", given, "--json", *more)
        assert (refused.code, refused.error["code"]) == (3, "not_found")
        assert refused.error["message"] == f"{file} is a file, not a directory"
    assert shell("restore", "p@1", "--to", "", *more).code == 2
    assert file.read_text() == "precious"


def test_restore_to_another_directory(shell: Shell, project: Path) -> None:
    copy = shell.folder / "copy"
    shell.ok("restore", "p@1", "--to", str(copy))
    assert (copy / "src/a.py").read_text() == "a = 1\n" and not (copy / "x.log").exists()
    assert (project / "src/a.py").read_text() == "a = 2\nb = 3\n"
    (copy / "src/a.py").write_text("edited\n")
    refused = shell("restore", "p@1", "--to", str(copy), "--json")
    assert refused.code == 6 and "src/a.py" in refused.error["message"]
    assert "--force" in refused.error["hint"]
    dry = shell.ok("restore", "p@1", "--to", str(copy), "--dry-run")
    assert "~ src/a.py" in plain(dry.lines) and "in the way" in dry.err
    assert (copy / "src/a.py").read_text() == "edited\n"
    shell.ok("restore", "p@1", "--to", str(copy), "--force")


def test_paths_are_relative_to_the_worktree_else_to_the_working_directory(
    shell: Shell, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restored(*paths: str) -> list[str]:
        done = shell.ok(
            "restore", "p@1", *paths, "--store", str(shell.store), "--dry-run", "--json"
        )
        written: list[str] = done.json["files"]["written"]
        return written

    (project / "src/new.txt").write_text("no turn holds this")
    assert restored("src/gone.py") == restored(str(project / "src/gone.py")) == ["src/gone.py"]
    monkeypatch.chdir(project.parent)
    assert restored("project/src/gone.py", "data.bin") == ["data.bin", "src/gone.py"]
    monkeypatch.chdir(project / "src")
    assert restored("gone.py") == restored("../src/gone.py") == ["src/gone.py"]
    assert restored("data.bin") == ["data.bin"]
    assert restored("./") == ["src/a.py", "src/gone.py"]


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("a.py", "did you mean src/a.py?"),
        ("data.bim", "did you mean data.bin?"),
        ("zzz", "paths are relative to "),
        ("*.py", "patterns are not understood"),
        ("/somewhere/else.py", "absolute paths in it"),
    ],
)
def test_a_path_that_is_nowhere_is_not_found_and_the_hint_says_what_was_meant(
    shell: Shell, project: Path, path: str, hint: str
) -> None:
    missing = shell("restore", "p@1", path, "--json")
    assert missing.code == 3 and hint in missing.error["hint"]


def test_a_dry_run_marks_new_changed_and_deleted_and_counts_directories_apart(
    shell: Shell, project: Path
) -> None:
    (project / "docs").mkdir()
    (project / "docs/read.me").write_text("x")
    shell.ok("save", "-m", "three")
    (project / "docs/read.me").unlink()
    (project / "docs").rmdir()
    told = plain(shell.ok("restore", "p@3", "--dry-run").lines)
    assert told[1].startswith("files: 1 new; directories: 1 new")
    shell.ok("restore", "p@3")
    told = plain(shell.ok("restore", "p@1", "--dry-run").lines)
    assert "files: 1 new, 2 changed, 3 deleted; directories: 1 deleted; 1 kept" in told[1]
    marks = {line for line in told if line[:2] in ("+ ", "~ ", "- ")}
    assert marks == {
        "+ src/gone.py", "~ data.bin", "~ src/a.py", "- docs/", "- docs/read.me", "- moved.py",
        "- new.txt",
    }  # fmt: skip


def test_a_directory_that_is_gone_is_told_by_status_and_save_and_not_made_again(
    shell: Shell, project: Path
) -> None:
    before = shell.ok("show", "p", "--json").json["files"]
    project.rename(shell.folder / "renamed")
    assert f"worktree {project} is not there" in shell.ok("status").err
    saved = shell.ok("save", "-m", "gone")
    assert f"worktree {project} is not there" in saved.err and "those of before" in saved.err
    assert shell.ok("show", "p", "--json").json["files"] == before
    for command in (["restore", "p@1"], ["rewind", "p@1", "--what", EVERYTHING]):
        refused = shell(*command, "--json")
        assert refused.code == 6 and "--force" in refused.error["hint"]
        assert shell(*command, "--dry-run").code == 6
    assert not project.exists()
    shell.ok("restore", "p@1", "--force", "--dry-run")
    assert not project.exists()
    shell.ok("restore", "p@1", "--force")
    assert (project / "src/a.py").read_text() == "a = 1\n"


def test_undo_passes_a_restored_path_that_was_removed_since(shell: Shell, project: Path) -> None:
    shell.ok("restore", "p@1", "src/gone.py")
    (project / "src/gone.py").unlink()
    assert shell.ok("undo", "-n", "2", "--json").json["turn"] == 1
    assert not (project / "src/gone.py").exists()


def test_a_session_from_another_store_does_not_overwrite_a_directory_of_the_same_name(
    shell: Shell, project: Path
) -> None:
    other = str(shell.folder / "other")
    shell.ok("push", other)
    (project / "src/a.py").write_text("of this machine\n")
    rewind = ["rewind", "p@1", "--what", EVERYTHING, "--store", other]
    refused = shell(*rewind, "--json")
    assert refused.code == 6 and "restore REV --to DIR" in refused.error["hint"]
    assert (project / "src/a.py").read_text() == "of this machine\n"
    shell.ok(*rewind, "--force")
    assert (project / "src/a.py").read_text() == "a = 1\n"


def test_what_is_in_the_way_is_refused_with_6_and_force_goes_on(
    shell: Shell, project: Path
) -> None:
    (project / "new.txt").unlink()
    (project / ".gitignore").write_text("new.txt\n")
    (project / "new.txt").write_text("nobody else holds this")
    refused = shell("restore", "p@2", "--json")
    assert refused.code == 6 and "new.txt" in refused.error["message"]
    assert (project / "new.txt").read_text() == "nobody else holds this"
    shell.ok("restore", "p@2", "--force")
    assert (project / "new.txt").read_text() == "needle in a file\n"


def test_the_home_directory_is_refused_unless_forced(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = shell.folder / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    assert shell("save", "-s", "h", "--worktree", str(home)).code == 6
    shell.ok("save", "-s", "h", "--worktree", str(home), "--force")


def test_a_directory_that_is_not_there_is_not_found(shell: Shell) -> None:
    result = shell("save", "--worktree", str(shell.folder / "nothing"), "--json")
    assert result.code == 3 and result.error["code"] == "not_found"


def test_names_that_are_no_utf_8_are_printed_as_surrogates(shell: Shell) -> None:
    root = shell.folder / "odd"
    root.mkdir()
    (Path(os.fsdecode(os.fsencode(root) + b"/bad\xff"))).write_text("odd")
    shell.ok("save", "-s", "o", "--worktree", str(root))
    result = shell.ok("show", "o", "--json")
    assert list(result.json["files"]) == ["bad\udcff"] and "bad\\udcff" in result.out
    assert "bad" in shell.ok("show", "o", "--files").out
