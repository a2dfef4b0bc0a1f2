"""AIME 2024: the 30 problems of both rounds; each answer is a whole number from 0 to 999."""

from __future__ import annotations

from agentmem import Benchmark, Hub

BENCHMARK = Benchmark(
    "aime2024",
    Hub("HuggingFaceH4/aime_2024", "2fe88a2f1091d5048c0f36abc874fb997b3dd99a", split="train"),
    columns={"id": "id", "input": "problem", "answer": "answer"},
    reward="numeric",
    # Written for this project. The form is that of the data set, where an answer is text and `solution` shows the way.
    fixture=(
        {
            "id": 1,
            "problem": "Let $n$ be the number of ordered pairs $(a, b)$ of positive integers with $a + b = 100$ such "
            "that $a$ is a multiple of $7$ and $b$ is a multiple of $3$. Find $n$.",
            "solution": "a = 7k with 100 - 7k divisible by 3 means k = 1 mod 3: k = 1, 4, 7, 10, 13.",
            "answer": "5",
        },
        {
            "id": 2,
            "problem": "A rectangle has integer sides, area $360$ and the least possible perimeter. Find the square of "
            "its diagonal.",
            "solution": "18 by 20: 324 + 400.",
            "answer": "724",
        },
        {
            "id": 3,
            "problem": "Find the remainder when $2^{40} + 3^{40}$ is divided by $1000$.",
            "solution": "2^40 = 776 and 3^40 = 801 modulo 1000.",
            "answer": "577",
        },
        {
            "id": 4,
            "problem": "How many three-digit numbers have digits that strictly increase from left to right and add up "
            "to an even number?",
            "solution": "Of 1 to 9 choose three: three even ones, or one even and two odd: 4 + 4 * 10.",
            "answer": "44",
        },
        {
            "id": 5,
            "problem": "A fair coin is thrown $6$ times. The probability of exactly two heads, neither of them next to "
            "the other, is $m/n$ in lowest terms. Find $m + n$.",
            "solution": "(15 - 5) / 64 = 5 / 32.",
            "answer": "37",
        },
    ),
)
