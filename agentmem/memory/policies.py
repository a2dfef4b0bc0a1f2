"""The case policies by name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from agentmem.errors import InputError
from agentmem.memory.case_policy import CasePolicy
from agentmem.memory.kernel_q import KernelQ
from agentmem.memory.parametric_q import ParametricQ
from agentmem.memory.similarity import Similarity
from agentmem.memory.thompson import Thompson
from agentmem.memory.ucb import UCB

POLICIES: dict[str, Callable[[], CasePolicy]] = {
    "kernel_q": KernelQ,
    "parametric_q": ParametricQ,
    "similarity": Similarity,
    "thompson": Thompson,
    "ucb": UCB,
}
DEFAULT = "kernel_q"


def open_policy(policy: str | CasePolicy = DEFAULT) -> CasePolicy:
    """The policy of this name, or the given one.

    Raises:
        InputError: no policy has this name, with the nearest that there is.

    Example:
        >>> open_policy("similarity").name
        'similarity'
    """
    if not isinstance(policy, str):
        if callable(getattr(policy, "choose", None)) and isinstance(getattr(policy, "name", None), str):
            return policy
        raise InputError(
            f"{type(policy).__name__} is no case policy: it needs a `name` and `choose(candidates, k, *, seed)`. "
            f"Known by name: {', '.join(POLICIES)}."
        )
    if policy in POLICIES:
        return POLICIES[policy]()
    close = get_close_matches(policy, POLICIES, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise InputError(f"No case policy named {policy!r}.{hint} Known: {', '.join(POLICIES)}.")
