"""The experiment on learning: which tasks are held out."""

from __future__ import annotations

import json
from pathlib import Path


def test_without_a_training_split_half_of_the_tasks_is_learned_from(cli, tmp_path: Path) -> None:
    rows = [
        {"task_id": str(n), "Question": f"{n}?", "Level": "1", "Final answer": "5", "file_name": ""}
        for n in range(8)
    ]
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "dataset.toml").write_text('name = "own"')
    (tmp_path / "s" / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ("bench", "gaia", "--data", "s", "--learn", "--dry-run", "--model", "scripted/echo", "--json")
    assert json.loads(cli(*asked).out)["attempts"] == 4 + 3 * 4
    split = [row | {"split": "train" if n < 2 else "test"} for n, row in enumerate(rows)]
    (tmp_path / "s" / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in split))
    assert json.loads(cli(*asked, "--samples", 2).out)["attempts"] == 2 * (2 + 3 * 6)
