"""The control of shuffled rewards: groups keep their rewards, and attempts do not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.agents.agent import Agent
from agentmem.api import learn
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Failure, Group, Rollout
from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task
from agentmem.learning.shuffled_rewards import dealt
from agentmem.settings import EvalSettings, LearnSettings
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel


def group(scores: list[float | None], task: str = "t") -> Group:
    made = [
        Rollout(task_id=task, index=i, reward=Reward.of(score), seconds=float(i))
        if score is not None
        else Rollout(
            task_id=task,
            index=i,
            reward=Reward.unknown("?"),
            status="failed",
            failure=Failure(kind="x", message="y"),
        )
        for i, score in enumerate(scores)
    ]
    return Group(task=Task(id=task, input="?"), rollouts=tuple(made))


@given(st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0])), max_size=8), st.integers(0, 9))
def test_rewards_change_places_and_nothing_else(scores: list[float | None], seed: int) -> None:
    before = group(scores)
    after = dealt(before, seed)
    assert sorted(after.rewards) == sorted(before.rewards)
    assert [r.score is None for r in after.rollouts] == [s is None for s in scores]
    assert [r.seconds for r in after.rollouts] == [r.seconds for r in before.rollouts]
    assert after.teaches() == before.teaches()
    assert dealt(before, seed) == after


def test_the_better_attempt_is_any_one() -> None:
    best = [dealt(group([1.0, 0.0, 0.0, 0.0], task=str(t)), 0).rewards.index(1.0) for t in range(400)]
    assert all(70 < best.count(place) < 130 for place in range(4))


def test_a_run_from_before_the_setting_is_gone_on_with() -> None:
    assert "rewards" not in LearnSettings().determining()
    assert LearnSettings(rewards="shuffled").determining()["rewards"] == "shuffled"
    assert {"ask_confidence", "concurrency", "contamination"} & EvalSettings().determining().keys() == set()


def _copies_the_best(group: Group, library: ExperienceLibrary) -> list[Add]:
    best = max(group.scored, key=lambda rollout: rollout.score or 0)
    return [Add(text=f"Task {group.task.id}: {best.output}")]


@pytest.mark.parametrize(("rewards", "right"), [("true", 1.0), ("shuffled", 1 / 3)])
def test_what_is_learned_from_them_is_worth_nothing(tmp_path: Path, rewards: str, right: float) -> None:
    def guess(request):
        return "abc"[split_seed(request.seed or 0, "guess") % 3]

    tasks = [Task(id=str(i), input=f"Question {i}", answer="b") for i in range(60)]
    library = learn(
        Agent(ScriptedModel(guess)), tasks, reward="exact", rewards=rewards, extractor=_copies_the_best,
        gate="always", epochs=1, group_size=6, embedder=HashEmbedder(), run=tmp_path / "r", listeners=(),
    )  # fmt: skip
    found = [e.text.endswith(" b") for e in library]
    assert len(found) > 40
    assert abs(sum(found) / len(found) - right) < 0.2
