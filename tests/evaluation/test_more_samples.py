"""Adding samples to a finished run buys only those."""

import tomllib
from pathlib import Path

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import evaluate
from agentmem.atomic import atomic_write
from agentmem.domain.task import Task
from agentmem.errors import RunMismatch
from agentmem.memory.case_bank import CaseBank
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel, load_script

TASKS = [Task(id=str(i), input=f"What is {i} + 2?", answer=str(i + 2)) for i in range(6)]


def test_four_more_samples_cost_four_more(tmp_path: Path) -> None:
    model = ScriptedModel(load_script("coin?p=0.5"))
    options = {"reward": "numeric", "run": tmp_path / "r", "listeners": ()}
    few = evaluate(Agent(model), TASKS, samples=4, **options)
    assert model.calls == 24
    many = evaluate(Agent(model), TASKS, samples=8, **options)
    assert model.calls == 48
    assert [o.output for o in many.outcomes if o.index < 4] == [o.output for o in few.outcomes]
    assert (many.k, many.usage.calls) == (8, 48)
    again = evaluate(Agent(model), TASKS, samples=4, **options)
    assert (again.outcomes, model.calls) == (few.outcomes, 48)
    fresh = evaluate(Agent(model), TASKS, samples=8, **{**options, "run": tmp_path / "fresh"})
    assert fresh.score == many.score, "as if it had been asked for at once"


def test_a_run_of_an_earlier_version_can_be_added_to(tmp_path: Path) -> None:
    model = ScriptedModel(load_script("coin?p=0.5"))
    options = {"reward": "numeric", "run": tmp_path / "r", "listeners": ()}
    evaluate(Agent(model), TASKS, samples=1, **options)
    path = tmp_path / "r" / "run.toml"
    atomic_write(path, path.read_text().replace("[settings]\n", "[settings]\nsamples = 1\n"))
    assert tomllib.loads(path.read_text())["settings"]["samples"] == 1
    evaluate(Agent(model), TASKS, samples=2, **options)
    assert model.calls == 12


def test_other_settings_still_make_another_run(tmp_path: Path) -> None:
    options = {"reward": "numeric", "run": tmp_path / "r", "listeners": ()}
    evaluate(Agent("scripted/coin"), TASKS, **options)
    with pytest.raises(RunMismatch, match="temperature"):
        evaluate(Agent("scripted/coin"), TASKS, samples=2, temperature=1.0, **options)


def test_a_memory_that_is_written_to_cannot_be_sampled_again(tmp_path: Path) -> None:
    bank = CaseBank(tmp_path / "bank", embedder=HashEmbedder())
    agent = Agent("scripted/echo").with_memory(bank, online=True)
    options = {"reward": "numeric", "run": tmp_path / "r", "listeners": ()}
    evaluate(agent, TASKS, **options)
    with pytest.raises(RunMismatch, match="samples was 1, now 2"):
        evaluate(agent, TASKS, samples=2, **options)
