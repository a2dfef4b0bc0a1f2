"""Two agents on several task sets: one comparison each, with p-values adjusted for their number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentmem import format as fmt
from agentmem.domain.value import Value
from agentmem.errors import InputError
from agentmem.evaluation.comparison import Comparison, Difference, Pairs, Verdict, compare, difference_of
from agentmem.evaluation.intervals import Interval
from agentmem.evaluation.report import EvaluationReport, clusters_of
from agentmem.evaluation.statistics import holm


def compare_many(
    arms: Iterable[tuple[str, EvaluationReport, EvaluationReport]], *, confidence: float = 0.95
) -> Comparisons:
    """Compare two agents on several task sets, with p-values adjusted for their number.

    Args:
        arms: name of the task set, first arm and second arm.
        confidence: of all intervals.

    Raises:
        InputError: there is nothing to compare, a name comes twice, or two arms cannot be compared.
    """
    given = list(arms)
    names = [name for name, _, _ in given]
    if not given:
        raise InputError("compare_many was given nothing; give it a name and two reports for each task set.")
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"Two task sets are called {doubled!r}; give each its own name.")
    found = tuple((name, compare(before, after, confidence=confidence)) for name, before, after in given)
    return Comparisons(
        rows=found,
        adjusted=holm([comparison.test.p for _, comparison in found]),
        pooled=_pooled([Pairs(before, after) for _, before, after in given], confidence),
    )


class Comparisons(fmt.Shown, Value):
    """Several comparisons, and all their tasks together."""

    rows: tuple[tuple[str, Comparison], ...]
    adjusted: tuple[float, ...]
    """The p-value of each row, adjusted by Holm for their number."""
    pooled: Difference | None = None
    """All tasks of all rows as one set; None for one row, or where the rewards are on different scales."""

    def verdict(self, row: int) -> Verdict:
        """What the adjusted p-value of a row says."""
        difference = self.rows[row][1].strict
        if self.adjusted[row] > 1 - difference.interval.confidence:
            return "undecided"
        return "better" if difference.value > 0 else "worse"

    def table(self) -> fmt.Table:
        """One row per comparison; every score with its n and interval."""
        rows = [
            (name, *_cells(found.strict), fmt.probability(self.adjusted[place]), str(self.verdict(place)))
            for place, (name, found) in enumerate(self.rows)
        ]
        if self.pooled is not None:
            rows.append(("all", *_cells(self.pooled), fmt.probability(self.pooled.test.p), ""))
        tests = sorted({found.test.method for _, found in self.rows})
        confidence = f"{100 * self.rows[0][1].interval.confidence:g} %"
        return fmt.Table(
            title=f"before → after on {fmt.count(len(self.rows), 'task set')}",
            columns=(
                ("tasks", "left"),
                ("n", "right"),
                (f"before, {confidence}", "right"),
                (f"after, {confidence}", "right"),
                ("difference", "right"),
                ("p", "right"),
                ("verdict", "left"),
            ),
            rows=tuple(rows),
            caption=f"paired by task; p: {', '.join(tests)}, adjusted by Holm for {len(self.rows)} task sets",
        )


def _pooled(sets: Sequence[Pairs], confidence: float) -> Difference | None:
    if len(sets) < 2 or any(pairs.bounds != (0.0, 1.0) for pairs in sets):
        return None
    every = [pair for pairs in sets for pair in pairs.strict.values()]
    # Clusters of different task sets are different clusters, also where they have the same name.
    keys = [
        (kind, f"{place}:{name}")
        for place, pairs in enumerate(sets)
        for kind, name in clusters_of(pairs.strict, pairs.clusters) or [("task", task) for task in pairs.strict]
    ]
    clusters = keys if any(kind == "cluster" for kind, _ in keys) else None
    return difference_of(every, clusters, (0.0, 1.0), confidence, single=all(pairs.single for pairs in sets))


def _cells(found: Difference) -> tuple[str, ...]:
    def shown(value: float, interval: Interval, *, signs: bool = False) -> str:
        return fmt.score(value, interval.low, interval.high, signs=signs)

    return (
        fmt.count(found.n),
        shown(found.before, found.before_interval),
        shown(found.after, found.after_interval),
        shown(found.value, found.interval, signs=True),
    )
