"""Statements: what an output clearly says is read, whatever words are around it."""

from __future__ import annotations

import time

import pytest

from agentmem.rewards.statement import LONGEST, explicit, normal, sentences, statements


@pytest.mark.parametrize(
    ("output", "how", "shortest"),
    [
        ("\\boxed{4} is my answer: 5", "boxed", "4"),
        ("So \\boxed{\\frac{1}{2}}.", "boxed", "\\frac{1}{2}"),
        ("<answer> Paris </answer>", "boxed", "Paris"),
        ("#### 42", "final", "42"),
        ("Answer: 4. Final answer: **5**", "final", "5"),
        ("**Answer:** Lyon", "answer", "Lyon"),
        ("The answer is St. Louis. I am sure.", "answer", "St. Louis"),
        ("The answer to the question is 3.5, because I counted.", "answer", "3.5"),
        ("Answer:\n\nParis", "answer", "Paris"),
        ("<think>The answer is 4.</think>The answer is 5.", "answer", "5"),
    ],
)
def test_the_strongest_mark_counts(output: str, how: str, shortest: str) -> None:
    found = statements(output)
    assert (found[0].how, found[0].readings[0]) == (how, shortest)
    assert len(found) == 1


@pytest.mark.parametrize(
    "output",
    [
        "I do not know whether the answer is 5.",
        "If the answer is 5, I win.",
        "I don't think the answer is 5.",
        "5",
    ],
)
def test_a_doubt_marks_nothing(output: str) -> None:
    assert explicit(output) == ()


def test_questions_assert_nothing_and_a_colon_goes_on() -> None:
    assert sentences("Is it Lyon? No. The capital is:\n\nParis") == ["No.", "The capital is: Paris"]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("  The **Eiffel** Tower. ", "eiffel tower"),
        ("“HELLO”", "hello"),
        ("C++.", "c++"),
        ("C#", "c#"),
        ("-5", "-5"),
        ("−5", "-5"),
        ("3.14", "3.14"),
        (".5", ".5"),
        ("well-known", "well known"),
        ("Vitamin A", "vitamin a"),
        ("A", "a"),
        ("ﬁne", "fine"),
        ("?", "?"),
        ("it’s", "it's"),
    ],
)
def test_normal_keeps_what_carries_meaning(text: str, plain: str) -> None:
    assert normal(text) == plain


def test_normal_can_mind_the_case() -> None:
    assert normal("The HELLO.", match_case=True) == "HELLO" != normal("hello", match_case=True)


@pytest.mark.parametrize(
    "piece",
    [
        "answer ",
        "answer is ",
        "**a",
        "\\boxed{",
        "a. ",
        "= ",
        "is ",
        "1 ",
        "so ",
        "(",
        "<answer>",
        "{",
        '"',
        "the answer to ",
        "12,345,",
        "one ",
        "A) ",
        "not ",
    ],
)
def test_a_huge_hostile_output_is_read_in_bounded_time(piece: str) -> None:
    from agentmem.rewards.choice import stated_choices
    from agentmem.rewards.json_match import stated_json
    from agentmem.rewards.math import stated_formula
    from agentmem.rewards.numeric import stated_number

    output = piece * (10_000_000 // len(piece))
    started = time.process_time()
    statements(output)
    stated_number(output, "Which is larger?")
    stated_choices(output, {"A": "fruit", "B": "tool"})
    stated_formula(output)
    stated_json(output[-LONGEST:])
    assert time.process_time() - started < 3.0
