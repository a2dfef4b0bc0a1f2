"""The `targeted` gate: each operation must earn its place on the held-out tasks that it is about."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentmem.agents.sampler import together
from agentmem.domain.experience import ExperienceLibrary, Revision
from agentmem.domain.operation import Operation
from agentmem.domain.task import Task
from agentmem.learning.consolidation import describe, said_by
from agentmem.learning.duel import Duel, Trial
from agentmem.learning.proposals import touched
from agentmem.learning.relevant import words_of
from agentmem.learning.verdict import Verdict
from agentmem.memory.embedder import Embedder, nearest

LOCAL_EFFECT_SD = 0.25
"""Prior of the effect of a lesson on the tasks that it is about: N(0, 0.25^2), wider than over all tasks."""

FUTILE = 0.02
"""An undecided operation is given up once the rounds that are left would accept it with a probability below this.

By simulation, with 8 tasks and 8 rounds, that saves a third of the attempts at operations that do nothing, and costs
those that help (by .1 or by .2) at most .03 of their chance to pass."""


@dataclass(frozen=True)
class Targeted:
    """Tries each operation alone, on the gate tasks nearest to its words, against the incumbent.

    A lesson for one kind of task moves the mean over all tasks too little to be seen: where an eighth of the tasks
    gain .8, the mean gains .1, and the differences between tasks drown it. On the tasks that it is about it is seen at
    once. What an operation does elsewhere is not seen here; `inclusion` below 1 measures that while learning goes on.

    Args:
        tasks: the gate's tasks.
        embedder: what compares an operation's words with tasks.
        nearest: tasks that each operation is tried on.
        rounds: rounds at most; undecided at the end, or as soon as more rounds would hardly change that, keeps the
            operation out.
        risk: accept once P(harm) is below it, give up once P(gain) is.
    """

    tasks: Sequence[Task]
    embedder: Embedder
    nearest: int = 8
    rounds: int = 8
    risk: float = 0.1
    _spent: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Rounds that each incumbent has been through in earlier steps."""

    def looks_ahead(self, tasks: int) -> tuple[int, int]:
        """None: on which tasks it asks for the incumbent depends on the operations."""
        return 0, 0

    async def choose(
        self, incumbent: ExperienceLibrary, revision: Revision, trial: Trial
    ) -> tuple[Revision, Verdict]:
        """The operations that earned their place, together."""
        operations = revision.accepted
        places = await self._places(operations, incumbent)
        # Where nothing has passed since, what comes again gets new attempts: the incumbent's lucky ones would keep it
        # out for ever.
        begin = self._spent.get(incumbent.hash, 0)
        verdicts = await together(
            *(
                self._judge(operation, place, incumbent, trial, begin)
                for operation, place in zip(operations, places, strict=True)
            )
        )
        self._spent[incumbent.hash] = begin + max(verdict.rounds for verdict in verdicts)
        kept = [o for o, verdict in zip(operations, verdicts, strict=True) if verdict.accepted]
        details = tuple(
            f"{describe(operation)}: {verdict.outcome}, {verdict.reason}"
            for operation, verdict in zip(operations, verdicts, strict=True)
        )
        reason = f"{len(kept)} of {len(operations)} operations earned their place on the tasks nearest to them"
        whole = Verdict(
            outcome="accepted" if kept else "undecided",
            reason=reason,
            tasks=min(self.nearest, len(self.tasks)),
            rounds=max(verdict.rounds for verdict in verdicts),
            details=details,
        )
        if not kept:
            return Revision(library=incumbent, decisions=revision.decisions), whole
        return incumbent.revise(kept), whole

    async def _judge(
        self, operation: Operation, only: list[str], incumbent: ExperienceLibrary, trial: Trial, begin: int
    ) -> Verdict:
        candidate = incumbent.revise([operation]).library
        duel = Duel(
            incumbent,
            candidate,
            trial,
            self.rounds,
            self.risk,
            effect_sd=LOCAL_EFFECT_SD,
            only=only,
            begin=begin,
            futile=FUTILE,
        )
        return await duel.verdict()

    async def _places(self, operations: Sequence[Operation], library: ExperienceLibrary) -> list[list[str]]:
        """The gate tasks nearest to what each operation says, or to the experiences that it touches."""
        known = {e.id: words_of(e) for e in library}
        texts = [
            said_by(operation) or " ".join(known.get(id, "") for id in touched(operation))
            for operation in operations
        ]
        inputs = [task.input for task in self.tasks]
        vectors = await asyncio.to_thread(self.embedder.embed, [*texts, *inputs])
        rows = vectors[len(texts) :]
        return [
            [self.tasks[row].id for row in nearest(vectors[place], rows, self.nearest)]
            for place in range(len(texts))
        ]
