"""Makes a complete group teach as much as it can: rewards without references, refinement where all is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import Conditions, Judging
from agentmem.domain.rollout import Group
from agentmem.domain.seed import split_seed
from agentmem.learning.critique import all_wrong, refined
from agentmem.learning.extractor import ExtractorContext
from agentmem.learning.shuffled_rewards import dealt
from agentmem.learning.signal import by_agreement
from agentmem.rewards.reward_function import RewardFunction
from agentmem.settings import LearnSettings


@dataclass(frozen=True)
class Teacher:
    """What happens to a group between its last rollout and its distillation."""

    reward: RewardFunction
    """The caller's reward; without references it compares attempts with each other."""
    conditions: Conditions

    def teaches(self, group: Group, settings: LearnSettings) -> bool:
        """Whether the group is worth distilling: it has contrast, or, with G = 1, a reference to be contrasted with."""
        if group.teaches(settings.gap):
            return True
        alone = settings.group_size == 1 and settings.reference == "use" and group.task.answer is not None
        return (
            alone and settings.extractor in ("fused", "faithful") and bool(group.rewards) and group.rewards[0] < 1
        )

    async def prepared(self, group: Group, agent: Agent, context: ExtractorContext) -> Group:
        """The group as the extractor gets it."""
        if context.settings.reference == "none":
            scope = context.run.at("learn", step=context.step, task=group.task.id, rollout=len(group.rollouts))
            judging = Judging(agent, scope, self.conditions, split_seed(context.seed, group.task.id))
            group = await by_agreement(group, self.reward, judging)
        if context.settings.critique and all_wrong(group):
            group = await refined(group, agent, self.conditions, context)
        if context.settings.rewards == "shuffled":
            group = dealt(group, context.seed)
        return group
