"""Controls: the same agent with a memory that should not help, so that what does help can be told from what is alike.

A control is a transformation of an agent. What a memory gains over `none` may come from its lessons; what it gains over
`filler`, `irrelevant` and `shuffled` cannot come from longer prompts, from a confident tone or from the right words.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from difflib import get_close_matches
from pathlib import Path
from random import Random

from agentmem.agents.agent import Agent
from agentmem.agents.prior import Retrieved
from agentmem.domain.experience import Experience, ExperienceLibrary
from agentmem.domain.rollout import Rollout
from agentmem.domain.seed import split_seed
from agentmem.domain.trajectory import Message
from agentmem.domain.value import fingerprint
from agentmem.errors import InputError
from agentmem.evaluation.comparison import compare
from agentmem.evaluation.controlled_memory import ControlledMemory, MemoryControl
from agentmem.evaluation.other_text import filler, unrelated
from agentmem.evaluation.report import EvaluationReport
from agentmem.memory.embedder import Embedder, open_embedder
from agentmem.runs.records import Records
from agentmem.tools.toolbox import Toolbox

Control = Callable[[Agent, int], Agent]
"""(agent, seed) -> the agent under control."""


def controlled(agent: Agent, control: str | Control, *, seed: int = 0) -> Agent:
    """The agent under a control.

    - `none`: without library and memory.
    - `shuffled`: the same memory, dealt anew: the words of all lessons change places, and so do the answers of worked
      examples and the actions of cases. Length and vocabulary stay.
    - `irrelevant`: as much memory about something else: lessons on household matters, and cases drawn at random.
    - `filler`: as many tokens that say nothing.
    - `memory-alone`: the memory without tools; `bare`: neither. What the first solves and the second does not,
      the memory gave away; see `answer_leaks`.

    Args:
        agent: with its library or its memory, which must not be online.
        control: one of these names, or a function `(agent, seed) -> agent`.
        seed: of what is dealt.

    Raises:
        InputError: there is no such control, the agent has nothing to be controlled for, or its memory is online.

    Example:
        >>> from agentmem.domain.operation import Add
        >>> agent = Agent(lambda task, prior: prior, name="reader")
        >>> taught = agent.with_experience(ExperienceLibrary().apply([Add(text="Check the units.")]))
        >>> controlled(taught, "none").library is None, controlled(taught, "filler").name
        (True, 'reader (filler)')
    """
    if not isinstance(control, str):
        return control(agent, seed)
    if control not in CONTROLS:
        near = get_close_matches(control, CONTROLS, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(f"No control named {control!r}.{hint} Known: {', '.join(CONTROLS)}; and raw, for a run.")
    if control != "bare" and agent.library is None and agent.memory is None:
        raise InputError(
            f"The agent has neither a library nor a memory, so there is nothing that {control!r} could control for; "
            "give it one (--library, --memory)."
        )
    if agent.memory is not None and agent.memory.settings.online:
        raise InputError("A control needs a memory that stays as it is: give the agent one with online=False.")
    return _named(CONTROLS[control](agent, seed), agent, control)


def raw_trajectories(
    agent: Agent, run: str | Path, *, embedder: str | Embedder = "minilm", nearest: int = 4
) -> Agent:
    """The control `raw`: instead of what was distilled, the nearest successful attempts themselves.

    They take the tokens that the library may take. What tools brought is left out: it is text from outside.

    Args:
        agent: its library is replaced.
        run: the learning run whose attempts are shown.
        embedder: what compares tasks.
        nearest: attempts shown at most.

    Raises:
        InputError: the run holds no attempt that was worth anything.
    """
    rows = Records(Path(run)).rows((_ATTEMPTS, ()))[0]
    best: dict[str, Rollout] = {}
    for (result,) in rows:
        rollout = Rollout.model_validate_json(result)
        before = best.get(rollout.task_id)
        if (rollout.score or 0) > 0 and (before is None or (rollout.score or 0) > (before.score or 0)):
            best[rollout.task_id] = rollout
    shown = [made for rollout in best.values() if (made := _example(rollout)) is not None]
    if not shown:
        raise InputError(f"{run} holds no attempt with a reward above 0, so there is none to be shown.")
    library = ExperienceLibrary(version=1, experiences=tuple(shown))
    policy = Retrieved(open_embedder(embedder), core=0, k=nearest)
    return _named(agent.with_experience(library, policy=policy), agent, "raw")


def answer_leaks(bare: EvaluationReport, alone: EvaluationReport) -> tuple[str, ...]:
    """The tasks that the memory alone gave the answer of: solved with it and without tools, and not without it.

    Args:
        bare: of the agent under the control `bare`.
        alone: of the agent under the control `memory-alone`, on the same tasks.
    """
    return tuple(flip.task_id for flip in compare(bare, alone).fixed)


def _none(agent: Agent, seed: int) -> Agent:
    return agent.with_experience(None).with_memory(None)


def _without_tools(agent: Agent, seed: int) -> Agent:
    other = copy(agent)
    other.tools = Toolbox(())
    return other


def _bare(agent: Agent, seed: int) -> Agent:
    return _without_tools(_none(agent, seed), seed)


def _shuffled(agent: Agent, seed: int) -> Agent:
    return _with(agent, lambda library: _dealt(library, seed), "shuffled", seed)


def _irrelevant(agent: Agent, seed: int) -> Agent:
    return _with(agent, lambda library: _replaced(library, unrelated), "irrelevant", seed)


def _filler(agent: Agent, seed: int) -> Agent:
    return _with(agent, lambda library: _replaced(library, filler), "filler", seed)


CONTROLS: dict[str, Control] = {
    "none": _none,
    "shuffled": _shuffled,
    "irrelevant": _irrelevant,
    "filler": _filler,
    "memory-alone": _without_tools,
    "bare": _bare,
}
"""The controls that need nothing but the agent, by name."""

_ATTEMPTS = (
    "SELECT result FROM steps WHERE phase='learn' AND purpose='rollout' AND failure IS NULL"
    " ORDER BY step, task, rollout"
)


def _named(changed: Agent, agent: Agent, control: str) -> Agent:
    other = copy(changed)
    other.name = f"{agent.name} ({control})"
    return other


def _with(
    agent: Agent, change: Callable[[ExperienceLibrary], ExperienceLibrary], control: MemoryControl, seed: int
) -> Agent:
    """The agent with a changed library and a changed memory, as far as it has them."""
    library = change(agent.library) if agent.library is not None else None
    other = agent.with_experience(library)
    if agent.memory is not None:
        other.memory = ControlledMemory.of(agent.memory, control, seed)
    return other


def _replaced(library: ExperienceLibrary, text: Callable[[str, int], str]) -> ExperienceLibrary:
    """Every text of the library replaced by another of the same length."""

    def other(experience: Experience, place: int) -> Experience:
        fields = ("text", "when", "when_not")
        words = {
            name: text(old, 31 * place + number)
            for number, name in enumerate(fields)
            if (old := getattr(experience, name))
        }
        turns = tuple(
            turn.model_copy(update={"content": text(turn.content, 31 * place + number)})
            for number, turn in enumerate(experience.turns, len(fields))
        )
        return experience.model_copy(update={**words, "turns": turns, "tool": ""})

    changed = tuple(other(experience, place) for place, experience in enumerate(library.experiences))
    return library.model_copy(update={"experiences": changed})


def _dealt(library: ExperienceLibrary, seed: int) -> ExperienceLibrary:
    """The words of all lessons dealt anew, and the answers of worked examples moved on by one."""
    rng = Random(split_seed(seed, "shuffled library"))
    fields = ("text", "when", "when_not")
    lessons = [e for e in library.experiences if e.kind == "lesson"]
    words = [word for lesson in lessons for name in fields for word in getattr(lesson, name).split()]
    rng.shuffle(words)
    left = iter(words)
    examples = [e for e in library.experiences if e.kind == "example"]
    if len(examples) == 1:
        raise InputError("A library with one worked example cannot be shuffled; use the control 'filler'.")
    rng.shuffle(examples)
    donors = {e.id: examples[place - 1] for place, e in enumerate(examples)}
    changed = []
    for e in library.experiences:
        if e.kind == "lesson":
            dealt = {name: " ".join(next(left) for _ in getattr(e, name).split()) for name in fields}
            changed.append(e.model_copy(update=dealt))
        else:
            answers = [turn for turn in donors[e.id].turns if turn.role == "assistant"]
            spoken = [turn for turn in e.turns if turn.role == "assistant"]
            given = dict(zip(map(id, spoken), answers, strict=False))
            changed.append(e.model_copy(update={"turns": tuple(given.get(id(turn), turn) for turn in e.turns)}))
    return library.model_copy(update={"experiences": tuple(changed)})


def _example(rollout: Rollout) -> Experience | None:
    """An attempt as a worked example: what was asked, and all that the agent said."""
    asked = next((m.content for m in reversed(rollout.trajectory.prompt) if m.role == "user"), "")
    said = "\n".join(step.reply.content for step in rollout.trajectory.steps if step.reply.content.strip())
    if not asked or not said:
        return None
    turns = (Message(role="user", content=asked), Message(role="assistant", content=said))
    return Experience(id=f"e-{fingerprint([asked, said], length=8)}", kind="example", text=asked, turns=turns)
