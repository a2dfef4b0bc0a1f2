"""One attempt at one task, judged: a durable step made of durable steps."""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import dataclass, field

from agentmem.agents.agent import Agent
from agentmem.agents.case_prompt import ShownCases, cited, repeated
from agentmem.agents.confidence import ask_confidence
from agentmem.agents.context import Context, folder_of
from agentmem.agents.prior import Prior
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Confidence, Failure, Rollout
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.domain.value import encodable, fingerprint
from agentmem.errors import AgentMemError, InputError, LimitReached, RewardError, boundary
from agentmem.models.gateway import Gateways
from agentmem.models.handle import ModelHandle
from agentmem.models.model import Model
from agentmem.rewards.reward_function import RewardFunction
from agentmem.runs.run import Scope

JUDGE_TOKENS = 1024
"""Tokens that a judge's reply may have."""


@dataclass(frozen=True)
class Conditions:
    """Under which conditions attempts are made; the same for a whole phase."""

    gateways: Gateways
    reward: RewardFunction
    temperature: float
    seed: int
    ask_confidence: bool = False
    """Whether each answer is followed by a turn that asks how likely it is right."""


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
        shown = await agent.memory.recall(task, scope, seed) if agent.memory else ShownCases()
        trajectory, failure = await _act(agent, task, prior, shown, scope, conditions, seed)
        trajectory, used = _uncited(trajectory, shown)
        if failure is not None:
            reward = Reward.unknown("the attempt failed", source=conditions.reward.name, status="unverifiable")
        else:
            # Not a step of its own: its result is in the rollout, which is stored next, and a judge's calls are steps.
            reward = await judge(task, trajectory, agent, scope, conditions, seed)
        sure: Confidence | None = None
        if conditions.ask_confidence and agent.model is not None and failure is None and trajectory.output:
            handle = _handle(agent.model, "confidence", agent, scope, conditions, seed)
            sure = await ask_confidence(task, trajectory, handle)
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
            recall=shown.recall,
            cited=used,
            confidence=sure,
            seconds=round(time.monotonic() - started, 3),
        )

    asked = fingerprint([task.id, task.input, task.answer, prior.hash, conditions.temperature, seed])
    rollout = await scope.step("rollout", make, returns=Rollout, request=asked)
    if agent.uses_files:
        # Only now: until the rollout is stored, a resumed attempt may still need its files.
        shutil.rmtree(folder_of(scope), ignore_errors=True)
    return rollout


def _uncited(trajectory: Trajectory, shown: ShownCases) -> tuple[Trajectory, tuple[str, ...]]:
    """The attempt with an answer that holds no citations, and the cases that it used: cited, or repeated."""
    if not shown.ids or not trajectory.output:
        return trajectory, ()
    answer, used = cited(trajectory.output, shown.ids)
    used = used or repeated(answer, shown)
    return trajectory.model_copy(update={"output": answer}), used


async def _act(
    agent: Agent,
    task: Task,
    prior: Prior,
    shown: ShownCases,
    scope: Scope,
    conditions: Conditions,
    seed: int,
) -> tuple[Trajectory, Failure | None]:
    settings = agent.settings
    handle = _handle(agent.model, "act", agent, scope, conditions, seed) if agent.model else None
    context = Context(
        task=task,
        prior=prior,
        model=handle,
        tools=agent.tools,
        settings=settings,
        system=agent.system,
        seed=seed,
        scope=scope,
        shown=shown,
        executor=_executor(agent, handle, scope, conditions, seed),
        memory=agent.memory,
    )
    for model in agent.models:
        await conditions.gateways.to(model).prepare()  # loading weights is no part of anybody's time limit
    await agent.tools.need_sandbox(settings.sandbox)  # what would be refused is refused before a call is paid for
    trajectory, failure = Trajectory(), None
    try:
        async with asyncio.timeout(settings.max_rollout_seconds):
            trajectory = await agent.act(context)
    except TimeoutError:
        # A clock cannot tell a slow agent from a slow server, so this is no wrong answer.
        message = f"The attempt took longer than {settings.max_rollout_seconds:g} s."
        failure = Failure(kind="rollout_timeout", message=message)
    except LimitReached:
        trajectory = Trajectory(ended_by="tokens")
    except AgentMemError as error:
        if error.stops_run:
            raise
        failure = Failure.of(error)
    if handle is not None and handle.stopped is not None:
        raise handle.stopped  # a spent budget or a refused key, which the agent's code took for something else
    return trajectory, failure


def _executor(
    agent: Agent, planner: ModelHandle | None, scope: Scope, conditions: Conditions, seed: int
) -> ModelHandle | None:
    """Of a planner: a handle of its executor's model, on the planner's account."""
    if agent.style != "planner" or planner is None:
        return None
    if agent.executor is None:
        return planner
    return _handle(agent.executor, "act", agent, scope, conditions, seed).sharing(planner)


async def judge(
    task: Task, trajectory: Trajectory, agent: Agent, scope: Scope, conditions: Conditions, seed: int
) -> Reward:
    """The reward of one attempt; one that fails is typed, never 0."""
    reward = conditions.reward
    judging = Judging(agent, scope, conditions, seed)

    try:
        with boundary(RewardError, f"reward {reward.name!r}, task {task.id!r},"):
            given = await reward(task, trajectory, judging)
    except AgentMemError as error:
        if error.stops_run:
            raise
        given = Reward.unknown(encodable(str(error)), source=reward.name, status="error")
    for handle in judging.handles:
        if handle.stopped is not None:
            raise handle.stopped  # the reward's code took it for something else
    return given


@dataclass(frozen=True)
class Judging:
    """What a reward may use: models of the same run, under the same budget (`RewardContext`)."""

    agent: Agent
    scope: Scope
    conditions: Conditions
    seed: int
    handles: list[ModelHandle] = field(default_factory=list)

    def model(self, model: str | Model | None = None) -> ModelHandle:
        """A handle to a judge; by default the agent's own model."""
        chosen = model if model is not None else self.agent.model
        if chosen is None:
            raise InputError("The reward asks for a model, and the agent has none; name a judge model.")
        handle = _handle(chosen, "judge", self.agent, self.scope, self.conditions, self.seed)
        self.handles.append(handle)
        return handle


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
        max_tokens=agent.settings.max_completion_tokens if acts else JUDGE_TOKENS,
        logprobs=agent.settings.logprobs and acts,
        token_limit=agent.settings.max_rollout_tokens if acts else None,
    )
