"""One run: its directory, what was asked, and `step`, which buys nothing twice."""

from __future__ import annotations

import asyncio
import fcntl
import os
import tomllib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from agentmem.atomic import atomic_write
from agentmem.domain.value import Value, encodable
from agentmem.errors import (
    AgentMemError,
    InputError,
    JournalError,
    RunBusy,
    RunMismatch,
    SlotMismatch,
    stored_error,
)
from agentmem.events import Events, Listener, RunOpened
from agentmem.runs.journal import Journal, Stored
from agentmem.runs.ledger import Ledger
from agentmem.runs.slot import Slot
from agentmem.settings import Budget

V = TypeVar("V", bound=Value)


class Mark(Value):
    """A random word; see `Run.mark`."""

    word: str


class Run:
    """A run directory that this process works in.

    Everything that costs or is not deterministic goes through `step`; all code above it is plain and
    deterministic. So a run that was killed and is started again by the same command replays what is stored and buys
    only what was in flight.

    Use `Run.open`; close it with `close` or as a context manager.
    """

    def __init__(self, path: Path, journal: Journal, ledger: Ledger, events: Events, lock: int) -> None:
        self.path = path
        self.journal = journal
        self.ledger = ledger
        self.events = events
        self._lock = lock
        self._drawing = asyncio.Lock()

    @classmethod
    def open(
        cls,
        path: str | Path,
        asked: dict[str, Any],
        *,
        budget: Budget | None = None,
        listeners: tuple[Listener, ...] = (),
    ) -> Run:
        """Open a directory for a run that is asked for, new or to be gone on with.

        Args:
            path: the directory; made where there is none.
            asked: what determines the results: settings, fingerprints. Stored in `run.toml` and compared.
            budget: limits over all processes of this run, but for `max_seconds`, which counts from now.
            listeners: who is told what happens.

        Raises:
            RunMismatch: the directory holds a run that was asked for otherwise; the message names the keys.
            RunBusy: another process works in it.
            JournalError: its journal cannot be used.
            InputError: the path is a file, or a folder that holds something else.
        """
        folder = Path(path)
        lock = _prepare(folder)
        try:
            _compare(folder / "run.toml", _flat(asked))
            journal = Journal(folder / "journal.sqlite")
        except BaseException:
            os.close(lock)
            raise
        try:
            run = cls(folder, journal, Ledger(journal, budget), Events.of(listeners), lock)
            stored = journal.count()
        except BaseException:
            journal.close()
            os.close(lock)
            raise
        run.events.emit(RunOpened(str(folder), resumed=stored > 0, stored=stored))
        return run

    async def step(self, slot: Slot, do: Callable[[], Awaitable[V]], *, returns: type[V], request: str = "") -> V:
        """The result stored at `slot`, or that of `do`, stored before it is returned.

        Args:
            slot: the place; see `Slot`.
            do: what costs. An `AgentMemError` that does not stop the run is stored, and raised again on replay.
            returns: the type of the result.
            request: fingerprint of what is asked; it verifies the stored result.

        Raises:
            SlotMismatch: the place holds the answer to another request.
        """
        stored = self.journal.read(slot)
        if stored is not None:
            if stored.request != request:
                raise SlotMismatch(
                    f"{self.path}: the stored result at ({slot}) answers another request. The agent, a prompt or the "
                    "code in between changed, or is not deterministic; use a new run directory."
                )
            if stored.failure is not None:
                raise stored_error(stored.failure, stored.result)
            return returns.model_validate_json(stored.result)
        try:
            result = await do()
        except AgentMemError as error:
            if not error.stops_run:
                await self.journal.store(slot, Stored(request, error.kind, encodable(str(error))))
            raise
        await self.journal.store(slot, Stored(request, None, result.model_dump_json(by_alias=True)))
        return result

    def at(self, phase: str, *, step: int = 0, task: str = "", rollout: int = 0) -> Scope:
        """A place in the run, to be handed to whoever works there."""
        return Scope(self, Slot(phase, step, task, rollout))

    async def mark(self) -> str:
        """A random word of this run: what encloses quoted text, because that text cannot know it.

        It is drawn once and stored, so that replayed prompts, and prompts that a provider has in its cache, hold.
        """

        async def draw() -> Mark:
            return Mark(word=os.urandom(6).hex().upper())

        async with self._drawing:
            return (await self.step(Slot("run", purpose="mark"), draw, returns=Mark)).word

    async def forget_failures(self, phase: str, step: int) -> None:
        """Drop what failed, and what was made of it, so that the next process tries again.

        A task with a failed rollout loses that rollout, its failed calls, and whatever was distilled from its group.
        Calls that succeeded stay: they are paid for, and their requests' hashes verify them.
        """
        failed = (
            "SELECT task FROM steps WHERE phase=:phase AND step=:step AND"
            " (failure IS NOT NULL OR (purpose='rollout' AND"
            " (json_extract(result, '$.status')='failed' OR json_extract(result, '$.reward.status')='error')))"
        )
        await self.journal.write(
            f"DELETE FROM steps WHERE phase=:phase AND step=:step AND task IN ({failed}) AND (failure IS NOT NULL"
            # `act/p1.a` is `act` at a place of its own; what was recalled or offered is in the requests of the calls.
            " OR substr(purpose, 1, instr(purpose || '/', '/') - 1)"
            "  NOT IN ('act', 'tool', 'tools', 'recall', 'agent', 'judge', 'confidence', 'rollout')"
            " OR (purpose='rollout' AND (json_extract(result, '$.status')='failed'"
            "  OR json_extract(result, '$.reward.status')='error')))",
            {"phase": phase, "step": step},
        )

    def close(self) -> None:
        """Write what is waiting and let others in."""
        self.journal.close()
        os.close(self._lock)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@dataclass(slots=True)
