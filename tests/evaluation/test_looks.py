"""Looks at a test split are counted, each run once."""

from __future__ import annotations

import json

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate
from agentmem.domain.task import Task
from agentmem.evaluation.looks import FILE, noted

TEST = [Task(id=f"t{i}", input=f"{i}?", answer="x", split="test") for i in range(3)]
DEV = [task.model_copy(update={"split": "dev"}) for task in TEST]


def agent(answer="x"):
    return Agent(lambda task, prior: answer)


async def look(tmp_path, name, tasks=TEST, **changes):
    run = tmp_path / "runs" / name
    return await aevaluate(agent(), tasks, reward="exact", run=run, listeners=(), **changes)


async def test_the_second_look_at_a_test_split_says_so(tmp_path):
    first, second = await look(tmp_path, "a"), await look(tmp_path, "b", seed=1)
    assert (first.looks, second.looks) == (1, 2)
    assert "look 2 at this test split" not in str(first)
    assert "look 2 at this test split" in str(second)
    lines = [json.loads(line) for line in (tmp_path / "runs" / FILE).read_text().splitlines()]
    assert [(line["run"], line["score"]) for line in lines] == [("a", 1.0), ("b", 1.0)]


async def test_going_on_with_a_run_and_adding_samples_is_the_same_look(tmp_path):
    first = await look(tmp_path, "a")
    again, more = await look(tmp_path, "a"), await look(tmp_path, "a", samples=2)
    assert (first.looks, again.looks, more.looks) == (1, 1, 1)
    assert first.outcomes == again.outcomes


async def test_other_tasks_are_another_set_and_a_dev_split_is_none(tmp_path):
    await look(tmp_path, "a")
    assert (await look(tmp_path, "b", TEST[:2])).looks == 1
    assert (await look(tmp_path, "c", DEV)).looks is None


@pytest.mark.parametrize("damage", ['{"at": "2026', "[1, 2]\n", "\xff\n"])
def test_a_damaged_file_of_looks_stops_nothing(tmp_path, damage):
    noted(tmp_path, run="a", fingerprint="f", about={})
    with (tmp_path / FILE).open("a") as file:
        file.write(damage)
    assert noted(tmp_path, run="a", fingerprint="f", about={}) == 1
