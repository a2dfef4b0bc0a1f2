"""Learning on a stream: a plan, and its execution. See `online.py` for the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.agents.estimate import Estimate
from agentmem.domain.task import Task, TaskSet
from agentmem.learning.held_out import HeldOut
from agentmem.learning.learn import Learning, check_agent
from agentmem.learning.news import News
from agentmem.learning.online import OnlineGRPO
from agentmem.learning.online_result import OnlineResult
from agentmem.learning.recipe import Recipe
from agentmem.learning.stream import Answer, Source, Tasks
from agentmem.learning.stream_gate import StreamGate
from agentmem.memory.embedder import Embedder
from agentmem.models.gateway import Gateways
from agentmem.models.model import Model
from agentmem.rewards.reward_function import RewardFunction, check_answers
from agentmem.runs.run import Run
from agentmem.settings import LearnSettings

GROUPS = 16
"""Groups that make a candidate, where the settings say nothing."""


@dataclass(frozen=True)
class OnlineLearning:
    """Learning on a stream that is asked for."""

    learning: Learning
    """The same but for its tasks: it has none that teach, and for the gate those that the caller gave."""
    stream: Tasks
    on_answer: Callable[[Answer], Any] | None = None

    @classmethod
    def of(
        cls,
        agent: Agent,
        stream: Tasks,
        reward: RewardFunction,
        settings: LearnSettings | None = None,
        *,
        validation: Iterable[Task] | None = None,
        on_answer: Callable[[Answer], Any] | None = None,
        embedder: Embedder | None = None,
        extractor: Callable[..., Any] | None = None,
    ) -> OnlineLearning:
        """Check what is asked; the stream is not touched yet.

        Raises:
            InputError: the reward can never score a validation task, or this agent cannot learn.
        """
        settings = settings or LearnSettings()
        check_agent(agent, settings, extractor)
        # A stream is gone through once.
        settings = settings.model_copy(update={"epochs": 1, "batch_size": settings.batch_size or GROUPS})
        gate = TaskSet([], name="held out of the stream")
        if validation is not None and settings.gate != "always":
            gate = TaskSet.of(TaskSet(validation, name="validation"))
            check_answers(reward, gate)
        agent = agent.with_experience(agent.library, prior_tokens=settings.prior_tokens)
        none = TaskSet([], name="stream")
        return cls(Learning(agent, none, gate, reward, settings, embedder, extractor), stream, on_answer)

    @property
    def agent(self) -> Agent:
        """What answers and learns."""
        return self.learning.agent

    @property
    def models(self) -> tuple[str | Model | None, ...]:
        """What it will call."""
        return self.learning.models

    @property
    def reward(self) -> RewardFunction:
        """What says what an answer is worth."""
        return self.learning.reward

    @property
    def asked(self) -> dict[str, Any]:
        """What determines the results, but for the stream: each arrival is verified when it comes."""
        return {**self.learning.asked, "online": True}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know before spending."""
        s, given = self.learning.settings, self.learning.gate
        if s.gate == "always":
            return ("Every candidate library is taken unseen (gate = always), as in the paper.",)
        if given:
            return (f"The gate tries candidates on the {len(given)} tasks of {given.name!r}.",)
        share = f"{s.gate_share:.0%} of the tasks, drawn by their content, teach nothing and are held out"
        return (f"{share} for the gate, which begins when {s.gate_min_tasks} of them are scored.",)

    def estimate(self, tasks: Sequence[Task]) -> Estimate:
        """What it will take at most for these tasks; a gate that decides early, or keeps the incumbent, takes less."""
        s, gate = self.learning.settings, self.learning.gate
        held = self._held_out()
        teach = TaskSet([task for task in tasks if not held.holds(task)], name="teaching")
        trying = gate or TaskSet(tasks[: held.most] if s.gate != "always" else [], name="held out")
        most = replace(self.learning, train=teach, gate=trying).estimate()
        answered = Estimate.of(
            self.agent, [([task for task in tasks if held.holds(task)], 1)], reward=self.learning.reward
        )
        return Estimate.total([most, answered], notes=self.notes)

    async def execute(self, run: Run, gateways: Gateways) -> OnlineResult:
        """Answer and learn to the end of the stream.

        Raises:
            BudgetExceeded: the budget is spent; what was paid for is stored.
            TooManyErrors: too many of the latest answers failed for reasons that are not the agent's.
            StreamError: the stream raised; all that came before is answered, and was learned from.
        """
        learning = self.learning
        parts = learning.parts(run, gateways.behind())
        # Answers have places and requests in flight that learning cannot take from them.
        conditions = replace(parts.rollouts.conditions, gateways=gateways)
        answers = replace(parts.rollouts, conditions=conditions, places=None)

        def gate(tasks: Sequence[Task]) -> Any:
            return Recipe.of(learning.settings, parts.context.embedder, gate_tasks=tasks).gate

        stream_gate = StreamGate(parts, self._held_out(), gate, News())
        method = OnlineGRPO(parts, answers, stream_gate, self.on_answer)
        await method.learn(self.agent, Source(self.stream), self.agent.library)
        result = await asyncio.to_thread(OnlineResult.of, run.path)
        result.save()
        return result

    def _held_out(self) -> HeldOut:
        s = self.learning.settings
        share = 0.0 if s.gate == "always" else s.gate_share
        return HeldOut(share, most=2 * s.gate_min_tasks, seed=s.seed, given=tuple(self.learning.gate))
