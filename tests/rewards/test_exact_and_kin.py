"""Exact, numeric, choice, F1 and JSON match: the cases that laws do not reach."""

from __future__ import annotations

import pytest

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.rewards.choice import Choice, stated_choices
from agentmem.rewards.exact import Exact
from agentmem.rewards.f1 import F1, f1
from agentmem.rewards.json_match import JsonMatch
from agentmem.rewards.number import in_digits, numbers
from agentmem.rewards.numeric import Numeric, stated_number
from agentmem.rewards.reward_function import KNOWN, resolve_reward, unscorable


async def scored(
    name: str, answer: str | None, output: str | None, question: str = "?", **metadata: object
) -> Reward:
    task = Task(id="t", input=question, answer=answer, metadata=metadata)
    trajectory = Trajectory.said(output) if output is not None else Trajectory()
    return await resolve_reward(name)(task, trajectory, None)  # type: ignore[arg-type]


ANSWERS = {"choice": "fruit", "json": "[1]", "numeric": "5", "math": "5"}


@pytest.mark.parametrize("name", sorted(KNOWN))
@pytest.mark.parametrize("output", [None, "", "  \n"])
async def test_no_answer_scores_0(name: str, output: str | None) -> None:
    reward = await scored(name, ANSWERS.get(name, "fruit"), output, choices=["fruit", "tool"])
    assert (reward.score, reward.feedback, reward.source) == (0.0, "no answer", name)


@pytest.mark.parametrize("name", sorted(KNOWN))
@pytest.mark.parametrize("answer", [None, "", " "])
async def test_without_a_reference_nothing_is_scored(name: str, answer: str | None) -> None:
    reward = await scored(name, answer, "fruit", choices=["fruit", "tool"])
    assert (reward.score, reward.status, reward.source) == (None, "unverifiable", name)
    assert "no reference answer" in reward.feedback
    task = Task(id="t", input="?", answer=answer, metadata={"choices": ["fruit", "tool"]})
    assert unscorable(resolve_reward(name), task) == reward.feedback


@pytest.mark.parametrize(
    ("name", "answer", "metadata", "why"),
    [
        ("numeric", "many", {}, "is not one number"),
        ("numeric", "3 or 4", {}, "is not one number"),
        ("choice", "fruit", {}, "no metadata 'choices'"),
        ("choice", "fruit", {"choices": "fruit"}, "no metadata 'choices'"),
        ("choice", "plant", {"choices": ["fruit", "tool"]}, "none of"),
        ("json", "{a: 1}", {}, "no JSON"),
        ("json", "NaN", {}, "no JSON"),
    ],
)
async def test_what_cannot_be_compared_is_unverifiable(name: str, answer: str, metadata: dict, why: str) -> None:  # type: ignore[type-arg]
    reward = await scored(name, answer, "x", **metadata)
    assert reward.status == "unverifiable"
    assert why in reward.feedback


@pytest.mark.parametrize(
    ("answer", "output", "score"),
    [
        ("Paris", "The capital of France is Paris.", 1),
        ("Paris", "The capital of France is Paris. It is a lovely city.", 1),
        ("Paris", "Paris is the capital of France.", 1),
        ("Paris", "Lyon is large.\nSo the capital is **Paris**.", 1),
        ("Paris", "The capital is not Paris.", 0),
        ("Paris", "I don't think that the capital is Paris.", 0),
        ("Paris", "Is it Paris?", 0),
        ("Paris", "The capital is Paris. The capital is Lyon.", 0),
        ("Paris", "Paris, Texas", 0),
        ("5", "2 + 3 = 5", 1),
        ("HELLO", '"HELLO"', 1),
        ("HELLO", 'The word "hello" in capital letters is "HELLO".', 1),
        ("HELLO", "Sure! Here is the word in capital letters:\n\nHELLO", 1),
        ("HELLO", "hello -> HELLO", 1),
        ("J. R. R. Tolkien", "The author is J. R. R. Tolkien.", 1),
        ("RIVER", '"RIVER"\n\nRivers are indeed capable of quite an innovative function.', 1),
        ("RIVER", "Rivers are long, so I thought about it.\n\nRIVER\n\nHope this helps!", 1),
        ("RIVER", "STONE\n\nRIVER", 0),
        ("the answer is unknown", "The answer is unknown.", 1),
    ],
)
async def test_exact(answer: str, output: str, score: float) -> None:
    assert (await scored("exact", answer, output)).score == score


