"""SimpleQA Verified: 1,000 short questions of fact, each with one answer that does not change (2509.07968).

The commit is named by one public evaluation package only; where the Hub does not know it, compare with the history
on the data set's page.
"""

from __future__ import annotations

from agentmem import Benchmark, Hub

BENCHMARK = Benchmark(
    "simpleqa",
    Hub("google/simpleqa-verified", "0dc97e0d28d8233463e005cdc4475cc2a13ba2dc", split="eval"),
    columns={"id": "original_index", "input": "problem", "answer": "answer", "level": "topic"},
    # Names and dates have many spellings, so a model compares them with the reference.
    reward="judge",
    license="MIT",
    # Written for this project: what is asked is told in the question.
    fixture=(
        {
            "original_index": 1,
            "problem": "Orla keeps three goats called Fenn, Moss and Tarn. Which of them has the name of a mountain "
            "lake?",
            "answer": "Tarn",
            "topic": "Other",
        },
        {
            "original_index": 2,
            "problem": "A tram line has the stops Mill, Bridge, Square, Park and Depot in this order. Which stop is "
            "two after Bridge?",
            "answer": "Park",
            "topic": "Geography",
        },
        {
            "original_index": 3,
            "problem": "The Brandt quartet was founded in 1974 and broke up nineteen years later. In which year?",
            "answer": "1993",
            "topic": "Music",
        },
        {
            "original_index": 4,
            "problem": "Of the invented moons Ao, Bel and Cyr, Bel is larger than Ao and smaller than Cyr. Which is "
            "the smallest?",
            "answer": "Ao",
            "topic": "Science and technology",
        },
        {
            "original_index": 5,
            "problem": "In the village of Lenk the mayor is Ruth Abegg, and her deputy is Paul Zemp. Who stands in "
            "when the mayor is away?",
            "answer": "Paul Zemp",
            "topic": "Politics",
        },
    ),
)
