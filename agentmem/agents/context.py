"""All that one attempt is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentmem.agents.prior import Prior
from agentmem.domain.task import Task
from agentmem.models.handle import ModelHandle
from agentmem.runs.run import Scope
from agentmem.settings import AgentSettings
from agentmem.tools.toolbox import Toolbox


@dataclass(frozen=True)
class Context:
    """What an agent acts with, in one attempt at one task."""

    task: Task
    prior: Prior
    model: ModelHandle | None
    """Calls through it are seen by journal and budget; None for a callable without a model."""
    tools: Toolbox
    folder: Path
    """A folder of this attempt's own. It outlives a kill, so that a resumed attempt finds its files."""
    settings: AgentSettings
    system: str
    seed: int
    scope: Scope
    """The place in the run; whatever else costs or is not deterministic goes through `scope.step`."""