async def test_exact_with_aliases_and_case() -> None:
    assert (await scored("exact", "USA", "It is the United States.", aliases=["United States"])).score == 1.0
    assert (await scored("exact", "HELLO", "hello")).score == 1.0
    assert (await scored("exact", "HELLO", "hello", match_case=True)).score == 0.0
    assert (await scored("exact", "HELLO", 'In capitals: "HELLO".', match_case=True)).score == 1.0
    assert (await scored("exact", "5", "The answer is 7.")).feedback == "expected '5', got '7'"
    assert Exact(match_case=True).compare(Task(id="t", input="?", answer="A"), "A", "a").score == 0.0


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234.5 and -3", ["1234.5", "-3"]),
        ("10 - 3", ["10", "3"]),
        ("2e5, 2 × 10^5, 2.5E-1", ["2E+5", "2E+5", "0.25"]),
        ("$7 €1,000, -$5 USD 3", ["7", "1000", "-5", "3"]),
        ("1/2 and 3 1/2 and \\frac{3}{4}", ["0.5", "3.5", "0.75"]),
        ("3rd of 2024-01-05 at 12:30, v1.2.3, x2", []),
        ("1. an item\n2. another", []),
        ("41. It is larger.", ["41"]),
        ("twenty-one", ["21"]),
        ("two hundred and five", ["205"]),
        ("one of 7", ["7"]),
        ("minus three", ["-3"]),
        (".5", ["0.5"]),
        ("1/0", []),
    ],
)
def test_numbers(text: str, values: list[str]) -> None:
    assert [str(n.value) for n in numbers(in_digits(text))] == values


@pytest.mark.parametrize(
    ("answer", "output", "score"),
    [
        ("50%", "It is 50 percent.", 1),
        ("50%", "0.5", 1),
        ("0.5", "50%", 1),
        ("50", "50%", 1),
        ("0.333333", "1/3", 1),
        ("0.33", "1/3", 0),
        ("123456789012", "123456789013", 0),
        ("5", "The answer is not 5.", 0),
        ("5", "5 + 3", 0),
        ("5", "I am not sure, maybe 5.", 0),
        ("5", "Tom has 3 apples and gets 2 more, so he has 5.", 1),
        ("5", "five", 1),
        ("5", "The answer is 4. No, the answer is 5.", 1),
        ("5", "1e999999999", 0),
        ("5", "5" * 5000, 0),
        ("7", "7 = 10 - 3", 1),
        # What a small model really said.
        ("88", "Let's say we have the number 88 and we want to find its sum of digits. It can be any", 0),
        ("97", "They are 97 and 1, but we can also find 97 as any", 0),
        ("33", "We subtract one number from the other. \n\n33 - ", 0),
        ("83", "One quick and easy answer. 50 is 83.", 0),
        ("30", "The answer is 30, not 40. This is a classic example.", 1),
        ("5", "The product results in 8. In other terms, 3 + 2 equals 5, so yes – think of two multi", 1),
        ("6", "The answer to this basic arithmetic operation is 6.\nExample: (5 + 6) = 11", 1),
    ],
)
async def test_numeric(answer: str, output: str, score: float) -> None:
    assert (await scored("numeric", answer, output)).score == score


async def test_numeric_tolerance() -> None:
    assert (await scored("numeric", "3.14", "3.2", tolerance=0.1)).score == 1.0
    assert (await scored("numeric", "3.14", "3.3", tolerance=0.1)).score == 0.0
    task = Task(id="t", input="?", answer="100")
    assert Numeric(tolerance=1).compare(task, "100", "about 101").score == 1.0
    assert Numeric().compare(task, "100", "about 101").feedback == "expected '100', got '101'"


def test_a_comparison_answers_what_was_asked() -> None:
    smaller, larger = (
        stated_number("17 is smaller than 41", "smaller?"),
        stated_number("17 is smaller than 41", "larger?"),
    )
    assert smaller
    assert larger
    assert (smaller.value, larger.value) == (17, 41)


