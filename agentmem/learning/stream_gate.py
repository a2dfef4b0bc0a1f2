"""The gate of a stream: candidates are tried on tasks that were held out of it, once there are enough of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentmem.agents.agent import Agent
from agentmem.domain.experience import ExperienceLibrary, Revision
from agentmem.domain.task import Task, TaskSet
from agentmem.evaluation.statistics import smallest_detectable
from agentmem.events import Noted
from agentmem.learning.gate import Gate, choose
from agentmem.learning.held_out import Bench, HeldOut
from agentmem.learning.news import News
from agentmem.learning.step import Parts
from agentmem.learning.trials import Trials
from agentmem.learning.verdict import Verdict


@dataclass
class StreamGate:
    """Says what is kept of each candidate."""

    parts: Parts
    held: HeldOut
    gate: Callable[[Sequence[Task]], Gate]
    """The rule, for candidates that are tried on these tasks."""
    news: News
    _said: set[str] = field(default_factory=set)

    async def judge(
        self, agent: Agent, number: int, incumbent: ExperienceLibrary, candidate: Revision
    ) -> tuple[Revision, Verdict]:
        """What is kept of the candidate of this step. It may have to wait; a candidate of nothing does not."""
        tasks: tuple[Task, ...] = ()
        if candidate.accepted and self.parts.settings.gate != "always":
            place = self.parts.run.at("learn", step=number)
            tasks = (await place.step("bench", self._bench, returns=Bench)).tasks
            if not tasks:
                reason = "not one task of the stream was held out and scored, so nothing was tried"
                nothing = Revision(library=incumbent, decisions=candidate.decisions)
                return nothing, Verdict(outcome="undecided", reason=reason)
        async with Trials(agent, TaskSet(tasks, name="held out"), self.parts.trials, step=number) as trials:
            return await choose(self.gate(tasks), incumbent, candidate, trials)

    async def _bench(self) -> Bench:
        """The tasks: as soon as there are enough, and at the end of the stream what there is."""
        wanted = len(self.held.given) or self.parts.settings.gate_min_tasks
        if len(self.held) < wanted and not self.news.ended:
            self._say("waits", f"A candidate waits for the gate: {self._power()}, and it begins with {wanted}.")
        await self.news.until(lambda: self.news.ended or len(self.held) >= wanted)
        if len(self.held) < wanted:
            self._say("ended", f"The stream has ended, and {self._power()}: too few to decide much.")
        return Bench(tasks=self.held.tasks)

    def _power(self) -> str:
        """How many tasks are held out, and what they could show."""
        n, samples = len(self.held), self.parts.settings.gate_rounds
        effect = smallest_detectable(n, samples=samples) if n > 1 else None
        shows = "no difference at all" if effect is None else f"a difference from {effect:.2f} on, with 80 % power"
        return f"{n} scored tasks are held out, which show {shows}"

    def _say(self, key: str, message: str) -> None:
        """Tell a person, once."""
        if key not in self._said:
            self._said.add(key)
            self.parts.run.events.emit(Noted(message, "warning"))
