"""One run of a GAIA-style set: the agent with its tools, and what the run's folder gets besides its journal."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmem.atomic import atomic_write
from agentmem.cli.gaia_set import as_asked, scorer_of
from agentmem.cli.options import AgentOptions
from agentmem.cli.output import OutputOptions
from agentmem.domain.task import Task, TaskSet
from agentmem.events import Event, RolloutFinished
from agentmem.settings import AgentSettings, Budget, EvalSettings, MemorySettings, ModelSettings
from agentmem.task_folder import TaskFolder

if TYPE_CHECKING:
    from agentmem.agents.agent import Agent
    from agentmem.evaluation.by_level import Attempt, LevelReport
    from agentmem.evaluation.evaluate import Evaluation
    from agentmem.tools.local_web import LocalWeb
    from agentmem.tools.tool import Tool


@dataclass(frozen=True)
class Bench:
    """A set and how agents are run on it; open inside its context, in which the set's own web is served."""

    folder: TaskFolder
    attempt: AgentSettings
    calls: ModelSettings
    output: OutputOptions
    web: LocalWeb | None
    stack: ExitStack
    bare: bool = False
    """Whether agents have only the tools that are named, if any."""

    @classmethod
    def of(
        cls,
        folder: TaskFolder,
        agent: AgentOptions,
        attempt: AgentSettings,
        calls: ModelSettings,
        output: OutputOptions,
        *,
        bare: bool = False,
    ) -> Bench:
        """Look at what is asked; nothing is served or spent yet.

        Raises:
            InputError: the set has faults, or its web is not there.
        """
        from agentmem.tools.local_web import LocalWeb

        folder.chosen()
        web = LocalWeb(folder.path / folder.dataset.web) if folder.dataset.web else None
        return cls(folder, agent.confined(attempt), calls, output, web, ExitStack(), bare)

    def __enter__(self) -> Bench:
        if self.web is not None:
            self.stack.enter_context(self.web)
        return self

    def __exit__(self, *exc: object) -> None:
        self.stack.close()

    def agent(self, options: AgentOptions, memory: MemorySettings | None = None) -> Agent:
        """The agent that is meant, with the tools of a GAIA run and the words that say how to answer."""
        from agentmem.prompts import render

        named = tuple(name for name in options.tool if not name.startswith(("search:http://", "search:https://")))
        own = [] if self.bare else [tool for tool in self.tools(options) if tool.name not in named]
        words = render("gaia", tools=bool(named or own))
        system = "\n\n".join(part for part in (options.system, words) if part)
        return replace(options, tool=named, system=system).open(self.attempt, self.calls, memory, tools=own)

    def tools(self, options: AgentOptions) -> list[Tool]:
        """What every agent has here; pages and results that show the set itself are kept from it."""
        from agentmem.tools.fetch_page import page_fetcher
        from agentmem.tools.mirrors import WithoutMirrors, mirror_of
        from agentmem.tools.names import open_tool
        from agentmem.tools.search import search_tool
        from agentmem.tools.searxng import SearxNG
        from agentmem.tools.tool import Tool

        dataset = self.folder.dataset
        denied = mirror_of(*dataset.mirrors, canary=dataset.canary)
        engines: list[Any] = [
            SearxNG(n.removeprefix("search:")) for n in options.tool if n.startswith("search:http")
        ]
        engines += [self.web] if self.web is not None and not engines else []
        opened = [open_tool(name) for name in ("python", "read_file", "calculator")]
        network = self.web.network if self.web is not None else None
        return [
            *(tool for tool in opened if isinstance(tool, Tool)),
            page_fetcher(deny=denied, network=network),
            *(search_tool(WithoutMirrors(engine, denied)) for engine in engines[:1]),
        ]

    def plan(self, agent: Agent, tasks: TaskSet, settings: EvalSettings) -> Evaluation:
        """The evaluation of an agent on some of the set's tasks."""
        from agentmem.evaluation.evaluate import Evaluation

        return Evaluation.of(agent, as_asked(tasks), scorer_of(self.folder), settings)

    def carry_out(
        self, plan: Evaluation, directory: Path, budget: Budget, *, split: str | None = None
    ) -> LevelReport:
        """Run it, or go on with it, and write what the folder shall hold.

        Args:
            plan: what to run.
            directory: the run's folder.
            budget: what it may spend.
            split: the split that was asked for, all of which a leaderboard wants; None for all tasks.
        """
        from agentmem.evaluation.by_level import LevelReport
        from agentmem.execution import carry_out

        tally = Tally(plan.tasks)
        with self.output.display() as listeners:
            report = asyncio.run(carry_out(plan, directory, budget=budget, listeners=[*listeners, tally.hear]))
        found = LevelReport.of(report, plan.tasks, tally.attempts)
        self._write(found, directory, split)
        return found

    def _write(self, found: LevelReport, directory: Path, split: str | None) -> None:
        from agentmem.evaluation.leaderboard import GAIA_COUNTS, Submission

        atomic_write(directory / "bench.json", found.to_json())
        lines = "".join(visit.model_dump_json() + "\n" for visit in found.visits)
        atomic_write(directory / "urls.jsonl", lines)
        asked = [task for task in self.folder.tasks if split in (None, task.split)]
        counts = GAIA_COUNTS.get(split or "") if self.folder.dataset.name == "GAIA" else None
        Submission.of(asked, found.attempts, counts=counts).write(directory)


class Tally:
    """Notes what each attempt did, the replayed ones of a resumed run as well."""

    def __init__(self, tasks: TaskSet) -> None:
        self.tasks: dict[str, Task] = {task.id: task for task in tasks}
        self.found: dict[tuple[str, int], Attempt] = {}

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Of each task and index the one that counts."""
        return tuple(self.found.values())

    def hear(self, event: Event) -> None:
        """Note an attempt that has ended."""
        from agentmem.evaluation.by_level import Attempt
        from agentmem.rewards.gaia import final_answer, near_miss

        def read(output: str) -> tuple[str, bool]:
            said = final_answer(output)
            return said.text, said.marked

        if isinstance(event, RolloutFinished):
            rollout = event.rollout
            made = Attempt.of(self.tasks[rollout.task_id], rollout, read=read, near_miss=near_miss)
            self.found[made.task_id, made.index] = made
