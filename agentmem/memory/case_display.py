"""How a bank, its cases, its changes and what it recalls are shown to a person and to a program."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agentmem import format as fmt
from agentmem.domain.case import Case
from agentmem.memory.case_audit import AuditReport, BankStats
from agentmem.memory.case_desk import CaseHistory
from agentmem.memory.case_history import CaseDiff, Logged
from agentmem.memory.case_search import Search

WIDTH = 60
"""Characters that a text may take in a row."""


class _Shown(ABC):
    """What has a table has JSON of the values that it shows."""

    def to_json(self) -> str:
        """For a program."""
        return json.dumps(_plain(self._content()), ensure_ascii=False)

    @abstractmethod
    def _content(self) -> Any:
        """The values."""


@dataclass(frozen=True)
class Cases(_Shown):
    """Some of a bank's cases."""

    path: Path
    cases: tuple[Case, ...]
    living: int
    """How many there are in all."""

    def table(self) -> fmt.Table:
        """One row for each."""
        rest = self.living - len(self.cases)
        return _table(
            f"{self.path}: {fmt.count(self.living, 'case')}",
            ("id", "state", "action", "reward>", "source", ""),
            [(*_row(case), case.provenance.source, _marks(case)) for case in self.cases],
            f"{fmt.count(rest)} more are not shown." if rest else "",
        )

    def _content(self) -> Any:
        return {"cases": self.cases, "living": self.living}


@dataclass(frozen=True)
class OneCase(_Shown):
    """A case with its history and its uses."""

    history: CaseHistory

    def table(self) -> fmt.Tables:
        """What it says; the changes that wrote it; the states that recalled it."""
        case = self.history.case
        said = [
            ("state", case.state),
            ("action", case.action),
            *[(f"step {number}", step) for number, step in enumerate(case.trace, 1)],
            ("reward", f"{fmt.number(case.reward)} in {fmt.count(case.attempts, 'attempt')}"),
            *[("task", case.task_id) for _ in range(bool(case.task_id))],
            ("from", " ".join(filter(None, (case.provenance.source, case.provenance.place))) or fmt.MISSING),
            ("trust", ", ".join(filter(None, (case.trust, "gated" if case.gated else "")))),
            *[("merged from", ", ".join(case.parents)) for _ in range(bool(case.parents))],
        ]
        title = f"{case.id}, revision {case.revision}" + ("" if self.history.living else ", removed")
        uses = [
            (str(use.seq), short(use.state), *map(fmt.number, (use.reward, use.value, use.propensity, use.share)))
            for use in self.history.uses
        ]
        tables = [_table(title, ("", "says"), said), _changes("changes", self.history.log)]
        columns = ("change", "in the state", "reward>", "more than usual>", "propensity>", "share>")
        return fmt.Tables((*tables, *([_table("uses", columns, uses)] if uses else [])))

    def _content(self) -> Any:
        return self.history


@dataclass(frozen=True)
class Found(_Shown):
    """What a query recalls, and why."""

    search: Search
    k: int

    def table(self) -> fmt.Table:
        """One row for each case of the slate, in the order of drawing; below, what was kept out of it."""
        recall = self.search.recall
        rows = [
            (
                *_row(item.case)[:3],
                fmt.number(item.case.reward),
                *map(fmt.number, (item.similarity, item.mu0, item.q, item.mu, item.propensity)),
            )
            for item in recall.cases
        ]
        columns = ("id", "state", "action", "reward>", "similarity>", "mu0>", "Q>", "mu>", "propensity>")
        title = f"{recall.policy}: {fmt.count(len(rows), 'case')} recalled"
        return _table(title, columns, rows, "\n".join(self._kept_out()))

    def _content(self) -> Any:
        return self.search

    def _kept_out(self) -> list[str]:
        recall, held = self.search.recall, self.search.quarantined
        said = []
        if recall.ended is not None and recall.ended < 1:
            said.append(
                f"It recalled no more than this with probability {fmt.probability(recall.ended)}; another --seed draws "
                "others, and --policy similarity shows the nearest."
            )
        if recall.dropped:
            said.append(f"{recall.dropped} was chosen, and left out at random to learn what it is worth.")
        if recall.withheld:
            said.append(
                f"{fmt.count(recall.withheld, 'case')} withheld by the leak guard: of this task, or of nearly the same."
            )
        if held:
            named = [f"{one.id} (similarity {fmt.number(one.similarity)})" for one in held]
            said.append(f"In quarantine, and so never recalled: {fmt.some(named, 5)}.")
        return said


