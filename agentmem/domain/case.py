"""A remembered attempt, and what a memory recalled of such attempts: the words of the M-MDP (2508.16153, section 3)."""

from __future__ import annotations

from pydantic import ValidationError

from agentmem.domain.provenance import Provenance as Provenance
from agentmem.domain.provenance import Trust as Trust
from agentmem.domain.value import Value, fingerprint
from agentmem.errors import InputError


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
    attempts: int = 1
    """Attempts that it stands for: the same was done again and merged; `reward` is their mean."""

    @classmethod
    def of(cls, state: str, action: str, *, reward: float | None = None, **more: object) -> Case:
        """A new case, named after its content.

        Raises:
            InputError: the state is empty, a text is no text, or the reward is no finite number.
        """
        try:
            case = cls.model_validate({"id": "c-", "state": state, "action": action, "reward": reward, **more})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "it"
            if where == "reward":
                raise InputError(
                    f"The reward of a case must be a finite number, not {reward!r}; leave it out where it is not known."
                ) from None
            raise InputError(f"This is no case: {where}: {first['msg']}.") from None
        if not case.state.strip():
            raise InputError(f"A case needs a state, what was asked; got {state!r}.")
        return case.model_copy(update={"id": name_of(case)})

    @property
    def succeeded(self) -> bool | None:
        """Whether it is an example to follow (at least half of the reward) or to avoid; None where not known."""
        return None if self.reward is None else self.reward >= 0.5


def name_of(case: Case, *, salt: int = 0) -> str:
    """The id that a case's content asks for; another with each salt, because an id is never given again."""
    content = [case.state, case.action, *([salt] if salt else [])]
    return f"c-{fingerprint(content, length=12)}"


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
    dropped: str = ""
    """The case that was chosen and left out at random, to learn what it is worth."""
    whole: float = 1.0
    """Probability with which nothing is left out."""
    withheld: int = 0
    """Cases that were near and not to be recalled, because they are of (nearly) the same task."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The recalled cases, in order."""
        return tuple(recalled.case.id for recalled in self.cases)
