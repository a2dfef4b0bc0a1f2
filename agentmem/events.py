"""What happens, as typed events; listeners show it, write it down or send it elsewhere.

A listener is any callable that takes an event. It is called on the event loop, in order, and must not block.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Decision
from agentmem.domain.rollout import Group, Rollout
from agentmem.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class RunOpened:
    """A run directory is open."""

    path: str
    resumed: bool
    """Whether it held results already."""
    stored: int
    """Results that will not be bought again."""


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """A phase with a known number of rollouts begins."""

    phase: str
    """`learn`, `gate`, `eval`, or `online`, whose rollouts nobody can count beforehand."""
    rollouts: int
    """How many rollouts it will draw at most."""
    step: int = 0
    steps: int = 1
    title: str = ""


@dataclass(frozen=True, slots=True)
class CallFinished:
    """One HTTP attempt (or local generation) ended."""

    purpose: str
    usage: Usage
    error: str = ""
    """The failure's kind; empty for a reply."""
    in_flight: int = 0
    limit: int = 0
    """Requests that the gateway lets fly at once now."""


@dataclass(frozen=True, slots=True)
class RolloutFinished:
    """One attempt was made and judged."""

    phase: str
    step: int
    rollout: Rollout


@dataclass(frozen=True, slots=True)
class Answered:
    """A task of a stream was answered and scored; nothing was learned from it yet."""

    position: int
    """The how-many-th of the stream, from 1."""
    rollout: Rollout
    version: int
    """Of the library that answered it."""


@dataclass(frozen=True, slots=True)
class GroupFinished:
    """All attempts at one task are in."""

    step: int
    group: Group
    teaches: bool


@dataclass(frozen=True, slots=True)
class OperationsDecided:
    """Operations were applied to a candidate library, each accepted or rejected with the reason."""

    step: int
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class GateDecided:
    """A candidate library was judged."""

    step: int
    accepted: bool
    reason: str
    """The evidence, in one sentence."""
    operations: int
    """How many operations the candidate was made of."""


@dataclass(frozen=True, slots=True)
class StepFinished:
    """One learning step is done and stored."""

    step: int
    steps: int
    """How many there will be; 0 on a stream, where nobody knows."""
    library: ExperienceLibrary
    mean_reward: float | None
    groups: int
    taught: int
    failed: int
    """Rollouts without a score."""


@dataclass(frozen=True, slots=True)
class RunClosed:
    """A run has come to its end, or was stopped on the way; everything is stored."""

    path: str
    finished: bool
    usage: Usage
    """Over all processes of the run."""
    seconds: float
    """Of this process."""


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that a person should know, in one sentence."""

    message: str
    level: Literal["info", "warning"] = "info"


Event = (
    RunOpened
    | PhaseStarted
    | CallFinished
    | RolloutFinished
    | Answered
    | GroupFinished
    | OperationsDecided
    | GateDecided
    | StepFinished
    | RunClosed
    | Noted
)
Listener = Callable[[Event], None]


@dataclass(slots=True)
class Events:
    """The listeners of a run. One that raises is reported once and then left out; it never harms the run."""

    listeners: list[Listener] = field(default_factory=list)

    @classmethod
    def of(cls, listeners: Iterable[Listener] = ()) -> Events:
        """The given listeners, in order."""
        return cls(list(listeners))

    def emit(self, event: Event) -> None:
        """Tell every listener."""
        for listener in tuple(self.listeners):
            try:
                listener(event)
            except Exception:  # a broken display must not cost a paid run
                self.listeners.remove(listener)
                logging.getLogger("agentmem").exception("a listener failed and was removed: %r", listener)
