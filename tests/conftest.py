"""What tests share."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent

# Two shared, noisy cores: how long an example takes says nothing here, and must not fail a test.
settings.register_profile("noisy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("noisy")


@pytest.fixture(scope="session")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 40 sums, in the form that the scripted learner solves."""
    path = tmp_path_factory.mktemp("sums") / "sums.jsonl"
    pairs = [(3 * i + 1, 7 * i % 50 + 2) for i in range(40)]
    lines = [{"id": f"{a}+{b}", "input": f"What is {a} + {b}?", "answer": str(a + b)} for a, b in pairs]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def agentmem(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts `agentmem ARGUMENTS` as a process of its own, in an empty folder."""

    return lambda *arguments: start(tmp_path, *arguments)


def start(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """`agentmem ARGUMENTS` as a process of its own, working in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "", "COLUMNS": "200"}
    command = [sys.executable, "-m", "agentmem", *map(str, arguments)]
    return subprocess.Popen(
        command,
        text=True,
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=interruptible,
    )


def interruptible() -> None:
    """What a shell starts in the background ignores SIGINT, and so would all that the tests start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="session")
def _taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run whose three steps added, modified, merged and deleted lessons, with the paper's gate."""
    import asyncio

    from agentmem.agents.agent import Agent
    from agentmem.agents.group_plan import Fixed
    from agentmem.agents.prior import Full
    from agentmem.api import alearn
    from agentmem.domain.advantage import SemanticAdvantage
    from agentmem.domain.operation import Add, Delete, Merge, Modify
    from agentmem.domain.origin import Origin
    from agentmem.domain.task import Task
    from agentmem.learning.gate import Always
    from agentmem.learning.recipe import Recipe
    from agentmem.testing.scripted import ScriptedModel, load_script

    class Tutor:
        """An extractor that says what the script has for each step."""

        name = "tutor"

        async def distil(self, group, library, context):
            right = tuple(r.index for r in group.scored if r.score == 1.0)
            origin = Origin(
                step=context.step,
                task_id=group.task.id,
                rollouts=right,
                rewards=group.rewards,
                extractor=self.name,
            )
            return SemanticAdvantage(origin=origin, operations=())

        async def consolidate(self, advantages, library, context):
            step = advantages[0].origin.step
            a, b = ((advantages[0].origin,), (advantages[1].origin,))
            ids = {e.text: e.id for e in library}
            if step == 0:
                return [
                    Add(text="Check the carry.", why="it was dropped", origins=a),
                    Add(text="Add the tens first.", when="two digits", origins=b),
                    Add(text="Write it down.", origins=b),
                    Modify(id="e-unknown", text="No such thing."),
                ]
            if step == 1:
                return [
                    Modify(id=ids["Check the carry."], text="Check every carry.", why="sharper", origins=a),
                    Merge(
                        ids=(ids["Add the tens first."], ids["Write it down."]),
                        text="Write the tens down first.",
                        why="the same",
                        origins=b,
                    ),
                ]
            return [Delete(id=ids["Check every carry."], why="no use"), Add(text="Guess less.", origins=a)]

    folder = tmp_path_factory.mktemp("taught") / "run"
    tasks = [
        Task(id=f"{a}+{b}", input=f"What is {a} + {b}?", answer=str(a + b)) for a in range(5) for b in range(4)
    ]
    agent = Agent(ScriptedModel(load_script("coin?p=0.5"), name="scripted/coin"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recipe, "of", lambda settings, embedder, **_: Recipe(Fixed(4), Tutor(), Always(), Full()))
        asyncio.run(
            alearn(agent, tasks, reward="numeric", group_size=4, epochs=3, gate="always", run=folder, listeners=())
        )
    return folder


@pytest.fixture
def taught(_taught: Path, tmp_path: Path) -> Path:
    """A copy of a finished run that learned, modified, merged and deleted lessons."""
    return Path(shutil.copytree(_taught, tmp_path / "taught"))
