"""TriviaQA without its documents (1705.03551): questions of fact with aliases, as DeepResearcher learns from them.

11,313 questions of the split `validation`, each with every spelling of its answer that counts. DeepResearcher
(2504.03160) scores by the token F1, which is the reward here.
"""

from __future__ import annotations

from agentmem import Benchmark, Hub

BENCHMARK = Benchmark(
    "triviaqa",
    Hub(
        "mandarjoshi/trivia_qa",
        "0f7faf33a3908546c6fd5b73a660e0f8ff173c2f",
        split="validation",
        config="unfiltered.nocontext",  # the other configurations repeat a question for each kind of document
    ),
    columns={"id": "question_id", "input": "question", "answer": "answer.value", "aliases": "answer.aliases"},
    reward="f1",
    # Written for this project.
    fixture=(
        {
            "question_id": "own-1",
            "question": "How many minutes are there in a quarter of an hour?",
            "answer": {"value": "15", "aliases": ["15", "Fifteen", "fifteen minutes"]},
        },
        {
            "question_id": "own-2",
            "question": "Which month follows the month that follows March?",
            "answer": {"value": "May", "aliases": ["May", "the month of May"]},
        },
        {
            "question_id": "own-3",
            "question": "What is the name of the shape with as many sides as a hand has fingers, thumb included?",
            "answer": {"value": "Pentagon", "aliases": ["Pentagon", "a pentagon", "5-gon", "regular pentagon"]},
        },
        {
            "question_id": "own-4",
            "question": "Read backwards, which word for a small body of water in the garden spells 'loop'?",
            "answer": {"value": "Pool", "aliases": ["Pool", "pool"]},
        },
        {
            "question_id": "own-5",
            "question": "In the list red, orange, yellow, green, blue, which colour stands in the middle?",
            "answer": {"value": "Yellow", "aliases": ["Yellow", "the colour yellow"]},
        },
    ),
)
