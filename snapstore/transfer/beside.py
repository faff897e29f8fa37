"""What a harness keeps beside a transcript: large tool outputs, backups of files, facts of agents.

Claude Code keeps it in two places::

    <root>/projects/<folder>/<session id>/...        tool-results/*, subagents/*.meta.json
    <root>/file-history/<session id>/*               backups that its own rewind reads

They are kept as the files of one snapshot more, which the layout of the transcript names behind
the lines. It is no turn of the session and has no history. The transcripts of agents are sessions
of their own, ``NAME/agent-...``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from snapstore.model.layout import Layout
from snapstore.model.maps import Inline
from snapstore.objects import Objects, Stage
from snapstore.snapshot import Snapshot
from snapstore.worktree.files import Files
from snapstore.worktree.tree import DIR, FILE, Entry, Root, put_root

HISTORY = "file-history"
_LABEL = "beside the transcript"
_TRANSCRIPT = ".jsonl"
_MODE = 0o600
"""A backup may have the mode of the file that it is of, which may be open to everybody."""


def files_beside(transcript: Path) -> dict[str, bytes]:
    """The files that belong to a transcript of Claude Code, by their paths in the session's folder.

    Those of its file history stand below ``file-history``. Raises OSError.
    """
    session = transcript.stem
    found = dict(_files(transcript.parent / session, ""))
    if transcript.parent.parent.name == "projects":
        root = transcript.parent.parent.parent
        found.update(_files(root / HISTORY / session, f"{HISTORY}/"))
    return found


def agents_beside(transcript: Path) -> list[Path]:
    """The transcripts of the agents that a session called."""
    return sorted((transcript.parent / transcript.stem / "subagents").glob("*.jsonl"))


def main_of(transcript: Path) -> Path | None:
    """The transcript of the session that called an agent; None for what is no agent's."""
    folder = transcript.parent
    return folder.parent.with_suffix(_TRANSCRIPT) if folder.name == "subagents" else None


def _files(folder: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    if not folder.is_dir():
        return
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.suffix != _TRANSCRIPT:
            yield f"{prefix}{path.relative_to(folder).as_posix()}", path.read_bytes()


def stage_beside(objects: Objects, stage: Stage, files: Mapping[str, bytes]) -> bytes:
    """Stage the snapshot that holds these files; its id."""
    tree = put_root(Root(0o700, _directory(objects, stage, files)), stage.put_node)
    snapshot_id, _ = objects.snapshots.create(
        None, stage.put_snapshot, time=0, files=tree, label=_LABEL
    )
    return snapshot_id


def _directory(objects: Objects, stage: Stage, files: Mapping[str, bytes]) -> bytes | None:
    entries: dict[str, Entry] = {}
    below: dict[str, dict[str, bytes]] = {}
    for path, content in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            below.setdefault(name, {})[rest] = content
        else:
            target = stage.put_content(content)
            entries[name] = Entry(FILE, _MODE, 0, len(content), target)
    for name, held in below.items():
        entries[name] = Entry(DIR, 0o700, target=_directory(objects, stage, held))
    changes = {name.encode("utf-8", "surrogateescape"): Inline(entry.packed())
               for name, entry in entries.items()}  # fmt: skip
    return objects.maps.update(None, changes, stage.put_node)


def held_beside(objects: Objects, layout: Layout) -> Files | None:
    """The files that a layout keeps beside its transcript."""
    last = Snapshot(objects, layout.heads[-1])
    is_turn = len(layout.heads) == 1 or last.record.label != _LABEL or last.record.rows
    return None if is_turn else last.files
