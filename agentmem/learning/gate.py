"""Whether a candidate library replaces the incumbent: `always`, as in the paper, or `paired`, on gate tasks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar, Literal, Protocol

from agentmem.agents.sampler import together
from agentmem.domain.experience import ExperienceLibrary, Revision
from agentmem.domain.value import Value

EFFECT_SD = 0.05
"""Prior of the true effect of a candidate: N(0, 0.05^2). Most lessons do little."""

Scores = Mapping[str, float | None]
"""The score of each gate task in one round; None where the attempt failed."""


class Trial(Protocol):
    """Scores a library on gate tasks."""

    def __call__(
        self, library: ExperienceLibrary, round: int, only: Collection[str] | None = None
    ) -> Coroutine[Any, Any, Scores]:
        """The scores in one round, with random numbers that depend on the round and the task alone.

        Args:
            library: the arm.
            round: from 0.
            only: ids of the tasks to try; by default all.
        """
        ...


class Verdict(Value):
    """What a gate decided, and on what evidence."""

    outcome: Literal["accepted", "rejected", "undecided"]
    reason: str
    tasks: int = 0
    rounds: int = 0
    difference: float = 0.0
    """Mean paired difference of the scores, candidate minus incumbent."""
    p_harm: float = 0.5
    """Posterior probability that the true effect is below 0."""
    details: tuple[str, ...] = ()
    """What was found of each operation, where they were tried one by one."""

    @property
    def accepted(self) -> bool:
        """Whether the candidate is taken; an undecided gate keeps the incumbent."""
        return self.outcome == "accepted"


class Gate(Protocol):
    """Decides which library goes on; one class per rule."""

    @property
    def looks_ahead(self) -> int:
        """Rounds in which it is sure to ask for the incumbent on all tasks, whatever the candidate is."""
        ...

    async def choose(
        self, incumbent: ExperienceLibrary, revision: Revision, trial: Trial
    ) -> tuple[Revision, Verdict]:
        """What is kept of a candidate (of the incumbent, where nothing is), and the verdict on it.

        Args:
            incumbent: the library as it is.
            revision: the candidate, with its operations; at least one was accepted.
            trial: scores a library on gate tasks.
        """
        ...


class AsWhole(ABC):
    """A gate that judges the candidate as a whole; of a rejected one it keeps the half that passes."""

    looks_ahead: ClassVar[int] = 0

    @abstractmethod
    async def judge(self, incumbent: ExperienceLibrary, candidate: ExperienceLibrary, trial: Trial) -> Verdict:
        """Accept the candidate or keep the incumbent."""

    async def choose(
        self, incumbent: ExperienceLibrary, revision: Revision, trial: Trial
    ) -> tuple[Revision, Verdict]:
        """The whole, or of a rejected one the half that passes, or nothing."""
        operations = revision.accepted
        verdict = await self.judge(incumbent, revision.library, trial)
        if verdict.accepted:
            return revision, verdict
        if verdict.outcome == "rejected" and len(operations) > 1:
            middle = (len(operations) + 1) // 2
            for half in (operations[:middle], operations[middle:]):
                part = incumbent.revise(half)
                part_verdict = await self.judge(incumbent, part.library, trial)
                if part_verdict.accepted:
                    reason = f"half of a rejected candidate: {part_verdict.reason}"
                    return part, part_verdict.model_copy(update={"reason": reason})
        return Revision(library=incumbent, decisions=revision.decisions), verdict


@dataclass(frozen=True)
class Always(AsWhole):
    """The paper's rule: every candidate is taken."""

    async def judge(self, incumbent: ExperienceLibrary, candidate: ExperienceLibrary, trial: Trial) -> Verdict:
        """Accept."""
        return Verdict(outcome="accepted", reason="taken unseen (gate = always)")


@dataclass(frozen=True)
class Paired(AsWhole):
    """Candidate and incumbent on the same held-out tasks with common random numbers, in rounds, until it is clear.

    Args:
        rounds: rounds at most; undecided at the end keeps the incumbent.
        risk: accept once P(harm) is below it, reject once P(gain) is.
    """

    rounds: int = 8
    risk: float = 0.1
    looks_ahead: ClassVar[int] = 1

    async def judge(self, incumbent: ExperienceLibrary, candidate: ExperienceLibrary, trial: Trial) -> Verdict:
        """Try both, round by round; the incumbent's stored scores are used again."""
        differences: dict[str, list[float]] = {}
        verdict = Verdict(outcome="undecided", reason="no gate task could be scored on both sides")
        for number in range(self.rounds):
            before, after = await together(trial(incumbent, number), trial(candidate, number))
            for task_id, old in before.items():
                new = after.get(task_id)
                if old is not None and new is not None:
                    differences.setdefault(task_id, []).append(new - old)
            if not differences:
                continue
            verdict = decide([sum(d) / len(d) for d in differences.values()], number + 1, risk=self.risk)
            if verdict.outcome != "undecided":
                break
        return verdict


def decide(differences: Sequence[float], rounds: int, *, risk: float, effect_sd: float = EFFECT_SD) -> Verdict:
    """The verdict on the mean differences of the tasks so far."""
    mean, p_harm = posterior(differences, effect_sd=effect_sd)
    outcome: Literal["accepted", "rejected", "undecided"] = "undecided"
    if p_harm < risk:
        outcome = "accepted"
    elif 1 - p_harm < risk:
        outcome = "rejected"
    n = len(differences)
    reason = f"{mean:+.3f} on {n} held-out tasks after {rounds} round{'s' * (rounds > 1)}, P(harm) = {p_harm:.2f}"
    return Verdict(outcome=outcome, reason=reason, tasks=n, rounds=rounds, difference=mean, p_harm=p_harm)


def posterior(differences: Sequence[float], *, effect_sd: float = EFFECT_SD) -> tuple[float, float]:
    """Mean of paired differences, and the posterior probability that the true effect is below 0.

    Normal likelihood over tasks (the unit that was drawn), prior N(0, effect_sd^2). One made-up task of standard
    deviation 0.5 is added to the variance, so that a few equal differences do not pass for certainty.

    Example:
        >>> posterior([0.0] * 24)
        (0.0, 0.5)
    """
    n = len(differences)
    mean = math.fsum(differences) / n
    variance = (math.fsum((d - mean) ** 2 for d in differences) + 0.25) / n
    error2 = variance / n
    shrink = effect_sd**2 / (effect_sd**2 + error2)
    centre, spread = shrink * mean, math.sqrt(shrink * error2)
    return mean, NormalDist(centre, spread).cdf(0.0)


async def choose(
    gate: Gate, incumbent: ExperienceLibrary, revision: Revision, trial: Trial
) -> tuple[Revision, Verdict]:
    """`gate.choose`, where there is anything to choose."""
    if not revision.accepted:
        nothing = Revision(library=incumbent, decisions=revision.decisions)
        return nothing, Verdict(outcome="undecided", reason="no operation to try")
    return await gate.choose(incumbent, revision, trial)
