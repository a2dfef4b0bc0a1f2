"""Where rewards come from without reference answers: the majority answer of the group stands in for the truth."""

from __future__ import annotations

from statistics import fmean

from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Group, Rollout
from agentmem.rewards.reward_function import RewardContext, RewardFunction


async def by_agreement(group: Group, reward: RewardFunction, context: RewardContext) -> Group:
    """The group with rewards for agreement: 1 for the majority answer, 0 for others (2510.08191, no ground truth).

    Which answers are the same is asked of the reward itself, with one answer as the reference of another, so that
    "3/4" and "0.75" agree under `math`. Ties are broken by the mean log-probability, where it is known, then by the
    earlier attempt. The confidence is the share of the majority. No reference answer is looked at.
    """
    answered = [r for r in group.rollouts if r.status != "failed" and (r.output or "").strip()]
    if not answered:
        return group
    classes: list[list[Rollout]] = []
    for rollout in answered:
        for members in classes:
            if await _same(group, members[0], rollout, reward, context):
                members.append(rollout)
                break
        else:
            classes.append([rollout])
    majority = max(classes, key=lambda members: (len(members), _confidence(members), -members[0].index))
    chosen = {rollout.index for rollout in majority}
    share = len(majority) / len(answered)

    def judged(rollout: Rollout) -> Rollout:
        if rollout.status == "failed":
            return rollout
        score = float(rollout.index in chosen)
        given = Reward(score=score, confidence=share, source="agreement")
        return rollout.model_copy(update={"reward": given})

    return group.model_copy(update={"rollouts": tuple(judged(rollout) for rollout in group.rollouts)})


async def _same(
    group: Group, one: Rollout, other: Rollout, reward: RewardFunction, context: RewardContext
) -> bool:
    task = group.task.model_copy(update={"answer": one.output})
    given = await reward(task, other.trajectory, context)
    if given.score is not None:
        return given.score >= 1.0
    # The answer cannot be a reference of this reward (a long text, say): then only the same words are the same.
    return (one.output or "").strip().casefold() == (other.output or "").strip().casefold()


def _confidence(members: list[Rollout]) -> float:
    known = [step.logprob for member in members for step in member.trajectory.steps if step.logprob is not None]
    return fmean(known) if known else float("-inf")
