"""A remembered attempt, and what a memory recalled of such attempts: the words of the M-MDP (2508.16153, section 3)."""

from __future__ import annotations

from typing import Literal

from agentmem.domain.value import Value, fingerprint

Trust = Literal["trusted", "quarantined"]
"""Whether an entry may reach a prompt: what rests on untrusted text is quarantined until something verifies it."""


class Provenance(Value):
    """Where an entry came from."""

    source: str = ""
    """Who brought it: a run's name, `person`, `correction`, or the name of an imported file."""
    place: str = ""
    """The slot of the run, or the row of the file."""
    untrusted: bool = False
    """Whether text from the web, a file or a tool had a part in it."""


class Case(Value):
    """In this state this was done, and it was worth this: (s, a, r) with where it comes from.

    Example:
        >>> Case.of("Reset my password", "IT desk", reward=1.0).succeeded
        True
    """

    id: str
    """`c-` and a short hash of its first version; kept for life, never given again."""
    state: str
    """What was asked: what a later state is compared with."""
    action: str
    """What was done: the answer or the plan."""
    trace: tuple[str, ...] = ()
    """The steps that led there, shortened."""
    reward: float | None = None
    """What it was worth; None where that is not known."""
    task_id: str = ""
    cluster: str = ""
    provenance: Provenance = Provenance()
    trust: Trust = "trusted"
    gated: bool = False
    """Whether a gated data set had a part in it."""
    parents: tuple[str, ...] = ()
    """Of a merged case: the ids that went into it."""
    revision: int = 1
    """1 when written, one more with each correction."""

    @classmethod
    def of(cls, state: str, action: str, *, reward: float | None = None, **more: object) -> Case:
        """A new case, named after its content."""
        id = f"c-{fingerprint([state, action], length=12)}"
        return cls.model_validate({"id": id, "state": state, "action": action, "reward": reward, **more})

    @property
    def succeeded(self) -> bool | None:
        """Whether it is an example to follow (at least half of the reward) or to avoid; None where not known."""
        return None if self.reward is None else self.reward >= 0.5


class Recalled(Value):
    """A case that was recalled, and why."""

    case: Case
    similarity: float
    """Cosine of the two states."""
    mu0: float
    """Its share under the reference policy, which looks at similarity alone."""
    q: float | None = None
    """What recalling it here is believed to be worth; None for a policy that does not learn."""
    mu: float
    """Its share under the policy that chose."""
    propensity: float | None = None
    """Probability of this case at this place of the slate, given the places before; None where nothing was drawn."""


class Recall(Value):
    """A slate of cases for one state, as it was drawn: enough to credit them, and to judge the policy off-line."""

    state: str
    policy: str
    """The policy, with what determines it."""
    seq: int
    """The last change of the bank that it knew."""
    cases: tuple[Recalled, ...] = ()
    """The slate in the order of drawing; empty where the policy abstained or the bank is empty."""
    ended: float | None = None
    """Probability of the slate's end ("no case") at the place after the last; None where nothing was drawn."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The recalled cases, in order."""
        return tuple(recalled.case.id for recalled in self.cases)
