"""A bank as its policies see it: who may be recalled, what uses are known, and whose credit it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmem.domain.case import Case, Recall
from agentmem.domain.reward import Reward
from agentmem.errors import InputError
from agentmem.memory.case_bank import CaseBank
from agentmem.memory.case_policy import POOL, Candidates, Slate
from agentmem.memory.kernel_q import KernelQ
from agentmem.memory.parametric_q import EVERY, ParametricQ
from agentmem.memory.similarity import Similarity
from agentmem.memory.slate_credit import DropOne, Trial
from agentmem.testing.hash_embedder import HashEmbedder


class Watched(Similarity):
    """Keeps what it was given."""

    seen: Candidates

    def choose(self, candidates: Candidates, k: int, *, seed: int) -> Slate:
        object.__setattr__(self, "seen", candidates)
        return super().choose(candidates, k, seed=seed)


@pytest.fixture
def bank(tmp_path: Path) -> CaseBank:
    return CaseBank(tmp_path / "bank", embedder=HashEmbedder())


def candidates_of(bank: CaseBank, state: str, task_id: str = "") -> Candidates:
    watched = Watched()
    bank.recall(state, policy=watched, task_id=task_id)
    return watched.seen


def password(n: int = 0, **more: object) -> Case:
    return Case.of(f"please reset the password of account {n}", f"desk {n}", reward=1.0, **more)


def test_nearly_the_same_task_is_never_recalled_in_evaluation(bank: CaseBank) -> None:
    state = "please reset the password of my account"
    bank.retain(Case.of(state, "word for word", task_id="other"))
    bank.retain(Case.of("my account locked me out, password forgotten", "same task", task_id="t1"))
    bank.retain(Case.of("please reset the password of the printer", "another task", task_id="t2"))
    guarded = bank.recall(state, task_id="t1")
    assert [item.case.action for item in guarded.cases] == ["another task"]
    assert guarded.withheld == 2
    free = bank.recall(state)
    assert next(item.case.action for item in free.cases) == "word for word"
    assert free.withheld == 0


def test_behind_many_copies_the_guard_still_finds_a_pool(bank: CaseBank) -> None:
    state = "please reset the password of my account"
    bank.add_many([Case.of(f"{state} {' ' * n}!", f"copy {n}", task_id="t1") for n in range(2 * POOL)])
    bank.add_many([password(n) for n in range(POOL + 5)])
    candidates = candidates_of(bank, state, task_id="t1")
    assert len(candidates) == POOL
    assert candidates.cosines.max() < 0.97
    assert bank.recall(state, task_id="t1").withheld == 2 * POOL


def test_a_use_is_known_at_once_also_to_another_process(bank: CaseBank, tmp_path: Path) -> None:
    other = CaseBank(tmp_path / "bank", embedder=HashEmbedder())
    bank.retain(password(1))
    bank.retain(password(2))
    state = "reset password account"
    for reader in (bank, other):
        assert len(candidates_of(reader, state).uses.rows) == 0
    recall = bank.recall(state)
    assert len(recall.ids) == 2
    bank.credit(recall, Reward.of(1.0), key="a", cited=[recall.ids[0]])
    bank.credit(recall, Reward.of(0.0), key="b")
    bank.credit(recall, Reward.of(0.0), key="b")
    late = CaseBank(tmp_path / "bank", embedder=HashEmbedder())
    for reader in (bank, other, late):
        found = candidates_of(reader, state)
        assert found.uses.shares.tolist() == [1.0, 0.5, 0.5], "the uncited case has no part in the first outcome"
        assert found.uses.rows.tolist() == [0, 0, 1]
        assert found.uses.values[0] == 0.5
        assert found.uses.values[1] == pytest.approx(-0.875)  # (1 + 3/4) / 2 is what was expected by then
        assert found.uses.cosines == pytest.approx([1, 1, 1])
        assert found.baseline == pytest.approx((1 + 0.5) / 3)
        assert found.rewards.tolist() == [1.0, 1.0]


def test_answers_without_a_case_have_a_mean_of_their_own(bank: CaseBank) -> None:
    empty = bank.recall("anything at all")
    assert empty.ids == ()
    for n in range(6):
        bank.credit(empty, Reward.of(0.0), key=f"none {n}")
    bank.retain(password())
    for n in range(6):
        bank.credit(bank.recall("reset the password"), Reward.of(1.0), key=f"some {n}")
    found = candidates_of(bank, "anything at all")
    assert found.no_case < 0.2 < candidates_of(bank, "reset the password").baseline
    assert found.no_case_mass == pytest.approx(6, abs=0.01)


def test_what_was_undone_is_not_known_any_more(bank: CaseBank) -> None:
    bank.retain(password())
    recall = bank.recall("reset the password")
    bank.credit(recall, Reward.of(1.0), key="a")
    assert len(candidates_of(bank, "reset the password").uses.rows) == 1
    bank.undo(bank.seq)
    found = candidates_of(bank, "reset the password")
    assert len(found.uses.rows) == 0
    assert found.baseline == 0.5


def test_an_unknown_reward_credits_nothing(bank: CaseBank) -> None:
    bank.retain(password())
    bank.credit(bank.recall("reset the password"), Reward(status="unverifiable"), key="a")
    assert len(candidates_of(bank, "reset the password").uses.rows) == 0


def test_policies_by_name_and_draws_by_seed_and_state(bank: CaseBank) -> None:
    bank.add_many([password(n) for n in range(30)])
    state = "reset the password"
    assert bank.recall(state, policy="kernel_q", seed=1) == bank.recall(state, policy="kernel_q", seed=1)
    slates = {bank.recall(state, policy="kernel_q", seed=seed).ids for seed in range(8)}
    assert len(slates) > 3
    recall = bank.recall(state, policy="kernel_q")
    assert recall.policy == KernelQ().name
    assert all(item.propensity and item.q is not None for item in recall.cases)
    with pytest.raises(InputError, match="Did you mean 'thompson'"):
        bank.recall(state, policy="tompson")


def test_wrong_cases_are_recalled_less_once_their_uses_tell(bank: CaseBank) -> None:
    """The whole way through the bank: recall, answer, credit."""
    bank.retain(Case.of("please reset the password of account A", "right", reward=1.0))
    bank.retain(Case.of("please reset the password of account B", "wrong", reward=1.0))
    firsts = []
    for n in range(60):
        recall = bank.recall("please reset the password of account X", k=1, policy="kernel_q", seed=n)
        action = recall.cases[0].case.action if recall.cases else "none"
        firsts.append(action)
        bank.credit(recall, Reward.of(1.0 if action == "right" else 0.0), key=str(n))
    assert firsts[:10].count("wrong") > 0
    assert firsts[30:].count("right") > 25


def test_the_network_is_trained_every_few_writes_and_kept_in_the_bank(bank: CaseBank, tmp_path: Path) -> None:
    bank.retain(Case.of("please reset the password of account A", "right", reward=1.0))
    bank.retain(Case.of("please reset the password of account B", "wrong", reward=1.0))
    policy = ParametricQ(seed=3)

    def attempts(first: int, n: int) -> Recall:
        for number in range(first, first + n):
            recall = bank.recall(f"please reset password {number % 7}", k=1, policy=policy, seed=number)
            right = any(item.case.action == "right" for item in recall.cases)
            bank.credit(recall, Reward.of(float(right)), key=str(number))
        return recall

    attempts(0, EVERY)
    assert policy.fit is None
    attempts(EVERY, 1)
    assert policy.fit is not None
    assert bank.store.rows("SELECT name FROM policies") == [(policy.name,)]
    last = attempts(EVERY + 1, 3)
    fresh, other = ParametricQ(seed=3), CaseBank(tmp_path / "bank", embedder=HashEmbedder())
    again = other.recall(last.state, k=1, policy=fresh, seed=EVERY + 3)
    assert fresh.saved() == policy.saved() != b""
    assert again.ids == last.ids


def test_what_was_left_out_at_random_stands_in_the_recall(bank: CaseBank) -> None:
    bank.add_many([password(n) for n in range(4)])
    dropped = [bank.recall("reset the password", policy=DropOne(Similarity(), 0.5), seed=n) for n in range(20)]
    lost = [recall for recall in dropped if recall.dropped]
    assert 3 < len(lost) < 17
    assert all(recall.dropped not in recall.ids and recall.whole == 0.5 for recall in lost)
    trial = Trial.of(lost[0], 0.2)
    assert set(trial.ids) == {*lost[0].ids, lost[0].dropped}
