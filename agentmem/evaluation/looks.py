"""Who looked at the test split, and how often: a set that is looked at again and again becomes one that is tuned on."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentmem.domain.task import Task

FILE = "looks.jsonl"
TEST = "test"


def looks_of(tasks: Iterable[Task]) -> bool:
    """Whether an evaluation of these tasks is a look at a test split: one of them is in the split `test`."""
    return any(task.split == TEST for task in tasks)


def noted(folder: Path, *, run: str, fingerprint: str, about: dict[str, Any]) -> int:
    """Note an evaluation of a test split beside its run; returns which look at these tasks it is, from 1.

    A run that is gone on with is one look. Runs in other folders are not known here.

    Args:
        folder: where the runs lie.
        run: this one's name.
        fingerprint: of the tasks.
        about: agent, memory and score.

    Example:
        >>> [noted(tmp, run=name, fingerprint="f", about={}) for name in ("first", "second", "first")]
        [1, 2, 1]
    """
    runs = [look["run"] for look in _looks(folder / FILE) if look.get("tasks") == fingerprint]
    if run in runs:
        return runs.index(run) + 1
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    line = json.dumps({"at": now, "run": run, "tasks": fingerprint, **about}, ensure_ascii=False) + "\n"
    # In one piece at the end of the file, so that runs at the same time do not write into each other.
    handle = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, line.encode("utf-8"))
    finally:
        os.close(handle)
    return len(runs) + 1


def _looks(path: Path) -> Iterable[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            look = json.loads(line)
        except ValueError:
            continue  # half a line, from a crash; the runs themselves are there
        if isinstance(look, dict) and "run" in look:
            yield look
