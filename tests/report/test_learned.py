"""The table that ends a learning run."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from agentmem.domain.experience import Experience, ExperienceLibrary
from agentmem.domain.operation import Add, Modify
from agentmem.domain.origin import Origin
from agentmem.domain.trajectory import Message
from agentmem.domain.usage import Usage
from agentmem.events import GateDecided, RunClosed, StepFinished
from agentmem.report.learned import SHOWN, Story, says

ORIGIN = Origin(step=0, task_id="sum-3", rollouts=(1,), rewards=(0.0, 1.0, 0.5), extractor="exemplar")
LESSON = Add(text="Check the [bold]units[/bold].", when="there are units", origins=(ORIGIN,))


def story(*verdicts: GateDecided, taught: int = 1) -> Story:
    told = Story()
    for event in (
        *verdicts,
        StepFinished(0, 1, ExperienceLibrary(), 0.5, 3, taught, 0),
        RunClosed("r", True, Usage(calls=12, prompt_tokens=1000, dollars=0.5), 61.0),
    ):
        told.hear(event)
    return told


def test_each_new_experience_has_its_evidence() -> None:
    library = ExperienceLibrary().apply([LESSON])
    told = story(GateDecided(0, True, "+0.1 on 24", 1)).learned(library, Path("runs/r"), before=None)
    table = told.table()
    (row,) = table.rows
    assert row == (library.experiences[0].id, "Check the [bold]units[/bold]. (when there are units)", "sum-3", "1",
                   "0 1 0.5")  # fmt: skip
    assert table.title == "r: 1 experience learned; library version 1"
    assert table.caption.splitlines() == [
        "gate, step 1: 1 operation accepted: +0.1 on 24",
        "cost: $0.50, 12 calls, 1,000 tokens, 1 min 1 s",
    ]
    out = io.StringIO()
    Console(file=out, width=60).print(table)
    assert "[bold]units[/bold]" in "".join(out.getvalue().split())  # shown, not obeyed
    content = json.loads(told.to_json())
    assert content["learned"][0]["origins"][0]["rewards"] == [0.0, 1.0, 0.5]
    assert (content["experiences"], content["seconds"], content["usage"]["calls"]) == (1, 61.0, 12)


def test_what_the_library_held_before_is_counted_apart() -> None:
    before = ExperienceLibrary().apply([LESSON, Add(text="Keep me.")])
    change = Modify(id=before.experiences[0].id, text="Check all units.", origins=(ORIGIN,))
    told = story().learned(before.apply([change]), Path("r"), before=before)
    assert told.table().title == "r: 1 experience learned, 1 kept from before; library version 2"
    assert told.table().rows[0][2] == "sum-3 (+1)"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (story(taught=0), "No group taught anything"),
        (story(GateDecided(0, False, "no operation to try", 0)), "nothing new was proposed"),
        (story(GateDecided(0, False, "-0.1 on 24", 2)), "Nothing passed the gate"),
    ],
)
def test_nothing_learned_has_its_reason(end, said) -> None:
    table = end.learned(ExperienceLibrary(), Path("runs/r"), before=None).table()
    assert table.title == "r: nothing was learned; library version 0"
    assert said in table.caption
    Console(file=io.StringIO()).print(table)
    assert str(table).startswith("r: nothing was learned")


def example(asked: str, answered: str) -> Experience:
    turns = (Message(role="user", content=asked), Message(role="assistant", content=answered))
    return Experience(id="e-1", kind="example", text="A worked example", turns=turns)


def test_a_long_example_keeps_its_answer() -> None:
    assert says(example("1 + 1?", "2")) == "1 + 1? → 2"
    long = says(example("What is " + "1 + " * 40 + "1?", "41\n"))
    assert long.endswith("… → 41")
    assert len(long) <= SHOWN
    assert len(says(example("q " * 90, "a " * 90))) <= SHOWN
    assert len(says(Experience(id="e-1", text="x" * 100))) == SHOWN
