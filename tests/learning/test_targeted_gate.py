"""The targeted gate: what helps one kind of task is seen there, and what helps nowhere stays out."""

from __future__ import annotations

import asyncio
import random

from agentmem.agents.agent import Agent
from agentmem.agents.attempt import Conditions
from agentmem.agents.sampler import Sampler
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.task import Task, TaskSet
from agentmem.learning.gate import Paired, choose
from agentmem.learning.targeted_gate import Targeted
from agentmem.learning.trials import Trials
from agentmem.models.gateway import Gateways
from agentmem.models.names import open_model
from agentmem.rewards.reward_function import resolve_reward
from agentmem.runs.run import Run
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel

KINDS = ("rivers", "prices", "dates", "birds", "metals", "songs", "stars", "roads")
TASKS = [
    Task(id=f"{kind}-{i}", input=f"A question about {kind}, number {i}", answer="x")
    for kind in KINDS
    for i in range(4)
]


def bench(*, wrong: str = "", seed: int = 0):
    """Simulated: a lesson that names its kind takes p from .15 to .95 there; a wrong one takes .3 off everywhere."""
    asked = []

    async def trial(library, number, only=None, *, hear=None):
        asked.extend((len(library), number, id) for id in only or ())
        scores = {}
        for task in TASKS:
            if only is not None and task.id not in only:
                continue
            kind = task.id.split("-")[0]
            p = 0.95 if any(kind in e.text for e in library) else 0.15
            p -= 0.3 * sum(bool(wrong) and wrong in e.text for e in library)
            rng = random.Random(f"{seed}/{number}/{task.id}/{library.hash}")
            scores[task.id] = float(rng.random() < p)
        return scores

    trial.asked = asked
    return trial


def gate(**changes) -> Targeted:
    return Targeted(TASKS, HashEmbedder(), **{"nearest": 4, "rounds": 4, **changes})


async def test_lessons_for_single_kinds_are_taken_and_a_wrong_one_is_not():
    operations = [Add(text=f"When asked about {kind}, look twice.") for kind in KINDS[:5]]
    operations.append(Add(text="Always guess at once, whatever the question."))
    kept, verdict = await choose(
        gate(), ExperienceLibrary(), ExperienceLibrary().revise(operations), bench(wrong="guess")
    )
    texts = " ".join(e.text for e in kept.library)
    assert sum(kind in texts for kind in KINDS[:5]) >= 4
    assert "guess" not in texts
    assert verdict.accepted
    assert "operations earned their place" in verdict.reason
    assert len(verdict.details) == 6
    assert any("guess" in detail and ("undecided" in detail or "rejected" in detail) for detail in verdict.details)


async def test_it_sees_more_than_the_whole_gate_at_an_eighth_of_the_attempts():
    one = ExperienceLibrary().revise([Add(text="When asked about birds, look twice.")])
    whole = [
        (await choose(Paired(rounds=2), ExperienceLibrary(), one, bench(seed=s)))[1].accepted for s in range(20)
    ]
    aimed = [
        (await choose(gate(rounds=2), ExperienceLibrary(), one, bench(seed=s)))[1].accepted for s in range(20)
    ]
    assert sum(aimed) >= 18
    assert sum(whole) <= 12


async def test_only_the_nearest_tasks_are_tried():
    trial = bench()
    one = ExperienceLibrary().revise([Add(text="When asked about birds, look twice.")])
    await choose(gate(rounds=1), ExperienceLibrary(), one, trial)
    assert {id for _, _, id in trial.asked} == {f"birds-{i}" for i in range(4)}


async def test_idle_lessons_seldom_pass():
    idle = ExperienceLibrary().revise([Add(text="When asked about anything, stay calm.")])
    passed = [(await choose(gate(), ExperienceLibrary(), idle, bench(seed=s)))[1].accepted for s in range(60)]
    assert sum(passed) / len(passed) < 0.3


async def test_what_does_nothing_is_given_up_before_the_last_round():
    idle = ExperienceLibrary().revise([Add(text="When asked about birds and anything, stay calm.")])
    verdicts = []
    for seed in range(30):
        mute = bench(seed=seed)

        async def trial(library, number, only=None, *, hear=None, mute=mute):
            return await mute(ExperienceLibrary(), number + 100 * len(library), only)  # the lesson does nothing

        verdicts.append((await choose(gate(rounds=8), ExperienceLibrary(), idle, trial))[1])
    undecided = [verdict for verdict in verdicts if not verdict.accepted]
    assert len(undecided) > 20
    assert sum(verdict.rounds for verdict in undecided) < 5 * len(undecided)
    assert any("more rounds would accept it" in verdict.details[0] for verdict in undecided)


async def test_a_true_lesson_that_had_bad_luck_comes_back_while_the_library_is_the_same():
    lucky, one = bench(), ExperienceLibrary().revise([Add(text="When asked about birds, look twice.")])

    async def trial(library, number, only=None, *, hear=None):
        # In its first rounds the incumbent happens to be right throughout.
        if number < 4 and not len(library):
            return dict.fromkeys(only, 1.0)
        return await lucky(library, number, only)

    again = gate(rounds=4)
    first = (await choose(again, ExperienceLibrary(), one, trial))[1]
    assert not first.accepted
    assert any([(await choose(again, ExperienceLibrary(), one, trial))[1].accepted for _ in range(4)])


async def test_one_score_is_drawn_once_whoever_asks_for_it(tmp_path):
    model = ScriptedModel(lambda request: "x", latency=0.005)
    run = Run.open(tmp_path / "r", {"verb": "test"})
    gateways = Gateways(run.ledger, open_model=open_model)
    sampler = Sampler(run, Conditions(gateways, resolve_reward("exact"), 0.3, 0), 8, 0.5)
    trials = Trials(Agent(model), TaskSet(TASKS), sampler, step=0)
    one = ExperienceLibrary().apply([Add(text="Look twice.")])
    ids = [task.id for task in TASKS[:6]]
    scores = await asyncio.gather(
        trials(ExperienceLibrary(), 0, ids[:4]), trials(ExperienceLibrary(), 0, ids[2:]), trials(one, 0, ids[:4])
    )
    assert [sorted(s) for s in scores] == [sorted(ids[:4]), sorted(ids[2:]), sorted(ids[:4])]
    assert all(score == 1.0 for s in scores for score in s.values())
    assert model.calls == 6 + 4
    await gateways.close()
    run.close()
