"""Groups: what is scored, what teaches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.task import Task, TaskSet
from agentmem.errors import InputError


def group(*scores: float | None) -> Group:
    rewards = [Reward.unknown("down") if s is None else Reward.of(s) for s in scores]
    rollouts = tuple(Rollout(task_id="t", index=i, reward=reward) for i, reward in enumerate(rewards))
    return Group(task=Task(id="t", input="?"), rollouts=rollouts)


@pytest.mark.parametrize(
    ("scores", "teaches"),
    [
        ((1, 0), True),
        ((1, 1), False),
        ((0, 0), False),
        ((0.5, 0.5), False),  # a rule on the mean would let this pass
        ((0.5, 0.55), False),  # graded: a tenth is noise
        ((0.4, 0.6), True),
        ((1,), False),
        ((1, None), False),  # a failure of the infrastructure is no wrong answer
        ((1, None, 0), True),
        ((), False),
    ],
)
def test_which_groups_teach(scores, teaches):
    assert group(*scores).teaches() is teaches


def test_a_wider_gap_can_be_asked_for():
    assert not group(1, 0).teaches(1.0)
    assert group(0.5, 0.55).teaches(0.0)


@given(st.lists(st.one_of(st.none(), st.floats(-10, 10)), max_size=8))
def test_advantages_sum_to_nothing_and_failures_have_none(scores):
    g = group(*scores)
    assert len(g.advantages) == sum(score is not None for score in scores)
    assert abs(sum(g.advantages)) < 1e-9
    assert (g.mean is None) == (not g.advantages)


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_reward_is_a_finite_number(score):
    with pytest.raises(ValidationError):
        Reward.of(score)


def test_a_score_exists_exactly_when_scored():
    with pytest.raises(ValidationError):
        Reward(score=None, status="scored")
    with pytest.raises(ValidationError):
        Reward(score=0.0, status="error")


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40), st.floats(0, 1), st.integers(0, 99))
def test_a_split_is_disjoint_whole_and_keeps_clusters_together(clusters, share, seed):
    tasks = TaskSet([Task(id=str(i), input="?", cluster=c) for i, c in enumerate(clusters)])
    left, right = tasks.split(share, seed=seed)
    assert sorted(t.id for t in (*left, *right)) == sorted(t.id for t in tasks)
    assert not {t.cluster for t in left} & {t.cluster for t in right}
    assert (left.fingerprint, right.fingerprint) == tuple(
        part.fingerprint for part in tasks.split(share, seed=seed)
    )


def test_equal_ids_are_refused_with_both_places():
    with pytest.raises(InputError, match="Tasks 1 and 3 of 'tasks' have the same id 'x'"):
        TaskSet([Task(id="x", input="?"), Task(id="y", input="?"), Task(id="x", input="!")])
