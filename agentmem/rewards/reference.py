"""Rewards that compare what an output says with the task's reference answer: what all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.rewards.reward_function import RewardContext


class ReferenceReward(ABC):
    """Compares outputs with reference answers; a subclass says how, in `compare`.

    A task without an answer is `unverifiable`. An attempt without an output scores 0: giving none is the agent's
    own doing (where the infrastructure failed, the caller asks no reward).
    """

    name: str
    needs_answer: bool = True

    async def __call__(self, task: Task, trajectory: Trajectory, context: RewardContext) -> Reward:
        """Score one attempt."""
        if why := self.unscorable(task):
            return Reward.unknown(why, source=self.name, status="unverifiable")
        if not (trajectory.output or "").strip():
            return Reward.of(0.0, feedback="no answer", source=self.name)
        reward = self.compare(task, task.answer or "", trajectory.output or "")
        return reward if isinstance(reward, Reward) else await reward

    @abstractmethod
    def compare(self, task: Task, answer: str, output: str) -> Reward | Awaitable[Reward]:
        """Score an output that is not blank against an answer that is not blank."""

    def unscorable(self, task: Task) -> str:
        """Why no attempt at this task can be scored; empty where it can. Free, so it is asked before spending."""
        return "" if (task.answer or "").strip() else "the task has no reference answer"

    def right(self, answer: str) -> Reward:
        """The score of a right answer."""
        return Reward.of(1.0, feedback=f"right: {shortened(answer)!r}", source=self.name)

    def wrong(self, answer: str, got: str) -> Reward:
        """The score of a wrong answer, with what was expected and what came."""
        return Reward.of(0.0, feedback=f"expected {shortened(answer)!r}, got {got}", source=self.name)


def aliases(task: Task) -> tuple[str, ...]:
    """Further right answers: `metadata["aliases"]`, one text or several."""
    given = task.metadata.get("aliases", ())
    return (given,) if isinstance(given, str) else tuple(str(alias) for alias in given)


def shortened(text: str, *, length: int = 120) -> str:
    """The text, cut to a length that fits a sentence."""
    text = " ".join(text[: 4 * length].split())
    return text if len(text) <= length else text[: length - 1] + "…"
