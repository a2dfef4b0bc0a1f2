"""The case policies known by name."""

from __future__ import annotations

from agentmem.errors import InputError
from agentmem.memory.case_policy import CasePolicy, Similarity


def open_policy(policy: str | CasePolicy) -> CasePolicy:
    """The policy of this name, or the given one.

    Raises:
        InputError: no policy has this name.
    """
    if not isinstance(policy, str):
        return policy
    if policy in ("similarity", "kernel_q"):
        return Similarity()
    raise InputError(f"No case policy named {policy!r}. Known: similarity.")
