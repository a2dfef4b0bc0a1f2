"""Open-ended requests: no one answer is right, so a model judges each by a rubric of its own.

Sixty requests, made of twelve matters and five readers; what is asked of a good answer follows from both. Beside a
structured set such as `gsm8k`, it shows what learning on the one does to the other. Nothing of it is from elsewhere.
"""

from __future__ import annotations

from agentmem import Benchmark

RUBRIC = (
    "The answer does what is asked, for the reader who is named. What it states is true. Each of the points below "
    "counts the same; take away for padding, for repetition, and for anything that the reader cannot follow."
)
MATTERS = {
    "tides": ("why the sea rises and falls twice a day", "names the moon", "says why twice and not once"),
    "bread": ("why bread dough is left to rest", "names yeast or another leaven", "says what the waiting changes"),
    "rainbow": (
        "where the colours of a rainbow come from",
        "names light in drops",
        "says where the sun must stand",
    ),
    "seasons": ("why there are seasons", "names the tilt of the axis", "does not say that distance is the reason"),
    "ice": ("why ice floats", "says that water grows when it freezes", "says what density has to do with it"),
    "echo": ("how an echo comes about", "names sound thrown back", "says why it comes later"),
    "password": ("what makes a password good", "prefers length to odd signs", "warns against using one twice"),
    "delay": ("that a delivery is three days late", "apologises once", "says what happens next, and when"),
    "noise": ("that a neighbour's music is too loud at night", "stays friendly", "asks for one definite thing"),
    "raise": ("that a colleague should ask for more pay", "names one reason from work", "suggests a next step"),
    "garden": ("how to begin with a garden on a balcony", "names light and water", "names a plant that forgives"),
    "budget": ("how to keep track of a month's spending", "gives a method in steps", "says how to notice a leak"),
}
READERS = {
    "child": ("a child of eight", "has no word that a child of eight does not know"),
    "hurry": ("somebody with one minute", "is at most 60 words long"),
    "doubter": ("somebody who believes the opposite", "takes the reader's view seriously before it answers"),
    "foreigner": (
        "somebody who has been learning English for a year",
        "has short, plain sentences without idioms",
    ),
    "expert": ("an expert in the field", "leaves out what an expert takes for granted"),
}


def requests() -> tuple[dict[str, str], ...]:
    """Every matter for every reader, each reader in turn, so that the first twelve already differ."""
    made = []
    for n in range(len(MATTERS) * len(READERS)):
        matter, (what, *points) = list(MATTERS.items())[n % len(MATTERS)]
        reader, (whom, style) = list(READERS.items())[(n + n // len(MATTERS)) % len(READERS)]
        made.append(
            {
                "name": f"{matter}-{reader}",
                "request": f"Explain {what} to {whom}.",
                "points": "\n".join(f"- It {point}." for point in (*points, style)),
                "matter": matter,
            }
        )
    return tuple(made)


BENCHMARK = Benchmark(
    "open-ended",
    requests(),
    columns={"id": "name", "input": "request", "rubric": "points", "cluster": "matter"},
    reward="judge",
    rubric=RUBRIC,
    license="Apache-2.0",
    fixture=requests()[:5],
)
