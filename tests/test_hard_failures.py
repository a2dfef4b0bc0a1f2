"""Failures in the worst places: none becomes a wrong answer, none hangs, and the advised repair works."""

from __future__ import annotations

import asyncio

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate, alearn
from agentmem.domain.task import Task, TaskSet
from agentmem.errors import BadRequest, BudgetExceeded, InputError, TooManyErrors
from agentmem.settings import Budget, ModelSettings
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel
from tests.learning.zork import TASKS, Zork

QUICK = ModelSettings(attempts=1)


def tasks(n: int) -> TaskSet:
    return TaskSet([Task(id=f"t{i}", input=f"Task {i}?", answer="yes") for i in range(n)])


async def test_a_budget_stop_that_an_agent_swallows_is_no_wrong_answer(tmp_path):
    async def careless(task, model):
        try:
            return (await model.complete(task.input)).text
        except Exception:  # as careless agents do: it is what this test is about
            return "I do not know."

    model = ScriptedModel(lambda request: "yes")
    with pytest.raises(BudgetExceeded):
        await aevaluate(
            Agent(careless, model=model),
            tasks(10),
            reward="exact",
            budget=Budget(max_calls=3),
            run=tmp_path / "r",
            listeners=(),
            concurrency=1,
        )
    report = await aevaluate(
        Agent(careless, model=model), tasks(10), reward="exact", run=tmp_path / "r", listeners=()
    )
    assert (report.score, model.calls) == (1.0, 10)


@pytest.mark.parametrize("takes_model", [False, True])
async def test_half_a_character_in_an_error_does_not_hang(takes_model, tmp_path):
    def plain(task, prior):
        raise ValueError("cannot open 'caf\udce9'")

    async def handled(task, model):
        raise ValueError("cannot open 'caf\udce9'")

    agent = Agent(handled, model=ScriptedModel([])) if takes_model else Agent(plain)
    run = aevaluate(agent, tasks(1), reward="exact", run=tmp_path / "r", listeners=())
    report = await asyncio.wait_for(run, timeout=10)
    assert "cannot open 'caf?'" in report.outcomes[0].failure.message


async def test_half_a_character_in_an_answer_does_not_hang(tmp_path):
    run = aevaluate(Agent(lambda task: "caf\udce9"), tasks(1), reward="exact", run=tmp_path / "r", listeners=())
    assert (await asyncio.wait_for(run, timeout=10)).outcomes[0].output == "caf?"


async def test_after_too_many_errors_the_same_command_goes_on(tmp_path):
    state = {"down": True}

    def flaky(request):
        unlucky = state["down"] and (request.seed or 0) % 5 < 3
        return BadRequest("filtered") if unlucky else Zork._task(world, request)

    world = Zork(p=0.5, task=flaky)
    options = {
        "reward": "numeric", "group_size": 10, "epochs": 1, "gate": "always", "embedder": HashEmbedder(),
        "run": tmp_path / "r", "listeners": (),
    }  # fmt: skip
    agent = Agent(world.model, calls=QUICK)
    with pytest.raises(TooManyErrors, match="filtered"):
        await alearn(agent, TASKS.head(12), **options)
    state["down"] = False
    assert len(await alearn(agent, TASKS.head(12), **options)) == 1


async def test_a_reward_that_was_down_is_asked_again(tmp_path):
    state = {"down": True}

    def grader(task, trajectory):
        if state["down"]:
            raise OSError("grader is down")
        return 1.0

    model = ScriptedModel(lambda request: "yes")
    options = {"reward": grader, "run": tmp_path / "r", "listeners": ()}
    with pytest.raises(TooManyErrors, match="grader is down"):
        await aevaluate(Agent(model), tasks(30), **options)
    state["down"] = False
    paid = model.calls
    report = await aevaluate(Agent(model), tasks(30), **options)
    assert report.score == 1.0
    assert model.calls <= 30 + 30 - paid  # the answers that were paid for are judged again, not bought again


async def test_all_models_are_opened_before_the_first_call(tmp_path):
    model = ScriptedModel(lambda request: "yes")
    with pytest.raises(InputError, match="nosuchprovider"):
        await alearn(
            Agent(model),
            tasks(60),
            reward="exact",
            extractor_model="nosuchprovider/foo",
            run=tmp_path / "r",
            listeners=(),
        )
    assert model.calls == 0


async def test_loading_a_model_is_no_part_of_an_attempts_time(tmp_path):
    class Slow(ScriptedModel):
        async def prepare(self):
            await asyncio.sleep(0.4)

    agent = Agent(Slow(lambda request: "yes"), max_rollout_seconds=0.2)
    report = await aevaluate(agent, tasks(2), reward="exact", run=tmp_path / "r", listeners=())
    assert report.score == 1.0


async def test_two_servers_are_two_runs(tmp_path):
    agents = [Agent("openai/m", base_url=f"http://user:secret@127.0.0.1:{port}/v1") for port in (1, 2)]
    assert agents[0].describe() != agents[1].describe()
    assert "secret" not in str(agents[0].describe())


async def test_a_token_limit_of_a_callable_is_its_own_doing(tmp_path):
    async def greedy(task, model):
        while True:
            await model.complete("more " * 50)

    agent = Agent(greedy, model=ScriptedModel(lambda request: "word " * 50), max_rollout_tokens=300)
    report = await aevaluate(agent, tasks(1), reward="exact", run=tmp_path / "r", listeners=())
    assert (report.outcomes[0].status, report.outcomes[0].score) == ("limit", 0.0)
