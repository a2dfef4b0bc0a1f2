"""The controls of the experiment on learning: what a shuffled memory is, and which tasks are held out."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from agentmem.cli.gaia_learn import shuffled
from agentmem.domain.case import Case, Provenance


def test_a_shuffled_memory_has_the_same_cases_about_something_else() -> None:
    cases = [
        Case.of(
            f"question {kind} {n}",
            f"answer {kind} {n}",
            reward=float(n % 2),
            trace=(f"trace {kind} {n}",),
            cluster=kind,
            task_id=f"{kind}-{n}",
            gated=kind == "a",
            provenance=Provenance(source=kind, untrusted=kind == "b"),
        )
        for kind in "abc"
        for n in range(4)
    ]
    mixed = shuffled(cases, seed=0)
    assert sorted(case.state for case in mixed) == sorted(case.state for case in cases)
    assert Counter((c.action, c.trace, c.reward, c.gated, c.provenance) for c in mixed) == Counter(
        (c.action, c.trace, c.reward, c.gated, c.provenance) for c in cases
    )
    assert all(case.state.split()[1] != case.action.split()[1] for case in mixed), "of another kind of task"
    assert [case.task_id for case in mixed] == [f"{c.state.split()[1]}-{c.state.split()[2]}" for c in mixed]
    assert shuffled(cases, seed=0) == mixed
    assert shuffled(cases, seed=1) != mixed
    assert shuffled([], seed=0) == []


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
