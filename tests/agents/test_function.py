"""Any callable as an agent: seen by the journal, never a zero in disguise."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.errors import InputError
from agentmem.testing.scripted import ScriptedModel

TASKS = [Task(id=f"t{i}", input=f"Say {i}.", answer=str(i)) for i in range(4)]


def reads_number(task, prior):
    return task.input.split()[1].rstrip(".")


async def reads_number_async(task, prior):
    await asyncio.sleep(0)
    return reads_number(task, prior)


class Reader:
    async def __call__(self, task):
        return Trajectory.said(reads_number(task, ""))


@pytest.mark.parametrize("function", [reads_number, reads_number_async, Reader(), lambda task: task.answer])
async def test_sync_async_objects_and_lambdas(function, tmp_path):
    report = await aevaluate(Agent(function), TASKS, reward="exact", run=tmp_path / "r", listeners=())
    assert report.score == 1.0


async def test_a_callable_without_a_handle_is_one_step_and_is_not_called_again(tmp_path):
    called = []

    def agent(task, prior):
        called.append(task.id)
        return "x"

    for _ in range(2):
        await aevaluate(Agent(agent, name="a"), TASKS, reward="exact", run=tmp_path / "r", listeners=())
    assert sorted(called) == ["t0", "t1", "t2", "t3"]


async def test_calls_through_the_handle_are_journaled_one_by_one(tmp_path):
    model = ScriptedModel(lambda request: request.messages[-1].content.split()[-1].rstrip("."))

    async def agent(task, model):
        first = await model.complete(task.input)
        second = await model.complete([{"role": "user", "content": first.text}])
        return second.text

    report = await aevaluate(Agent(agent, model=model), TASKS, reward="exact", run=tmp_path / "r", listeners=())
    assert report.score == 1.0
    assert report.usage.calls == model.calls == 8
    assert len({request.seed for request in model.requests}) == 8


async def test_a_plain_function_may_call_the_model_from_its_thread(tmp_path):
    def agent(task, model):
        assert threading.current_thread() is not threading.main_thread()
        return model.complete_sync(task.input).text

    model = ScriptedModel(lambda request: request.messages[-1].content.split()[-1].rstrip("."))
    report = await aevaluate(Agent(agent, model=model), TASKS, reward="exact", run=tmp_path / "r", listeners=())
    assert report.score == 1.0


async def test_slow_plain_functions_run_at_once(tmp_path):
    def slow(task):
        time.sleep(0.2)
        return task.answer

    tasks = [Task(id=str(i), input="?", answer="a") for i in range(40)]
    started = time.perf_counter()
    await aevaluate(Agent(slow), tasks, reward="exact", run=tmp_path / "r", listeners=())
    assert time.perf_counter() - started < 40 * 0.2 / 3


async def test_the_prior_arrives_as_text(tmp_path):
    seen = []
    library = ExperienceLibrary().apply([Add(text="Read the number aloud.")])
    agent = Agent(lambda task, prior: seen.append(prior) or "x").with_experience(library)
    await aevaluate(agent, TASKS[:1], reward="exact", run=tmp_path / "r", listeners=())
    assert "Read the number aloud." in seen[0]


async def test_what_it_raises_is_named_and_is_no_zero(tmp_path):
    def broken(task):
        raise KeyError("oops")

    report = await aevaluate(Agent(broken), TASKS[:1], reward="exact", run=tmp_path / "r", listeners=())
    outcome = report.outcomes[0]
    assert (outcome.score, outcome.status, outcome.failure.kind) == (None, "failed", "agent")
    assert "broken', task 't0', raised KeyError: 'oops'" in outcome.failure.message


async def test_a_wrong_type_is_named(tmp_path):
    report = await aevaluate(Agent(lambda task: 42), TASKS[:1], reward="exact", run=tmp_path / "r", listeners=())
    assert "returned a int; return the answer as str, or a Trajectory" in report.outcomes[0].failure.message


async def test_no_answer_is_the_agents_own_doing(tmp_path):
    report = await aevaluate(Agent(lambda task: None), TASKS[:1], reward="exact", run=tmp_path / "r", listeners=())
    assert (report.outcomes[0].score, report.outcomes[0].status) == (0.0, "ok")


def test_a_parameter_that_nobody_offers_is_refused_at_once():
    with pytest.raises(InputError, match=r"asks for 'question'; an agent may take task, prior, model, context"):
        Agent(lambda question, prior: "x")
