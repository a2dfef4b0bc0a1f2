"""AIME 2025: the 30 problems of both rounds; each answer is a whole number from 0 to 999."""

from __future__ import annotations

from agentmem import Benchmark, Hub

BENCHMARK = Benchmark(
    "aime2025",
    Hub("math-ai/aime25", "563bb8404243c5f09de6ec262f2db674fe5bce9b", split="test"),
    # Its ids are numbers in text; the row's number serves as well, and is there in every copy.
    columns={"input": "problem", "answer": "answer"},
    reward="numeric",
    # Written for this project.
    fixture=(
        {
            "problem": "The positive integers $x < y$ satisfy $xy = 6(x + y)$. Find the sum of all possible $y$.",
            "answer": "99",
        },
        {
            "problem": "A sequence begins with $a_1 = 3$ and satisfies $a_{n+1} = 2a_n - 1$. Find $a_9$.",
            "answer": "513",
        },
        {
            "problem": "Find the number of subsets of $\\{1, 2, \\dots, 10\\}$ that hold no two consecutive numbers.",
            "answer": "144",
        },
        {
            "problem": "A circle touches all three sides of a triangle with sides $13$, $14$ and $15$. Its area is "
            "$k\\pi$. Find $k$.",
            "answer": "16",
        },
        {
            "problem": "Find the greatest number of which $12!$ is a multiple and that is a power of $6$, and give its "
            "exponent.",
            "answer": "5",
        },
    ),
)
