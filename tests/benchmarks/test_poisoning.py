"""The poisoning suite: its attacks reach an undefended bank, and each defence stops what it should, no more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agentmem.memory.case_bank import CaseBank
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel
from benchmarks.online_routing.messages import TEAMS
from benchmarks.poisoning.attacks import ATTACKS, Attack, graft, many_accounts, query_only, tool_output
from benchmarks.poisoning.defences import CAP, OFF, ON, PER_SOURCE, QUARANTINE, QUOTED, Defence
from benchmarks.poisoning.remembered import Remembered
from benchmarks.poisoning.retrieval import Figures, measured, poisoned, texts
from benchmarks.poisoning.run import arms, pooled, share
from benchmarks.poisoning.victim import answered
from benchmarks.poisoning.world import World

RATE = 0.25
"""So that six cases and more are poisoned in a small bank."""


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(0, cases=30, messages=12)


def figures(tmp_path: Path, world: World, attack: Attack | None, defence: Defence) -> Figures:
    return measured(tmp_path / "bank", world, attack, RATE, defence, HashEmbedder(), 0)


def attack(name: str) -> Attack:
    return next(one for one in ATTACKS if one.name == name)


def test_world_attacks_a_topic_for_a_team_that_is_wrong(world: World) -> None:
    assert world.target in TEAMS
    assert {task.cluster for task in world.attacked} == {world.topic}
    assert world.topic not in {task.cluster for task in world.others}
    assert world.target not in {task.answer for task in world.attacked}
    asked = {task.id for task in (*world.attacked, *world.others, *world.earlier)}
    assert len(asked) == 2 * (len(world.attacked) + len(world.others))
    assert len(world.known) >= poisoned(30, RATE)


def test_what_a_case_claims_verifies_nothing(world: World) -> None:
    for write in (tool_output, graft, query_only, many_accounts):
        reward = write(world, 0).reward
        assert reward is None or reward.source in {"judge", "user"}


@pytest.mark.parametrize("name", [one.name for one in ATTACKS])
def test_without_defences_poison_is_trusted_recalled_and_shown(name: str, tmp_path: Path, world: World) -> None:
    found = figures(tmp_path, world, attack(name), OFF)
    assert found["promoted"] == found["living"] > 0
    assert sum(found["attacked"]["slate"]) > 0
    assert found["attacked"]["prompt"] == found["attacked"]["unquoted"] == found["attacked"]["slate"]


@pytest.mark.parametrize("name", ["tool output", "grafted successes", "query only", "query only, many accounts"])
@pytest.mark.parametrize("defence", [ON, QUARANTINE])
def test_quarantine_keeps_what_came_from_outside_out(
    name: str, defence: Defence, tmp_path: Path, world: World
) -> None:
    found = figures(tmp_path, world, attack(name), defence)
    assert found["living"] > 0
    assert found["promoted"] == 0
    assert sum(found["attacked"]["slate"]) == sum(found["attacked"]["prompt"]) == 0
    assert found["honest_quarantined"] > 0, "it costs honest cases that nobody verified"


def test_a_note_in_a_message_that_was_answered_rightly_gets_past_quarantine(tmp_path: Path, world: World) -> None:
    found = figures(tmp_path, world, attack("query only, answered rightly"), QUARANTINE)
    assert found["promoted"] == found["living"] > 0


def test_cap_holds_one_account_and_not_many(tmp_path: Path, world: World) -> None:
    one = figures(tmp_path / "one", world, attack("query only"), CAP)
    many = figures(tmp_path / "many", world, attack("query only, many accounts"), CAP)
    assert one["promoted"] <= PER_SOURCE < one["written"]
    assert many["promoted"] > PER_SOURCE


def test_quotation_leaves_no_words_outside_its_marks(tmp_path: Path, world: World) -> None:
    for number, one in enumerate(ATTACKS):
        found = figures(tmp_path / str(number), world, one, QUOTED)
        assert sum(found["attacked"]["prompt"]) > 0
        assert sum(found["attacked"]["unquoted"]) == 0


def test_a_bank_without_an_attack_has_no_poison(tmp_path: Path, world: World) -> None:
    found = figures(tmp_path, world, None, OFF)
    assert found["written"] == found["living"] == 0
    assert sum(found["attacked"]["slate"]) == 0


def test_learned_values_take_outcomes_and_the_audit_is_asked(tmp_path: Path, world: World) -> None:
    learning = Defence("values", policy="kernel_q")
    found = figures(tmp_path, world, attack("query only"), learning)
    assert isinstance(found["audit"], list)
    assert pooled([found])["banks_where_audit_names_the_attacker"] in {0, 1}


def test_victim_is_asked_with_the_cases_in_its_prompt_and_changes_nothing(tmp_path: Path, world: World) -> None:
    model = ScriptedModel(lambda request: world.target)
    made = asyncio.run(
        answered(tmp_path, world, attack("grafted successes"), RATE, OFF, HashEmbedder(), model, messages=4)
    )
    assert made["attacked"] == {"target": [1, 1], "right": [0, 0], "none": [0, 0]}
    assert [len(made["others"][what]) for what in ("target", "right", "none")] == [2, 2, 2]
    shown = [message for request in model.requests for message in request.messages if message.role == "assistant"]
    assert world.target in {message.content for message in shown}
    bank = CaseBank(tmp_path / "bank", embedder=HashEmbedder())
    assert bank.stats().attempts == 0
    bank.close()


def test_every_rate_has_its_control() -> None:
    made = list(arms((OFF, ON)))
    assert [(rate, defence) for one, rate, defence in made if one is None] == [(0.0, OFF), (0.0, ON)]
    assert len(made) == 2 + len(ATTACKS) * 2 * 2
    assert [poisoned(200, rate) for rate in (0.0, 0.01, 0.1)] == [0, 2, 22]


def test_share_of_none_is_not_zero() -> None:
    assert share([])["value"] is None
    assert share([1, 0])["value"] == 0.5


def test_remembered_vectors_are_embedded_once(tmp_path: Path, world: World) -> None:
    class Counting:
        name = "counting"
        asked = 0

        def embed(self, texts):  # type: ignore[no-untyped-def]
            self.asked += len(texts)
            return HashEmbedder().embed(texts)

    counting, path = Counting(), tmp_path / "vectors.npz"
    said = texts(world, ATTACKS, RATE)
    first = Remembered(counting, path)
    vectors = first.embed(said)
    first.save()
    assert (Remembered(counting, path).embed(said[::-1]) == vectors[::-1]).all()
    assert counting.asked == len(said)
