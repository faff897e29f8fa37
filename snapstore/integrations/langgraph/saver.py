"""SnapstoreSaver: LangGraph's checkpointer on a snapstore store."""

from __future__ import annotations

import asyncio
import builtins
import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from snapstore.integrations.langgraph import turns
from snapstore.integrations.langgraph.sqlite_file import import_sqlite
from snapstore.integrations.langgraph.threads import Given, Threads
from snapstore.integrations.langgraph.turns import Key, Place
from snapstore.integrations.opening import Opened
from snapstore.store import Store, given_store

_VALUES = "channel_values"
_COUNTERS = "counters_since_delta_snapshot"


class SnapstoreSaver(BaseCheckpointSaver[str]):
    """Checkpoints of LangGraph graphs in a snapstore store, for sync and async graphs alike.

    A thread is a session: ``snapstore log``, ``show``, ``diff``, ``fork`` and ``rewind`` work on
    it, and a fork is a thread that a graph goes on with. Several threads and processes may write.

    It raises what the store raises, a ``snapstore.SnapstoreError``.
    """

    def __init__(self, store: Store, *, serde: SerializerProtocol | None = None) -> None:
        """A saver on a store that is open, and stays the caller's to close."""
        super().__init__(serde=serde)
        self.store = given_store(store)
        # Copies that with_allowlist makes share it.
        self._threads = Threads(store)

    @classmethod
    def from_conn_string(
        cls, conn_string: str | Path, *, serde: SerializerProtocol | None = None
    ) -> Opened[Self]:
        """A saver on the store at a path, or ``:memory:``, for ``with`` or ``async with``."""
        return Opened(conn_string, partial(cls, serde=serde))

    # --- reading ----------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that the config names, or the latest of its thread and namespace."""
        thread, key = self._named(config)
        if key is None:
            return None
        named = get_checkpoint_id(config)
        own = config if named else _config(config["configurable"]["thread_id"], key)
        return self._tuple(thread, key, own)

    def _named(self, config: RunnableConfig) -> tuple[str, Key | None]:
        """The thread, and the checkpoint that a config names there or the latest."""
        thread, namespace = _place(config)
        named = get_checkpoint_id(config)
        return thread, Key(namespace, named) if named else self._threads.latest(thread, namespace)

    def _tuple(self, thread: str, key: Key, config: RunnableConfig) -> CheckpointTuple | None:
        found = self._threads.checkpoint(thread, key)
        if found is None:
            return None
        checkpoint = self._loaded(found.rest)
        for channel, stored in found.values.items():
            checkpoint[_VALUES][channel] = self._loaded(stored)
        parent = Key(key.namespace, found.parent) if found.parent else None
        return CheckpointTuple(
            config,
            cast(Checkpoint, checkpoint),
            self._loaded(found.metadata),
            _config(config["configurable"]["thread_id"], parent) if parent else None,
            self._pending(thread, key),
        )

    def _loaded(self, stored: turns.Stored) -> Any:
        return self.serde.loads_typed(self._threads.load(stored))

    def _pending(self, thread: str, key: Key) -> builtins.list[PendingWrite]:
        found = self._threads.writes(thread, key)
        return [(place.task, write.channel, self._loaded(write.value)) for place, write in found]

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints of a thread, or of all when config is None, the greatest id first."""
        left = limit
        for thread, key, own in self._chosen(config, before):
            if left is not None and left <= 0:
                return
            found = self._matching(thread, key, own, filter)
            if found is not None:
                left = None if left is None else left - 1
                yield found

    def _chosen(
        self, config: RunnableConfig | None, before: RunnableConfig | None
    ) -> builtins.list[tuple[str, Key, RunnableConfig]]:
        wanted: Mapping[str, Any] = config["configurable"] if config else {}
        given = wanted.get("thread_id")
        namespace, named = wanted.get("checkpoint_ns"), wanted.get("checkpoint_id")
        limit = get_checkpoint_id(before) if before else None
        chosen = [
            (thread, key, _config(thread if given is None else given, key))
            for thread in ([str(given)] if given is not None else self._threads.ids())
            for key in self._threads.keys(thread)
            if (namespace is None or key.namespace == namespace)
            and (not named or key.checkpoint == named)
            and (not limit or key.checkpoint < limit)
        ]
        chosen.sort(key=lambda found: found[1].checkpoint, reverse=True)
        return chosen

    def _matching(
        self, thread: str, key: Key, config: RunnableConfig, wanted: Mapping[str, Any] | None
    ) -> CheckpointTuple | None:
        if wanted:
            found = self._threads.checkpoint(thread, key)
            metadata = self._loaded(found.metadata) if found else {}
            if any(name not in metadata or metadata[name] != v for name, v in wanted.items()):
                return None
        return self._tuple(thread, key, config)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What the ancestors of a checkpoint wrote to channels, back to where each has a value."""
        thread, key = self._named(config)
        newest_first: dict[str, builtins.list[PendingWrite]] = {channel: [] for channel in channels}
        found: dict[str, DeltaChannelHistory] = {c: {"writes": []} for c in channels}
        left = set(channels)
        for ancestor in self._threads.ancestors(thread, key) if key else ():
            if not left:
                break
            for place, write in reversed(self._threads.writes(thread, ancestor.key)):
                if write.channel in left:
                    value = self._loaded(write.value)
                    newest_first[write.channel].append((place.task, write.channel, value))
            for channel in left & ancestor.values.keys():
                found[channel]["seed"] = self._loaded(ancestor.values[channel])
            left -= ancestor.values.keys()
        for channel, writes in newest_first.items():
            found[channel]["writes"] = writes[::-1]
        return found

    # --- writing ----------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint; durable when it returns. Raises what the serialiser raises."""
        thread, namespace = _place(config)
        key = Key(namespace, checkpoint["id"])
        parent = config["configurable"].get("checkpoint_id")
        held = checkpoint["channel_values"]
        unchanged = self._unchanged(thread, namespace, parent, checkpoint, new_versions)
        rest: dict[str, Any] = {**checkpoint, _VALUES: {}}
        dumps = self.serde.dumps_typed
        given = Given(
            key,
            parent,
            _label(namespace, metadata),
            dumps(rest),
            dumps(get_checkpoint_metadata(config, metadata)),
            checkpoint["channel_versions"],
            {name: dumps(value) for name, value in held.items() if name not in unchanged},
            unchanged,
        )
        self._threads.put(thread, given)
        return _config(config["configurable"]["thread_id"], key)

    def _unchanged(
        self,
        thread: str,
        namespace: str,
        parent: str | None,
        checkpoint: Checkpoint,
        new_versions: ChannelVersions,
    ) -> frozenset[str]:
        """The channels whose value the parent holds at the same version."""
        before = self._threads.checkpoint(thread, Key(namespace, parent)) if parent else None
        if before is None:
            return frozenset()
        versions = checkpoint["channel_versions"]
        return frozenset(
            name
            for name in checkpoint["channel_values"]
            if name in before.values
            and name not in new_versions
            and versions.get(name) is not None
            and versions[name] == before.versions.get(name)
        )

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep what a task wrote to channels; durable when it returns."""
        thread, namespace = _place(config)
        key = Key(namespace, config["configurable"]["checkpoint_id"])
        dumps = self.serde.dumps_typed
        given = {
            Place(task_id, WRITES_IDX_MAP.get(channel, at)): (channel, dumps(value))
            for at, (channel, value) in enumerate(writes)
        }
        self._threads.put_writes(thread, key, task_path, given)

    def get_next_version(self, current: str | int | float | None, channel: None) -> str:
        """A version after the current one. Two branches never get the same by chance."""
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:032}.{random.random():016}"

    # --- care -------------------------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """End a thread. ``snapstore undo`` brings it back until it is collected."""
        self._threads.delete(str(thread_id))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Give a thread all that another holds. A new thread costs the same whatever that is."""
        self._threads.copy(str(source_thread_id), str(target_thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Drop the checkpoints of these runs, and the writes to them, in every thread."""
        runs = {str(run) for run in run_ids}
        for thread in self._threads.ids() if runs else ():
            self._threads.keep(thread, partial(self._of_other_runs, thread, runs))

    def _of_other_runs(self, thread: str, runs: set[str], keys: Sequence[Key]) -> set[Key]:
        found = ((key, self._threads.checkpoint(thread, key)) for key in keys)
        return {
            key
            for key, one in found
            if one is not None and self._loaded(one.metadata).get("run_id") not in runs
        }

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Drop what is old: all but the latest checkpoint of each namespace, or with the strategy
        ``delete`` all.

        Ancestors that delta channels of the latest are rebuilt from stay, with their writes.

        Raises TypeError for a bare string, ValueError for another strategy.
        """
        if isinstance(thread_ids, str):
            raise TypeError("prune takes a sequence of thread ids, not one")
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"the strategy is 'keep_latest' or 'delete', not {strategy!r}")
        for thread in map(str, thread_ids):
            if strategy == "delete":
                self._threads.delete(thread)
            else:
                self._threads.keep(thread, partial(self._needed, thread))

    def _needed(self, thread: str, keys: Sequence[Key]) -> set[Key]:
        """The latest checkpoint of each namespace, and what its delta channels need."""
        latest: dict[str, Key] = {}
        for key in keys:
            latest[key.namespace] = max(key, latest.get(key.namespace, key))
        needed = set(latest.values())
        for key in latest.values():
            found = self._threads.checkpoint(thread, key)
            deltas = self._loaded(found.metadata).get(_COUNTERS, {}) if found else {}
            left = set(deltas) - found.values.keys() if found else set()
            for ancestor in self._threads.ancestors(thread, key) if left else ():
                needed.add(ancestor.key)
                left -= ancestor.values.keys()
                if not left:
                    break
        return needed

    def import_sqlite(self, path: str | Path) -> builtins.list[str]:
        """Bring in the threads of a file that SqliteSaver wrote; their ids.

        Raises Refused where a session is in the way, InvalidInput for another file.
        """
        return [brought.thread for brought in import_sqlite(self.store, path)]

    # --- the same, for async graphs ---------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As get_tuple."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As list."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As put."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As put_writes."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """As delete_thread."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As delete_for_runs."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As copy_thread."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As prune."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As get_delta_channel_history."""
        return await asyncio.to_thread(
            lambda: self.get_delta_channel_history(config=config, channels=channels)
        )


def _place(config: RunnableConfig) -> tuple[str, str]:
    wanted = config["configurable"]
    return str(wanted["thread_id"]), wanted.get("checkpoint_ns", "")


def _config(thread: Any, key: Key) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": thread,
            "checkpoint_ns": key.namespace,
            "checkpoint_id": key.checkpoint,
        }
    }


def _label(namespace: str, metadata: CheckpointMetadata) -> str:
    """What a turn is called in the log: ``loop 3``, or ``loop 0 in child``."""
    words = [
        str(metadata.get(name)) for name in ("source", "step") if metadata.get(name) is not None
    ]
    node = namespace.split("|")[-1].split(":")[0]
    return " ".join([*words, *(["in", node] if node else [])])
