"""What people do with a bank: look into it, question it, and take back what should not be in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentmem.domain.case import Case
from agentmem.domain.provenance import Trust
from agentmem.domain.value import Value
from agentmem.memory import case_audit, case_files, case_history
from agentmem.memory.case_audit import AuditReport, BankStats
from agentmem.memory.case_change import changing
from agentmem.memory.case_history import CaseDiff, Logged
from agentmem.memory.case_store import CaseStore
from agentmem.memory.case_writing import merge_cases


class Use(Value):
    """One time that a case was recalled, and what came of it."""

    seq: int
    state: str
    """In which state."""
    value: float
    """What the case was credited with: the reward minus what tasks like this one had brought."""
    reward: float
    """What the attempt was worth."""
    propensity: float | None = None
    """The probability with which it was drawn; None where nothing was drawn."""
    share: float = 1.0
    """Which part of the outcome is the case's."""


class CaseHistory(Value):
    """All that is known of one case."""

    case: Case
    living: bool
    log: tuple[Logged, ...]
    """The changes that wrote it or credited it, newest first."""
    uses: tuple[Use, ...]
    """Those that count, oldest first."""


class CaseDesk:
    """The verbs of a bank that need no embedder; `CaseBank` has them all."""

    path: Path
    store: CaseStore

    @property
    def seq(self) -> int:
        """The number of its last change."""
        return self.store.seq

    @property
    def snapshot(self) -> str:
        """A hash, equal for banks with the same living cases and the same uses, however they came to have them."""
        total = hashlib.sha256()
        for line in case_files.content(self.store.rows):
            total.update(line.encode() + b"\n")
        return total.hexdigest()[:16]

    def __len__(self) -> int:
        return int(self.store.rows("SELECT COALESCE(SUM(living), 0) FROM sources")[0][0])

    def __iter__(self) -> Iterator[Case]:
        return iter(self.store.cases())

    def __getitem__(self, id: str) -> Case:
        for case in self.store.cases([id]):
            return case
        raise KeyError(id)

    def list(
        self, *, trust: Trust | None = None, source: str | None = None, limit: int | None = None
    ) -> tuple[Case, ...]:
        """The living cases, oldest first.

        Args:
            trust: only `trusted` or only `quarantined` ones.
            source: only those that this source brought.
            limit: the newest so many.
        """
        rows = self.store.rows(
            "SELECT body FROM cases WHERE NOT gone AND (:trust IS NULL OR trust = :trust)"
            " AND (:source IS NULL OR source = :source) ORDER BY born DESC, rowid DESC LIMIT :limit",
            {"trust": trust, "source": source, "limit": -1 if limit is None else limit},
        )
        return tuple(Case.model_validate_json(body) for (body,) in reversed(rows))

    def show(self, id: str) -> CaseHistory:
        """One case with its history and its uses, also one that is gone.

        Raises:
            InputError: the bank never had it.
        """
        row = self.store.rows("SELECT gone, body FROM cases WHERE id = ?", (id,))
        if not row:
            raise self.store.unknown(id)
        uses = self.store.rows(
            "SELECT u.seq, v.text, u.value, u.reward, u.propensity, u.share"
            " FROM uses u JOIN vectors v ON v.id = u.vector WHERE u.case_id = ? AND NOT u.void ORDER BY u.seq",
            (id,),
        )
        return CaseHistory(
            case=Case.model_validate_json(row[0][1]),
            living=not row[0][0],
            log=case_history.log(self.store.rows, case_id=id),
            uses=tuple(Use(seq=q, state=s, value=v, reward=r, propensity=p, share=w) for q, s, v, r, p, w in uses),
        )

    def log(self, *, since: int = 0, limit: int | None = None) -> tuple[Logged, ...]:
        """The changes after number `since`, newest first."""
        return case_history.log(self.store.rows, since=since, limit=limit)

    def diff(self, before: int, after: int | None = None) -> CaseDiff:
        """What differs between the states right after two changes; by default up to now."""
        return case_history.diff(self.store.rows, before, self.seq if after is None else after)

    def undo(self, seq: int, *, why: str = "", key: str | None = None) -> int:
        """Undo one change by its number; what was done since stays. Gives the number of this change.

        Raises:
            InputError: there is no such change, it is undone already, or a later one stands in the way.
        """
        with changing(self.store, "undo", key=key, why=why or f"undo of {seq}") as change:
            if not change.replayed:
                case_history.undo(change, seq)
            return change.seq

    def rollback(self, seq: int, *, why: str = "", key: str | None = None) -> int:
        """Go back to the state right after a change; 0 is the empty bank. It can be undone like any change.

        Raises:
            InputError: there is no such change.
        """
        with changing(self.store, "rollback", key=key, why=why or f"rollback to {seq}") as change:
            if not change.replayed:
                case_history.rollback(change, seq)
            return change.seq

    def remove(self, *ids: str, why: str = "", key: str | None = None) -> None:
        """Take cases out. Their ids are never given again, and `undo` brings them back.

        Raises:
            InputError: the bank does not have one of them; then none is removed.
        """
        with changing(self.store, "remove", key=key, why=why) as change:
            for id in () if change.replayed else ids:
                change.write(change.read(id), gone=True)
                change.case_id = id if len(ids) == 1 else ""

    def merge(self, ids: Sequence[str], *, why: str = "", key: str | None = None) -> Case:
        """Make several cases one: the oldest stays, and gets the others' rewards and uses.

        Raises:
            InputError: there are not two different ones, or one is quarantined and another is not.
        """
        with changing(self.store, "merge", key=key, why=why) as change:
            return change.read(change.case_id, gone=True) if change.replayed else merge_cases(change, ids)

    def promote(self, id: str, *, why: str = "", key: str | None = None) -> Case:
        """Let a quarantined case be recalled: a person, or a gate, vouches for it."""
        return self._trust("promote", id, "trusted", why, key)

    def quarantine(self, id: str, *, why: str = "", key: str | None = None) -> Case:
        """Keep a case, but never recall it until it is promoted."""
        return self._trust("quarantine", id, "quarantined", why, key)

    def audit(self) -> AuditReport:
        """What is wrong with the bank, or may be. With 100,000 cases it takes minutes."""
        return case_audit.audit(self.store.rows)

    def stats(self) -> BankStats:
        """The bank in numbers."""
        return case_audit.stats(self.store)

    def export(self, path: str | Path, *, allow_gated: bool = False) -> int:
        """Write the living cases and their uses as JSON Lines, whole or not at all; gives the number of cases.

        Raises:
            InputError: a gated data set had a part in a case, and `allow_gated` is not set; or it cannot be written.
        """
        return case_files.export(self.store, path, allow_gated=allow_gated)

    def close(self) -> None:
        """Close its files."""
        self.store.close()

    def _trust(self, verb: str, id: str, trust: Trust, why: str, key: str | None) -> Case:
        with changing(self.store, verb, key=key, why=why) as change:
            case = change.read(id, gone=change.replayed)
            if not change.replayed:
                case = case.model_copy(update={"trust": trust, "revision": case.revision + 1})
                change.write(case)
                change.case_id = id
        return case
