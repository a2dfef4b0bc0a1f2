"""The law of the scorers: a right answer in any clear wrapping scores 1, another answer in the same wrapping 0."""

from __future__ import annotations

import json

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentmem.domain.task import Task
from agentmem.rewards.choice import Choice
from agentmem.rewards.exact import Exact
from agentmem.rewards.f1 import F1, f1, tokens
from agentmem.rewards.json_match import JsonMatch
from agentmem.rewards.numeric import Numeric
from agentmem.rewards.reference import ReferenceReward
from agentmem.rewards.statement import normal

MARKED = st.sampled_from(
    [
        "{}",
        "{}.",
        "**{}**",
        '"{}"',
        "“{}”",
        "`{}`",
        " {} \n",
        "\n\n{}\n",
        "_{}_",
        "({})",
        "The answer is {}.",
        "The answer is: {}",
        "the answer is **{}**.",
        "The correct answer is {}",
        "Answer: {}",
        "**Answer:** {}",
        "ANSWER: {}.",
        "Final answer: {}",
        "The final answer is {}.",
        "Final Answer: **{}**",
        "\\boxed{{{}}}",
        "So the answer is \\boxed{{{}}}.",
        "<answer>{}</answer>",
        "#### {}",
        "Let me think.\n\nAnswer: {}",
        "Sure! The answer is {}.",
        "Answer:\n{}",
        "I thought about it. The answer is {}.",
        "The answer is {}, because I looked it up.",
        "Is it hard? No. The answer is {}!",
        "<think>The answer is wrong.</think>\n\n{}",
        "Sure! {}",
        "It is {}.",
    ]
)
NUMERIC = st.sampled_from(
    [
        "The larger number is {}.",
        "The sum is {}",
        "It's {}!",
        "The result: {}",
        "So it is {}.",
        "That makes ${}.",
        "Step 1: add.\nStep 2: The sum is {}.",
        "The total equals {}.",
        "x = {}",
        "They have {} apples.",
        "1. First I add.\n2. The result is {}.",
        "On 2024-05-06 at 12:30 it was {}.",
        "= {}",
        "The temperature was {} degrees.",
    ]
)
KINDS = ["fruit", "animal", "tool", "New York", "stone age"]
CHOICE = st.sampled_from(
    [
        "An item is a {}.",
        "It is a type of {}.",
        "I would say that it is {}",
        "Category: {}",
        "{}s",
        "The item: {}",
        "It belongs to the category {}.",
        "Is it a fruit, an animal, or a tool? It is a {}.",
        "It is, without doubt, a {}.",
        "The item is not a wonder but a {}.",
        "{} is the right category.",
        "a {}",
        "I choose {}.",
    ]
)
WORDS = st.lists(
    st.text("abcdefghijklmnopqrstuvwxyzé", min_size=3, max_size=9).filter(lambda w: len(set(w)) > 2),
    min_size=1,
    max_size=3,
).map(" ".join)
NUMBERS = st.one_of(
    st.integers(-99_999, 99_999).map(str),
    st.decimals(-999, 999, places=2).map(str),
    st.integers(1000, 10**9).map(lambda n: f"{n:,}"),
)
LAW = settings(deadline=None, max_examples=60)  # a busy machine is no failure
RESERVED = {
    "the",
    "not",
    "and",
    "but",
    "because",
    "since",
    "are",
    "was",
    "were",
    "means",
    "gives",
    "answer",
    "final",
}


def score(reward: ReferenceReward, answer: str, output: str, **metadata: object) -> float:
    task = Task(id="t", input="?", answer=answer, metadata=metadata)
    assert not reward.unscorable(task)
    result = reward.compare(task, answer, output)
    assert not hasattr(result, "__await__")
    assert result.score is not None  # type: ignore[union-attr]
    return result.score  # type: ignore[union-attr, return-value]


@LAW
@given(MARKED, WORDS, WORDS)
def test_exact(wrapping: str, answer: str, other: str) -> None:
    assume(normal(answer) != normal(other) and not RESERVED & {*answer.split(), *other.split()})
    assert score(Exact(), answer, wrapping.format(answer)) == 1.0
    assert score(Exact(), answer, wrapping.format(answer.title())) == 1.0
    assert score(Exact(), answer, wrapping.format(other)) == 0.0


@LAW
@given(WORDS, WORDS)
def test_exact_refuses_two_answers(answer: str, other: str) -> None:
    assume(normal(answer) != normal(other) and not RESERVED & {*answer.split(), *other.split()})
    for output in (
        f"Answer: {answer}\nAnswer: {other}",
        f"{answer} or {other}",
        f"{answer}\n{other}",
        f"The answer is {other}. The answer is {answer}.",
    ):
        assert score(Exact(), answer, output) == 0.0, output


@LAW
@given(MARKED | NUMERIC, NUMBERS, NUMBERS)
def test_numeric(wrapping: str, answer: str, other: str) -> None:
    value = float(answer.replace(",", ""))
    assume(float(other.replace(",", "")) not in (value, 100 * value, value / 100))
    assert score(Numeric(), answer, wrapping.format(answer)) == 1.0
    assert score(Numeric(), answer, wrapping.format(f"{value:,}")) == 1.0
    assert score(Numeric(), answer, wrapping.format(other)) == 0.0


