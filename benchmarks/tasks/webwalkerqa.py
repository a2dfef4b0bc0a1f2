"""WebWalkerQA: questions that take walking through the pages of one site (2501.07572); 680 in the split `main`.

The revision is the branch `main`, because no commit of this data set could be established when this was written:
its tasks may be others tomorrow, and that is said whenever it is loaded. Before you publish a number, put the commit
here that the data set's page shows under Files, History.
"""

from __future__ import annotations

from agentmem import Benchmark, Hub

BENCHMARK = Benchmark(
    "webwalkerqa",
    Hub("callanwu/WebWalkerQA", "main", split="main"),
    # The page that the walk begins at stands before the question.
    columns={"input": "question", "answer": "answer", "context": "root_url", "level": "info.difficulty_level"},
    # The answers are sentences, so a model compares them with the reference.
    reward="judge",
    license="Apache-2.0",
    # Written for this project; the sites do not exist.
    fixture=(
        {
            "root_url": "https://harbour-museum.example/",
            "question": "On which weekday is the museum's boat workshop open to visitors?",
            "answer": "On Thursdays.",
            "info": {"difficulty_level": "easy", "lang": "en", "hop": "single_source"},
        },
        {
            "root_url": "https://harbour-museum.example/",
            "question": "What does a family ticket cost, and which of the two exhibitions does it not include?",
            "answer": "It costs 24 euros and does not include the exhibition on lighthouses.",
            "info": {"difficulty_level": "medium", "lang": "en", "hop": "multi_source"},
        },
        {
            "root_url": "https://northfield-conference.example/",
            "question": "How many days lie between the deadline for papers and the notification of authors?",
            "answer": "42 days.",
            "info": {"difficulty_level": "hard", "lang": "en", "hop": "multi_source"},
        },
        {
            "root_url": "https://northfield-conference.example/",
            "question": "In which building is the welcome reception held?",
            "answer": "In the Old Mill.",
            "info": {"difficulty_level": "easy", "lang": "en", "hop": "single_source"},
        },
        {
            "root_url": "https://velo-works.example/",
            "question": "Which of the shop's two folding bicycles is lighter, and by how many grams?",
            "answer": "The Finch, by 350 grams.",
            "info": {"difficulty_level": "medium", "lang": "en", "hop": "multi_source"},
        },
    ),
)
