"""Which memory helps which model in which domain, and which one harms: model x domain x memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Literal

from agentmem import format as fmt
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.evaluation.comparison import compare
from agentmem.evaluation.intervals import Interval
from agentmem.evaluation.report import EvaluationReport
from agentmem.evaluation.statistics import holm

NONE = "none"
"""The memory of an agent that has none."""
Verdict = Literal["helps", "harms", "undecided"]


class Effect(Value):
    """What a memory does to a model in a domain, beside the same model without one."""

    model: str
    domain: str
    memory: str
    n: int
    """Tasks."""
    before: float
    """The score without a memory."""
    after: float
    difference: float
    interval: Interval
    """Paired by task; of this cell alone."""
    p: float
    """Adjusted by Holm for the number of cells."""

    @property
    def verdict(self) -> Verdict:
        """What the adjusted p-value says; a memory that harms is negative transfer."""
        if self.p > 1 - self.interval.confidence:
            return "undecided"
        return "helps" if self.difference > 0 else "harms"


class TransferMatrix(fmt.Shown, Value):
    """The effect of every memory that was evaluated."""

    effects: tuple[Effect, ...]
    unpaired: tuple[str, ...] = ()
    """Evaluations with a memory whose model and domain have none without."""

    @property
    def negative(self) -> tuple[Effect, ...]:
        """The cells in which a memory is shown to harm."""
        return tuple(effect for effect in self.effects if effect.verdict == "harms")

    def table(self) -> fmt.Table:
        """A row for each cell; those that harm are named again below."""
        rows = [
            (
                effect.model,
                effect.domain,
                effect.memory,
                fmt.count(effect.n),
                fmt.number(effect.before),
                fmt.number(effect.after),
                fmt.score(effect.difference, effect.interval.low, effect.interval.high, signs=True),
                fmt.probability(effect.p),
                effect.verdict,
            )
            for effect in self.effects
        ]
        harmed = [f"{each.memory} with {each.model} on {each.domain}" for each in self.negative]
        lines = [
            f"negative transfer ({len(harmed):,}): {fmt.some(harmed) or 'none is shown'}",
            f"95 % intervals of each cell alone, paired by task; p adjusted by Holm for {len(rows):,} cells",
        ]
        if self.unpaired:
            lines.append(
                f"left out, as the same model was not evaluated without a memory: {fmt.some(self.unpaired)}"
            )
        return fmt.Table(
            title=f"transfer: {fmt.count(len(rows), 'cell')}",
            columns=(
                ("model", "left"),
                ("domain", "left"),
                ("memory", "left"),
                ("n", "right"),
                ("without", "right"),
                ("with", "right"),
                ("difference", "right"),
                ("p", "right"),
                ("verdict", "left"),
            ),
            rows=tuple(rows),
            caption="\n".join(lines),
        )

    def to_json(self) -> str:
        """The matrix for a program."""
        effects = [{**effect.model_dump(mode="json"), "verdict": effect.verdict} for effect in self.effects]
        return json.dumps({"effects": effects, "unpaired": list(self.unpaired)}, ensure_ascii=False)


def transfer_matrix(evaluations: Iterable[tuple[str, EvaluationReport]]) -> TransferMatrix:
    """Hold each evaluation with a memory against the one of the same model on the same tasks without.

    Args:
        evaluations: the memory's name (`none` for an agent without one) and the report; which model and which domain
            it is, the report says.

    Raises:
        InputError: two are of the same model, domain and memory, or nothing can be compared.
    """
    cells: dict[tuple[str, str, str], EvaluationReport] = {}
    for memory, report in evaluations:
        key = (report.model or report.agent, report.tasks_name, memory)
        if key in cells:
            raise InputError(
                f"{cells[key].name!r} and {report.name!r} are both of {key[0]!r} on {key[1]!r} with the memory "
                f"{memory!r}; leave one out, or give each memory its name (NAME=RUN)."
            )
        if memory == NONE and report.prior_hash:
            raise InputError(
                f"{report.name!r} saw the memory {report.prior_hash}, so it is none without; name it."
            )
        cells[key] = report
    pairs = [(key, cells.get((*key[:2], NONE)), report) for key, report in cells.items() if key[2] != NONE]
    found = [(key, compare(before, after)) for key, before, after in pairs if before is not None]
    if not found:
        raise InputError(
            "Nothing can be compared: give, for some model and task set, an evaluation without a memory and one with."
        )
    adjusted = holm([comparison.test.p for _, comparison in found])
    effects = [
        Effect(
            model=model,
            domain=domain,
            memory=memory,
            n=comparison.n,
            before=comparison.strict.before,
            after=comparison.strict.after,
            difference=comparison.difference,
            interval=comparison.interval,
            p=p,
        )
        for ((model, domain, memory), comparison), p in zip(found, adjusted, strict=True)
    ]
    return TransferMatrix(
        effects=tuple(sorted(effects, key=lambda each: (each.model, each.domain, each.memory))),
        unpaired=tuple(after.name for _, before, after in pairs if before is None),
    )
