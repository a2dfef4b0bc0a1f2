"""One attempt at one task, judged: a durable step made of durable steps."""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import dataclass

from agentmem.agents.agent import Agent
from agentmem.agents.context import Context, folder_of
from agentmem.agents.prior import Prior
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Failure, Rollout
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.domain.value import fingerprint
from agentmem.errors import AgentMemError, InputError, RewardError, boundary
from agentmem.models.gateway import Gateways
from agentmem.models.handle import ModelHandle
from agentmem.models.model import Model
from agentmem.rewards.reward_function import RewardFunction
from agentmem.runs.run import Scope


@dataclass(frozen=True)
class Conditions:
    """Under which conditions attempts are made; the same for a whole phase."""

    gateways: Gateways
    reward: RewardFunction
    temperature: float
    seed: int


async def attempt(
    agent: Agent, task: Task, index: int, *, prior: Prior, scope: Scope, conditions: Conditions, seed: int
) -> Rollout:
    """One rollout, bought at most once. What fails on the way becomes data in it, never a reward of 0.

    Args:
        agent: what acts.
        task: what it is given.
        index: which attempt at the task this is.
        prior: the agent's rendered library (rendered once for all attempts).
        scope: the place in the run.
        conditions: model gateways, reward, temperature.
        seed: all draws of this attempt depend on it.
    """

    async def make() -> Rollout:
        started = time.monotonic()
        trajectory, failure = await _act(agent, task, prior, scope, conditions, seed)
        if failure is not None:
            reward = Reward.unknown("the attempt failed", source=conditions.reward.name, status="unverifiable")
        else:
            reward = await judge(task, trajectory, agent, scope, conditions, seed)
        ended_well = trajectory.ended_by == "answer"
        return Rollout(
            task_id=task.id,
            index=index,
            trajectory=trajectory,
            reward=reward,
            status="failed" if failure else "ok" if ended_well else "limit",
            failure=failure,
            prior_hash=prior.hash,
            mask=prior.ids,
            eligible=prior.eligible,
            inclusion=prior.inclusion,
            seconds=round(time.monotonic() - started, 3),
        )

    asked = fingerprint([task.id, task.input, task.answer, prior.hash, conditions.temperature, seed])
    rollout = await scope.step("rollout", make, returns=Rollout, request=asked)
    if agent.uses_files:
        # Only now: until the rollout is stored, a resumed attempt may still need its files.
        shutil.rmtree(folder_of(scope), ignore_errors=True)
    return rollout


async def _act(
    agent: Agent, task: Task, prior: Prior, scope: Scope, conditions: Conditions, seed: int
) -> tuple[Trajectory, Failure | None]:
    settings = agent.settings
    context = Context(
        task=task,
        prior=prior,
        model=_handle(agent.model, "act", agent, scope, conditions, seed) if agent.model else None,
        tools=agent.tools,
        settings=settings,
        system=agent.system,
        seed=seed,
        scope=scope,
    )
    try:
        async with asyncio.timeout(settings.max_rollout_seconds):
            return await agent.act(context), None
    except TimeoutError:
        # A clock cannot tell a slow agent from a slow server, so this is no wrong answer.
        message = f"The attempt took longer than {settings.max_rollout_seconds:g} s."
        return Trajectory(), Failure(kind="rollout_timeout", message=message)
    except AgentMemError as error:
        if error.stops_run:
            raise
        return Trajectory(), Failure.of(error)


async def judge(
    task: Task, trajectory: Trajectory, agent: Agent, scope: Scope, conditions: Conditions, seed: int
) -> Reward:
    """The reward of one attempt, as a durable step; a reward that fails is typed, never 0."""
    reward = conditions.reward
    judging = Judging(agent, scope, conditions, seed)

    async def score() -> Reward:
        try:
            with boundary(RewardError, f"reward {reward.name!r}, task {task.id!r},"):
                return await reward(task, trajectory, judging)
        except AgentMemError as error:
            if error.stops_run:
                raise
            return Reward.unknown(str(error), source=reward.name, status="error")

    asked = fingerprint([reward.name, task.answer, trajectory.output])
    return await scope.step("reward", score, returns=Reward, request=asked)


@dataclass(frozen=True)
class Judging:
    """What a reward may use: models of the same run, under the same budget (`RewardContext`)."""

    agent: Agent
    scope: Scope
    conditions: Conditions
    seed: int

    def model(self, model: str | Model | None = None) -> ModelHandle:
        """A handle to a judge; by default the agent's own model."""
        chosen = model if model is not None else self.agent.model
        if chosen is None:
            raise InputError("The reward asks for a model, and the agent has none; name a judge model.")
        return _handle(chosen, "judge", self.agent, self.scope, self.conditions, self.seed)


def _handle(
    model: str | Model, purpose: str, agent: Agent, scope: Scope, conditions: Conditions, seed: int
) -> ModelHandle:
    acts = purpose == "act"
    return ModelHandle(
        conditions.gateways.to(model),
        scope,
        purpose=purpose,
        seed=seed,
        temperature=conditions.temperature if acts else 0.0,
        top_p=agent.settings.top_p if acts else 1.0,
        max_tokens=agent.settings.max_completion_tokens if acts else 1024,
        logprobs=agent.settings.logprobs and acts,
        token_limit=agent.settings.max_rollout_tokens if acts else None,
    )
