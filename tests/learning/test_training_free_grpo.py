"""The loop: it learns what helps, refuses what does not, and depends on nothing but what was asked."""

from __future__ import annotations

import random

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate, alearn
from agentmem.domain.task import Task, TaskSet
from agentmem.errors import BudgetExceeded, InputError
from agentmem.events import GateDecided, GroupFinished, OperationsDecided, StepFinished
from agentmem.learning.step import StepRecord
from agentmem.library_files import load_library
from agentmem.runs.run import Run
from agentmem.settings import Budget
from agentmem.testing.scripted import ScriptedModel, load_script

SUMS = TaskSet(
    [Task(id=f"{a}+{b}", input=f"What is {a} + {b}?", answer=str(a + b)) for a in range(8) for b in range(5)]
)
QUICK = {
    "reward": "numeric",
    "extractor": "exemplar",
    "group_size": 4,
    "epochs": 2,
    "gate_min_tasks": 10,
    "gate_rounds": 3,
    "listeners": (),
}


def learner(latency=0.0, script="learner?p=0.3"):
    return Agent(ScriptedModel(load_script(script), latency=latency, name="scripted/learner"))


async def test_it_learns_and_the_held_out_score_rises(tmp_path):
    heard = []
    train, test = SUMS.split(0.6, seed=1)
    library = await alearn(learner(), train, run=tmp_path / "l", **{**QUICK, "listeners": [heard.append]})
    assert 1 <= len(library) <= 8
    before = await aevaluate(learner(), test, reward="numeric", run=tmp_path / "b", listeners=(), samples=4)
    after = await aevaluate(
        learner().with_experience(library), test, reward="numeric", run=tmp_path / "a", listeners=(), samples=4
    )
    assert after.score > before.score + 0.3
    assert after.library_version == library.version
    assert load_library(tmp_path / "l") == library
    steps = [event for event in heard if isinstance(event, StepFinished)]
    assert [step.step for step in steps] == [0, 1]
    assert steps[1].mean_reward > steps[0].mean_reward
    taught = sum(event.teaches for event in heard if isinstance(event, GroupFinished) and event.step == 0)
    assert taught == steps[0].taught > 0


async def test_what_does_not_help_is_refused(tmp_path):
    heard = []
    agent = learner(script="coin?p=0.3")  # worked examples change nothing for a coin
    library = await alearn(agent, SUMS, run=tmp_path / "l", **{**QUICK, "listeners": [heard.append]})
    assert len(library) == 0
    assert library.version == 0
    assert not any(event.accepted for event in heard if isinstance(event, GateDecided))
    assert any(event.decisions for event in heard if isinstance(event, OperationsDecided))


async def test_neither_library_nor_cost_depends_on_the_order_of_completion(tmp_path):
    libraries, calls = [], []
    for n in range(10):
        rng = random.Random(n)
        agent = learner(latency=lambda request, rng=rng: rng.random() / 100)
        run = tmp_path / str(n)
        await alearn(agent, SUMS, run=run, concurrency=1 if n == 0 else 16, **QUICK)
        libraries.append((run / "library.json").read_bytes())
        calls.append(agent.model.calls)
    assert len(set(libraries)) == 1
    assert len(set(calls)) == 1


async def test_what_is_bought_ahead_is_one_round_at_most_and_nothing_under_a_budget(tmp_path):
    bought = {}
    for budget in (None, Budget(max_calls=10_000), Budget(max_seconds=1000)):
        model = ScriptedModel(
            load_script("learner?p=0.1&learned=1"), latency=lambda request: random.random() / 100
        )
        run = tmp_path / str(len(bought))
        # With few places the gate decides before all that is ahead has begun; it is bought all the same.
        await alearn(Agent(model), SUMS, run=run, budget=budget, concurrency=4, **{**QUICK, "epochs": 1})
        bought[str(budget)] = model.calls
    # The first round decides, so the incumbent's second was not needed: 10 calls of 150.
    free, limited, timed = bought.values()
    assert limited == 30 * 4 + 10 + 10
    assert free == timed == limited + 10


async def test_another_seed_is_another_draw(tmp_path):
    one, other = [await alearn(learner(), SUMS, run=tmp_path / str(s), seed=s, **QUICK) for s in (0, 1)]
    assert one.hash != other.hash


async def test_gate_tasks_never_teach(tmp_path):
    library = await alearn(learner(), SUMS, run=tmp_path / "l", **QUICK)
    with Run.open(tmp_path / "l", _asked(tmp_path / "l")) as run:
        learned = {row[0] for row in run.journal.rows("SELECT DISTINCT task FROM steps WHERE phase='learn'")}
        gated = {row[0] for row in run.journal.rows("SELECT DISTINCT task FROM steps WHERE phase LIKE 'gate/%'")}
    assert not learned & gated
    assert {o.task_id for e in library for o in e.origins} <= learned


