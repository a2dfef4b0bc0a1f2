"""What was done to a bank: every change by its number, what it was before, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from agentmem.domain.case import Case
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.memory.case_change import Change

Rows: TypeAlias = Callable[[str, Any], list[tuple[Any, ...]]]
"""Reads with a query: `CaseStore.rows`, or in a transaction `Change.rows`."""


class Logged(Value):
    """One change of a bank."""

    seq: int
    """Its number; every later change has a higher one."""
    verb: str
    case_id: str
    """The case that it was about; empty where it was about several."""
    why: str = ""
    notes: tuple[str, ...] = ()
    """What else was done, in sentences: a secret taken out, a text shortened, a case merged or let go."""
    key: str | None = None
    """The attempt that wrote it."""
    written_at: float = 0.0
    """Seconds since 1970."""


class CaseDiff(Value):
    """What differs between two states of a bank."""

    before: int
    """The number of the last change of the earlier state."""
    after: int
    added: tuple[Case, ...] = ()
    removed: tuple[Case, ...] = ()
    changed: tuple[tuple[Case, Case], ...] = ()
    """Each before and after."""
    uses: int = 0
    """How many uses more count; negative where fewer do."""


def log(rows: Rows, *, since: int = 0, case_id: str | None = None, limit: int | None = None) -> tuple[Logged, ...]:
    """The changes, newest first.

    Args:
        rows: reads the bank.
        since: only those with a higher number.
        case_id: only those that wrote this case, or credited it.
        limit: the newest so many.
    """
    about = "" if case_id is None else (
        " AND seq IN (SELECT born FROM cases WHERE id = :id"
        " UNION SELECT seq FROM edits WHERE kind = 'case' AND id = :id UNION SELECT seq FROM uses WHERE case_id = :id)"
    )  # fmt: skip
    found = rows(
        "SELECT seq, verb, case_id, why, notes, key, written_at FROM log WHERE seq > :since"
        f"{about} ORDER BY seq DESC LIMIT :limit",
        {"since": since, "id": case_id, "limit": -1 if limit is None else limit},
    )
    return tuple(
        Logged(
            seq=seq,
            verb=verb,
            case_id=id,
            why=why,
            notes=tuple(filter(None, notes.split("\n"))),
            key=key,
            written_at=written_at,
        )
        for seq, verb, id, why, notes, key, written_at in found
    )


def case_at(rows: Rows, id: str, seq: int) -> Case | None:
    """A case as it was right after a change; None where it did not live then."""
    body = _body_at(rows, id, seq)
    return None if body is None else Case.model_validate_json(body)


def diff(rows: Rows, before: int, after: int) -> CaseDiff:
    """What the changes after number `before`, up to `after`, did to cases in all."""
    low, high = sorted((before, after))
    touched = rows(
        "SELECT id FROM cases WHERE born > ? AND born <= ? UNION"
        " SELECT id FROM edits WHERE kind = 'case' AND seq > ? AND seq <= ? ORDER BY id",
        (low, high, low, high),
    )
    pairs = [(case_at(rows, id, before), case_at(rows, id, after)) for (id,) in touched]
    uses = rows(
        "SELECT id FROM uses WHERE seq > ? AND seq <= ? UNION"
        " SELECT CAST(id AS INTEGER) FROM edits WHERE kind = 'use' AND seq > ? AND seq <= ?",
        (low, high, low, high),
    )
    counts = [_use_at(rows, id, moment)[0] == 0 for moment in (before, after) for (id,) in uses]
    return CaseDiff(
        before=before,
        after=after,
        added=tuple(new for old, new in pairs if new and not old),
        removed=tuple(old for old, new in pairs if old and not new),
        changed=tuple((old, new) for old, new in pairs if old and new and old != new),
        uses=sum(counts[len(uses) :]) - sum(counts[: len(uses)]),
    )


def undo(change: Change, seq: int) -> None:
    """Undo one earlier change; all that was done since stays.

    Raises:
        InputError: there is no such change, it is undone already, or a later one stands in the way.
    """
    _must_exist(change, seq)
    cases = change.rows(
        "SELECT id FROM cases WHERE born = ? UNION SELECT id FROM edits WHERE kind = 'case' AND seq = ?",
        (seq, seq),
    )
    uses = change.rows(
        "SELECT id FROM uses WHERE seq = ? UNION SELECT CAST(id AS INTEGER) FROM edits WHERE kind = 'use' AND seq = ?",
        (seq, seq),
    )
    written = False
    for (id,) in cases:
        before, after, now = (_body_at(change.rows, id, moment) for moment in (seq - 1, seq, change.seq))
        if now != before:
            if now != after:
                raise _in_the_way(change, "case", id, seq)
            _restore(change, id, before)
            written = True
    for (id,) in uses:
        was, became, holds = (_use_at(change.rows, id, moment) for moment in (seq - 1, seq, change.seq))
        if holds != was:
            if holds != became:
                raise _in_the_way(change, "use", str(id), seq)
            change.move_use(id, void=was[0], case_id=was[1])
            written = True
    if not written:
        raise InputError(f"Change {seq} is undone already, or wrote nothing; there is nothing to undo.")
    if len(cases) == 1:
        change.case_id = cases[0][0]


def rollback(change: Change, seq: int) -> None:
    """Bring all cases and uses back to what they were right after a change.

    Raises:
        InputError: there is no such change.
    """
    if seq:
        _must_exist(change, seq)
    cases = change.rows(
        "SELECT id FROM cases WHERE born > ? UNION SELECT id FROM edits WHERE kind = 'case' AND seq > ?",
        (seq, seq),
    )
    for (id,) in cases:
        _restore(change, id, _body_at(change.rows, id, seq))
    uses = change.rows(
        "SELECT id FROM uses WHERE seq > ? UNION SELECT CAST(id AS INTEGER) FROM edits WHERE kind = 'use' AND seq > ?",
        (seq, seq),
    )
    for (id,) in uses:
        void, case_id = _use_at(change.rows, id, seq)
        change.move_use(id, void=void, case_id=case_id)


def _body_at(rows: Rows, id: str, seq: int) -> str | None:
    """A case's JSON right after a change; None where it did not live."""
    born, gone, body = rows("SELECT born, gone, body FROM cases WHERE id = ?", (id,))[0]
    if born > seq:
        return None
    later = rows(
        "SELECT gone, body FROM edits WHERE kind='case' AND id=? AND seq>? ORDER BY seq LIMIT 1", (id, seq)
    )
    gone, body = later[0] if later else (gone, body)
    return None if gone else str(body)