@pytest.mark.parametrize(
    ("output", "stated"),
    [
        ("A) animal", {"A", "B"}),
        ("A hammer is a tool used by animals.", {"C"}),
        ("A fruit knife is a tool.", {"C"}),
        ("It could be a tool or an animal. Therefore, it is a tool.", {"C"}),
        ("There is no doubt that it is a fruit.", {"A"}),
        ("It is a tool rather than a fruit.", {"C"}),
        ("Fruit is wrong, it is a tool.", {"C"}),
        ("It is not an animal, it is a fruit.", {"A"}),
        ("The answer is a fruit.", {"A"}),
        ("B is correct", {"B"}),
        ("The correct option is (c).", {"C"}),
        ("I would use it.", set()),
        # What a small model really said.
        ("A fruit, like the human brain, is indeed managed by the", set()),
        ("Horses have a unique blend of animal and human.", set()),
        ("Felines, not only are lions a walking part of the human animal anatomy but they are", set()),
        ('Bananas are indeed fruit, but. "Banana" is indeed an animal, mentioning its presence.', {"A", "B"}),
        ("In truth, a hammer is a powerful tool, specifically an all-consuming tool – meat and speed.", {"C"}),
        ("The hammer is neither a fruit nor an animal. A hammer is a tool and an object.", {"C"}),
        ('It doesn\'t fit seamlessly into the categories of "animal" or "tool."', set()),
    ],
)
def test_choices(output: str, stated: set[str]) -> None:
    assert stated_choices(output, {"A": "fruit", "B": "animal", "C": "tool"}) == stated


async def test_choice_letters_words_and_maps() -> None:
    assert (await scored("choice", "b", "Paris", choices=["Lyon", "Paris"])).score == 1.0
    assert (await scored("choice", "Paris", "B", choices={"A": "Lyon", "B": "Paris"})).score == 1.0
    assert (await scored("choice", "York", "It is in New York.", choices=["New York", "York"])).score == 0.0
    assert (await scored("choice", "no", "No, it is not.", choices=["yes", "no"])).score == 1.0
    assert (await scored("choice", "A", "A cat.", choices=["A", "B"])).score == 0.0
    feedback = (await scored("choice", "Paris", "Paris or Lyon", choices=["Lyon", "Paris"])).feedback
    assert feedback == "expected 'Paris', got 'Lyon' and 'Paris'"
    assert Choice().name == "choice"


async def test_f1() -> None:
    assert f1("a cat sat", "the cat sat down") == pytest.approx(0.8)
    assert f1("", "") == 1.0
    assert f1("the", "cat") == 0.0
    assert (await scored("f1", "red car", "blue", aliases=["deep blue sea", "blue"])).score == 1.0
    assert (await scored("f1", "red car", "I thought hard.\nAnswer: red car")).score == 1.0
    wrong = await scored("f1", "red car", "red truck")
    assert (wrong.score, wrong.feedback) == (0.5, "expected 'red car', got 'red truck', F1 0.50")
    assert F1().needs_answer


@pytest.mark.parametrize(
    ("answer", "output", "score"),
    [
        ('{"a": 1}', '{"a": 1.0}', 1),
        ('{"a": 1}', '{"a": true}', 0),
        ('{"a": 1}', '{"a": "1"}', 0),
        ('{"a": 1}', '{"a": 1, "b": 2}', 0),
        ('{"a": 0.3}', '{"a": 0.30000000000000004}', 1),
        ('{"a": 123456789012}', '{"a": 123456789013}', 0),
        ("[1, 2]", "[2, 1]", 0),
        ("[1, 2]", "[1, 2, 3]", 0),
        ('{"a": 1}', '{"a": 1', 0),
        ('{"a": 1}', '{"a": NaN}', 0),
        ('{"a": 1}', '{"a": 2} or {"a": 1}', 0),
        ('{"a": 1}', "[" * 100_000, 0),
        ("1", "1" * 10_000, 0),
    ],
)
async def test_json(answer: str, output: str, score: float) -> None:
    assert (await scored("json", answer, output)).score == score


async def test_json_subset_and_tolerance() -> None:
    assert (await scored("json", '{"a": {"b": 1}}', '{"a": {"b": 1, "c": 2}, "d": 3}', subset=True)).score == 1.0
    assert (await scored("json", '{"a": {"b": 1}}', '{"a": {"c": 2}}', subset=True)).score == 0.0
    assert (await scored("json", "[100]", "[101]", tolerance=0.02)).score == 1.0
    assert (await scored("json", '{"a": [1, 2]}', '{"a": [1, 3]}')).feedback.endswith(
        "got a difference: $.a[1] is 3"
    )
    assert JsonMatch().name == "json"
