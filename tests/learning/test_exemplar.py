"""The exemplar extractor: own best rollouts, hardest groups first, nothing twice."""

from __future__ import annotations

from types import SimpleNamespace

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.learning.exemplar import Exemplar


def group(task_id: str, *attempts: tuple[str, float | None], gated: bool = False) -> Group:
    rollouts = tuple(
        Rollout(
            task_id=task_id,
            index=i,
            trajectory=Trajectory.said(text),
            reward=Reward.unknown("down") if score is None else Reward.of(score),
        )
        for i, (text, score) in enumerate(attempts)
    )
    return Group(task=Task(id=task_id, input=f"Question {task_id}?", gated=gated), rollouts=rollouts)


async def distil(*groups: Group, library: ExperienceLibrary | None = None, most: int = 4):
    extractor, library = Exemplar(most=most), library or ExperienceLibrary()
    context = SimpleNamespace(step=2)  # all of the context that this extractor uses
    advantages = [await extractor.distil(g, library, context) for g in groups]
    return await extractor.consolidate(advantages, library, context)


async def test_the_best_rollout_becomes_a_worked_example_with_its_evidence():
    (add,) = await distil(group("t", ("wrong", 0.0), ("a long right answer", 1.0), ("right", 1.0), ("?", None)))
    assert [turn.content for turn in add.turns] == ["Question t?", "right"]
    origin = add.origins[0]
    assert (origin.step, origin.task_id, origin.rollouts, origin.rewards) == (2, "t", (2,), (0.0, 1.0, 1.0))
    assert origin.extractor == "exemplar"


async def test_the_hardest_groups_teach_first_and_operations_keep_the_order_of_tasks():
    easy = group("easy", ("a", 1.0), ("b", 1.0), ("x", 0.0))
    hard = group("hard", ("c", 1.0), ("y", 0.0), ("z", 0.0))
    middle = group("middle", ("d", 1.0), ("w", 0.0))
    chosen = await distil(easy, hard, middle, most=2)
    assert [add.origins[0].task_id for add in chosen] == ["hard", "middle"]


async def test_answers_that_are_alike_wait_for_others():
    groups = [group(f"t{i}", ("yes", 1.0), ("x", 0.0), ("x", 0.0)) for i in range(3)]
    other = group("t9", ("no", 1.0), ("x", 0.0))  # easier, but another answer
    assert [add.turns[1].content for add in await distil(*groups, other, most=2)] == ["yes", "no"]


async def test_a_task_teaches_once():
    first = group("t", ("right", 1.0), ("wrong", 0.0))
    library = ExperienceLibrary().apply(await distil(first))
    assert await distil(group("t", ("right again", 1.0), ("wrong", 0.0)), library=library) == []


async def test_an_empty_answer_is_no_example():
    assert await distil(group("t", ("  ", 1.0), ("wrong", 0.0))) == []


async def test_what_a_gated_task_teaches_is_marked():
    library = ExperienceLibrary().apply(await distil(group("t", ("right", 1.0), ("wrong", 0.0), gated=True)))
    assert library.experiences[0].gated
