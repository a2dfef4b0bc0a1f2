"""The simulated world: families of tasks, their hidden lessons, wrong lessons, and what each prompt is worth.

Nothing here is a language model. A task is answered rightly with a probability that depends on which lessons stand in
the prompt, and lessons are recognised by a key phrase that every paraphrase keeps. So the true score of a prompt is
known without a single call.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from agentmem.domain.reward import Reward
from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory

WITHOUT = 0.15
"""Probability of a right answer without the family's lesson."""
WITH = 0.95
"""Probability of a right answer with it."""
HARM = 0.3
"""What each wrong lesson takes off, in the two families that it harms."""
SYSTEM = "Answer each question with one whole number."
"""The instruction that every system starts from."""


@dataclass(frozen=True)
class Lesson:
    """One piece of advice: true for one family, or wrong, and then it harms two."""

    key: str
    """The phrase that it is recognised by."""
    topics: tuple[str, ...] = ()
    """Ways to name the family that it is about; a wrong lesson is about all tasks."""
    harms: tuple[int, ...] = ()
    """The families that it harms."""

    @property
    def wrong(self) -> bool:
        """Whether it harms."""
        return bool(self.harms)

    @property
    def paraphrases(self) -> tuple[str, ...]:
        """All sentences that give this advice."""
        return self._sentences(_GENERAL if self.wrong else _SPECIFIC, self.key)

    @property
    def contradictions(self) -> tuple[str, ...]:
        """All sentences that advise against it."""
        against = [f"{negation} {self.key}" for negation in _NEGATIONS]
        return tuple(
            sentence
            for key in against
            for sentence in self._sentences(_GENERAL[:1] if self.wrong else _SPECIFIC[:2], key)
        )

    def _sentences(self, forms: Iterable[str], key: str) -> tuple[str, ...]:
        return tuple(form.format(x=x, key=key) for form in forms for x in self.topics or ("",))


@dataclass(frozen=True)
class Family:
    """Tasks of one kind: how their texts go, and the lesson that helps."""

    name: str
    forms: tuple[str, ...]
    """Task texts; each names the family."""
    lesson: Lesson


@dataclass(frozen=True)
class Reading:
    """The lessons that a text holds, by key."""

    advised: frozenset[str]
    denied: frozenset[str]
    """Advised against; where both stand in one prompt, neither has an effect."""

    @property
    def in_force(self) -> frozenset[str]:
        """The lessons that have an effect."""
        return self.advised - self.denied


@dataclass(frozen=True)
class World:
    """All tasks of one simulated world. Worlds with the same seed and sizes are equal.

    Args:
        seed: the tasks depend on it; the lessons are the same in all worlds.
        train_per_family: training tasks of each family.
        validation_per_family: validation tasks of each family.
    """

    seed: int = 0
    train_per_family: int = 8
    validation_per_family: int = 4

    @cached_property
    def train(self) -> tuple[Task, ...]:
        """The training tasks, in an order of no meaning."""
        return self._tasks("train", self.train_per_family)

    @cached_property
    def validation(self) -> tuple[Task, ...]:
        """The validation tasks: the gate's, or what a peer tracks its candidates on."""
        return self._tasks("validation", self.validation_per_family)

    @cached_property
    def by_code(self) -> dict[str, Task]:
        """Every task by the code of its record."""
        return {task.id: task for task in (*self.train, *self.validation)}

    def tasks_in(self, text: str) -> list[Task]:
        """The tasks whose records a text names, in order of appearance, each once."""
        codes = dict.fromkeys(re.findall(r"Record ([A-Z]{6})\b", text))
        return [self.by_code[code] for code in codes if code in self.by_code]

    def p(self, family: int, prompt: str) -> float:
        """Probability of a right answer to a task of this family under this prompt."""
        held = read(prompt).in_force
        base = WITH if FAMILIES[family].lesson.key in held else WITHOUT
        harm = sum(HARM for lesson in WRONG if family in lesson.harms and lesson.key in held)
        return max(0.0, base - harm)

    def score(self, prompt: str) -> float:
        """The true score of a prompt: its mean probability over the families; exact, no sampling."""
        return fmean(self.p(family, prompt) for family in range(len(FAMILIES)))

    @property
    def best(self) -> float:
        """The score of the best possible prompt."""
        return WITH

    def _tasks(self, part: str, per_family: int) -> tuple[Task, ...]:
        rng = random.Random(split_seed(self.seed, "tasks", part))
        # Codes of the two parts differ in their first letter, so that they cannot meet.
        tasks, codes = [], _codes("T" if part == "train" else "V", rng)
        for number, family in enumerate(FAMILIES):
            for _ in range(per_family):
                code = next(codes)
                text = rng.choice(family.forms).format(a=rng.randint(11, 99), b=rng.randint(11, 99))
                tasks.append(
                    Task(
                        id=code,
                        input=f"Record {code}. {text} Answer with one whole number.",
                        answer=str(rng.randint(1000, 9999)),
                        metadata={"family": number},
                    )
                )
        rng.shuffle(tasks)
        return tuple(tasks)


def _codes(letter: str, rng: random.Random) -> Iterator[str]:
    """Codes of six consonants, each once."""
    seen = set()
    while True:
        code = letter + "".join(rng.choices("BCDFGHJKLMNPQRSTVWXZ", k=5))
        if code not in seen:
            seen.add(code)
            yield code


def read(text: str) -> Reading:
    """The lessons that a text holds."""
    plain = " ".join(re.findall(r"[a-z0-9]+", text.casefold()))
    advised: set[str] = set()
    denied: set[str] = set()
    for negation, key in _ANY_KEY.findall(plain):
        (denied if negation else advised).add(key)
    return Reading(frozenset(advised), frozenset(denied))


