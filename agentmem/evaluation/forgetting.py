"""What learning a new domain does to the old ones and to those to come: the matrix of GEM (1706.08840), section 3.

R[i, j] is the score on domain j after learning domain i, the domains being learned one after the other. Then
BWT is the mean over j < T of R[T, j] - R[j, j], and FWT the mean over j > 1 of R[j-1, j] - R[0, j], where row 0 is
before anything was learned. A negative BWT is forgetting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise

from agentmem import format as fmt
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.evaluation.combined import weighted
from agentmem.evaluation.comparison import Comparison, compare
from agentmem.evaluation.intervals import Interval
from agentmem.evaluation.report import EvaluationReport

BEFORE = "before"
"""The stage at which nothing was learned."""
Reports = Mapping[str, EvaluationReport]


class Cell(Value):
    """The score on a domain at a stage."""

    score: float
    interval: Interval
    n: int
    """Tasks."""


class Transfer(Value):
    """A mean difference over domains."""

    value: float
    interval: Interval
    """Over the tasks, paired; it says what these libraries do, not what learning once more would bring."""
    domains: dict[str, tuple[float, Interval]]
    """The difference on each domain."""

    @property
    def verdict(self) -> str:
        """What the interval says."""
        if self.interval.high < 0:
            return "harm"
        return "gain" if self.interval.low > 0 else "undecided"


class Forgetting(fmt.Shown, Value):
    """The matrix, and what follows from it."""

    domains: tuple[str, ...]
    """In the order in which they were learned."""
    cells: dict[str, dict[str, Cell]]
    """By stage (`before`, or the domain that was learned last) and domain; only what was evaluated."""
    accuracy: float
    """Mean score over the domains after the last one was learned."""
    accuracy_interval: Interval
    backward: Transfer
    """BWT: what became of a domain from when it was learned to the end. Negative is forgetting."""
    forward: Transfer | None = None
    """FWT: what the domains before it did for a domain; None where no stage `before`, or one in between, was
    evaluated."""

    def table(self) -> fmt.Table:
        """A row for each stage, a column for each domain, and the differences."""
        rows = [
            (f"after {stage}" if stage != BEFORE else BEFORE, *(_cell(row.get(domain)) for domain in self.domains))
            for stage, row in self.cells.items()
        ]
        lines = [
            f"n: {', '.join(f'{domain} {self._tasks(domain):,}' for domain in self.domains)}",
            f"accuracy at the end: {_value(self.accuracy, self.accuracy_interval)}",
            f"backward transfer (BWT): {_told(self.backward)}",
        ]
        if self.forward is not None:
            lines.append(f"forward transfer (FWT): {_told(self.forward)}")
        else:
            lines.append(f"forward transfer (FWT): needs the stage {BEFORE!r} and each stage's next domain")
        lines.append(
            "95 % intervals, paired by task: what these libraries do, not what learning again would bring"
        )
        return fmt.Table(
            title=f"{fmt.count(len(self.domains), 'domain')} learned one after the other",
            columns=(("stage", "left"), *((domain, "right") for domain in self.domains)),
            rows=tuple(rows),
            caption="\n".join(lines),
        )

    def to_json(self) -> str:
        """The result for a program."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False)

    def _tasks(self, domain: str) -> int:
        return next(row[domain].n for row in self.cells.values() if domain in row)


def forgetting(domains: Sequence[str], stages: Mapping[str, Reports]) -> Forgetting:
    """Backward and forward transfer from evaluations that are there.

    Args:
        domains: in the order in which they were learned.
        stages: by the domain that was learned last (or `before`), the evaluation on each domain. Needed are each
            domain when it was learned, and all of them at the end; for FWT also `before`, and each stage's next one.

    Raises:
        InputError: there are fewer than two domains, an evaluation is missing, or one domain's tasks differ.
    """
    if len(domains) < 2 or len(set(domains)) < len(domains):
        raise InputError(f"Forgetting needs two or more different domains, and there are: {', '.join(domains)}.")
    if unknown := [stage for stage in stages if stage not in (BEFORE, *domains)]:
        raise InputError(f"{unknown[0]!r} is no stage; the stages are {BEFORE!r} and {', '.join(domains)}.")
    last = domains[-1]

    def at(stage: str, domain: str) -> EvaluationReport:
        if (report := stages.get(stage, {}).get(domain)) is None:
            raise InputError(
                f"There is no evaluation on {domain!r} after {stage!r} was learned; make it, and add it."
            )
        return report

    ended = [at(last, domain) for domain in domains]
    backward = _transfer({domain: compare(at(domain, domain), at(last, domain)) for domain in domains[:-1]})
    wanted = list(pairwise(domains))
    forward = None
    if all(domain in stages.get(BEFORE, {}) and domain in stages.get(stage, {}) for stage, domain in wanted):
        forward = _transfer({domain: compare(at(BEFORE, domain), at(stage, domain)) for stage, domain in wanted})
    cells = {
        stage: {domain: _made(stages[stage][domain]) for domain in domains if domain in stages[stage]}
        for stage in (BEFORE, *domains)
        if stage in stages
    }
    share = 1 / len(domains)
    return Forgetting(
        domains=tuple(domains),
        cells=cells,
        accuracy=sum(share * (report.score or 0.0) for report in ended),
        accuracy_interval=weighted([(share, report.score or 0.0, report.interval) for report in ended]),
        backward=backward,
        forward=forward,
    )


def _transfer(found: Mapping[str, Comparison]) -> Transfer:
    share = 1 / len(found)
    return Transfer(
        value=sum(share * each.difference for each in found.values()),
        interval=weighted([(share, each.difference, each.interval) for each in found.values()]),
        domains={domain: (each.difference, each.interval) for domain, each in found.items()},
    )


def _made(report: EvaluationReport) -> Cell:
    return Cell(score=report.score or 0.0, interval=report.interval, n=report.n)


def _cell(cell: Cell | None) -> str:
    return fmt.MISSING if cell is None else fmt.score(cell.score, cell.interval.low, cell.interval.high)


def _value(value: float, interval: Interval, *, signs: bool = False) -> str:
    return fmt.score(value, interval.low, interval.high, signs=signs)


def _told(transfer: Transfer) -> str:
    parts = ", ".join(
        f"{domain} {_value(value, interval, signs=True)}" for domain, (value, interval) in transfer.domains.items()
    )
    return f"{_value(transfer.value, transfer.interval, signs=True)}, {transfer.verdict} ({parts})"
