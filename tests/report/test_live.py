"""The live screen, drawn from a scripted series of events."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add, Decision, Delete, Modify
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Failure, Group, Rollout
from agentmem.domain.task import Task
from agentmem.domain.usage import Usage
from agentmem.events import (
    CallFinished,
    Event,
    GateDecided,
    GroupFinished,
    Noted,
    OperationsDecided,
    PhaseStarted,
    RolloutFinished,
    RunOpened,
    StepFinished,
)
from agentmem.report.display import display
from agentmem.report.live import screen, sparkline
from agentmem.report.progress import Progress


class Clock:
    """Seconds that pass when they are told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def rollout(task: str, index: int, score: float | None) -> Rollout:
    if score is None:
        failure = Failure(kind="model_timeout", message="[bold]late[/bold]")
        reward = Reward.unknown("the attempt failed", status="unverifiable")
        return Rollout(task_id=task, index=index, reward=reward, status="failed", failure=failure)
    return Rollout(task_id=task, index=index, reward=Reward.of(score))


def learning() -> list[Event]:
    """One step that is done and gated, and the next one half way."""
    task = Task(id="[red]t[/red]", input="?")
    first = tuple(rollout(task.id, n, score) for n, score in enumerate((1.0, 0.0, None)))
    second = tuple(rollout("u", n, 1.0) for n in range(3))
    library = ExperienceLibrary().apply([Add(text="[blink]Check[/blink]")])
    decisions = (
        Decision(operation=Add(text="a"), accepted=True),
        Decision(operation=Add(text="b"), accepted=True),
        Decision(operation=Modify(id="e-1", text="c"), accepted=True),
        Decision(operation=Delete(id="e-2"), accepted=False, reason="no such"),
    )
    call = CallFinished("act", Usage(calls=1, prompt_tokens=900, completion_tokens=100, dollars=0.01), "", 7, 16)
    return [
        RunOpened("runs/r", resumed=True, stored=1234),
        PhaseStarted("learn", 6, 0, 4),
        *(event for each in (*first, *second) for event in (call, RolloutFinished("learn", 0, each))),
        GroupFinished(0, Group(task=task, rollouts=first), teaches=True),
        GroupFinished(0, Group(task=Task(id="u", input="?"), rollouts=second), teaches=False),
        OperationsDecided(0, decisions),
        PhaseStarted("gate", 24, 0, title="round 1"),
        GateDecided(0, True, "+0.750 on 24 [held-out] tasks", 3),
        StepFinished(0, 4, library, 0.8, 2, 1, 1),
        PhaseStarted("learn", 6, 1, 4),
        RolloutFinished("learn", 1, rollout("u", 0, 0.5)),
        RolloutFinished("learn", 1, rollout("u", 1, 1.0)),
    ]


def drawn(progress: Progress, width: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, legacy_windows=False)
    console.print(screen(progress))
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.fixture
def progress() -> Progress:
    clock = Clock()
    state = Progress(clock=clock)
    for event in learning():
        state.hear(event)
    clock.now += 10.0
    return state


def test_the_screen_shows_all_that_a_person_wants_to_know(progress) -> None:
    head, *facts = drawn(progress, 100)
    assert head.startswith("step 2 of 4 ━")
    assert head.endswith("2/6 rollouts 20.0 s left")
    assert facts == [
        "reward per step    ▇  0.800",
        "this phase so far  0.750 over 2 attempts",
        "groups             1 taught, 1 skipped",
        "experiences        1 kept; proposed +2 ~1 -0",
        "gate               step 1: 3 operations accepted: +0.750 on 24 [held-out] tasks",
        "without a score    1 attempt",
        "in flight          7 of at most 16",
        "spent              6 calls, 6,000 tokens, $0.0600, 10.0 s",
        "from before        1,234 results stored, not bought again",
    ]


def test_on_a_narrow_screen_the_bar_gives_way(progress) -> None:
    lines = drawn(progress, 60)
    assert max(map(len, lines)) <= 60
    assert lines[0].startswith("step 2 of 4 ━")
    assert lines[0].endswith("2/6 rollouts 20.0 s left")
    assert "proposed +2 ~1 -0" in "\n".join(lines)


@pytest.mark.parametrize("width", [20, 60, 100])
def test_a_screen_can_be_drawn_at_any_moment(width) -> None:
    state = Progress()
    for event in learning():
        assert drawn(state, width)
        state.hear(event)


def test_before_anything_happened() -> None:
    assert drawn(Progress(clock=lambda: 0.0), 80)[0].startswith("starting")


def test_nothing_that_a_model_says_is_markup(progress) -> None:
    progress.hear(PhaseStarted("eval", 3, title="[bold]x[/bold]\x1b[31m"))
    text = "\n".join(drawn(progress, 100))
    assert "[bold]x[/bold][31m" in text
    assert "\x1b[31m" not in text


def test_a_hundred_steps_keep_to_one_line(progress) -> None:
    for step in range(100):
        progress.hear(StepFinished(step, 100, ExperienceLibrary(), step / 100, 1, 1, 0))
    line = next(line for line in drawn(progress, 100) if line.startswith("reward per step"))
    assert line.endswith("0.940 0.950 0.960 0.970 0.980 0.990")
    assert len(line) <= 100


def test_the_sparkline_widens_with_its_values() -> None:
    assert sparkline([0.0, 1.0]) == "▁█"
    assert sparkline([-1.0, 0.0, 1.0]) == "▁▅█"
    assert sparkline([]) == ""


def test_notes_stay_on_the_terminal_as_text(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with display("live") as (hear,):
        hear(Noted("A [bold]note[/bold]\x1b[2J."))
        hear(PhaseStarted("eval", 3, title="evaluation"))
    out, err = capsys.readouterr()
    assert out == ""
    assert "A [bold]note[/bold][2J.\n" in err
    assert "evaluation" in err


def test_both_arms_of_a_round_are_one_phase_and_what_is_drawn_ahead_is_in_none() -> None:
    progress = Progress()
    progress.hear(PhaseStarted("learn", 2, 0, 1))
    progress.hear(RolloutFinished("gate/empty", 0, rollout("ahead", 0, 1.0)))
    progress.hear(RolloutFinished("gate/empty", 0, rollout("ahead", 1, None)))
    assert (progress.done, progress.scores, progress.failed) == (0, [], 1)
    for _ in range(2):
        progress.hear(PhaseStarted("gate", 2, 0, title="round 2"))
    progress.hear(RolloutFinished("gate/empty", 1, rollout("a", 0, 1.0)))
    assert (progress.done, progress.total) == (1, 4)
    for number in range(5):  # a straggler of the round before among them
        progress.hear(RolloutFinished("gate/abc", 1, rollout("a", number, 0.0)))
    assert (progress.done, progress.total) == (4, 4)
    progress.hear(PhaseStarted("gate", 2, 0, title="round 3"))
    assert (progress.done, progress.total) == (0, 2)
