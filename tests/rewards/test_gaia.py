"""The GAIA scorer against a second implementation of the official rule, and the labels that change no score."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, strategies

from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.rewards.gaia import Gaia, faults_of, final_answer, is_right, near_miss
from agentmem.task_folder import PRIVATE

ASCII_PUNCTUATION = [chr(n) for n in range(33, 127) if not chr(n).isalnum()]


def official(answer: str | None, truth: str) -> bool:
    """The rule once more, from its description alone: written with other means, so that a slip shows."""

    def number(text: str) -> float | None:
        try:
            return float(text)
        except ValueError:
            return None

    def said_number(text: str) -> float:
        value = number("".join(c for c in text if c not in ("$", "%", ",")))
        return math.inf if value is None else value

    def squeezed(text: str, *, punctuation: bool) -> str:
        kept = "".join(text.split())
        return "".join(c for c in kept if punctuation or c not in ASCII_PUNCTUATION).lower()

    answer = "None" if answer is None else answer
    if (wanted := number(truth)) is not None:
        return said_number(answer) == wanted
    if truth.count(",") + truth.count(";"):
        left, right = (text.replace(";", ",").split(",") for text in (answer, truth))
        if len(left) != len(right):
            return False
        for ours, theirs in zip(left, right, strict=True):
            wanted = number(theirs)
            if wanted is not None and said_number(ours) != wanted:
                return False
            if wanted is None and squeezed(ours, punctuation=True) != squeezed(theirs, punctuation=True):
                return False
        return True
    return squeezed(answer, punctuation=False) == squeezed(truth, punctuation=False)


EDGES = [
    ("17 hours", "17", False),
    ("FINAL ANSWER: 17", "17", False),
    ("17", "17", True),
    ("17.0", "17", True),
    (" 17 ", "17", True),
    ("$17%", "17", True),
    ("b, a", "a, b", False),
    ("a; b", "a, b", True),
    ("a,b,", "a,b", False),
    ("A , B", "a,b", True),
    ("a., b", "a, b", False),
    ("Saint Petersburg", "St. Petersburg", False),
    ("st petersburg", "St. Petersburg", True),
    ("The Rhine", "Rhine", False),
    ("−5", "-5", False),
    ("1_000", "1000", True),
    ("1e3", "1000", True),
    ("٣", "3", True),
    ("-", "!", True),
    ("garbage", "inf", True),
    ("nan", "nan", False),
    (None, "None", True),
    (None, "17", False),
    (None, "a, b", False),
    ("", "17", False),
    ("1,000", "1000", True),
    ("1000", "1,000", False),
    ("1, 000", "1,000", True),
    ("3, x", "3.0, X", True),
    ("$3, x", "3, x", True),
]


@pytest.mark.parametrize(("answer", "truth", "right"), EDGES)
def test_the_edges_of_the_rule(answer: str | None, truth: str, right: bool) -> None:
    assert is_right(answer, truth) is right
    assert official(answer, truth) is right


PIECES = [
    *(
        "17",
        "3.5",
        "-2",
        "1e3",
        "٣",
        "1_0",
        "inf",
        "nan",
        "$",
        "%",
        ",",
        ";",
        " ",
        "\t",
        "\n",
        "\xa0",
        "\x1c",
        ".",
    ),
    *("-", "−", "!", "St", "Saint", "The", "a", "A", "ß", "É", "é", "İ", "'", "’", "None", "hours", "0", "٫", "_"),
]


def test_both_agree_on_100_000_pairs() -> None:
    rng = random.Random(0)
    right = 0
    for _ in range(100_000):
        truth = "".join(rng.choices(PIECES, k=rng.randint(0, 5)))
        answer = _mutated(truth, rng) if rng.random() < 0.7 else "".join(rng.choices(PIECES, k=rng.randint(0, 5)))
        assert is_right(answer, truth) is official(answer, truth), (answer, truth)
        right += is_right(answer, truth)
    assert 10_000 < right < 90_000, "both sides of the rule are met"


def _mutated(truth: str, rng: random.Random) -> str:
    place = rng.randint(0, len(truth))
    return rng.choice(
        [
            truth,
            truth.upper(),
            f" {truth} ",
            truth[:place] + rng.choice(PIECES) + truth[place:],
            truth[:place] + truth[place + 1 :],
            truth.replace(",", ";"),
            ",".join(reversed(truth.split(","))),
        ]
    )


@given(strategies.text(), strategies.text())
def test_both_agree_on_any_text(answer: str, truth: str) -> None:
    assert is_right(answer, truth) is official(answer, truth)
    assert is_right(answer, answer) is official(answer, answer)


@given(strategies.text(), strategies.text())
def test_a_near_miss_is_a_label_and_no_score(answer: str, truth: str) -> None:
    label = near_miss(answer, truth)
    assert not (label and is_right(answer, truth))
    if not truth.strip():
        return
    task = Task(id="t", input="?", answer=truth)
    reward = Gaia().compare(task, truth, f"FINAL ANSWER: {answer}")
    assert reward.score == float(is_right(final_answer(f"FINAL ANSWER: {answer}").text, truth))


@pytest.mark.parametrize(
    ("answer", "truth", "label"),
    [
        ("17 hours", "17", "words around the number"),
        ("−5", "-5", "accents or other characters"),
        ("Zurich", "Zürich", "accents or other characters"),
        ("a, b,", "a, b", "marks around the answer"),
        ("The Rhine", "Rhine", "an article"),
        ("b, a", "a, b", "the order of the list"),
        ("a, b, c", "a, b", "an element too many or too few"),
        ("17.05", "17", "a number within one percent"),
        ("It is the Rhine river", "Rhine", "words around the answer"),
        ("Mississipi", "Mississippi", "spelling"),
        ("Danube", "Rhine", ""),
        ("18", "17", ""),
        ("", "17", ""),
        ("17", "17", ""),
    ],
)
def test_near_misses(answer: str, truth: str, label: str) -> None:
    assert near_miss(answer, truth) == label


@pytest.mark.parametrize(
    ("output", "text", "marked"),
    [
        ("FINAL ANSWER: 17", "17", True),
        ("FINAL ANSWER: 16\nNo.\nFINAL ANSWER: 17\n", "17", True),
        ("final answer : a, b", "a, b", True),
        ("**FINAL ANSWER:** Rhine", "Rhine", True),
        ("**FINAL ANSWER: Rhine**", "Rhine", True),
        ("FINAL ANSWER:\n\n17", "17", True),
        ("FINAL ANSWER: 17\nThat is all.", "17", True),
        ("FINAL ANSWER:", "", True),
        ("17", "17", False),
        ("<think>FINAL ANSWER: 4</think>5", "5", False),
        ("", "", False),
    ],
)
def test_the_answer_stands_behind_the_last_marker(output: str, text: str, marked: bool) -> None:
    found = final_answer(output)
    assert (found.text, found.marked) == (text, marked)


def test_no_marker_is_told_apart_and_scored_as_it_stands() -> None:
    task = Task(id="t", input="?", answer="17")
    assert Gaia().compare(task, "17", "17").score == 1.0
    assert "no FINAL ANSWER marker" in Gaia().compare(task, "17", "It is 18").feedback
    assert "marker" not in Gaia().compare(task, "17", "FINAL ANSWER: 18").feedback


@pytest.mark.parametrize(
    ("truth", "why"),
    [("17", ""), ("a, b", ""), ("nan", "itself"), ("inf", "nothing to do"), ("-", "nothing to do")],
)
def test_truths_that_cannot_be_scored_fairly(truth: str, why: str) -> None:
    assert why in faults_of(truth)
    assert bool(faults_of(truth)) is bool(why)


async def test_a_private_answer_is_unverifiable_and_no_fault() -> None:
    task = Task(id="t", input="?", metadata={PRIVATE: True})
    assert Gaia().unscorable(task) == ""
    reward = await Gaia()(task, Trajectory.said("FINAL ANSWER: 5"), None)  # type: ignore[arg-type]
    assert (reward.score, reward.status) == (None, "unverifiable")
