"""What a lesson was worth, from a run's stored rollouts: planted effects are found, idle lessons are not."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path

import pytest

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Rollout
from agentmem.errors import InputError
from agentmem.learning.lesson_credit import LessonCredit
from agentmem.runs.journal import Journal

LIBRARY = ExperienceLibrary().apply([Add(text="Check the units."), Add(text="Sing first."), Add(text="Guess.")])
GOOD, IDLE, BAD = (experience.id for experience in LIBRARY)


def stored(
    folder: Path, effects: dict[str, float], *, groups: int = 120, inclusion: float = 0.5, seed: int = 0
) -> Path:
    """A learning run's journal whose rollouts were shown the lessons at random."""
    folder.mkdir(parents=True)
    (folder / "run.toml").write_text('verb = "learn"\n')
    Journal(folder / "journal.sqlite").close()
    rng = random.Random(seed)
    rows = []
    for group in range(groups):
        hard = rng.choice([0.2, 0.5])
        for index in range(5):
            mask = tuple(id for id in effects if rng.random() < inclusion)
            score = float(rng.random() < hard + sum(effects[id] for id in mask))
            rollout = Rollout(
                task_id=f"t{group}", index=index, reward=Reward.of(score), mask=mask, eligible=tuple(effects),
                inclusion=inclusion,
            )  # fmt: skip
            rows.append(("learn", 0, f"t{group}", index, "rollout", 0, "", None, rollout.model_dump_json(), group))
    with sqlite3.connect(folder / "journal.sqlite") as connection:
        connection.executemany(
            "INSERT INTO steps (phase, step, task, rollout, purpose, ordinal, request, failure, result, written_at)"
            " VALUES (?,?,?,?,?,?,?,?,?,?)",
            rows,
        )
        connection.execute("INSERT INTO libraries VALUES (0, ?, ?)", (LIBRARY.version, LIBRARY.to_json()))
    connection.close()
    (folder / "library.json").write_text(LIBRARY.to_json())
    return folder


def test_planted_effects_are_found_with_their_sign(tmp_path: Path) -> None:
    found = LessonCredit.of(stored(tmp_path / "run", {GOOD: 0.3, IDLE: 0.0, BAD: -0.2}, groups=200))
    assert [(worth.id, worth.verdict) for worth in found.worths] == [
        (GOOD, "helps"),
        (IDLE, "undecided"),
        (BAD, "harms"),
    ]
    low, high = found.worths[0].interval
    assert low < 0.3 < high
    assert found.rollouts == 1000
    assert found.unvaried == ()
    assert "Check the units." in str(found)
    told = json.loads(found.to_json())
    assert [lesson["verdict"] for lesson in told["lessons"]] == ["helps", "undecided", "harms"]
    assert told["lessons"][2]["harm"] > 0.975


def test_idle_lessons_are_seldom_called_anything(tmp_path: Path) -> None:
    """Of 3 x 20 idle lessons at most 5 % are, up to chance (the prior makes it rather fewer)."""
    called = 0
    for seed in range(20):
        found = LessonCredit.of(
            stored(tmp_path / str(seed), dict.fromkeys((GOOD, IDLE, BAD), 0.0), groups=60, seed=seed)
        )
        called += sum(worth.verdict != "undecided" for worth in found.worths)
    assert called <= 6


def test_a_lesson_that_everybody_saw_is_named_and_not_judged(tmp_path: Path) -> None:
    found = LessonCredit.of(stored(tmp_path / "run", {GOOD: 0.3, IDLE: 0.0}))
    assert found.unvaried == (BAD,)
    assert f"nothing is known of {BAD}" in str(found)
    with pytest.raises(InputError, match=r"No scored group of .* differs in which lessons .* --inclusion 0\.8"):
        LessonCredit.of(stored(tmp_path / "all", {GOOD: 0.3}, inclusion=1.0))


def test_a_real_run_agrees_with_what_learning_measured(tmp_path: Path) -> None:
    import asyncio

    from agentmem.agents.agent import Agent
    from agentmem.api import alearn
    from agentmem.domain.task import Task
    from agentmem.testing.scripted import ScriptedModel, load_script

    tasks = [Task(id=f"{a}+1", input=f"What is {a} + 1?", answer=str(a + 1)) for a in range(12)]
    agent = Agent(ScriptedModel(load_script("coin?p=0.5"), name="scripted/coin")).with_experience(LIBRARY)
    learned = asyncio.run(
        alearn(
            agent, tasks, reward="numeric", group_size=4, epochs=1, gate="always", extractor="exemplar",
            inclusion=0.5, run=tmp_path / "run", listeners=(),
        )
    )  # fmt: skip
    measured = {experience.id: experience.effect for experience in learned if experience.effect is not None}
    found = {worth.id: worth.effect for worth in LessonCredit.of(tmp_path / "run").worths}
    assert measured
    assert measured.items() <= found.items()


def test_another_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; name the folder of a run"):
        LessonCredit.of(tmp_path / "none")
