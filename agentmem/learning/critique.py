"""A group that is all wrong teaches nothing, unless one attempt is shown what was wrong (Critique-GRPO, 2506.03106)."""

from __future__ import annotations

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import Conditions, judge
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.seed import split_seed
from agentmem.domain.trajectory import Message, Trajectory
from agentmem.domain.value import fingerprint
from agentmem.errors import AgentMemError
from agentmem.learning.extractor import ExtractorContext
from agentmem.prompts import render


def all_wrong(group: Group) -> bool:
    """Whether every known reward is 0 or less."""
    return bool(group.rewards) and max(group.rewards) <= 0


async def refined(group: Group, agent: Agent, conditions: Conditions, context: ExtractorContext) -> Group:
    """The group with one refined attempt, if that one is better; else the group as it was.

    The agent's own model refines its first failed attempt. The result is marked as off-policy: it tells what can be
    done, not what the agent does, so it enters no score.
    """
    failed = next((r for r in group.scored if (r.output or "").strip()), None)
    if failed is None or agent.model is None:
        return group
    uses_reference = context.settings.reference == "use"
    prompt = render(
        "critique",
        task=group.task.input,
        attempt=failed.output or "",
        feedback=failed.reward.feedback if uses_reference else "",
        answer=group.task.answer if uses_reference else None,
    )
    try:
        reply = await context.model("critique", task=group.task.id).complete(
            [Message(role="user", content=prompt)]
        )
        trajectory = Trajectory.said(reply.text)
        scope = context.run.at("learn", step=context.step, task=group.task.id, rollout=len(group.rollouts))
        seed = split_seed(context.seed, group.task.id)
        reward = await scope.step(
            "reward",
            lambda: judge(group.task, trajectory, agent, scope, conditions, seed),
            returns=Reward,
            request=fingerprint([group.task.id, reply.text]),
        )
    except AgentMemError as error:
        if error.stops_run:
            raise
        return group
    if reward.score is None or reward.score <= (group.mean or 0.0):
        return group
    better = Rollout(
        task_id=group.task.id,
        index=len(group.rollouts),
        trajectory=trajectory,
        reward=reward,
        prior_hash=failed.prior_hash,
        mask=failed.mask,
        off_policy=True,
    )
    return group.model_copy(update={"rollouts": (*group.rollouts, better)})