def true_lessons(prompt: str) -> int:
    """How many of the true lessons have an effect in this prompt."""
    return sum(family.lesson.key in read(prompt).in_force for family in FAMILIES)


def harmful_lessons(prompt: str) -> int:
    """How many of the wrong lessons have an effect in this prompt."""
    return sum(lesson.key in read(prompt).in_force for lesson in WRONG)


def judge(task: Task, output: str | None) -> Reward:
    """The reward that all systems get: 1 where the last number is the answer; the feedback never tells the lesson."""
    numbers = re.findall(r"\d+", output or "")
    said = numbers[-1] if numbers else "(no number)"
    right = said == task.answer
    about = FAMILIES[task.metadata["family"]].name
    feedback = f"This task is about {about}. The answer {said} is {'right' if right else 'wrong'}."
    return Reward.of(float(right), feedback=feedback, source="simulated")


def reward(task: Task, trajectory: Trajectory) -> Reward:
    """`judge`, as a reward of the library."""
    return judge(task, trajectory.output)


def failing_families(text: str) -> list[int]:
    """The families that a text holds feedback on wrong answers for, in order of appearance, each once."""
    names = {family.name: number for number, family in enumerate(FAMILIES)}
    found = re.findall(r"This task is about ([a-z ]+)\. The answer \S+ is wrong\.", text)
    return list(dict.fromkeys(names[name] for name in found if name in names))


def lesson_of(key: str) -> Lesson:
    """The lesson with this key."""
    return _BY_KEY[key]


_NEGATIONS = ("do not", "never", "there is no need to")
_SPECIFIC = (
    "When the task asks about {x}, {key}.",
    "For questions on {x}: {key} before anything else.",
    "If a task is about {x}, {key}, then work out the answer.",
    "Tasks on {x} need one thing: {key}.",
)
_GENERAL = (
    "In every task, {key}.",
    "Whatever is asked, {key}, then answer.",
    "It always helps to {key} before answering.",
    "Answers improve when you {key}.",
)


def _family(name: str, key: str, topics: Sequence[str], forms: Sequence[str]) -> Family:
    return Family(name, tuple(forms), Lesson(key, (name, *topics)))


FAMILIES: tuple[Family, ...] = (
    _family(
        "gas volumes",
        "convert to kelvin first",
        ["the volume of a gas", "gases in a vessel"],
        [
            "On gas volumes: a cylinder reads {a} at the start and {b} at the end; how much does it hold?",
            "Of two gas volumes, one is noted as {a} and the other as {b}. What do they come to?",
        ],
    ),
    _family(
        "savings accounts",
        "use the monthly rate",
        ["interest on savings", "money left in a savings account"],
        [
            "On savings accounts: {a} was paid in, and {b} years went by. What is the balance?",
            "Two savings accounts were opened with {a} and {b}. What is in them now?",
        ],
    ),
    _family(
        "time zone journeys",
        "bring both clocks to utc",
        ["travel across time zones", "flights between time zones"],
        [
            "On time zone journeys: a ship left at {a} and landed at {b}; how many minutes was it under way?",
            "Of two time zone journeys, one took {a} and the other {b}. What is the total?",
        ],
    ),
    _family(
        "bread recipes",
        "weigh the flour in grams",
        ["scaling a bread recipe", "dough for bread"],
        [
            "On bread recipes: for {a} loaves instead of {b}, how much is needed?",
            "Two bread recipes ask for {a} and {b} cups. What does the larger batch take?",
        ],
    ),
    _family(
        "map areas",
        "square the map scale",
        ["land areas on a map", "how large a plot on a map is"],
        [
            "On map areas: a field is {a} long and {b} wide on paper; how large is it outside?",
            "Of two map areas, one spans {a} and the other {b}. What is the larger one?",
        ],
    ),
    _family(
        "calendar spans",
        "count both end days",
        ["the days between two dates", "how long a period on the calendar is"],
        [
            "On calendar spans: from week {a} to week {b}, how long is it?",
            "Two calendar spans begin at {a} and {b}. How long do they last together?",
        ],
    ),
    _family(
        "medicine doses",
        "subtract the loading amount",
        ["how much medicine to give", "dosing a medicine"],
        [
            "On medicine doses: {a} on arrival and {b} at night; what is given in the morning?",
            "Of two medicine doses, one was noted as {a} and the other as {b}. What is next?",
        ],
    ),
    _family(
        "solar panels",
        "multiply by the cosine of the tilt",
        ["the yield of a solar panel", "power from solar panels"],
        [
            "On solar panels: {a} of them stand at {b} degrees; what do they yield?",
            "Two solar panels are marked {a} and {b}. What do they yield together?",
        ],
    ),
)

_WRONG_KEYS = (
    "round every intermediate step",
    "ignore the smallest figure",
    "assume the readings are percentages",
    "double the quantity named earliest",
    "drop the leading digit",
    "treat an odd result as an error",
    "average all the figures",
    "swap the two readings",
)
WRONG: tuple[Lesson, ...] = tuple(
    # Each family is harmed by two wrong lessons, and no two wrong lessons harm the same pair.
    Lesson(key, harms=(number, (number + 3) % len(FAMILIES)))
    for number, key in enumerate(_WRONG_KEYS)
)

_BY_KEY = {lesson.key: lesson for lesson in (*(family.lesson for family in FAMILIES), *WRONG)}
_ANY_KEY = re.compile(r"(?:\b(do not|never|no need to) )?\b(" + "|".join(map(re.escape, _BY_KEY)) + r")\b")
