"""The sampler: groups stream, failures stay data, too many of them stop the run and are forgotten."""

from __future__ import annotations

import random

import pytest

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import Conditions
from agentmem.agents.sampler import Sampler
from agentmem.domain.task import Task
from agentmem.errors import AccessDenied, BudgetExceeded, ModelUnavailable, TooManyErrors
from agentmem.models.gateway import Gateways
from agentmem.models.names import open_model
from agentmem.rewards.reward_function import resolve_reward
from agentmem.runs.run import Run
from agentmem.settings import Budget, ModelSettings
from agentmem.testing.scripted import ScriptedModel

QUICK = ModelSettings(attempts=1)


def tasks(n: int) -> list[Task]:
    return [Task(id=f"t{i}", input=f"Task {i}?", answer="yes") for i in range(n)]


async def groups_of(path, model, n, size, *, concurrency=8, share=0.5, budget=None, reward="exact"):
    run = Run.open(path, {"verb": "test"}, budget=budget)
    gateways = Gateways(run.ledger, settings=QUICK, open_model=open_model)
    sampler = Sampler(run, Conditions(gateways, resolve_reward(reward), 1.0, 0), concurrency, share)
    try:
        return [group async for group in sampler.groups(Agent(model), tasks(n), plan=size, phase="learn")]
    finally:
        await gateways.close()
        run.close()


async def test_each_task_has_one_whole_group_in_order(tmp_path):
    rng = random.Random(0)
    model = ScriptedModel(lambda request: "yes", latency=lambda request: rng.random() / 50)
    groups = await groups_of(tmp_path / "r", model, 12, 4)
    assert sorted(group.task.id for group in groups) == sorted(task.id for task in tasks(12))
    assert all([r.index for r in group.rollouts] == [0, 1, 2, 3] for group in groups)


async def test_a_straggler_holds_up_nobody_else(tmp_path):
    def latency(request):
        return 0.5 if request.messages[-1].content == "Task 0?" else 0.0

    groups = await groups_of(tmp_path / "r", ScriptedModel(lambda r: "yes", latency=latency), 10, 2)
    assert groups[-1].task.id == "t0"
    assert len(groups) == 10


async def test_every_attempt_draws_its_own_numbers_and_the_same_ones_again(tmp_path):
    first, second = (ScriptedModel(lambda r: "yes") for _ in range(2))
    await groups_of(tmp_path / "a", first, 5, 3)
    await groups_of(tmp_path / "b", second, 5, 3, concurrency=1)
    assert len({request.seed for request in first.requests}) == 15
    assert {request.seed for request in first.requests} == {request.seed for request in second.requests}


async def test_some_failures_are_data(tmp_path):
    def answer(request):
        return ModelUnavailable("down") if request.messages[-1].content == "Task 3?" else "yes"

    groups = await groups_of(tmp_path / "r", ScriptedModel(answer), 30, 1)
    failed = [group for group in groups if group.mean is None]
    assert [group.task.id for group in failed] == ["t3"]
    assert failed[0].rollouts[0].failure.kind == "model_unavailable"


async def test_too_many_failures_stop_the_run_and_are_tried_again(tmp_path):
    model = ScriptedModel(lambda request: ModelUnavailable("the network is down"))
    with pytest.raises(TooManyErrors, match=r"20 of 20 attempts failed.*the network is down"):
        await groups_of(tmp_path / "r", model, 50, 1)
    assert model.calls < 40  # it stopped early
    groups = await groups_of(tmp_path / "r", ScriptedModel(lambda r: "yes"), 50, 1)
    assert all(group.mean == 1.0 for group in groups)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
async def test_a_reward_that_is_no_number_stops_after_a_few_attempts(tmp_path, value):
    model = ScriptedModel(lambda request: "yes", latency=0.002)

    def broken(task, trajectory):
        return value

    with pytest.raises(TooManyErrors, match=rf"None of the first 6 .*'broken' returned {value} .* finite number"):
        await groups_of(tmp_path / "r", model, 50, 3, reward=broken, concurrency=2)
    assert model.calls <= 8


async def test_a_reward_that_fails_on_one_task_only_is_no_broken_reward(tmp_path):
    def picky(task, trajectory):
        return float("nan") if task.id == "t0" else 1.0

    groups = await groups_of(tmp_path / "r", ScriptedModel(lambda r: "yes"), 10, 8, reward=picky, concurrency=1)
    assert sum(group.mean is None for group in groups) == 1


async def test_a_refused_key_stops_at_once_and_stores_nothing(tmp_path):
    with pytest.raises(AccessDenied):
        await groups_of(tmp_path / "r", ScriptedModel(lambda r: AccessDenied("no key")), 50, 1)
    groups = await groups_of(tmp_path / "r", ScriptedModel(lambda r: "yes"), 50, 1)
    assert len(groups) == 50


async def test_a_spent_budget_lets_paid_calls_finish_and_goes_on_later(tmp_path):
    model = ScriptedModel(lambda r: "yes", latency=0.02)
    with pytest.raises(BudgetExceeded):
        await groups_of(tmp_path / "r", model, 20, 1, budget=Budget(max_calls=13))
    assert model.calls == 13
    rest = ScriptedModel(lambda r: "yes")
    groups = await groups_of(tmp_path / "r", rest, 20, 1, budget=Budget(max_calls=20))
    assert (len(groups), rest.calls) == (20, 7)  # all 13 answers were kept
