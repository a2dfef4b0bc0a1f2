"""DAPO-Math: competition problems with whole-number answers, for learning from (2503.14476).

The original, BytedTsinghua-SIA/DAPO-Math-17k, repeats every problem a hundred times (1,791,700 rows). This is the
copy without repetitions and without its prompt template, in English: 14,116 problems.
"""

from __future__ import annotations

from agentmem import Benchmark, Hub

BENCHMARK = Benchmark(
    "dapo-math",
    Hub("open-r1/DAPO-Math-17k-Processed", "31dd309567e3da778038cc87d868b6097a3ccf68", split="train", config="en"),
    columns={"input": "prompt", "answer": "solution"},
    reward="numeric",
    # Written for this project.
    fixture=(
        {"prompt": "How many positive divisors of $2^4 \\cdot 3^3$ are multiples of $12$?", "solution": "9"},
        {"prompt": "The sum of five consecutive even integers is $340$. What is the largest?", "solution": "72"},
        {
            "prompt": "In how many ways can $8$ identical stones be put into $3$ different bowls so that no bowl is "
            "empty?",
            "solution": "21",
        },
        {
            "prompt": "What is the smallest positive integer $n$ for which $n^2 - n$ is a multiple of $35$ and "
            "$n > 1$?",
            "solution": "15",
        },
        {
            "prompt": "A square with side $10$ is cut along lines parallel to its sides into $25$ equal squares. What "
            "is the total length of the cuts?",
            "solution": "80",
        },
    ),
)
