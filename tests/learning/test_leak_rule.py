"""A lesson must not carry answers or pieces of its tasks."""

from __future__ import annotations

import pytest

from agentmem.domain.operation import Add, Delete, Keep, Merge, Modify
from agentmem.domain.task import Task
from agentmem.learning.leak_rule import LeakRule

PASSAGE = "A train leaves Rome at nine and another one leaves Milan at ten on the same day"
TASKS = [
    Task(id="author", input="Who wrote Middlemarch?", answer="George Eliot"),
    Task(id="year", input="When?", answer="1871"),
    Task(id="small", input="How many?", answer="42"),
    Task(id="short", input="Which?", answer="Rome"),
    Task(id="label-1", input="True?", answer="correct"),
    Task(id="label-2", input="True as well?", answer="correct"),
    Task(id="choice", input="Which team?", answer="shipping", metadata={"choices": ["shipping", "returns"]}),
    Task(id="train", input=PASSAGE + ". When do they meet?", answer=None),
]
RULE = LeakRule.of(TASKS)


@pytest.mark.parametrize(
    "operation",
    [
        Add(text="The author is George Eliot."),
        Add(text="Look it up.", when="the answer is GEORGE   ELIOT"),
        Modify(id="e-1", text="It was in 1871, remember."),
        Merge(ids=("e-1", "e-2"), text="say george eliot"),
        Add(text="Note: " + PASSAGE.lower()),
    ],
)
def test_it_leaks(operation):
    assert RULE(operation)


@pytest.mark.parametrize(
    "operation",
    [
        Add(text="Find the author on the title page."),
        Add(text="The answer may be 42."),  # too short to mean something
        Add(text="Rome is a city."),
        Add(text="Say whether it is correct."),  # the answer of two tasks is no secret
        Add(text="Send parcels to shipping."),  # a closed label set
        Add(text="A train leaves Rome at nine, so draw a line."),  # six words of a task
        Add(kind="example", text="George Eliot"),  # worked examples are training data in plain sight
        Delete(id="e-1"),
        Keep(ids=("e-1", "e-2")),
        Modify(id="e-1", when="never"),
    ],
)
def test_it_does_not(operation):
    assert RULE(operation) == ""