@dataclass(frozen=True)
class Changes(_Shown):
    """A bank's changes."""

    path: Path
    log: tuple[Logged, ...]

    def table(self) -> fmt.Table:
        """One row for each, newest first."""
        return _changes(f"{self.path}: {fmt.count(len(self.log), 'change')}", self.log)

    def _content(self) -> Any:
        return self.log


@dataclass(frozen=True)
class Difference(_Shown):
    """What differs between two states of a bank."""

    diff: CaseDiff

    def table(self) -> fmt.Table:
        """One row for each case."""
        found = self.diff
        rows = [("added", *_row(case)) for case in found.added]
        rows += [("removed", *_row(case)) for case in found.removed]
        for old, new in found.changed:
            rows += [("was", *_row(old)), (_became(old, new), *_row(new))]
        uses = f"{found.uses:+,} uses count." if found.uses else ""
        title = f"change {found.before} → change {found.after}"
        empty = "The same cases." if not rows else ""
        return _table(title, ("", "id", "state", "action", "reward>"), rows, " ".join(filter(None, (empty, uses))))

    def _content(self) -> Any:
        return self.diff


@dataclass(frozen=True)
class Done(_Shown):
    """What was just done to a bank."""

    path: Path
    living: int
    log: tuple[Logged, ...]
    """The changes that were made; none where there was nothing to do."""

    def table(self) -> fmt.Table:
        """One row for each change; below, what else it did."""
        title = f"{self.path}: {fmt.count(self.living, 'case')}"
        notes = [note for one in self.log for note in one.notes]
        more = [f"{len(notes) - 10:,} more notes; `agentmem memory log` has them."] if len(notes) > 10 else []
        return _changes(title, self.log, "\n".join((*notes[:10], *more)))

    def _content(self) -> Any:
        return {"memory": str(self.path), "cases": self.living, "changes": self.log}


@dataclass(frozen=True)
class Audited(_Shown):
    """What an audit found."""

    report: AuditReport

    def table(self) -> fmt.Table:
        """One row for each finding."""
        rows = [(finding.kind, finding.text) for finding in self.report.findings]
        title = f"{fmt.count(self.report.cases, 'case')} audited"
        return _table(title, ("", "what was found"), rows, "" if rows else "Nothing found.")

    def _content(self) -> Any:
        return self.report


@dataclass(frozen=True)
class Stats(_Shown):
    """A bank in numbers."""

    path: Path
    stats: BankStats
    index: str
    """What would find the nearest cases."""

    def table(self) -> fmt.Table:
        """One row for each number."""
        rows = []
        for name, value in self.stats:
            text = fmt.number(value) if isinstance(value, float) else value
            text = fmt.count(text) if isinstance(text, int) else text
            if isinstance(text, dict):
                text = fmt.some([f"{source or 'unnamed'} {n:,}" for source, n in text.items()])
            rows.append((name.replace("_", " "), fmt.MISSING if text is None else str(text)))
        return _table(str(self.path), ("", ">"), [*rows, ("index", self.index)])

    def _content(self) -> Any:
        return {**self.stats.model_dump(mode="json"), "index": self.index}


def short(text: str) -> str:
    """A text in one row."""
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def _changes(title: str, log: Sequence[Logged], caption: str = "") -> fmt.Table:
    rows = [
        (
            str(one.seq),
            one.verb,
            one.case_id or fmt.MISSING,
            datetime.fromtimestamp(one.written_at, UTC).strftime("%Y-%m-%d %H:%M:%S"),
            short(one.why),
        )
        for one in log
    ]
    return _table(title, ("change", "did", "case", "when (UTC)", "why"), rows, caption)


def _table(title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]], caption: str = "") -> fmt.Table:
    """A column whose name ends in > holds numbers. Without rows there is no head."""
    named: list[tuple[str, fmt.Justify]] = [
        (name.rstrip(">"), "right" if name.endswith(">") else "left") for name in columns
    ]
    return fmt.Table(title, tuple(named) if rows else (), tuple(rows), caption)


def _row(case: Case) -> tuple[str, ...]:
    return case.id, short(case.state), short(case.action), fmt.number(case.reward)


def _marks(case: Case) -> str:
    merged = [f"×{case.attempts}"] if case.attempts > 1 else []
    wary = ["quarantined"] if case.trust == "quarantined" else []
    return ", ".join([*merged, *wary, *(["gated"] if case.gated else [])])


def _became(old: Case, new: Case) -> str:
    """What is another now: a row shows words and reward, and the rest has to be named."""
    return "now, trusted" if (old.trust, new.trust) == ("quarantined", "trusted") else (
        "now, quarantined" if old.trust != new.trust else "now"
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """Values as JSON has them."""
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value
