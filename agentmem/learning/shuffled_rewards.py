"""The control `rewards="shuffled"`: what is learned from groups whose rewards say nothing."""

from __future__ import annotations

from random import Random

from agentmem.domain.rollout import Group
from agentmem.domain.seed import split_seed


def dealt(group: Group, seed: int) -> Group:
    """The group with its rewards dealt anew among its attempts; attempts without a score keep what they have.

    The group's mean and spread stay, so the same groups teach; only which attempt was better is at random.

    Args:
        group: complete, and judged.
        seed: of the draw, together with the task's id.

    Example:
        >>> from agentmem.domain.reward import Reward
        >>> from agentmem.domain.rollout import Rollout
        >>> from agentmem.domain.task import Task
        >>> tries = (Rollout(task_id="t", index=i, reward=Reward.of(float(i == 0))) for i in range(4))
        >>> sorted(dealt(Group(task=Task(id="t", input="?"), rollouts=tuple(tries)), 0).rewards)
        [0.0, 0.0, 0.0, 1.0]
    """
    rewards = [rollout.reward for rollout in group.scored]
    Random(split_seed(seed, "rewards", group.task.id)).shuffle(rewards)
    left = iter(rewards)
    rollouts = (
        rollout if rollout.score is None else rollout.model_copy(update={"reward": next(left)})
        for rollout in group.rollouts
    )
    return group.model_copy(update={"rollouts": tuple(rollouts)})
