"""Training-Free GRPO on a stream: every task is answered and scored at once, and learning goes on behind the answers.

Task -> Rollout under the library in force -> Reward: the answer, and its score before anything is learned from it
-> behind it: the rest of its Group -> with every so many Groups a step, as in `step.py`
-> ExperienceLibrary (in force for later arrivals, if it passes the gate on tasks held out of the stream)
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import judge
from agentmem.agents.sampler import BREAKER_MINIMUM, Sampler, cancel, error_of
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.task import Task
from agentmem.domain.value import Value, fingerprint
from agentmem.errors import (
    AgentMemError,
    BudgetExceeded,
    InputError,
    RunMismatch,
    StreamError,
    TooManyErrors,
    boundary,
)
from agentmem.events import Answered, Noted, PhaseStarted
from agentmem.learning.arrivals import name_of_arrival, stored_arrival
from agentmem.learning.credit import Credit
from agentmem.learning.leak_rule import LeakRule
from agentmem.learning.news import News, Over
from agentmem.learning.step import Parts
from agentmem.learning.stream import Answer, Arrival, Role, Source
from agentmem.learning.stream_gate import StreamGate
from agentmem.runs.run import Run

MOST_WAITING = 3
"""Steps whose groups may be under way or waiting; beyond that, arrivals are answered and teach nothing."""
NEWEST = 4096
"""Rollouts from which the effects of experiences are measured, so that memory stays bounded."""

Taken = tuple[Arrival, Task]


class Window(Value):
    """The arrivals of one learning step, as the journal keeps them."""

    positions: tuple[int, ...]


@dataclass(frozen=True)
class Lesson:
    """An arrival that teaches, until its step is done."""

    task: Task
    group: asyncio.Task[Group]


@dataclass
class OnlineGRPO:
    """One learning run on a stream."""

    parts: Parts
    answers: Sampler
    """Draws the answers; it shares no places with what is drawn behind them."""
    gate: StreamGate
    on_answer: Callable[[Answer], Any] | None = None

    _in_force: dict[int, Agent] = field(default_factory=dict)
    """The agent with the library of each finished step that an arrival may still ask for; -1 is before the first."""
    _newest: int = -1
    _lessons: dict[int, Lesson] = field(default_factory=dict)
    """By position: what no step has used up yet."""
    _latest: deque[tuple[Arrival, Rollout]] = field(default_factory=lambda: deque(maxlen=BREAKER_MINIMUM))
    _said: set[str] = field(default_factory=set)

    @property
    def run(self) -> Run:
        """Where everything is stored."""
        return self.parts.run

    @property
    def news(self) -> News:
        """What is told between answering, learning and the gate."""
        return self.gate.news

    async def learn(
        self, agent: Agent, source: Source, library: ExperienceLibrary | None = None
    ) -> ExperienceLibrary:
        """Answer all tasks, and learn from them to the end; returns the newest library that passed the gate."""
        agent = agent.with_experience(library or ExperienceLibrary(), policy=self.parts.recipe.prior)
        self._in_force[-1] = agent
        assert agent.library is not None  # as given above
        await self.parts.store(agent.library, -1)
        self.run.events.emit(PhaseStarted("online", 0, title="answering"))
        behind = asyncio.create_task(self._learn_behind(agent, agent.library))
        answers: set[asyncio.Task[Rollout]] = set()
        try:
            fault = await self._answer_all(source, answers, behind)
            await self.news.end()
            library = await behind
        except AgentMemError as error:
            # The others are in the middle of calls that are paid for: let them store what they get.
            await self.news.stop()
            spent = isinstance(error, BudgetExceeded)  # then nothing new is begun anywhere
            more = (behind, *(lesson.group for lesson in self._lessons.values())) if spent else ()
            await asyncio.gather(*answers, *more, return_exceptions=True)
            raise
        finally:
            await cancel((behind, *answers, *(lesson.group for lesson in self._lessons.values())))
        if fault is not None:
            raise fault
        return library

    async def _answer_all(
        self, source: Source, answers: set[asyncio.Task[Rollout]], behind: asyncio.Task[ExperienceLibrary]
    ) -> AgentMemError | None:
        """Take tasks in as they come, and answer them; returns what the source raised, as its end."""
        fault: AgentMemError | None = None
        taking: asyncio.Task[Taken | None] | None = None
        ended = False
        try:
            while not ended or answers:
                if taking is None and not ended and len(answers) < self.answers.concurrency:
                    taking = asyncio.create_task(self._take(source))
                waiting = {behind, *answers, *([taking] if taking else [])}
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if behind in done:
                    await behind  # it ends before the stream does only by raising
                for answer in answers & done:
                    answers.discard(answer)
                    await answer
                if taking is not None and taking in done:
                    try:
                        taken = await taking
                    except (StreamError, InputError) as error:
                        fault, taken = error, None
                    taking, ended = None, taken is None
                    if taken is not None:
                        answers.add(self._begin(*taken))
        finally:
            await cancel([taking] if taking else [])
        return fault

    async def _take(self, source: Source) -> Taken | None:
        """The next task with what is decided about it; None at the end of the stream."""
        task = await source.next()
        if task is None:
            return None
        now = self._in_force[self._newest].library
        decided = Arrival(
            position=source.given,
            task_id=task.id,
            cluster=task.cluster,
            step=self._newest,
            version=now.version if now else 0,
            role=self._role(task),
        )
        arrival = await stored_arrival(self.run, decided, task)
        # On a replay, the step whose library answered has to be done again first; all that it needs arrived before.
        await self.news.until(lambda: arrival.step in self._in_force)
        for step in [step for step in self._in_force if step < arrival.step]:
            del self._in_force[step]
        return arrival, task.model_copy(update={"id": await name_of_arrival(self.run, task.id, source.given)})

    def _role(self, task: Task) -> Role:
        if self.gate.held.holds(task):
            return "held out"
        if len(self._lessons) < MOST_WAITING * self._size:
            return "teaches"
        self._say("behind", "Learning is behind: until it catches up, tasks are answered and teach nothing.")
        return "skipped"

    def _begin(self, arrival: Arrival, task: Task) -> asyncio.Task[Rollout]:
        agent = self._in_force[arrival.step]
        shown = task
        if self.parts.settings.reference == "none":
            shown = task.model_copy(update={"answer": None})
        answer = asyncio.create_task(self._answer(arrival, agent, shown, task))
        if arrival.role == "teaches":
            group = asyncio.create_task(self._group(arrival, agent, shown, answer))
            self._lessons[arrival.position] = Lesson(shown, group)
        return answer

    async def _answer(self, arrival: Arrival, agent: Agent, shown: Task, task: Task) -> Rollout:
        """The first rollout of the task, scored and handed out; nothing was learned from the task yet."""
        drawn = self.answers.groups(agent, [shown], plan=1, phase="online", step=arrival.position)
        (rollout,) = [rollout async for group in drawn for rollout in group.rollouts]
        answer = Answer(arrival=arrival, rollout=await self._scored(arrival, agent, task, rollout))
        await self._look_after(answer)
        self.run.events.emit(Answered(arrival.position, answer.rollout, arrival.version))
        if self.on_answer is not None:
            with boundary(StreamError, f"on_answer, given the answer to task {arrival.position},"):
                if inspect.isawaitable(taken := self.on_answer(answer)):
                    await taken
        if arrival.role == "held out" and answer.score is not None:
            self.gate.held.add(task)
        await self.news.tell()
        return rollout

    async def _scored(self, arrival: Arrival, agent: Agent, task: Task, rollout: Rollout) -> Rollout:
        """The answer with its reward. Where learning must not see that, it is found apart."""
        if self.parts.settings.reference == "use" or rollout.status == "failed":
            return rollout
        conditions = replace(self.answers.conditions, reward=self.parts.teacher.reward)
        scope = self.run.at("online", step=arrival.position, task=task.id)
        reward = await scope.step(
            "score",
            lambda: judge(task, rollout.trajectory, agent, scope, conditions, conditions.seed),
            returns=Reward,
            request=fingerprint([task, rollout.output]),
        )
        return rollout.model_copy(update={"reward": reward})

    async def _look_after(self, answer: Answer) -> None:
        """Stop when too many of the latest answers failed, and say when none of the first could be scored."""
        self._latest.append((answer.arrival, answer.rollout))
        if answer.score is not None:
            self._said.add("unscored")
        elif len(self._latest) == BREAKER_MINIMUM:
            self._say(
                "unscored",
                f"None of the first {BREAKER_MINIMUM} answers could be scored ({answer.brief()['why']}). Without "
                "scores nothing passes the gate; give tasks with answers, or a reward that needs none, such as judge.",
            )
        errors = Counter(why for _, rollout in self._latest if (why := error_of(rollout)))
        try:
            self.answers.break_if_too_many(errors, len(self._latest))
        except TooManyErrors:
            for arrival, _ in list(self._latest):
                await self.run.forget_failures("online", arrival.position)
            raise

    async def _group(self, arrival: Arrival, agent: Agent, task: Task, answer: asyncio.Task[Rollout]) -> Group:
        """The answer with the rest of its group, under the same library."""
        first = await asyncio.shield(answer)
        drawn = self.parts.rollouts.groups(
            agent,
            [task],
            plan=self.parts.recipe.plan,
            phase="online",
            step=arrival.position,
            inclusion=self.parts.settings.inclusion,
            begun={task.id: first},
        )
        (group,) = [group async for group in drawn]
        return group

    async def _learn_behind(self, agent: Agent, library: ExperienceLibrary) -> ExperienceLibrary:
        """Step after step, as long as there is anything to learn from."""
        credit = Credit(newest=NEWEST)
        for number in count():
            try:
                positions, lessons = await self._window(number)
            except Over:
                break
            tasks = [lesson.task for lesson in lessons]
            step = self.parts.step(number, leak=LeakRule.of(tasks), tasks=tasks)
            current = agent.with_experience(library)
            groups, advantages = await step.advantages(_completed(lessons), tasks, current, library)
            judge = partial(self.gate.judge, agent, number)
            library = await step.next_version(library, groups, advantages, credit=credit, judge=judge)
            self._in_force[number], self._newest = agent.with_experience(library), number
            for position in positions:
                del self._lessons[position]
            await self.news.tell()
        return library

    async def _window(self, number: int) -> tuple[tuple[int, ...], list[Lesson]]:
        """The arrivals that a step learns from: the next ones that teach, or at the end those that are left."""

        async def close() -> Window:
            await self.news.until(lambda: self.news.ended or len(self._lessons) >= self._size)
            if not self._lessons:
                raise Over
            return Window(positions=tuple(sorted(self._lessons)[: self._size]))

        place = self.run.at("learn", step=number)
        positions = (await place.step("window", close, returns=Window)).positions
        await self.news.until(lambda: self.news.ended or self._lessons.keys() >= set(positions))
        if missing := set(positions) - self._lessons.keys():
            raise RunMismatch(
                f"{self.run.path}: the stream ended before its task {min(missing)}, which it had when this run was "
                "begun. Go on with the same stream from its start, or name another run."
            )
        return positions, [self._lessons[position] for position in positions]

    @property
    def _size(self) -> int:
        size = self.parts.settings.batch_size
        assert size is not None  # `OnlineLearning.of` sets it
        return size

    def _say(self, key: str, message: str) -> None:
        """Tell a person, once."""
        if key not in self._said:
            self._said.add(key)
            self.run.events.emit(Noted(message, "warning"))


async def _completed(lessons: Sequence[Lesson]) -> AsyncIterator[Group]:
    """The groups of the lessons, in order of completion."""
    for group in asyncio.as_completed([lesson.group for lesson in lessons]):
        yield await group
