"""The journal of a restore, and why a crash at any point ends well.

A restore goes like this; what is in brackets is durable before the next step begins.

    1. capture what is there                                [its objects are committed]
    2. plan the steps
    3. write the journal: the steps, and a token            [file, and its name]
    4. OPEN steps; make the staging directory in the root, named after the token; put every new
       file and link there with its mode and time; put "ready" beside them  [contents]
    5. OUT, RMDIR, MKDIR, IN and MODE steps. Nothing is deleted: what goes is moved to the staging
       directory                                            [directories]
    6. move the ref; the move's info holds the token        [commit]
    7. remove the staging directory, then the journal

The move of the ref is the commit point. Whoever works on the directory next finds the journal and
holds the directory's lock, so its writer is dead. It looks in the reflog for the token:

    there        all steps were done, and durable, before the ref moved: only 7 is left, and is done
    not there    the ref stands where it stood, so the files go back to where they stood: the steps
                 are taken back in reverse, then 7

Taking back looks at what is there, step by step, so it does not matter how far the restore came,
nor how often taking back was interrupted itself:

    no "ready"   no step after OPEN was begun: only the modes are to be set again
    MODE, OPEN   the old mode is set
    IN           ours if the staged file is gone and what is in its place looks like it (or has
                 its inode: IN links before it unlinks), and if what was there before has gone out.
                 It is moved back to the staging directory. Else somebody changed it since: it
                 stays
    MKDIR        removed if it is empty
    RMDIR        made again if it is missing
    OUT          if the staging directory has it and its place is free, moved back. A place that is
                 taken was taken by somebody since: that stays; what was there is in the capture

A restore into a directory that no session is bound to moves no ref. Its commit point is the journal
itself, replaced by one that says that it is done.

The file: magic "snapjrn1", 32 bytes BLAKE3 of the rest, then a msgpack array
[worktree, token, ref, gen, done, [[act, path, old, new, slot], ...]]. It is replaced whole
(temporary name, sync, rename), so it is there or it is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgpack

from snapstore.disk import Disk
from snapstore.engine import Engine
from snapstore.errors import Corrupt
from snapstore.ids import SIZE, object_id
from snapstore.plainfile import read_plain
from snapstore.worktree.listing import STAGING
from snapstore.worktree.plan import Act, Step
from snapstore.worktree.tree import Entry

Fields = tuple[Any, ...] | None

_MAGIC = b"snapjrn1"
TOKEN = "restore"
"""The key in a move's info under which the token stands."""


class Journal(NamedTuple):
    """A restore at work."""

    worktree: bytes
    token: bytes
    ref: str
    """The ref whose move commits it; "" for none."""
    gen: int
    """The ref's last move before."""
    done: bool
    steps: tuple[Step, ...]

    @property
    def staging(self) -> bytes:
        """The name of the staging directory in the root."""
        return STAGING + self.token.hex().encode()

    def committed(self, engine: Engine) -> bool:
        """Whether the restore counts."""
        if self.done or not self.ref:
            return self.done
        tip = engine.tip(self.ref)
        for gen in range(tip.gen if tip else 0, self.gen, -1):
            move = engine.move(self.ref, gen)
            if move is not None and move.info.get(TOKEN) == self.token:
                return True
        return False

    def write(self, disk: Disk, path: Path) -> None:
        """Put the journal in place, durably."""
        body = msgpack.packb(self)
        disk.write_file(path, _MAGIC + object_id(body) + body)

    @classmethod
    def read(cls, path: Path) -> Journal | None:
        """The journal in a file; None where there is none. Raises Corrupt."""
        try:
            data = read_plain(path)
        except FileNotFoundError:
            return None
        check, body = data[len(_MAGIC) :][:SIZE], data[len(_MAGIC) + SIZE :]
        if not data.startswith(_MAGIC) or object_id(body) != check:
            raise Corrupt("the journal of a restore does not verify", path=str(path))
        worktree, token, ref, gen, done, steps = msgpack.unpackb(body, use_list=False)
        return cls(worktree, token, ref, gen, done, tuple(_step(*fields) for fields in steps))


def _step(act: int, path: bytes, old: Fields, new: Fields, slot: int) -> Step:
    return Step(Act(act), path, Entry(*old) if old else None, Entry(*new) if new else None, slot)
