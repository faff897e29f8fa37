"""Doing the steps of a restore, and taking them back. The journal says why that is safe."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from snapstore.disk import Disk
from snapstore.errors import DiskError, Refused
from snapstore.worktree import tree
from snapstore.worktree.descent import DIRECTORY, Descent
from snapstore.worktree.journal import Journal
from snapstore.worktree.live import same_look
from snapstore.worktree.plan import OWNER, Act, Step, shown
from snapstore.worktree.tree import Entry, parts_of

_READY = b"ready"
_NOT_OURS = (errno.ENOENT, errno.ENOTEMPTY, errno.ENOTDIR, errno.ELOOP)
_SYNCED_ONE_BY_ONE = 64
"""Up to so many files are synced each for itself, more all at once with the rest of the disk."""

Contents = Callable[[bytes], Iterator[bytes]]
"""Id of a content -> its pieces, verified."""


class Applier:
    """The steps of one journal on one directory."""

    def __init__(self, disk: Disk, root: Path, journal: Journal, *, durable: bool = True) -> None:
        """Work on the directory at root, which is held open until close."""
        self._disk = disk
        self._durable = durable
        self._journal = journal
        self._steps = journal.steps
        self._descent = Descent(os.open(root, DIRECTORY & ~os.O_NOFOLLOW))
        self._staging = -1

    def close(self) -> None:
        """Let go of the directory."""
        fd, self._staging = self._staging, -1
        if fd >= 0:
            os.close(fd)
        self._descent.close()

    # --- forward ----------------------------------------------------------------------------------

    def stage(self, contents: Contents) -> None:
        """Put everything new into the staging directory. Raises ObjectMissing or Corrupt."""
        for step in self._of(Act.OPEN):
            assert step.old is not None
            self._set_mode(step.path, step.old.mode | OWNER)
        self._disk.make_dir_at(self._descent.root, self._journal.staging)
        self._open_staging()
        coming = list(self._of(Act.IN))
        each = self._durable and len(coming) <= _SYNCED_ONE_BY_ONE
        for step in coming:
            assert step.new is not None
            self._stage_one(step.new, _new(step), contents, sync=each)
        if self._durable and not each:
            self._disk.sync_all()
        os.close(self._disk.create_at(self._staging, _READY))

    def _stage_one(self, new: Entry, name: bytes, contents: Contents, *, sync: bool) -> None:
        assert new.target is not None
        if new.kind == tree.SYMLINK:
            self._disk.symlink_at(new.target, self._staging, name)
            self._disk.set_link_times_at(self._staging, name, new.mtime)
            return
        fd = self._disk.create_at(self._staging, name)
        try:
            for piece in contents(new.target):
                self._disk.append(fd, piece)
            self._disk.set_mode(fd, new.mode)
            self._disk.set_times(fd, new.mtime)
            if sync:
                self._disk.sync(fd)
        finally:
            os.close(fd)

    def run(self) -> None:
        """Do the steps that change what is seen. Raises Refused when a file changed meanwhile."""
        doing = {
            Act.OUT: self._out,
            Act.RMDIR: self._rmdir,
            Act.MKDIR: self._mkdir,
            Act.IN: self._in,
            Act.MODE: self._mode,
        }
        for step in self._steps:
            if step.act != Act.OPEN:
                doing[step.act](step)
        if self._durable:
            self._sync_directories()

    def _out(self, step: Step) -> None:
        folder, name = self._place(step.path)
        self._descent_forgets(step.path)
        self._disk.rename_at(folder, name, self._staging, _old(step))
        info = os.stat(_old(step), dir_fd=self._staging, follow_symlinks=False)
        captured = step.old is not None and step.old.kind in (tree.FILE, tree.SYMLINK)
        if captured and step.old is not None and not same_look(info, step.old):
            raise Refused(
                f"{shown(step.path)} was changed while the files were being restored",
                hint="nothing was restored; try again when nothing else writes there",
            )

    def _rmdir(self, step: Step) -> None:
        folder, name = self._place(step.path)
        self._descent_forgets(step.path)
        self._disk.remove_dir_at(folder, name)

    def _mkdir(self, step: Step) -> None:
        self._disk.make_dir_at(*self._place(step.path))

    def _in(self, step: Step) -> None:
        folder, name = self._place(step.path)
        self._give(self._staging, _new(step), folder, name)

    def _mode(self, step: Step) -> None:
        assert step.new is not None
        self._set_mode(step.path, step.new.mode)

    def _give(self, folder: int, name: bytes, new_folder: int, new_name: bytes) -> None:
        """Move a file or link to a place that must be free, and stays as it is if it is not."""
        try:
            self._disk.link_at(folder, name, new_folder, new_name)
        except DiskError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS):
                raise
            if _there(new_folder, new_name):
                raise DiskError(f"{os.fsdecode(new_name)} is in the way", errno.EEXIST) from error
            self._disk.rename_at(folder, name, new_folder, new_name)
            return
        self._disk.remove_at(folder, name)

    def _sync_directories(self) -> None:
        changed = {step.path.rpartition(b"/")[0] for step in self._steps if step.act != Act.OPEN}
        if len(changed) > _SYNCED_ONE_BY_ONE:
            self._disk.sync_all()
            return
        for path in changed | {b""}:
            try:
                fd = self._descent.open(parts_of(path))
            except OSError:
                continue  # removed as well, or not open to us any more; the one above is synced
            self._disk.sync(fd)

    # --- back -------------------------------------------------------------------------------------

    def back(self) -> None:
        """Take back what was done, however far that came. May be repeated."""
        undoing = {
            Act.OUT: self._undo_out,
            Act.RMDIR: self._undo_rmdir,
            Act.MKDIR: self._undo_mkdir,
            Act.IN: self._undo_in,
            Act.MODE: self._undo_mode,
            Act.OPEN: self._undo_open,
        }
        self._open_staging()
        started = self._staging >= 0 and _there(self._staging, _READY)
        if started:
            self._outs = {step.path: _old(step) for step in self._of(Act.OUT)}
            self._opened = {step.path for step in self._of(Act.OPEN)}
        for step in reversed(self._steps):
            if started or step.act == Act.OPEN:
                undoing[step.act](step)

    def _undo_open(self, step: Step) -> None:
        assert step.old is not None
        self._try_mode(step.path, step.old.mode)

    def _undo_mode(self, step: Step) -> None:
        """Set the old mode, but leave a directory open for the steps before that need it so."""
        assert step.new is not None
        if step.old is not None:
            opened = OWNER if step.path in self._opened else 0
            self._try_mode(step.path, step.old.mode | opened)
            return
        place = self._try_place(step.path)
        info = _stat(*place) if place else None
        if info is not None and same_look(info, step.new):
            self._try_mode(step.path, step.new.mode | OWNER)

    def _undo_in(self, step: Step) -> None:
        place = self._try_place(step.path)
        if place is None or not self._is_ours(step, *place):
            return
        folder, name = place
        if _there(self._staging, _new(step)):
            self._disk.remove_at(folder, name)
        else:
            self._disk.rename_at(folder, name, self._staging, _new(step))

    def _is_ours(self, step: Step, folder: int, name: bytes) -> bool:
        assert step.new is not None
        info = _stat(folder, name)
        if info is None or not same_look(info, step.new):
            return False
        staged = _stat(self._staging, _new(step))
        if staged is not None:
            return (staged.st_dev, staged.st_ino) == (info.st_dev, info.st_ino)
        before = self._outs.get(step.path)
        return before is None or _there(self._staging, before)

    def _undo_mkdir(self, step: Step) -> None:
        place = self._try_place(step.path)
        if place is None:
            return
        self._descent_forgets(step.path)
        _unless(self._disk.remove_dir_at, *place, allowed=_NOT_OURS)

    def _undo_rmdir(self, step: Step) -> None:
        place = self._try_place(step.path)
        if place is None:
            return
        assert step.old is not None
        if not _there(*place):
            self._disk.make_dir_at(*place)
        # Also where it is there: we may have been interrupted between the two.
        self._try_mode(step.path, step.old.mode | OWNER)

    def _undo_out(self, step: Step) -> None:
        if not _there(self._staging, _old(step)):
            return
        place = self._try_place(step.path)
        if place is None or _there(*place):
            return
        self._disk.rename_at(self._staging, _old(step), *place)

    # --- the end ----------------------------------------------------------------------------------

    def clean(self, *, done: bool) -> None:
        """Remove the staging directory and what is left in it, after all was done or taken back."""
        self._open_staging()
        if self._staging >= 0:
            mode = self._root_mode(done)
            if mode is not None:
                self._disk.set_mode(self._descent.root, mode | OWNER)
            if _there(self._staging, _READY):
                self._disk.remove_at(self._staging, _READY)
            self._empty(self._staging)
            self._disk.remove_dir_at(self._descent.root, self._journal.staging)
            if mode is not None:
                self._disk.set_mode(self._descent.root, mode)

    def _root_mode(self, done: bool) -> int | None:
        """What the mode of the root is to be in the end, if it is no matter of course."""
        entries = [step.new if done else step.old for step in self._steps if not step.path]
        return next((entry.mode for entry in reversed(entries) if entry is not None), None)

    def _empty(self, folder: int) -> None:
        with os.scandir(folder) as found:
            names = [os.fsencode(item.name) for item in found]
        for name in names:
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISDIR(info.st_mode):
                self._disk.remove_at(folder, name)
                continue
            self._disk.set_dir_mode_at(folder, name, OWNER)
            inside = os.open(name, DIRECTORY, dir_fd=folder)
            try:
                self._empty(inside)
            finally:
                os.close(inside)
            self._disk.remove_dir_at(folder, name)

    # --- places -----------------------------------------------------------------------------------

    def _of(self, act: Act) -> Iterator[Step]:
        return (step for step in self._steps if step.act == act)

    def _open_staging(self) -> None:
        if self._staging < 0:
            try:
                self._staging = os.open(self._journal.staging, DIRECTORY, dir_fd=self._descent.root)
            except FileNotFoundError:
                self._staging = -1

    def _place(self, path: bytes) -> tuple[int, bytes]:
        """The open directory that a path lies in, and its name there."""
        *above, name = parts_of(path)
        try:
            return self._descent.open(above), name
        except OSError as error:
            raise DiskError(
                f"{shown(path)} cannot be reached: {error.strerror}", error.errno
            ) from error

    def _try_place(self, path: bytes) -> tuple[int, bytes] | None:
        try:
            return self._place(path)
        except DiskError:
            return None

    def _descent_forgets(self, path: bytes) -> None:
        self._descent.forget(parts_of(path))

    def _set_mode(self, path: bytes, mode: int) -> None:
        if not path:
            self._disk.set_mode(self._descent.root, mode)
            return
        self._disk.set_dir_mode_at(*self._place(path), mode)

    def _try_mode(self, path: bytes, mode: int) -> None:
        _unless(self._set_mode, path, mode, allowed=_NOT_OURS)


def _unless(do: Callable[..., None], *args: object, allowed: tuple[int, ...]) -> None:
    try:
        do(*args)
    except DiskError as error:
        if error.errno not in allowed:
            raise


def _new(step: Step) -> bytes:
    return b"n%d" % step.slot


def _old(step: Step) -> bytes:
    return b"o%d" % step.slot


def _stat(folder: int, name: bytes) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None


def _there(folder: int, name: bytes) -> bool:
    return _stat(folder, name) is not None