@LAW
@given(st.integers(0, 99), st.integers(0, 99))
def test_numeric_reads_sums_and_comparisons(a: int, b: int) -> None:
    assume(a != b)
    assert score(Numeric(), str(a + b), f"{a} + {b} = {a + b}") == 1.0
    assert score(Numeric(), str(a + b), f"The sum of {a} and {b} is {a + b}.") == 1.0
    assert score(Numeric(), str(a + b), f"{a} + {b} = {a + b + 1}") == 0.0
    larger, smaller = max(a, b), min(a, b)
    for output in (
        f"{larger} is larger than {smaller}.",
        f"{larger} is greater",
        f"{smaller} is smaller than {larger}",
        f"The larger number is {larger}, not {smaller}.",
        f"{larger} > {smaller}",
        f"The larger of {a} and {b} is {larger}.",
        f"The larger is {larger}. The smaller is {smaller}.",
    ):
        task = Task(id="t", input=f"Which is larger, {a} or {b}?", answer=str(larger))
        assert Numeric().compare(task, str(larger), output).score == 1.0, output
        wrong = task.model_copy(update={"answer": str(smaller)})
        assert Numeric().compare(wrong, str(smaller), output).score == 0.0, output


@LAW
@given(
    st.integers(0, 99),
    st.integers(100, 199),
    st.sampled_from(
        [
            "between {} and {}",
            "{} to {}",
            "{}-{}",
            "{} or {}",
            "It is between {} and {}.",
            "The answer is {} or {}.",
            "from {} to {}",
            "{}–{}",
            "The numbers are {} and {}.",
        ]
    ),
)
def test_numeric_refuses_ranges_and_alternatives(low: int, high: int, output: str) -> None:
    assert score(Numeric(), str(high), output.format(low, high)) == 0.0
    assert score(Numeric(), str(low), output.format(low, high)) == 0.0


@LAW
@given(MARKED | CHOICE, st.permutations(KINDS))
def test_choice_by_words(wrapping: str, kinds: list[str]) -> None:
    right, other = kinds[:2]
    assert score(Choice(), right, wrapping.format(right), choices=KINDS) == 1.0
    assert score(Choice(), right, wrapping.format(right.upper()), choices=KINDS) == 1.0
    assert score(Choice(), right, wrapping.format(other), choices=KINDS) == 0.0


@LAW
@given(
    MARKED,
    st.sampled_from("ABCDE"),
    st.sampled_from("ABCDE"),
    st.sampled_from(
        ["{0}", "{0})", "({0})", "{0}) {1}", "{0}: {1}", "{0}. {1}", "({0}) {1}", "Option {0}", "option ({0})"]
    ),
)
def test_choice_by_letter(wrapping: str, right: str, other: str, form: str) -> None:
    assume(right != other)
    said = {
        letter: wrapping.format(form.format(letter, text)) for letter, text in zip("ABCDE", KINDS, strict=True)
    }
    assert score(Choice(), right, said[right], choices=KINDS) == 1.0
    assert score(Choice(), right, said[other], choices=KINDS) == 0.0


@LAW
@given(
    st.permutations(KINDS[:3]),
    st.sampled_from(
        [
            "It is not a {}.",
            "It isn't a {}",
            "I don't think it is a {}.",
            "a {0} or a {1}",
            "It is a {0} and a {1}.",
            "{0}, {1}",
            "neither a {0} nor a {1}",
            "Is it a {0}?",
            "non-{0}",
            "An apple is a {0}. A hammer is a {1}.",
            "It is no {0}",
            "If it is a {0}, I win.",
            "{0}ish",
        ]
    ),
)
def test_choice_refuses_denials_and_two_choices(kinds: list[str], output: str) -> None:
    assert score(Choice(), kinds[0], output.format(*kinds), choices=KINDS) == 0.0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text("abc", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: isinstance(value, dict | list))


@LAW
@given(
    JSON,
    JSON,
    st.sampled_from(["{}", "```json\n{}\n```", "Here it is: {}", "Sure!\n```\n{}\n```\nDone.", "{} That is it."]),
)
def test_json(value: object, other: object, wrapping: str) -> None:
    answer = json.dumps(value)

    def put(text: str) -> str:
        return wrapping.replace("{}", text)

    assert score(JsonMatch(), answer, put(json.dumps(value, indent=2, sort_keys=True))) == 1.0
    assume(json.dumps(value, sort_keys=True) != json.dumps(other, sort_keys=True))
    assert score(JsonMatch(), answer, put(json.dumps(other))) == 0.0


@LAW
@given(WORDS, WORDS)
def test_f1_is_symmetric_and_1_only_for_the_same_words(a: str, b: str) -> None:
    assert f1(a, b) == f1(b, a)
    assert 0.0 <= f1(a, b) <= 1.0
    assert (f1(a, b) == 1.0) == (sorted(tokens(a)) == sorted(tokens(b)))
    assert score(F1(), a, f"Answer: {a}") == 1.0
