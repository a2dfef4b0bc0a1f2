"""The quickstart's task families: small questions that a small model answers sometimes, and can learn to answer.

They were chosen by measured rates of SmolLM2-135M-Instruct at temperature 1. It answers about 10 to 20 % of the first
three, so that a group of eight attempts mostly holds right and wrong ones; they gain from worked examples, because
what the model lacks is the habit of a plain answer. Of `prime` it gets about half, which is chance: there it lacks the
skill, and a gate has to refuse what was learned.
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
    """Tasks of one kind, generated: the training and the test tasks share no word, country or number."""

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
            ['letter-train-0', 'letter-train-1', 'letter-test-0']
        """
        train, test = self.draw(random.Random(split_seed(seed, "family", self.name)), n_train, n_test)
        return self._set("train", train), self._set("test", test)

    def _set(self, side: str, tasks: list[Task]) -> TaskSet:
        named = (task.model_copy(update={"id": f"{self.name}-{side}-{n}"}) for n, task in enumerate(tasks))
        return TaskSet(named, name=f"{self.name}-{side}")


def families() -> tuple[Family, ...]:
    """The four families, in the order in which the quickstart shows them."""
    return (
        Family("letter", "the first letter of a word", "exact", _letter),
        Family("kind", "animal, fruit or tool", "choice", _kind),
        Family("capital", "the capital of a country", "exact", _capital),
        Family("prime", "whether a number is prime", "choice", _prime),
    )


def _letter(rng: random.Random, n_train: int, n_test: int) -> tuple[list[Task], list[Task]]:
    words = " ".join(KINDS.values()).split()
    rng.shuffle(words)
    train, test = _sides("letter", words, n_train, n_test)
    return _letters(train), _letters(test)


def _letters(words: list[str]) -> list[Task]:
    return [_task(f"What is the first letter of '{word}'?", word[0]) for word in words]


def _kind(rng: random.Random, n_train: int, n_test: int) -> tuple[list[Task], list[Task]]:
    shuffled = [(kind, rng.sample(nouns.split(), len(nouns.split()))) for kind, nouns in KINDS.items()]
    mixed = [(kind, nouns[n]) for n in range(len(shuffled[0][1])) for kind, nouns in shuffled]
    train, test = _sides("kind", mixed, n_train, n_test)
    return _kinds(rng, train), _kinds(rng, test)


def _kinds(rng: random.Random, items: list[tuple[str, str]]) -> list[Task]:
    rng.shuffle(items)
    return [
        _task(f"Is {_article(noun)} {noun} an animal, a fruit or a tool?", kind, tuple(KINDS))
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


def _prime(rng: random.Random, n_train: int, n_test: int) -> tuple[list[Task], list[Task]]:
    numbers = rng.sample(range(11, 400), 389)
    primes, others = [n for n in numbers if _is_prime(n)], [n for n in numbers if not _is_prime(n)]
    mixed = [number for pair in zip(primes, others, strict=False) for number in pair]
    train, test = _sides("prime", mixed, n_train, n_test)
    return _primes(rng, train), _primes(rng, test)


def _primes(rng: random.Random, numbers: list[int]) -> list[Task]:
    rng.shuffle(numbers)
    return [
        _task(f"True or false? {n} is a prime number.", "true" if _is_prime(n) else "false", ("true", "false"))
        for n in numbers
    ]


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, int(number**0.5) + 1))


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
