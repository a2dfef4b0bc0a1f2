"""A run as plain lines and as JSON lines."""

from __future__ import annotations

import io
import json
import sys

import pytest

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.reward import Reward
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.domain.usage import Usage
from agentmem.events import (
    CallFinished,
    GateDecided,
    GroupFinished,
    Noted,
    PhaseStarted,
    RolloutFinished,
    RunClosed,
    RunOpened,
    StepFinished,
)
from agentmem.report.display import display
from agentmem.report.json_lines import JSONLines
from agentmem.report.plain import EVERY, PlainLines

ROLLOUT = Rollout(task_id="t", trajectory=Trajectory.said("secret"), reward=Reward.of(1.0))
LIBRARY = ExperienceLibrary().apply([Add(text="Check.")])
EVENTS = [
    RunOpened("runs/r", resumed=False, stored=0),
    Noted("Mind\nthis: →"),
    PhaseStarted("learn", 3, 0, 2),
    CallFinished("act", Usage(calls=1, prompt_tokens=3, completion_tokens=1, dollars=0.5), "", 0, 16),
    RolloutFinished("learn", 0, ROLLOUT),
    GroupFinished(0, Group(task=Task(id="t", input="?"), rollouts=(ROLLOUT,)), teaches=False),
    PhaseStarted("gate", 24, 0, title="round 1"),
    GateDecided(0, False, "-0.100 on 24 held-out tasks", 2),
    GateDecided(0, False, "no operation to try", 0),
    StepFinished(0, 2, LIBRARY, 0.5, 3, 1, 0),
    StepFinished(1, 2, LIBRARY, None, 3, 0, 3),
    PhaseStarted("eval", 4, title="evaluation"),
    RunClosed("runs/r", True, Usage(calls=1), 2.0),
]


def test_plain_lines_say_what_matters() -> None:
    out = io.TextIOWrapper(raw := io.BytesIO(), encoding="ascii")
    lines = PlainLines(out)
    lines.progress.clock = lambda: lines.progress.started
    for event in EVENTS:
        lines.hear(event)
    out.flush()
    assert raw.getvalue().decode().splitlines() == [
        "runs/r: new run",
        "Mind this: ->",
        "step 1 of 2: 3 rollouts",
        "gate: 2 operations refused: -0.100 on 24 held-out tasks",
        "gate: nothing was proposed",
        "step 1 of 2 done: mean reward 0.500; 1 of 3 groups taught; 1 experience; 1 call, 4 tokens, $0.50, 0 ms",
        "step 2 of 2 done: no reward; 0 of 3 groups taught; 1 experience; 1 call, 4 tokens, $0.50, 0 ms",
        "evaluation: 4 rollouts",
    ]


def test_a_long_phase_is_heard_of_now_and_then() -> None:
    out = io.StringIO()
    now = [0.0]
    lines = PlainLines(out)
    lines.progress.clock = lambda: now[0]
    lines.progress.started = 0.0
    lines.hear(PhaseStarted("eval", 100, title="evaluation"))
    for _ in range(30):
        now[0] += 1.0
        lines.hear(RolloutFinished("eval", 0, ROLLOUT))
    assert out.getvalue().splitlines() == [
        "evaluation: 100 rollouts",
        f"evaluation: {EVERY:.0f} of 100 rollouts, about 1 min 25 s left",
        f"evaluation: {2 * EVERY:.0f} of 100 rollouts, about 1 min 10 s left",
    ]


def test_a_resumed_run_says_what_it_has() -> None:
    out = io.StringIO()
    PlainLines(out).hear(RunOpened("runs/r", resumed=True, stored=1234))
    assert out.getvalue() == "runs/r: goes on; 1,234 results stored will not be bought again\n"


def test_json_lines_hold_every_event_without_the_texts() -> None:
    out = io.StringIO()
    lines = JSONLines(out)
    for event in EVENTS:
        lines.hear(event)
    told = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [each["event"] for each in told] == [type(event).__name__ for event in EVENTS]
    by_name = {each["event"]: each for each in told}
    assert by_name["RolloutFinished"]["reward"]["score"] == 1.0
    assert by_name["GroupFinished"] == {
        "event": "GroupFinished", "step": 0, "task_id": "t", "rewards": [1.0], "teaches": False,
    }  # fmt: skip
    assert (by_name["StepFinished"]["version"], by_name["StepFinished"]["experiences"]) == (1, 1)
    assert by_name["RunClosed"]["usage"]["calls"] == 1
    assert "secret" not in out.getvalue()


@pytest.mark.parametrize(("terminal", "listeners"), [(True, 1), (False, 0)])
def test_a_library_is_quiet_but_on_a_terminal(monkeypatch, terminal, listeners) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.setattr(sys, "stderr", Stream())
    with display() as heard:
        assert len(heard) == listeners


@pytest.mark.parametrize("mode", ["plain", "json"])
def test_displays_write_to_standard_error(capsys, mode) -> None:
    with display(mode) as (hear,):
        hear(RunOpened("runs/r", resumed=False, stored=0))
    out, err = capsys.readouterr()
    assert out == ""
    assert "runs/r" in err
