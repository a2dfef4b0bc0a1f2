"""Text from outside stays marked on its way into the library: what a group that read it teaches is not yet trusted."""

from __future__ import annotations

from collections.abc import Sequence

from agentmem.domain.operation import Add, Merge, Modify, Operation
from agentmem.domain.provenance import Provenance
from agentmem.domain.rollout import Group


def marked(
    operations: Sequence[Operation], groups: Sequence[Group], *, run: str, gate: str
) -> tuple[Operation, ...]:
    """The operations, those marked that rest on text from outside: the web, a file, a server, a stranger's question.

    What they write is quarantined. Only a gate that tries it on held-out tasks vouches for it: what such a gate
    refuses is in no library, so what it lets through may be shown.

    Args:
        operations: what the groups teach.
        groups: those that taught; an operation that does not say which rests on all of them.
        run: the run's name, as the source.
        gate: `always` tries nothing, and so vouches for nothing.
    """
    read = {
        group.task.id
        for group in groups
        if group.task.untrusted or any(one.trajectory.untrusted for one in group.rollouts)
    }
    if not read:
        return tuple(operations)

    def mark(operation: Operation) -> Operation:
        taught_by = {origin.task_id for origin in operation.origins}
        if not isinstance(operation, Add | Modify | Merge) or (taught_by and not taught_by & read):
            return operation
        about = Provenance(source=f"run {run}", place=min(taught_by & read, default=""), untrusted=True)
        return operation.model_copy(update={"provenance": about, "vouched": "" if gate == "always" else "gate"})

    return tuple(map(mark, operations))