async def test_every_decision_is_in_the_journal_with_its_reason(tmp_path):
    library = await alearn(learner(), SUMS, run=tmp_path / "l", **QUICK)
    with Run.open(tmp_path / "l", _asked(tmp_path / "l")) as run:
        rows = list(run.journal.rows("SELECT result FROM steps WHERE purpose='decision' ORDER BY step"))
        versions = list(run.journal.rows("SELECT step, version FROM libraries ORDER BY step"))
    records = [StepRecord.model_validate_json(row[0]) for row in rows]
    assert len(records) == 2
    assert records[0].verdict.accepted
    assert "held-out tasks" in records[0].verdict.reason
    assert len(records[0].kept) == len([d for d in records[0].proposed if d.accepted])
    assert versions[-1] == (1, library.version)


async def test_an_unchanged_prior_is_not_scored_again(tmp_path):
    model = ScriptedModel(load_script("coin?p=0.3"))
    await alearn(Agent(model), SUMS, run=tmp_path / "l", **QUICK)
    # Two steps, each with one candidate (and perhaps its halves): the incumbent, always empty, is paid for once.
    incumbent = [r for r in model.requests if len(r.messages) == 1 and r.temperature == 0.3]
    assert len(incumbent) == 10 * 3


async def test_a_library_can_be_learned_on(tmp_path):
    first = await alearn(learner(), SUMS, run=tmp_path / "1", **{**QUICK, "epochs": 1})
    second = await alearn(learner().with_experience(first), SUMS, run=tmp_path / "2", **{**QUICK, "epochs": 1})
    assert {e.id for e in first} <= {e.id for e in second}


async def test_validation_tasks_replace_the_held_out_part(tmp_path):
    train, validation = SUMS.split(0.7, seed=0)
    await alearn(learner(), train, validation=validation, run=tmp_path / "l", **QUICK)
    with pytest.raises(InputError, match="in the training and in the validation set"):
        await alearn(learner(), train, validation=train, run=tmp_path / "m", **QUICK)


async def test_always_is_the_papers_rule(tmp_path):
    model = ScriptedModel(load_script("coin?p=0.3"))
    library = await alearn(Agent(model), SUMS, run=tmp_path / "l", **{**QUICK, "gate": "always"})
    assert len(library) == 8
    assert model.calls == len(SUMS) * 4 * 2  # no task is held out, none is tried


async def test_a_spent_budget_keeps_what_was_accepted(tmp_path):
    with pytest.raises(BudgetExceeded):
        await alearn(learner(), SUMS, run=tmp_path / "l", budget=Budget(max_calls=200), **QUICK)
    assert len(load_library(tmp_path / "l")) == 4
    whole = await alearn(learner(), SUMS, run=tmp_path / "l", **QUICK)
    assert whole == await alearn(learner(), SUMS, run=tmp_path / "undisturbed", **QUICK)


@pytest.mark.parametrize(
    ("tasks", "options", "sentence"),
    [
        ([], {}, "holds no task"),
        ([Task(id="a", input="?", answer="1")], {}, "One task cannot both teach"),
        ([Task(id="a", input="?"), Task(id="b", input="?", answer="1")], {}, "cannot score task 'a'"),
        (SUMS, {"reward": "maths"}, "Did you mean 'math'"),
        (SUMS, {"group_sise": 4}, "Did you mean 'group_size'"),
        (SUMS, {"group_size": 0}, "group_size = 0"),
        (
            SUMS,
            {"budget": Budget(max_cost=1.0), "agent": Agent("openai/x", base_url="http://127.0.0.1:9/v1")},
            "price",
        ),
    ],
)
async def test_bad_input_costs_nothing(tasks, options, sentence, tmp_path):
    model = ScriptedModel(["never asked"])
    asked = {**QUICK, "agent": Agent(model), **options}
    with pytest.raises(InputError, match=sentence):
        await alearn(tasks=tasks, run=tmp_path / "l", **asked)
    assert model.calls == 0


def _asked(folder):
    import tomllib

    return tomllib.loads((folder / "run.toml").read_text())


async def test_neighbouring_seeds_share_no_order(tmp_path):
    orders = {}
    for seed in (0, 1):
        heard = []
        options = {**QUICK, "gate": "always", "group_size": 1, "epochs": 3, "batch_size": 1, "seed": seed}
        await alearn(
            learner(), SUMS.head(12), run=tmp_path / str(seed), **{**options, "listeners": [heard.append]}
        )
        ids = [event.group.task.id for event in heard if isinstance(event, GroupFinished)]
        orders[seed] = [ids[start : start + 12] for start in (0, 12, 24)]
    epochs = [*orders[0], *orders[1]]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 6