class Scope:
    """A place in a run that counts: the second `act` at a place is not the first."""

    run: Run
    slot: Slot
    _counts: Counter[str] = field(default_factory=Counter)

    async def step(
        self, purpose: str, do: Callable[[], Awaitable[V]], *, returns: type[V], request: str = ""
    ) -> V:
        """`Run.step` at the next ordinal of `purpose`."""
        slot = self.slot._replace(purpose=purpose, ordinal=self._counts[purpose])
        self._counts[purpose] += 1
        return await self.run.step(slot, do, returns=returns, request=request)


def _prepare(folder: Path) -> int:
    """Make the folder and lock it; returns the lock's file descriptor."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a directory for the run.")
    if folder.is_dir() and not (folder / "run.toml").exists() and any(p.name != "lock" for p in folder.iterdir()):
        raise InputError(f"{folder} holds something else than a run (no run.toml); name a new directory.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"The run directory {folder} cannot be made: {error}.") from error
    return take_lock(folder)


def take_lock(folder: Path) -> int:
    """Keep other processes out of a run directory; returns a file descriptor, which lets them in when it is closed.

    Raises:
        RunBusy: another process works in it.
        JournalError: the folder cannot be written to.
    """
    try:
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise JournalError(f"The run directory {folder} cannot be written to: {error}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise RunBusy(f"Another process works in {folder}; wait for it, or name another run.") from None
    return lock


_ONCE = {"settings.samples"}
"""What earlier versions wrote down; it determines no single result, and is not compared unless it is asked for."""


def _compare(path: Path, asked: dict[str, Any]) -> None:
    """Store what is asked, or compare it with what was."""
    if not path.exists():
        import tomli_w

        atomic_write(path, tomli_w.dumps(_nested(asked)))
        return
    try:
        before = _flat(tomllib.loads(path.read_text("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RunMismatch(f"{path} is damaged ({error}); restore it, or name another run.") from None
    if before.get("verb") != asked.get("verb"):
        raise RunMismatch(
            f"{path.parent} holds a run of `{before.get('verb')}`, not of `{asked.get('verb')}`; name another run."
        )
    keys = asked.keys() | (before.keys() - _ONCE)
    differ = sorted(key for key in keys if before.get(key) != asked.get(key))
    if differ:
        shown = "; ".join(f"{key} was {before.get(key)!r}, now {asked.get(key)!r}" for key in differ[:6])
        more = f"; and {len(differ) - 6} more" if len(differ) > 6 else ""
        raise RunMismatch(
            f"{path.parent} holds a run that was asked for otherwise: {shown}{more}. "
            "Ask for the same, or name another run."
        )


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        elif value is not None:  # TOML has no null; absent is null
            flat[f"{prefix}{key}"] = list(value) if isinstance(value, tuple) else value
    return flat


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *folders, leaf = key.split(".")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[leaf] = value
    return tree
