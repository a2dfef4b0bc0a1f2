"""A plain function as an extractor: `(group, library) -> operations`, sync or async."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agentmem.domain.advantage import SemanticAdvantage
from agentmem.domain.callable import name_of
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Operation
from agentmem.domain.rollout import Group
from agentmem.errors import AgentError, AgentMemError, boundary
from agentmem.learning.evidence import advantage_of, failed_advantage
from agentmem.learning.extractor import ExtractorContext
from agentmem.sandbox.thread import in_thread

_OPERATIONS: TypeAdapter[tuple[Operation, ...]] = TypeAdapter(tuple[Operation, ...])


@dataclass(frozen=True)
class FunctionExtractor:
    """Wraps a function; its call on a group is a durable step, so it is not made twice."""

    function: Callable[..., Any]

    @property
    def name(self) -> str:
        """The function's name."""
        return name_of(self.function)

    async def distil(
        self, group: Group, library: ExperienceLibrary, context: ExtractorContext
    ) -> SemanticAdvantage:
        """What the function proposes; what it raises is a typed failure of this group."""

        async def call() -> SemanticAdvantage:
            with boundary(AgentError, f"extractor {self.name!r}, task {group.task.id!r},"):
                given = await in_thread(lambda: self.function(group, library), name="agentmem-extractor")
                given = await given if inspect.isawaitable(given) else given
            try:
                operations = _OPERATIONS.validate_python(tuple(given or ()))
            except (ValidationError, TypeError) as error:
                raise AgentError(
                    f"extractor {self.name!r} returned no operations for task {group.task.id!r}: {error}. "
                    "Return a list of Add, Modify, Merge, Delete or Keep."
                ) from None
            return advantage_of(group, context.step, self.name, operations, ())

        scope = context.run.at("learn", step=context.step, task=group.task.id)
        try:
            return await scope.step("distil", call, returns=SemanticAdvantage)
        except AgentMemError as error:
            if error.stops_run:
                raise
            return failed_advantage(group, context.step, self.name, error)

    async def consolidate(
        self, advantages: Sequence[SemanticAdvantage], library: ExperienceLibrary, context: ExtractorContext
    ) -> Sequence[Operation]:
        """All operations, in the order of the tasks."""
        return [operation for advantage in advantages for operation in advantage.operations]
