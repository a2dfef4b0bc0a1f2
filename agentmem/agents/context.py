"""All that one attempt is given."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentmem.agents.case_prompt import ShownCases
from agentmem.agents.prior import Prior
from agentmem.domain.case import Case
from agentmem.domain.task import Task
from agentmem.domain.value import Value, fingerprint
from agentmem.events import Noted
from agentmem.models.handle import ModelHandle
from agentmem.models.model import ToolSpec
from agentmem.runs.run import Scope
from agentmem.settings import AgentSettings
from agentmem.tools.tool import ToolContext
from agentmem.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from agentmem.agents.memory import Memory


class Offer(Value):
    """The tools that an attempt was offered; stored, because a server may offer others tomorrow."""

    specs: tuple[ToolSpec, ...]


@dataclass(frozen=True)
class Context:
    """What an agent acts with, in one attempt at one task."""

    task: Task
    prior: Prior
    model: ModelHandle | None
    """Calls through it are seen by journal and budget; None for a callable without a model."""
    tools: Toolbox
    settings: AgentSettings
    system: str
    seed: int
    scope: Scope
    """The place in the run; whatever else costs or is not deterministic goes through `scope.step`."""
    shown: ShownCases
    """The cases that the task recalls, as a prompt holds them; empty where the agent has no memory."""
    executor: ModelHandle | None = None
    """Of a planner: the model that does its subtasks."""
    memory: Memory | None = None
    """Of a planner: what its executor recalls of subtasks and tools."""
    place: str = ""
    """The subtask that is worked on, where there is one: calls at the same time are stored apart by it."""

    @property
    def cases(self) -> tuple[Case, ...]:
        """The recalled cases, best first."""
        recall = self.shown.recall
        return tuple(item.case for item in recall.cases) if recall is not None else ()

    @property
    def prior_text(self) -> str:
        """Lessons and cases as one text, for an agent that takes only text."""
        return "\n\n".join(part for part in (str(self.prior), str(self.shown)) if part)

    def within(self, subtask: str) -> Context:
        """The same attempt for one of its subtasks: its executor's model, and a place of its own in the journal."""
        executor = self.executor or self.model
        return replace(self, model=executor.within(subtask) if executor else None, place=subtask)

    @property
    def folder(self) -> Path:
        """A working folder of this attempt's own, made at first use, with copies of the task's files.

        It outlives a kill, so that a resumed attempt, whose stored tool calls are not made again, finds its files.
        """
        path = folder_of(self.scope)
        if not path.exists():
            # Made elsewhere and then named, so that after a kill no folder lacks a file.
            new = path.with_name(f"{path.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
            for file in map(Path, self.task.files):
                if file.is_file():  # of one that is missing the tools will tell
                    shutil.copyfile(file, new / file.name)
            new.rename(path)
        return path

    @property
    def at(self) -> ToolContext:
        """Where its tool calls happen."""
        files = tuple(Path(file) for file in self.task.files)
        settings = self.settings
        accepts = self.model.accepts if self.model else frozenset()
        return ToolContext(
            self.folder, settings.tool_seconds, files=files, sandbox=settings.sandbox, accepts=accepts
        )

    async def tool_specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told of the tools. Servers are started for it; one that fails has none, and is noted."""
        if not self.tools.has_servers:
            return self.tools.specs

        async def ask() -> Offer:
            for failure in await self.tools.prepare():
                self.scope.run.events.emit(Noted(failure, "warning"))
            return Offer(specs=self.tools.specs)

        return (await self.scope.step("tools", ask, returns=Offer)).specs


def folder_of(scope: Scope) -> Path:
    """Where the working folder of an attempt is, or would be."""
    return scope.run.path.absolute() / "work" / fingerprint(list(scope.slot))
