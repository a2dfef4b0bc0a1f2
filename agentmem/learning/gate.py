"""Whether a candidate library replaces the incumbent: `always`, as in the paper, or `paired`, on gate tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

from agentmem.domain.experience import ExperienceLibrary, Revision
from agentmem.learning.duel import Duel, Trial
from agentmem.learning.verdict import Verdict

ONE_ROUND_DECIDES = 128
"""Tasks beyond which one round decides more often than one time in five, by the prior and 0/1 scores."""


class Gate(Protocol):
    """Decides which library goes on; one class per rule."""

    def looks_ahead(self, tasks: int) -> tuple[int, int]:
        """Rounds in which it will ask for the incumbent on all tasks, whatever the candidate is.

        Args:
            tasks: how many there are.

        Returns:
            How many rounds it is sure to ask for, and how many it will most likely ask for.
        """
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

    def looks_ahead(self, tasks: int) -> tuple[int, int]:
        """None."""
        return 0, 0

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

    def looks_ahead(self, tasks: int) -> tuple[int, int]:
        """The first round, and the second where one seldom decides."""
        return 1, min(self.rounds, 2 if tasks <= ONE_ROUND_DECIDES else 1)

    async def judge(self, incumbent: ExperienceLibrary, candidate: ExperienceLibrary, trial: Trial) -> Verdict:
        """Try both, round by round; the incumbent's stored scores are used again."""
        return await Duel(incumbent, candidate, trial, rounds=self.rounds, risk=self.risk).verdict()


async def choose(
    gate: Gate, incumbent: ExperienceLibrary, revision: Revision, trial: Trial
) -> tuple[Revision, Verdict]:
    """`gate.choose`, where there is anything to choose."""
    if not revision.accepted:
        nothing = Revision(library=incumbent, decisions=revision.decisions)
        return nothing, Verdict(outcome="undecided", reason="no operation to try")
    return await gate.choose(incumbent, revision, trial)
