"""What a library becomes in a prompt: one renderer for training, evaluation and export."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agentmem.domain.clean_text import clean
from agentmem.domain.seed import split_seed
from agentmem.domain.trajectory import Message
from agentmem.domain.usage import estimate_tokens
from agentmem.domain.value import Value, fingerprint
from agentmem.memory.embedder import Embedder, nearest
from agentmem.prompts import render

if TYPE_CHECKING:
    from agentmem.domain.experience import Experience, ExperienceLibrary
    from agentmem.domain.task import Task


class ToolLesson(Value):
    """A lesson about one tool, as an executor is shown it."""

    id: str
    tool: str
    text: str


class Prior(Value):
    """The rendered library (2510.08191, section 2: the token prior).

    Lessons go before the conversation as text; worked examples go into it as turns. An agent that takes only text
    uses `str(prior)`, which holds both.
    """

    lessons: str = ""
    """The lessons under their header; empty where there are none."""
    turns: tuple[Message, ...] = ()
    """The worked examples, as alternating user and assistant messages."""
    ids: tuple[str, ...] = ()
    """The experiences that it holds, in order."""
    eligible: tuple[str, ...] = ()
    """The experiences that it could have held; each was included with probability `inclusion`."""
    inclusion: float = 1.0
    tool_lessons: tuple[ToolLesson, ...] = ()
    """Of a planner: the lessons about single tools. They are for its executor, and not in `lessons`."""

    @property
    def hash(self) -> str:
        """Equal for priors with the same text; empty for an empty one."""
        turns = [turn.content for turn in self.turns]
        apart = [[lesson.text for lesson in self.tool_lessons]] if self.tool_lessons else []
        return fingerprint([self.lessons, turns, self.ids, *apart]) if self.ids else ""

    def __str__(self) -> str:
        shown = [f"{'Question' if turn.role == 'user' else 'Answer'}: {turn.content}" for turn in self.turns]
        return "\n\n".join(part for part in (self.lessons, "\n".join(shown)) if part)


class PriorPolicy(Protocol):
    """Which experiences a task may be shown; one class per rule."""

    @property
    def name(self) -> str:
        """The rule, with what determines it."""
        ...

    async def eligible(self, library: ExperienceLibrary, task: Task) -> tuple[Experience, ...]:
        """The experiences for this task, in the library's order."""
        ...


@dataclass(frozen=True)
class Full:
    """Every task is shown the whole library."""

    name: str = "full"

    async def eligible(self, library: ExperienceLibrary, task: Task) -> tuple[Experience, ...]:
        """All of them."""
        return library.trusted


@dataclass(frozen=True)
class Retrieved:
    """A core that is always shown, and what is nearest to the task.

    Args:
        embedder: what compares texts by meaning.
        core: the first experiences of the library.
        k: experiences by similarity, beside the core.
    """

    embedder: Embedder
    core: int = 4
    k: int = 8

    @property
    def name(self) -> str:
        """The rule, with what determines it."""
        return f"retrieved: core {self.core}, nearest {self.k} by {self.embedder.name}"

    async def eligible(self, library: ExperienceLibrary, task: Task) -> tuple[Experience, ...]:
        """The core and the nearest."""
        import asyncio

        rest = library.trusted[self.core :]
        if len(rest) <= self.k:
            return library.trusted
        texts = [f"{e.when} {e.text}" for e in rest]
        vectors = await asyncio.to_thread(self.embedder.embed, [task.input, *texts])
        chosen = set(nearest(vectors[0], vectors[1:], self.k))
        return (*library.trusted[: self.core], *(e for row, e in enumerate(rest) if row in chosen))