def _use_at(rows: Rows, id: int, seq: int) -> tuple[int, str]:
    """Whether a use counted right after a change, and whose it was; before it was made it is as if undone."""
    born, void, case_id = rows("SELECT seq, void, case_id FROM uses WHERE id = ?", (id,))[0]
    first = rows(
        "SELECT gone, body FROM edits WHERE kind='use' AND id=? AND seq>? ORDER BY seq LIMIT 1",
        (str(id), max(seq, born)),
    )
    void, case_id = first[0] if first else (void, case_id)
    return (1 if born > seq else int(void), str(case_id))


def _restore(change: Change, id: str, body: str | None) -> None:
    if body is None:
        change.write(change.read(id, gone=True), gone=True)
    else:
        change.write(Case.model_validate_json(body))


def _must_exist(change: Change, seq: int) -> None:
    if not change.rows("SELECT 1 FROM log WHERE seq = ? AND seq < ?", (seq, change.seq)):
        raise InputError(f"There is no change {seq}; the last one is {change.seq - 1}. `log` lists them.")


def _in_the_way(change: Change, kind: str, id: str, seq: int) -> InputError:
    last = change.rows("SELECT MAX(seq) FROM edits WHERE kind = ? AND id = ? AND seq > ?", (kind, id, seq))[0][0]
    return InputError(
        f"Change {seq} cannot be undone alone: change {last} wrote over {id!r} since. Undo that first, or roll back."
    )
