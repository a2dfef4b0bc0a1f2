"""A set of GAIA's form as `agentmem bench` uses it: opened with its scorer, asked, and shown when checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentmem import format as fmt
from agentmem.domain.task import Task, TaskSet
from agentmem.task_folder import TaskFolder, load_task_folder

if TYPE_CHECKING:
    from agentmem.rewards.reward_function import RewardFunction


def opened(path: Path) -> TaskFolder:
    """The set, its reference answers tried against its own scorer.

    Raises:
        InputError: it is no such folder, or names a scorer that does not exist.
    """
    from agentmem.rewards.gaia import faults_of

    folder = load_task_folder(path)
    scorer_of(folder)
    return load_task_folder(path, faults_of=faults_of) if folder.dataset.scorer == "gaia" else folder


def scorer_of(folder: TaskFolder) -> RewardFunction:
    """The reward that scores the set.

    Raises:
        InputError: there is none of this name.
    """
    from agentmem.rewards.reward_function import resolve_reward

    return resolve_reward(folder.dataset.scorer)


def as_asked(tasks: TaskSet) -> TaskSet:
    """The tasks as an agent is given them: with the names of their files."""
    from agentmem.prompts import render

    def asked(task: Task) -> Task:
        if not task.files:
            return task
        return task.model_copy(
            update={"input": render("attached", question=task.input, name=Path(task.files[0]).name)}
        )

    return TaskSet(map(asked, tasks), name=tasks.name)


@dataclass(frozen=True)
class Checked:
    """What `agentmem bench validate` found."""

    folder: TaskFolder

    def table(self) -> fmt.Tables | fmt.Table:
        """Tasks by split and level, and every fault."""
        folder, dataset = self.folder, self.folder.dataset
        marks = [dataset.license and f"licence {dataset.license}", "gated" if dataset.gated else ""]
        counts = fmt.Table(
            title=f"{dataset.name}, version {dataset.version}: {fmt.count(len(folder.tasks), 'sound task')}, "
            f"{fmt.count(len(folder.faults), 'fault')}",
            columns=(("split", "left"), ("level", "left"), ("tasks", "right")),
            rows=tuple(
                (split or "–", level or "–", fmt.count(n)) for (split, level), n in folder.counts().items()
            ),
            caption="\n".join([", ".join(filter(None, [*marks, f"scorer {dataset.scorer}"]))]),
        )
        if not folder.faults:
            return counts
        faults = fmt.Table(
            title="Faults",
            columns=(("where", "left"), ("task", "left"), ("what", "left"), ("repair", "left")),
            rows=tuple((fault.place, fault.task_id, fault.what, fault.repair) for fault in folder.faults),
        )
        return fmt.Tables((counts, faults))

    def to_json(self) -> str:
        """The same for a program."""
        rows = [{"split": split, "level": level, "tasks": n} for (split, level), n in self.folder.counts().items()]
        faults = [fault.model_dump() for fault in self.folder.faults]
        card = self.folder.dataset.model_dump(mode="json")
        return json.dumps({"dataset": card, "counts": rows, "faults": faults}, ensure_ascii=False)
