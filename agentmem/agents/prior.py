"""What a library becomes in a prompt: one renderer for training, evaluation and export."""

from __future__ import annotations

from agentmem.domain.clean_text import clean
from agentmem.domain.experience import Experience, ExperienceLibrary
from agentmem.domain.trajectory import Message
from agentmem.domain.usage import estimate_tokens
from agentmem.domain.value import Value, fingerprint
from agentmem.prompts import render


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

    @property
    def hash(self) -> str:
        """Equal for equal priors; empty for an empty one."""
        return fingerprint(self.model_dump(mode="json")) if self.ids else ""

    def __str__(self) -> str:
        shown = [f"{'Question' if turn.role == 'user' else 'Answer'}: {turn.content}" for turn in self.turns]
        return "\n\n".join(part for part in (self.lessons, "\n".join(shown)) if part)


def render_prior(library: ExperienceLibrary | None, *, max_tokens: int = 2000) -> Prior:
    """Everything in the library that fits the budget, in order of creation.

    The order is stable and new experiences come last, which keeps the providers' prompt caches warm. All text is
    cleaned, because some of it came from outside: no chat-template token or invisible character reaches the prompt.

    Args:
        library: None or an empty one gives an empty prior.
        max_tokens: tokens at most, estimated at 4 bytes a token. What does not fit is left out, later ones first.
    """
    held: list[Experience] = []
    left = max_tokens
    for experience in map(_cleaned, library.experiences if library else ()):
        cost = estimate_tokens(_text(experience))
        if cost <= left:
            held.append(experience)
            left -= cost
    lessons = [experience for experience in held if experience.kind == "lesson"]
    return Prior(
        lessons=render("prior", lessons=[lesson.model_dump() for lesson in lessons]) if lessons else "",
        turns=tuple(turn for experience in held if experience.kind == "example" for turn in experience.turns),
        ids=tuple(experience.id for experience in held),
    )


def _cleaned(experience: Experience) -> Experience:
    words = {field: clean(getattr(experience, field)) for field in ("text", "when", "when_not")}
    turns = tuple(turn.model_copy(update={"content": clean(turn.content)}) for turn in experience.turns)
    return experience.model_copy(update={**words, "turns": turns})


def _text(experience: Experience) -> str:
    if experience.kind == "example":
        return "\n".join(turn.content for turn in experience.turns)
    return f"[{experience.id}] {experience.text} {experience.when} {experience.when_not}"
