"""A company's post: messages on twelve topics, and the house rules that say which of six teams takes each topic.

The teams' names mean nothing, so that no model can know the rules: they are drawn anew with each seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task

TEAMS = ("Maple", "Otter", "Falcon", "Harbor", "Comet", "Granite")

TOPICS: dict[str, tuple[str, ...]] = {
    "invoice": (
        "The invoice {number} was paid twice",
        "I cannot find the invoice for order {number}",
        "The amount on invoice {number} is wrong",
        "Please send the invoice {number} again",
    ),
    "password": (
        "My password does not work since {day}",
        "I forgot the password of my account",
        "The system asks me for a new password every {day}",
        "Somebody may know my password, please reset it",
    ),
    "parking": (
        "My parking space was taken on {day}",
        "I need a parking permit for a second car",
        "The barrier of the parking garage does not open",
        "Can a visitor park here on {day}?",
    ),
    "printer": (
        "The printer on floor {floor} is out of toner",
        "The printer jams on every page",
        "I cannot print in colour since {day}",
        "The printer on floor {floor} prints blank pages",
    ),
    "holiday": (
        "I want to take a holiday from {day} on",
        "How many days of holiday do I have left?",
        "My holiday request was refused on {day}",
        "Please move my holiday by one week",
    ),
    "travel": (
        "I need a train ticket for {day}",
        "My flight on {day} was cancelled, please book another",
        "Which hotel can I book for a business trip?",
        "My travel expenses of {day} were not refunded",
    ),
    "heating": (
        "It is too cold in room {number}, the heating is off",
        "The radiator on floor {floor} leaks",
        "The heating cannot be turned down in our office",
        "The radiator makes a loud noise since {day}",
    ),
    "contract": (
        "Please check the contract with our new supplier",
        "The contract {number} ends on {day}",
        "May I sign the contract {number} myself?",
        "A clause of contract {number} is unclear to me",
    ),
    "website": (
        "Our website shows an error since {day}",
        "The prices on the website are out of date",
        "Please put my article on the website by {day}",
        "A link on our website leads nowhere",
    ),
    "canteen": (
        "There was nothing vegetarian in the canteen on {day}",
        "My canteen card was charged twice",
        "Can the canteen cater for {number} guests on {day}?",
        "The lunch in the canteen was cold on {day}",
    ),
    "delivery": (
        "The parcel {number} has not arrived",
        "A parcel was delivered to the wrong floor",
        "Please pick up a parcel in room {number} on {day}",
        "The parcel {number} was damaged on its way",
    ),
    "training": (
        "I want to take part in the first aid course on {day}",
        "Is there a language course for beginners?",
        "The course on {day} is full, is there another?",
        "Please confirm that I finished the safety course",
    ),
}
"""Each topic with its ways of being said."""

OPENINGS = ("", "Hello, ", "Good morning. ", "Dear colleagues, ", "Quick question: ", "Hi all, ")
CLOSINGS = ("", " Thank you.", " Best, Mara", " It is urgent.", " Regards, Tom", " Can you help?")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")

OTHER = (
    ("How long do I boil an egg for breakfast?", "Seven minutes"),
    ("What goes well with roasted carrots tonight?", "Thyme"),
    ("The dough does not rise, what did I do wrong?", "Yeast"),
    ("How much water do I take for a cup of rice?", "Two cups"),
    ("Which pan should I use for thin pancakes?", "Iron"),
    ("My soup is too salty, can it be saved?", "Potato"),
    ("When is the best season for fresh asparagus?", "Spring"),
    ("How do I keep cut apples from turning brown?", "Lemon"),
    ("What can I use instead of butter in a cake?", "Oil"),
    ("How hot should the oven be for a pizza?", "Very hot"),
    ("Can I freeze the rest of the tomato sauce?", "Yes"),
    ("Which cheese melts best on toasted bread?", "Gruyere"),
)
"""Cases about something else, for the control: as long as ours, and of no use."""


@dataclass(frozen=True)
class Post:
    """The messages of one seed, in order of arrival, and what is revealed of each after it was answered."""

    tasks: tuple[Task, ...]
    revealed: dict[str, str | None]
    """By task id: the team that is named afterwards, rightly or wrongly; None where nothing is revealed."""


def post(seed: int, n: int, *, revealed: float, wrong: float) -> Post:
    """Draw `n` messages.

    Args:
        seed: rules, messages and what is revealed depend on it.
        n: messages.
        revealed: probability that a team is named after the answer.
        wrong: probability that the team which is named is a wrong one.
    """
    topics = list(TOPICS)
    random.Random(split_seed(seed, "rules")).shuffle(topics)
    team = {topic: TEAMS[place % len(TEAMS)] for place, topic in enumerate(topics)}
    tasks, told = [], {}
    for i in range(n):
        rng = random.Random(split_seed(seed, "message", i))
        topic = rng.choice(topics)
        words = rng.choice(TOPICS[topic]).format(
            number=rng.randint(100, 999), day=rng.choice(DAYS), floor=rng.randint(1, 9)
        )
        end = "" if words.endswith("?") else "."
        text = f"{rng.choice(OPENINGS)}{words}{end}{rng.choice(CLOSINGS)}"
        tasks.append(Task(id=f"m{i:03d}", input=text, answer=team[topic], cluster=topic))
        luck = random.Random(split_seed(seed, "revealed", i))  # common to all settings of `revealed` and `wrong`
        named, lies = luck.random() < revealed, luck.random() < wrong
        another = luck.choice([t for t in TEAMS if t != team[topic]])
        told[f"m{i:03d}"] = (another if lies else team[topic]) if named else None
    return Post(tuple(tasks), told)
