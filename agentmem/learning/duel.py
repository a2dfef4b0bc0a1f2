"""Two libraries on the same held-out tasks with common random numbers, in rounds, until it is clear which is better."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from agentmem.agents.sampler import cancel, together
from agentmem.domain.experience import ExperienceLibrary
from agentmem.errors import AgentMemError
from agentmem.learning.verdict import EFFECT_SD, Missing, Verdict, chance, decide, stays_open

Scores = Mapping[str, float | None]
"""The score of each gate task in one round; None where the attempt failed."""

Hear = Callable[[Scores, Collection[str]], None]
"""Told of the scores of a round that are in so far, and of the tasks that are missing, whenever one comes in."""


Arm = tuple[Scores, Collection[str]]
"""What is in of one library's round, and what is missing."""


class Trial(Protocol):
    """Scores a library on gate tasks."""

    def __call__(
        self,
        library: ExperienceLibrary,
        round: int,
        only: Collection[str] | None = None,
        *,
        hear: Hear | None = None,
    ) -> Coroutine[Any, Any, Scores]:
        """The scores in one round, with random numbers that depend on the round and the task alone.

        Args:
            library: the arm.
            round: from 0.
            only: ids of the tasks to try; by default all.
            hear: is told of each score that comes in.
        """
        ...


@dataclass
class Duel:
    """One candidate against the incumbent.

    While the stragglers of a round are awaited, the next one begins as soon as it is certain to be asked for:
    as soon as no score that may still come in could decide. So nothing is bought that would not be bought anyway.
    Scores are taken to lie between 0 and 1, or between the least and the greatest that were seen.

    Args:
        incumbent: the library as it is.
        candidate: what may replace it.
        trial: scores a library.
        rounds: rounds at most; undecided at the end keeps the incumbent.
        risk: accept once P(harm) is below it, reject once P(gain) is.
        effect_sd: prior of the true effect, N(0, effect_sd^2).
        only: ids of the tasks to try; by default all.
        begin: the number of the first round. Where an incumbent was tried before, new rounds are new attempts.
        futile: give up once the rounds that are left would accept it with a probability below this.
    """

    incumbent: ExperienceLibrary
    candidate: ExperienceLibrary
    trial: Trial
    rounds: int
    risk: float
    effect_sd: float = EFFECT_SD
    only: Collection[str] | None = None
    begin: int = 0
    futile: float = 0.0
    _begun: list[asyncio.Task[list[Scores]]] = field(default_factory=list)
    _ended: int = 0
    _differences: dict[str, list[float]] = field(default_factory=dict)
    """Of each task, candidate minus incumbent, in the rounds that have ended."""
    _least: float = 0.0
    _most: float = 1.0

    async def verdict(self) -> Verdict:
        """Try both arms, round by round."""
        verdict = Verdict(outcome="undecided", reason="no gate task could be scored on both sides")
        try:
            for number in range(self.rounds):
                self._begin(number)
                before, after = await self._begun[number]
                self._end(before, after)
                if not self._differences:
                    continue
                means = [sum(d) / len(d) for d in self._differences.values()]
                verdict = decide(means, number + 1, risk=self.risk, effect_sd=self.effect_sd)
                if verdict.outcome != "undecided":
                    break
                if self.futile and (left := self._chance(means, number + 1)) < self.futile:
                    reason = f"{verdict.reason}, and a chance of {left:.2f} that more rounds would accept it"
                    return verdict.model_copy(update={"reason": reason})
        except AgentMemError:
            # The next round may be in the middle of calls that are paid for: let it store what it gets.
            await asyncio.gather(*self._begun, return_exceptions=True)
            raise
        finally:
            await cancel(self._begun)
        return verdict

    def _chance(self, means: Sequence[float], rounds: int) -> float:
        return chance(means, rounds, of=self.rounds, risk=self.risk, effect_sd=self.effect_sd)

    def _begin(self, number: int) -> None:
        if number == len(self._begun) < self.rounds:
            self._begun.append(asyncio.create_task(self._round(number)))

    async def _round(self, number: int) -> list[Scores]:
        arms: list[Arm] = [({}, ()), ({}, ())]

        def hear(place: int, scores: Scores, missing: Collection[str]) -> None:
            arms[place] = scores, missing
            # Only where all rounds before it have ended, and the next has not begun.
            if self._ended == number == len(self._begun) - 1 and self._stays_open(*arms):
                self._begin(number + 1)

        return await together(
            *(
                self.trial(library, self.begin + number, self.only, hear=partial(hear, place))
                for place, library in enumerate((self.incumbent, self.candidate))
            )
        )

    def _end(self, before: Scores, after: Scores) -> None:
        self._ended += 1
        for id, old in before.items():
            new = after.get(id)
            if old is not None and new is not None:
                self._differences.setdefault(id, []).append(new - old)
                self._least, self._most = min(self._least, old, new), max(self._most, old, new)

    def _stays_open(self, before: Arm, after: Arm) -> bool:
        """Whether this round is certain not to decide."""
        if self.futile:
            return False  # it may still show that the next one is not worth its attempts
        tasks = {**before[0], **dict.fromkeys(before[1])}
        unknown = {*before[1], *after[1]}
        if not after[0] or 4 * len(unknown) > len(tasks):
            return False  # hardly ever certain, so not worth a look at each score that comes in
        seen = [score for scores, _ in (before, after) for score in scores.values() if score is not None]
        scale = min(self._least, *seen), max(self._most, *seen)
        known: list[float] = []
        missing: list[Missing] = []
        for id in tasks:
            past = self._differences.get(id, [])
            old, new = _range(before, id, scale), _range(after, id, scale)
            means = [sum(past) / len(past)] if past else []  # what it stays at, should an attempt fail
            if old and new:
                means += [(sum(past) + d) / (len(past) + 1) for d in (new[0] - old[1], new[1] - old[0])]
            if old and new and id in unknown:
                missing.append(Missing(min(means), max(means), certain=bool(past)))
            elif means:
                known.append(means[-1])
        return stays_open(known, missing, risk=self.risk, effect_sd=self.effect_sd)


def _range(arm: Arm, id: str, scale: tuple[float, float]) -> tuple[float, float] | None:
    """Between what a task's score is; None where the attempt failed."""
    scores, missing = arm
    if id in missing:
        return scale
    score = scores[id]
    return None if score is None else (score, score)
