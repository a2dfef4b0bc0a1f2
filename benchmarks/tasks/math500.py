"""MATH-500: 500 problems of the MATH test set (2103.03874), as chosen in 2305.20050; answers are formulas."""

from __future__ import annotations

from agentmem import Benchmark, Hub

BENCHMARK = Benchmark(
    "math500",
    Hub("HuggingFaceH4/MATH-500", "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be", split="test"),
    columns={"id": "unique_id", "input": "problem", "answer": "answer", "level": "level"},
    reward="math",
    # Written for this project.
    fixture=(
        {
            "unique_id": "own/algebra/1",
            "problem": "Solve $3x - 7 = \\frac{x}{2} + 3$ for $x$.",
            "answer": "4",
            "subject": "Algebra",
            "level": 1,
        },
        {
            "unique_id": "own/algebra/2",
            "problem": "Write $\\frac{5}{2 - \\sqrt{3}}$ without a root in the denominator.",
            "answer": "10 + 5\\sqrt{3}",
            "subject": "Algebra",
            "level": 3,
        },
        {
            "unique_id": "own/geometry/1",
            "problem": "A cone has radius $6$ and height $8$. What is the area of its curved surface?",
            "answer": "60\\pi",
            "subject": "Geometry",
            "level": 2,
        },
        {
            "unique_id": "own/counting/1",
            "problem": "Two of the numbers from $1$ to $8$ are drawn without putting back. What is the probability "
            "that their product is odd?",
            "answer": "\\frac{3}{14}",
            "subject": "Counting & Probability",
            "level": 3,
        },
        {
            "unique_id": "own/precalculus/1",
            "problem": "Compute $\\sin 15^\\circ \\cdot \\cos 15^\\circ$.",
            "answer": "\\frac{1}{4}",
            "subject": "Precalculus",
            "level": 4,
        },
    ),
)
