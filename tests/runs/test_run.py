"""A run: nothing is bought twice, and a run that was asked for otherwise is refused."""

from __future__ import annotations

import pytest

from agentmem.domain.value import Value
from agentmem.errors import (
    AccessDenied,
    InputError,
    ModelUnavailable,
    RunBusy,
    RunMismatch,
    SlotMismatch,
)
from agentmem.runs.run import Run
from agentmem.runs.slot import Slot


class Number(Value):
    n: int


class Shop:
    """Sells numbers and counts."""

    def __init__(self) -> None:
        self.sold = 0

    async def buy(self) -> Number:
        self.sold += 1
        return Number(n=self.sold)

    async def fail(self) -> Number:
        self.sold += 1
        raise ModelUnavailable("the shop is closed")

    async def refuse(self) -> Number:
        self.sold += 1
        raise AccessDenied("no key")


ASKED = {"verb": "learn", "settings": {"epochs": 3, "gap": None}, "agent": {"tools": ["python"]}}


async def test_a_stored_result_is_never_bought_again(tmp_path):
    shop = Shop()
    with Run.open(tmp_path / "r", ASKED) as run:
        first = await run.step(Slot("learn"), shop.buy, returns=Number, request="a")
    with Run.open(tmp_path / "r", ASKED) as run:
        again = await run.step(Slot("learn"), shop.buy, returns=Number, request="a")
    assert first == again == Number(n=1)
    assert shop.sold == 1


async def test_a_failure_is_replayed_as_the_same_error(tmp_path):
    shop = Shop()
    with Run.open(tmp_path / "r", ASKED) as run:
        for _ in range(2):
            with pytest.raises(ModelUnavailable, match="the shop is closed"):
                await run.step(Slot("learn"), shop.fail, returns=Number)
    assert shop.sold == 1


async def test_an_error_that_stops_the_run_is_not_stored(tmp_path):
    shop = Shop()
    with Run.open(tmp_path / "r", ASKED) as run:
        with pytest.raises(AccessDenied):
            await run.step(Slot("learn"), shop.refuse, returns=Number)
        assert await run.step(Slot("learn"), shop.buy, returns=Number) == Number(n=2)


async def test_another_request_in_the_same_place_is_a_named_error(tmp_path):
    shop = Shop()
    with Run.open(tmp_path / "r", ASKED) as run:
        await run.step(Slot("learn", 0, "t", 1, "act", 0), shop.buy, returns=Number, request="a")
        with pytest.raises(SlotMismatch, match=r"task 't', rollout 1, act 0\) answers another request"):
            await run.step(Slot("learn", 0, "t", 1, "act", 0), shop.buy, returns=Number, request="b")


async def test_a_scope_counts_each_purpose(tmp_path):
    shop = Shop()
    with Run.open(tmp_path / "r", ASKED) as run:
        scope = run.at("learn", task="t")
        bought = [await scope.step("act", shop.buy, returns=Number) for _ in range(3)]
        replayed = run.at("learn", task="t")
        assert [await replayed.step("act", shop.buy, returns=Number) for _ in range(3)] == bought
        assert await replayed.step("tool", shop.buy, returns=Number) == Number(n=4)


def test_other_settings_are_refused_and_named(tmp_path):
    Run.open(tmp_path / "r", ASKED).close()
    other = {**ASKED, "settings": {"epochs": 5, "gap": 0.1}}
    with pytest.raises(RunMismatch, match=r"settings.epochs was 3, now 5; settings.gap was None, now 0.1"):
        Run.open(tmp_path / "r", other)
    Run.open(tmp_path / "r", ASKED).close()


def test_two_processes_do_not_share_a_directory(tmp_path):
    with Run.open(tmp_path / "r", ASKED), pytest.raises(RunBusy):
        Run.open(tmp_path / "r", ASKED)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="holds something else than a run"):
        Run.open(tmp_path, ASKED)
    with pytest.raises(InputError, match="is a file"):
        Run.open(tmp_path / "thesis.tex", ASKED)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_damaged_run_toml_is_said(tmp_path):
    Run.open(tmp_path / "r", ASKED).close()
    (tmp_path / "r" / "run.toml").write_text("verb = ")
    with pytest.raises(RunMismatch, match="damaged"):
        Run.open(tmp_path / "r", ASKED)


async def test_failures_of_a_stopped_phase_are_forgotten(tmp_path):
    shop = Shop()
    with Run.open(tmp_path / "r", ASKED) as run:
        await run.step(Slot("eval", 0, "good", 0, "act"), shop.buy, returns=Number)
        with pytest.raises(ModelUnavailable):
            await run.step(Slot("eval", 0, "bad", 0, "act", 1), shop.fail, returns=Number)
        await run.step(Slot("eval", 0, "bad", 0, "act", 0), shop.buy, returns=Number)
        await run.forget_failures("eval", 0)
        left = set(run.journal.rows("SELECT task, ordinal FROM steps"))
        assert left == {("good", 0), ("bad", 0)}  # what succeeded is paid for, and stays


async def test_calls_at_places_of_their_own_are_paid_for_too(tmp_path):
    """What subtasks bought, recalled and were offered stays, as it does without subtasks; what was made of it goes."""
    shop = Shop()
    stays = {"act", "act/p1.a", "tool/p1.a", "recall", "recall/p1.a", "tools"}
    with Run.open(tmp_path / "r", ASKED) as run:
        for purpose in (*stays, "act/p1.b", "distil", "actor"):
            await run.step(Slot("eval", 0, "bad", 0, purpose), shop.buy, returns=Number)
        with pytest.raises(ModelUnavailable):
            await run.step(Slot("eval", 0, "bad", 0, "act/p1.b", 1), shop.fail, returns=Number)
        await run.forget_failures("eval", 0)
        left = set(run.journal.rows("SELECT purpose, ordinal FROM steps"))
        assert left == {(purpose, 0) for purpose in (*stays, "act/p1.b")}
