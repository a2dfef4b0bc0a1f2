"""Makes a complete group teach as much as it can: rewards without references, refinement where all is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import Conditions, Judging
from agentmem.domain.rollout import Group
from agentmem.learning.critique import all_wrong, refined
from agentmem.learning.extractor import ExtractorContext
from agentmem.learning.signal import by_agreement
from agentmem.rewards.reward_function import RewardFunction


@dataclass(frozen=True)
class Teacher:
    """What happens to a group between its last rollout and its distillation."""

    reward: RewardFunction
    """The caller's reward; without references it compares attempts with each other."""
    conditions: Conditions

    async def prepared(self, group: Group, agent: Agent, context: ExtractorContext) -> Group:
        """The group as the extractor gets it."""
        if context.settings.reference == "none":
            scope = context.run.at("learn", step=context.step, task=group.task.id, rollout=len(group.rollouts))
            judging = Judging(agent, scope, self.conditions, context.seed)
            group = await by_agreement(group, self.reward, judging)
        if context.settings.critique and all_wrong(group):
            group = await refined(group, agent, self.conditions, context)
        return group
