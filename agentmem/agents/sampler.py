"""Many attempts at once, streamed as groups the moment each is complete."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import Conditions, attempt
from agentmem.agents.breaker import Unrewarded
from agentmem.agents.group_plan import Fixed, GroupPlan
from agentmem.agents.places import Places
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task
from agentmem.errors import AgentMemError, TooManyErrors
from agentmem.events import RolloutFinished
from agentmem.runs.run import Run

BREAKER_MINIMUM = 20
"""Attempts after which the share of errors is first looked at."""

T = TypeVar("T")
Job = tuple[int, int, Task | None, int]
"""Precedence, order of arrival, task, which attempt; no task ends a worker."""


@dataclass(frozen=True)
class Sampler:
    """Draws groups of rollouts under one set of conditions.

    Workers take attempts in order, task by task, so that groups complete early; no straggler holds up the rest.
    Memory is bounded by the attempts under way and the groups under way.
    """

    run: Run
    conditions: Conditions
    concurrency: int
    """Attempts under way at once, over all groups that are being drawn."""
    max_error_share: float
    places: Places | None = None
    """Shared by samplers that together may have so many attempts under way; by default its own."""
    precedence: int = 0
    """Among those that share places, the lowest number goes first."""

    def __post_init__(self) -> None:
        if self.places is None:
            object.__setattr__(self, "places", Places(self.concurrency))  # frozen, but for this

    async def groups(
        self,
        agent: Agent,
        tasks: Sequence[Task],
        *,
        plan: GroupPlan | int,
        phase: str,
        step: int = 0,
        stream: str = "",
        inclusion: float = 1.0,
        at_once: int | None = None,
        begun: Mapping[str, Rollout] | None = None,
    ) -> AsyncIterator[Group]:
        """The group of each task, in order of completion.

        Args:
            agent: what acts, with its prior.
            tasks: one group each.
            plan: rollouts in a group: a number, or a plan that decides as they come in.
            phase: the place in the run.
            step: the learning step or the gate's round.
            stream: names the random numbers; by default the phase. Two arms with one stream see common numbers.
            inclusion: probability with which each attempt sees each experience.
            at_once: tasks in a batch; the next batch begins when the consumer has taken all of this one and asks for
                more. By default all tasks are one batch.
            begun: the first rollout of a task, by its id, where that was drawn already.

        Raises:
            TooManyErrors: more than the permitted share of attempts failed. What failed is forgotten in the
                journal, so that the same command tries it again.
        """
        plan = Fixed(plan) if isinstance(plan, int) else plan
        jobs: asyncio.PriorityQueue[Job] = asyncio.PriorityQueue()
        finished: asyncio.Queue[Rollout | BaseException] = asyncio.Queue()
        stopping = asyncio.Event()

        async def work() -> None:
            try:
                while not stopping.is_set():
                    _, _, task, index = await jobs.get()
                    if task is None:
                        return
                    scope = self.run.at(phase, step=step, task=task.id, rollout=index)
                    seed = split_seed(self.conditions.seed, stream or phase, step, task.id, index)
                    assert self.places is not None  # see __post_init__
                    async with self.places.place(self.precedence):
                        prior = await agent.prior_for(task, inclusion=inclusion, seed=seed)
                        rollout = await attempt(
                            agent, task, index, prior=prior, scope=scope, conditions=self.conditions, seed=seed
                        )
                    finished.put_nowait(rollout)
            except BaseException as error:
                finished.put_nowait(error)

        arrivals = 0

        def enqueue(task: Task, first: int, count: int, precedence: int) -> None:
            nonlocal arrivals
            for index in range(first, first + count):
                arrivals += 1
                jobs.put_nowait((precedence, arrivals, task, index))

        by_id = {task.id: task for task in tasks}
        wanted: dict[str, int] = {}
        waiting = iter(tasks)
        batch = at_once or len(tasks)

        def begin_batch() -> None:
            for task in islice(waiting, batch):
                first = begun.get(task.id) if begun else None
                if first is not None:
                    finished.put_nowait(first)
                wanted[task.id] = plan.more(())
                enqueue(task, first is not None, wanted[task.id] - (first is not None), 1)

        begin_batch()
        workers = [asyncio.create_task(work()) for _ in range(min(self.concurrency, len(tasks) * plan.most))]
        open_groups: defaultdict[str, list[Rollout]] = defaultdict(list)
        errors, done, left, unrewarded = Counter[str](), 0, len(tasks), Unrewarded()
        try:
            while left:
                rollout = await finished.get()
                if isinstance(rollout, BaseException):
                    stopping.set()
                    if isinstance(rollout, AgentMemError):
                        # The others are in the middle of calls that are paid for: let them store what they get.
                        for _ in workers:
                            jobs.put_nowait((0, 0, None, 0))
                        await asyncio.gather(*workers)
                    raise rollout
                if begun is None or begun.get(rollout.task_id) is not rollout:
                    done += 1
                    self.run.events.emit(RolloutFinished(phase, step, rollout))
                    if why := error_of(rollout):
                        errors[why] += 1
                        self.break_if_too_many(errors, done)
                    if self.max_error_share < 1:
                        unrewarded.count(rollout)
                members = open_groups[rollout.task_id]
                members.append(rollout)
                if len(members) == wanted[rollout.task_id]:
                    members.sort(key=lambda member: member.index)
                    task = by_id[rollout.task_id]
                    if more := plan.more(members):
                        enqueue(task, len(members), more, 0)
                        wanted[task.id] += more
                    else:
                        left -= 1
                        yield Group(task=task, rollouts=tuple(open_groups.pop(task.id)))
                        if (len(tasks) - left) % batch == 0:
                            begin_batch()
        except TooManyErrors:
            await cancel(workers)
            await self.run.forget_failures(phase, step)
            raise
        finally:
            await cancel(workers)

    def break_if_too_many(self, errors: Counter[str], done: int) -> None:
        """Stop once too large a share of the attempts failed.

        Args:
            errors: how many failed, by the reason.
            done: attempts made.

        Raises:
            TooManyErrors: it is so.
        """
        failed = errors.total()
        if done < BREAKER_MINIMUM or failed <= self.max_error_share * done:
            return
        raise TooManyErrors(
            f"{failed} of {done} attempts failed, most often with: {errors.most_common(1)[0][0].rstrip('.')}. "
            "Mend the cause and start the same command again; what succeeded is stored."
        )


async def together(*work: Coroutine[Any, Any, T]) -> list[T]:
    """The results of all, which run at once. One that fails lets the others end, because they are paid for."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.wait(tasks)
    finally:
        await cancel(tasks)
    failed = [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
    if failed:
        raise failed[0]
    return [task.result() for task in tasks]


async def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel background tasks and wait until they have ended; the finished ones are left as they are."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def error_of(rollout: Rollout) -> str:
    """Why a rollout has no score through no fault of the agent's; empty where it has one."""
    if rollout.failure is not None:
        return f"[{rollout.failure.kind}] {rollout.failure.message}"
    return f"[reward] {rollout.reward.feedback}" if rollout.reward.status == "error" else ""
