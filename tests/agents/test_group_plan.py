"""Fixed and adaptive groups."""

from __future__ import annotations

import pytest

from agentmem.agents.agent import Agent
from agentmem.agents.group_plan import Adaptive, Fixed
from agentmem.agents.prior import Retrieved, prior_for, render_experiences
from agentmem.api import alearn
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Rollout
from agentmem.domain.task import Task, TaskSet
from agentmem.runs.journal import Journal
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel


def scored(*scores):
    return [Rollout(task_id="t", index=i, reward=Reward.of(s)) for i, s in enumerate(scores)]


def test_fixed():
    assert (Fixed(5).more([]), Fixed(5).more(scored(0, 0, 0, 0, 0))) == (5, 0)


@pytest.mark.parametrize(
    ("seen", "more"),
    [
        ((), 2),
        ((0, 0), 2),
        ((1, 1), 0),
        ((0, 1, 0), 0),
        ((0,) * 5, 2),
        ((0,) * 7, 1),
        ((0,) * 8, 0),
        ((0.5, 0.55, 0.5), 2),
    ],
)
def test_adaptive_goes_on_while_all_are_alike_and_there_is_something_to_win(seen, more):
    assert Adaptive(most=8).more(scored(*seen)) == more


def test_adaptive_leaves_a_group_that_is_all_wrong_to_the_critique():
    plan = Adaptive(most=8, critique=True)
    assert plan.more(scored(0, 0)) == 0
    assert plan.more(scored(0.4, 0.4)) == 2  # in part right: refined by nobody
    unknown = [
        rollout.model_copy(update={"reward": Reward.unknown("down", source="r")}) for rollout in scored(0, 0)
    ]
    assert plan.more(unknown) == 2


async def test_adaptive_draws_fewer_and_leaves_solved_tasks_out(tmp_path):
    # Tasks 0-3 are always right, 4-7 always wrong, 8-11 right in every second attempt.
    def answer(request):
        number = int(request.messages[-1].content.split()[1])
        right = number < 4 or (number >= 8 and (request.seed or 0) % 2)
        return "yes" if right else "no"

    tasks = TaskSet([Task(id=str(i), input=f"Task {i} ?", answer="yes") for i in range(12)])
    model = ScriptedModel(answer)
    await alearn(
        Agent(model),
        tasks,
        reward="exact",
        sampling="adaptive",
        extractor="exemplar",
        gate="always",
        group_size=7,
        epochs=3,
        run=tmp_path / "r",
        listeners=(),
    )
    journal = Journal(tmp_path / "r" / "journal.sqlite")
    drawn = {
        (step, task): count
        for step, task, count in journal.rows(
            "SELECT step, task, count(*) FROM steps WHERE purpose='rollout' GROUP BY step, task"
        )
    }
    journal.close()
    assert all(drawn[0, str(i)] == 2 for i in range(4))
    assert all(drawn[0, str(i)] == 7 for i in range(4, 8))
    assert all(drawn[0, str(i)] < 7 for i in range(8, 12))
    assert sum((2, str(i)) in drawn for i in range(4)) < 4  # solved in two epochs: drawn seldom from then on
    assert all((2, str(i)) in drawn for i in range(4, 12))


async def test_what_each_rollout_saw_is_reconstructed_from_the_journal(tmp_path):
    start = ExperienceLibrary().apply([Add(text=f"Lesson {i} about task {i}.") for i in range(20)])
    model = ScriptedModel(lambda request: "yes" if (request.seed or 0) % 2 else "no")
    tasks = TaskSet([Task(id=f"t{i}", input=f"Task {i} ?", answer="yes") for i in range(6)])
    await alearn(
        Agent(model).with_experience(start),
        tasks,
        reward="exact",
        extractor=lambda group, library: [],
        gate="always",
        inclusion=0.5,
        prior="retrieved",
        prior_core=2,
        prior_nearest=5,
        embedder=HashEmbedder(),
        group_size=4,
        epochs=1,
        run=tmp_path / "r",
        listeners=(),
    )
    journal = Journal(tmp_path / "r" / "journal.sqlite")
    rollouts = [
        Rollout.model_validate_json(row[0])
        for row in journal.rows("SELECT result FROM steps WHERE purpose='rollout'")
    ]
    journal.close()
    policy = Retrieved(HashEmbedder(), core=2, k=5)
    masks = set()
    for rollout in rollouts:
        task = next(task for task in tasks if task.id == rollout.task_id)
        eligible = await policy.eligible(start, task)
        assert rollout.eligible == tuple(e.id for e in eligible)
        assert (len(rollout.eligible), rollout.inclusion) == (7, 0.5)
        shown = render_experiences([e for e in eligible if e.id in rollout.mask])
        assert shown.hash == rollout.prior_hash
        sent = rollout.trajectory.prompt[0].content if rollout.mask else ""
        assert sent == shown.lessons  # the very text that was sent
        masks.add((rollout.task_id, rollout.mask))
    assert len(masks) > 18  # 24 rollouts, each with a draw of its own


async def test_the_nearest_and_the_core_are_retrieved():
    library = ExperienceLibrary().apply(
        [
            Add(text="Always be exact."),
            *(Add(text=f"{w} matters", when=f"asked about {w}") for w in ("rivers", "prices", "dates")),
        ]
    )
    task = Task(id="t", input="A question about prices")
    prior = await prior_for(task, library, policy=Retrieved(HashEmbedder(), core=1, k=1), max_tokens=500)
    assert [library[id].text for id in prior.ids] == ["Always be exact.", "prices matters"]
