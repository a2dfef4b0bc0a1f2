"""GSM8K: grade school mathematics in words (2110.14168). The answer stands behind `####` in the worked solution."""

from __future__ import annotations

from typing import Any

from agentmem import Benchmark, Hub


def last_line(record: dict[str, Any]) -> dict[str, Any]:
    """The number behind `####`, without the commas of thousands."""
    solution, found, number = record["answer"].rpartition("####")
    if not found:
        raise ValueError("the answer has no line with ####")
    return {**record, "answer": number.strip().replace(",", ""), "solution": solution.strip()}


BENCHMARK = Benchmark(
    "gsm8k",
    # The 1,319 test questions; the revision is the one that public evaluation code names most often.
    Hub("openai/gsm8k", "740312add88f781978c0658806c59bc2815b9866", split="test", config="main"),
    columns={"input": "question", "answer": "answer"},
    record=last_line,
    reward="numeric",
    license="MIT",
    fixture=(
        {
            "question": "Ilse fills 6 trays with 14 seedlings each. Frost kills 9 of them. How many are left?",
            "answer": "6 * 14 = 84 seedlings.\n84 - 9 = 75 are left.\n#### 75",
        },
        {
            "question": "A ferry carries 48 cars at a time and crosses 27 times a day, always full. How many cars does "
            "it carry in a day?",
            "answer": "48 * 27 = 1296 cars.\n#### 1,296",
        },
        {
            "question": "A knitter uses 3 balls of wool for a hat and 11 for a jumper. She makes 4 hats and 2 jumpers "
            "from a box of 40 balls. How many balls stay in the box?",
            "answer": "4 * 3 + 2 * 11 = 34 balls are used.\n40 - 34 = 6 stay.\n#### 6",
        },
        {
            "question": "Tomasz reads 18 pages on Monday and twice as many on Tuesday. The booklet has 90 pages. How "
            "many are left to read?",
            "answer": "18 + 36 = 54 pages are read.\n90 - 54 = 36 are left.\n#### 36",
        },
        {
            "question": "Five friends share the 62 euros for a boat and the 13 euros for a guide in equal parts. How "
            "many euros does each pay?",
            "answer": "62 + 13 = 75 euros.\n75 / 5 = 15 euros each.\n#### 15",
        },
    ),
)
