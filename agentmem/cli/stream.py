"""`agentmem learn TASKS --online`: tasks as they come, from a file or from standard input."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from agentmem.cli.options import OutputOptions, RewardOptions, RunOptions
from agentmem.cli.output import write_json
from agentmem.errors import InputError
from agentmem.settings import Budget, LearnSettings

if TYPE_CHECKING:
    from agentmem.agents.agent import Agent
    from agentmem.domain.task import Task
    from agentmem.learning.stream import Answer


@dataclass(frozen=True)
class Stream:
    """Where the tasks come from, which run they belong to, and where the answers go."""

    tasks: Path
    run: RunOptions
    output: OutputOptions

    def learn(
        self,
        agent: Agent,
        reward: RewardOptions,
        settings: LearnSettings,
        budget: Budget,
        validation: Iterable[Task] | None,
    ) -> None:
        """Answer, score and learn to the end of the stream, and print what came of it."""
        import asyncio

        from agentmem.execution import carry_out
        from agentmem.learning.learn_online import OnlineLearning

        plan = OnlineLearning.of(
            agent,
            self._read(),
            reward.open(agent, self.tasks),
            settings,
            validation=validation,
            on_answer=self._show,
        )
        if self.run.dry_run:
            self.output.show(plan.estimate(self._all()))
            return
        # Nobody knows what is in a stream, so its name stands for it: the same command goes on.
        directory = self.run.directory("learn", {**plan.asked, "stream": str(self.tasks)})
        with self.output.display() as listeners:
            result = asyncio.run(carry_out(plan, directory, budget=budget, listeners=listeners))
        self.output.show(result)
        if not self.output.json:
            self.output.show_fields(library=directory / "library.json")

    def _read(self) -> Iterator[Task]:
        return islice(self.run.stream(self.tasks), self.run.limit)

    def _all(self) -> list[Task]:
        if str(self.tasks) == "-":
            raise InputError(
                "Nobody knows how long standard input is: name a file, or set a limit with --max-cost."
            )
        return list(self._read())

    def _show(self, answer: Answer) -> None:
        if self.output.json:
            write_json(json.dumps(answer.brief(), ensure_ascii=False))