async def prior_for(
    task: Task,
    library: ExperienceLibrary | None,
    *,
    policy: PriorPolicy,
    max_tokens: int,
    inclusion: float = 1.0,
    seed: int = 0,
    apart: bool = False,
) -> Prior:
    """The prior of one attempt at one task.

    Args:
        task: what is attempted.
        library: None or an empty one gives an empty prior.
        policy: which experiences the task may be shown.
        max_tokens: tokens at most; see `within_budget`.
        inclusion: probability with which each eligible experience is shown, independently of the others. Below 1
            this is a randomised experiment on every experience; mask and propensity are kept in the prior.
        seed: the draw depends on it and on the experience's id alone.
        apart: whether lessons about tools are kept apart, for the executor of a planner.
    """
    if library is None or not len(library):
        return Prior()
    allowed = [e for e in await policy.eligible(library, task) if e.trust == "trusted"]  # whatever a policy says
    eligible = within_budget(allowed, max_tokens)
    shown = [e for e in eligible if inclusion >= 1 or random.Random(split_seed(seed, e.id)).random() < inclusion]
    about = {"eligible": tuple(e.id for e in eligible), "inclusion": inclusion}
    return render_experiences(shown, apart=apart).model_copy(update=about)


def render_prior(library: ExperienceLibrary | None, *, max_tokens: int = 2000, apart: bool = False) -> Prior:
    """The whole library as a prior: what `full` shows every task, and what is exported.

    The order is that of creation: it is stable, and new experiences come last, which keeps the providers' prompt
    caches warm. All text is
    cleaned, because some of it came from outside: no chat-template token or invisible character reaches a prompt.

    Args:
        library: None or an empty one gives an empty prior.
        max_tokens: tokens at most, estimated at 4 bytes a token; see `within_budget`.
        apart: whether lessons about tools are kept apart, for the executor of a planner.
    """
    prior = render_experiences(within_budget(library.trusted if library else (), max_tokens), apart=apart)
    return prior.model_copy(update={"eligible": prior.ids})


def within_budget(experiences: Sequence[Experience], max_tokens: int) -> tuple[Experience, ...]:
    """Those that fit, in their order. Where not all do, the most effect per token wins, then the earlier one.

    An experience whose effect is not known counts as one without effect.
    """
    cost = {e.id: estimate_tokens(_text(e)) for e in experiences}
    if sum(cost.values()) <= max_tokens:
        return tuple(experiences)
    worth = {e.id: (e.effect.mean if e.effect else 0.0) / max(1, cost[e.id]) for e in experiences}
    held: set[str] = set()
    left = max_tokens
    for experience in sorted(experiences, key=lambda e: -worth[e.id]):  # stable: of equals the earlier one
        if cost[experience.id] <= left:
            held.add(experience.id)
            left -= cost[experience.id]
    return tuple(e for e in experiences if e.id in held)


def render_experiences(experiences: Iterable[Experience], *, apart: bool = False) -> Prior:
    """These experiences as a prior, in this order; `apart` keeps lessons about tools out of the others."""
    held = [_cleaned(experience) for experience in experiences]
    lessons = [e for e in held if e.kind == "lesson" and not (apart and e.tool)]
    about_tools = [e for e in held if e.kind == "lesson" and apart and e.tool]
    return Prior(
        tool_lessons=tuple(ToolLesson(id=e.id, tool=e.tool, text=_with_conditions(e)) for e in about_tools),
        lessons=render("prior", lessons=[_fields(lesson) for lesson in lessons]) if lessons else "",
        turns=tuple(turn for experience in held if experience.kind == "example" for turn in experience.turns),
        ids=tuple(experience.id for experience in held),
    )


def _fields(lesson: Experience) -> dict[str, str]:
    text = f"With {lesson.tool}: {lesson.text}" if lesson.tool else lesson.text
    return {"id": lesson.id, "text": text, "when": lesson.when, "when_not": lesson.when_not}


def _with_conditions(lesson: Experience) -> str:
    """On one line: a line break could pass for another lesson."""
    when = f" (Applies when: {lesson.when})" if lesson.when else ""
    when_not = f" (Does not apply when: {lesson.when_not})" if lesson.when_not else ""
    return " ".join(f"{lesson.text}{when}{when_not}".split())


def _cleaned(experience: Experience) -> Experience:
    words = {field: clean(getattr(experience, field)) for field in ("text", "when", "when_not")}
    turns = tuple(turn.model_copy(update={"content": clean(turn.content)}) for turn in experience.turns)
    return experience.model_copy(update={**words, "turns": turns})


def _text(experience: Experience) -> str:
    if experience.kind == "example":
        return "\n".join(turn.content for turn in experience.turns)
    return f"[{experience.id}] {experience.text} {experience.when} {experience.when_not}"
