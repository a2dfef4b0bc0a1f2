"""The quickstart's task families: small questions that a small model answers sometimes, and can learn to answer.

They were chosen by measured base rate: SmolLM2-135M-Instruct answers 10 to 35 % of them at temperature 1, so that
a group of eight attempts mostly holds right and wrong ones. Three families gain from worked examples, because what
the model lacks is the habit of a plain answer; `even` does not, because there it lacks the skill, and a gate has
to refuse what was learned.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task, TaskSet
from agentmem.errors import InputError

T = TypeVar("T")
Draw = Callable[[random.Random, int, int], tuple[list[Task], list[Task]]]


@dataclass(frozen=True)
class Family:
    """Tasks of one kind, generated: the training and the test tasks share no number, noun or country."""

    name: str
    describe: str
    """What the tasks ask, in a few words."""
    reward: str
    """The name of the reward that scores them."""
    draw: Draw
    """Makes the tasks of both sides, with ids that are not yet final."""

    def generate(self, n_train: int, n_test: int, seed: int = 0) -> tuple[TaskSet, TaskSet]:
        """Training and test tasks; the same arguments give the same tasks.

        Args:
            n_train: how many training tasks.
            n_test: how many test tasks.
            seed: which of the family's items stand on which side, and in which order.

        Raises:
            InputError: the family has too few items for so many tasks.

        Example:
            >>> train, test = families()[0].generate(2, 1)
            >>> [task.id for task in (*train, *test)]
            ['larger-train-0', 'larger-train-1', 'larger-test-0']
        """
        train, test = self.draw(random.Random(split_seed(seed, "family", self.name)), n_train, n_test)
        return self._set("train", train), self._set("test", test)

    def _set(self, side: str, tasks: list[Task]) -> TaskSet:
        named = (task.model_copy(update={"id": f"{self.name}-{side}-{n}"}) for n, task in enumerate(tasks))
        return TaskSet(named, name=f"{self.name}-{side}")


def families() -> tuple[Family, ...]:
    """The four families, in the order in which the quickstart shows them."""
    return (
        Family("larger", "the larger of two numbers", "choice", _larger),
        Family("kind", "animal, fruit or tool", "choice", _kind),
        Family("capital", "the capital of a country", "exact", _capital),
        Family("even", "even or odd", "choice", _even),
    )


def _larger(rng: random.Random, n_train: int, n_test: int) -> tuple[list[Task], list[Task]]:
    numbers = list(range(10, 100))
    rng.shuffle(numbers)
    half = len(numbers) // 2
    return _pairs(rng, numbers[:half], n_train), _pairs(rng, numbers[half:], n_test)


def _pairs(rng: random.Random, numbers: list[int], count: int) -> list[Task]:
    """Distinct pairs; the larger number stands first in every second one, so that its place tells nothing."""
    every = [(a, b) for a in sorted(numbers) for b in sorted(numbers) if a < b]
    _enough("larger", count, len(every))
    tasks = []
    for n, (low, high) in enumerate(rng.sample(every, count)):
        one, other = (low, high) if n % 2 else (high, low)
        question = f"Which number is larger, {one} or {other}?"
        tasks.append(_task(question, str(high), (str(one), str(other))))
    return tasks


def _kind(rng: random.Random, n_train: int, n_test: int) -> tuple[list[Task], list[Task]]:
    shuffled = [(kind, rng.sample(nouns.split(), len(nouns.split()))) for kind, nouns in KINDS.items()]
    mixed = [(kind, nouns[n]) for n in range(len(shuffled[0][1])) for kind, nouns in shuffled]
    train, test = _sides("kind", mixed, n_train, n_test)
    return _kinds(rng, train), _kinds(rng, test)


def _kinds(rng: random.Random, items: list[tuple[str, str]]) -> list[Task]:
    rng.shuffle(items)
    return [
        _task(f"What kind of thing is {_article(noun)} {noun}: animal, fruit or tool?", kind, tuple(KINDS))
        for kind, noun in items
    ]


def _capital(rng: random.Random, n_train: int, n_test: int) -> tuple[list[Task], list[Task]]:
    places = [tuple(line.split(":")) for line in CAPITALS.split("; ")]
    rng.shuffle(places)
    train, test = _sides("capital", places, n_train, n_test)
    return (
        [_task(f"What is the capital of {country}?", city) for country, city in train],
        [_task(f"What is the capital of {country}?", city) for country, city in test],
    )


def _even(rng: random.Random, n_train: int, n_test: int) -> tuple[list[Task], list[Task]]:
    evens, odds = (rng.sample(range(start, 1000, 2), 450) for start in (10, 11))
    mixed = [number for pair in zip(evens, odds, strict=False) for number in pair]
    train, test = _sides("even", mixed, n_train, n_test)
    return _parities(rng, train), _parities(rng, test)


def _parities(rng: random.Random, numbers: list[int]) -> list[Task]:
    rng.shuffle(numbers)
    return [_task(f"Is {n} even or odd?", "odd" if n % 2 else "even", ("even", "odd")) for n in numbers]


def _sides(name: str, items: Sequence[T], n_train: int, n_test: int) -> tuple[list[T], list[T]]:
    _enough(name, n_train + n_test, len(items))
    return list(items[:n_train]), list(items[n_train : n_train + n_test])


def _enough(name: str, wanted: int, there: int) -> None:
    if wanted > there:
        raise InputError(f"The family {name!r} has items for {there} tasks, not for {wanted}; ask for fewer.")


def _task(question: str, answer: str, choices: tuple[str, ...] = ()) -> Task:
    return Task(
        id="unnamed", input=question, answer=answer, metadata={"choices": list(choices)} if choices else {}
    )


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


KINDS = {
    "animal": (
        "tiger horse rabbit whale eagle monkey sheep goat snake frog lion bear wolf deer camel dolphin zebra "
        "kangaroo penguin donkey squirrel turtle owl elephant giraffe crocodile leopard hamster parrot lizard "
        "pig fox"
    ),
    "fruit": (
        "apple banana mango peach cherry grape lemon melon plum pear apricot papaya lime fig coconut "
        "pineapple strawberry blueberry raspberry orange pomegranate grapefruit blackberry cranberry "
        "nectarine tangerine watermelon guava lychee mulberry kumquat cantaloupe"
    ),
    "tool": (
        "hammer screwdriver wrench saw drill shovel axe chisel rake ladder hoe crowbar mallet spade clamp "
        "sander trowel file pickaxe anvil hacksaw sledgehammer chainsaw toolbox wheelbarrow plunger scraper "
        "paintbrush pitchfork jackhammer hatchet handsaw"
    ),
}
CAPITALS = (
    "France:Paris; Germany:Berlin; Italy:Rome; Spain:Madrid; Japan:Tokyo; China:Beijing; Russia:Moscow; "
    "Greece:Athens; Egypt:Cairo; Canada:Ottawa; Portugal:Lisbon; Austria:Vienna; Poland:Warsaw; "
    "Sweden:Stockholm; Norway:Oslo; Finland:Helsinki; Denmark:Copenhagen; Ireland:Dublin; Hungary:Budapest; "
    "Cuba:Havana; Peru:Lima; Kenya:Nairobi; India:New Delhi; Thailand:Bangkok; Turkey:Ankara; Iran:Tehran; "
    "Iraq:Baghdad; Syria:Damascus; Jordan:Amman; Lebanon:Beirut; Nepal:Kathmandu; Bangladesh:Dhaka; "
    "Pakistan:Islamabad; Afghanistan:Kabul; Mongolia:Ulaanbaatar; Vietnam:Hanoi; Indonesia:Jakarta; "
    "Malaysia:Kuala Lumpur; Australia:Canberra; New Zealand:Wellington; Argentina:Buenos Aires; "
    "Chile:Santiago; Uruguay:Montevideo; Paraguay:Asuncion; Ecuador:Quito; Colombia:Bogota; "
    "Venezuela:Caracas; Brazil:Brasilia; Jamaica:Kingston; Haiti:Port-au-Prince; Costa Rica:San Jose; "
    "Nicaragua:Managua; Honduras:Tegucigalpa; Morocco:Rabat; Algeria:Algiers; Tunisia:Tunis; Libya:Tripoli; "
    "Sudan:Khartoum; Ethiopia:Addis Ababa; Uganda:Kampala; Rwanda:Kigali; Ghana:Accra; Nigeria:Abuja; "
    "Senegal:Dakar; Zambia:Lusaka; Zimbabwe:Harare; Angola:Luanda; Mozambique:Maputo; Somalia:Mogadishu; "
    "Mali:Bamako; Belgium:Brussels; Romania:Bucharest; Bulgaria:Sofia; Serbia:Belgrade; Croatia:Zagreb; "
    "Slovenia:Ljubljana; Slovakia:Bratislava; Albania:Tirana; Ukraine:Kyiv; Belarus:Minsk; Lithuania:Vilnius; "
    "Latvia:Riga; Estonia:Tallinn; Iceland:Reykjavik; Malta:Valletta; Cyprus:Nicosia; Georgia:Tbilisi; "
    "Armenia:Yerevan; Azerbaijan:Baku; Uzbekistan:Tashkent; Cambodia:Phnom Penh; Laos:Vientiane; Yemen:Sanaa; "
    "Qatar:Doha; Oman:Muscat; Bahrain:Manama; Switzerland:Bern"
)
