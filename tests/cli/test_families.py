"""The quickstart's families: the same every time, nothing shared between the sides, every task well-formed."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from agentmem.cli.families import CAPITALS, KINDS, Family, families
from agentmem.errors import InputError

FAMILIES = pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
SIZES = (48, 48)


@FAMILIES
def test_the_same_arguments_give_the_same_tasks(family: Family) -> None:
    prints = [[tasks.fingerprint for tasks in family.generate(*SIZES, seed=seed)] for seed in (3, 3, 4)]
    assert prints[0] == prints[1]
    assert set(prints[0]).isdisjoint(prints[2])


@FAMILIES
@pytest.mark.parametrize("seed", range(5))
def test_the_sides_share_no_item(family: Family, seed: int) -> None:
    train, test = (
        {item for task in tasks for item in _items(family.name, task.input)}
        for tasks in family.generate(*SIZES, seed=seed)
    )
    assert train
    assert train.isdisjoint(test)


@FAMILIES
def test_every_task_is_well_formed(family: Family) -> None:
    train, test = family.generate(*SIZES, seed=1)
    assert (len(train), len(test)) == SIZES
    assert len({task.input for task in (*train, *test)}) == sum(SIZES)
    assert len({task.id for task in (*train, *test)}) == sum(SIZES)
    for task in (*train, *test):
        assert task.id.startswith(f"{family.name}-")
        assert task.cluster is None
        assert (family.reward == "choice") == ("choices" in task.metadata)
        if choices := task.metadata.get("choices"):
            assert choices.count(task.answer) == 1
            assert len(set(choices)) == len(choices) >= 2
        assert task.answer == _answer(family.name, task.input)


@pytest.mark.parametrize("name", ["kind", "prime"])
def test_the_right_choice_is_evenly_spread(name: str) -> None:
    family = next(family for family in families() if family.name == name)
    for tasks in family.generate(*SIZES, seed=2):
        counts = Counter(task.answer for task in tasks)
        assert set(counts) == set(tasks[0].metadata["choices"])
        assert max(counts.values()) == min(counts.values())


@FAMILIES
def test_too_many_tasks_are_refused(family: Family) -> None:
    with pytest.raises(InputError, match=f"'{family.name}' has items for"):
        family.generate(5000, 1)


def test_no_item_is_listed_twice() -> None:
    nouns = " ".join(KINDS.values()).split()
    assert len(set(nouns)) == len(nouns)
    assert len({len(kind.split()) for kind in KINDS.values()}) == 1
    countries, cities = zip(*(line.split(":") for line in CAPITALS.split("; ")), strict=True)
    assert len(set(countries)) == len(countries)
    assert len(set(cities)) == len(cities)


def _items(family: str, question: str) -> list[str]:
    """What a question is about."""
    match family:
        case "prime":
            return re.findall(r"\d+", question)
        case "kind" | "letter":
            return [noun for noun in re.findall(r"\w+", question) if noun in " ".join(KINDS.values()).split()]
        case "capital":
            return [question.removeprefix("What is the capital of ").rstrip("?")]
    raise AssertionError(family)


def _answer(family: str, question: str) -> str:
    """The answer, found in another way."""
    (item,) = _items(family, question)
    match family:
        case "prime":
            return (
                "true" if [n for n in range(1, int(item) + 1) if int(item) % n == 0] == [1, int(item)] else "false"
            )
        case "letter":
            return item[0]
        case "kind":
            return next(kind for kind, nouns in KINDS.items() if item in nouns.split())
        case "capital":
            return dict(line.split(":") for line in CAPITALS.split("; "))[item]
    raise AssertionError(family)
