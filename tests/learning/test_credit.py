"""Credit by randomised inclusion: the sign of an effect, its posterior, and eviction."""

from __future__ import annotations

import random

import pytest

from agentmem.domain.experience import Effect, ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.task import Task
from agentmem.learning.credit import Credit, harmful


def groups(
    effects: dict[str, float], *, n: int, size: int = 5, inclusion: float = 0.5, seed: int = 0
) -> list[Group]:
    """A simulated bench: hard and easy tasks, and experiences that add to the chance of success."""
    rng = random.Random(seed)
    made = []
    for number in range(n):
        hard = rng.choice([0.2, 0.5])
        rollouts = []
        for index in range(size):
            mask = tuple(id for id in effects if rng.random() < inclusion)
            p = min(max(hard + sum(effects[id] for id in mask), 0), 1)
            rollouts.append(
                Rollout(
                    task_id=str(number),
                    index=index,
                    reward=Reward.of(float(rng.random() < p)),
                    mask=mask,
                    eligible=tuple(effects),
                    inclusion=inclusion,
                )
            )
        made.append(Group(task=Task(id=str(number), input="?"), rollouts=tuple(rollouts)))
    return made


def measured(many: list[Group]) -> dict[str, Effect]:
    credit = Credit()
    credit.add(many)
    return credit.effects()


def test_good_idle_and_bad_are_told_apart():
    found = measured(groups({"good": 0.3, "idle": 0.0, "bad": -0.2}, n=150))
    assert found["good"].mean == pytest.approx(0.3, abs=0.1)
    assert found["bad"].mean == pytest.approx(-0.2, abs=0.1)
    assert abs(found["idle"].mean) < 2.5 * found["idle"].sd
    assert 300 < found["good"].exposures < 450


def test_the_posterior_covers_the_truth_as_often_as_it_says():
    covered = []
    for seed in range(60):
        effect = measured(groups({"x": 0.15}, n=40, seed=seed))["x"]
        covered.append(abs(effect.mean - 0.15) < 1.645 * effect.sd)
    assert 0.78 <= sum(covered) / len(covered) <= 0.99  # 90 % stated


def test_the_order_of_groups_does_not_matter():
    many = groups({"a": 0.2, "b": -0.1}, n=30)
    shuffled = random.Random(1).sample(many, len(many))
    for id, effect in measured(many).items():
        assert measured(shuffled)[id].mean == pytest.approx(effect.mean, abs=1e-6)


def test_a_hard_task_does_not_count_against_what_it_was_shown():
    # "x" is shown on hard tasks only, always; it has no effect, and nothing can be said of it.
    hard = groups({"x": 0.0}, n=20, inclusion=1.0)
    assert measured(list(hard)) == {}


def test_failures_and_refined_attempts_say_nothing():
    some = groups({"a": 0.2}, n=10)
    spoiled = []
    for group in some:
        failed = Rollout(
            task_id=group.task.id,
            index=8,
            reward=Reward.unknown("down"),
            mask=("a",),
            eligible=("a",),
            inclusion=0.5,
        )
        refined = group.rollouts[0].model_copy(update={"index": 9, "off_policy": True, "reward": Reward.of(1.0)})
        spoiled.append(group.model_copy(update={"rollouts": (*group.rollouts, failed, refined)}))
    assert measured(spoiled) == measured(some)


def test_what_harms_goes_and_what_is_unclear_stays():
    library = ExperienceLibrary().apply(
        [Add(text="bad"), Add(text="unclear"), Add(text="good"), Add(text="unknown")]
    )
    ids = [e.id for e in library]
    effects = {ids[0]: Effect(mean=-0.2, sd=0.1, exposures=50), ids[1]: Effect(mean=-0.05, sd=0.1, exposures=9)}
    effects[ids[2]] = Effect(mean=0.2, sd=0.1, exposures=50)
    gone = harmful(library.with_effects(effects))
    assert [operation.id for operation in gone] == ids[:1]
    assert "over 50 exposures" in gone[0].why
    assert library.with_effects(effects).hash == library.hash
