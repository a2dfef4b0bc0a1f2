"""What a learning run ended with: each lesson with the rollouts that taught it, the gate's verdicts, the cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from agentmem import format as fmt
from agentmem.domain.experience import Experience, ExperienceLibrary
from agentmem.domain.usage import Usage
from agentmem.events import Event, GateDecided, RunClosed, StepFinished

SHOWN = 60
"""Characters of what an experience says that a table shows."""


@dataclass
class Story:
    """A listener that keeps what `Learned` needs of a run."""

    steps: list[StepFinished] = field(default_factory=list)
    verdicts: list[GateDecided] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    def hear(self, event: Event) -> None:
        """Take one event in."""
        match event:
            case StepFinished():
                self.steps.append(event)
            case GateDecided():
                self.verdicts.append(event)
            case RunClosed():
                self.usage, self.seconds = event.usage, event.seconds
            case _:
                pass

    def learned(self, library: ExperienceLibrary, run: Path, *, before: ExperienceLibrary | None) -> Learned:
        """The end of the story.

        Args:
            library: what the run returned.
            run: its directory.
            before: the library that it began with.
        """
        return Learned(library, before or ExperienceLibrary(), run, self)


@dataclass(frozen=True)
class Learned:
    """What was learned, for a person and for a program."""

    library: ExperienceLibrary
    before: ExperienceLibrary
    run: Path
    story: Story

    @property
    def new(self) -> tuple[Experience, ...]:
        """The experiences that this run added or changed."""
        old = set(self.before.experiences)
        return tuple(experience for experience in self.library if experience not in old)

    def table(self) -> fmt.Table:
        """One row for each new experience: what it says, and which rollouts of which task taught it."""
        if not self.new:
            return fmt.Table(self._title, (), (), caption="\n".join([self._why_nothing(), *self._lines()]))
        columns = (
            ("id", "left"),
            ("what it says", "left"),
            ("from task", "left"),
            ("rollout", "right"),
            ("rewards of the group", "left"),
        )
        rows = tuple((each.id, says(each), *_origin(each)) for each in self.new)
        return fmt.Table(self._title, columns, rows, caption="\n".join(self._lines()))  # type: ignore[arg-type]  # literals

    def to_json(self) -> str:
        """One object; `learned` holds the whole experiences with their origins."""
        usage = self.story.usage
        content = {
            "run": str(self.run),
            "library": str(self.run / "library.json"),
            "version": self.library.version,
            "experiences": len(self.library),
            "learned": [{"says": says(each), **each.model_dump(mode="json")} for each in self.new],
            "gate": [
                {"step": v.step, "accepted": v.accepted, "reason": v.reason, "operations": v.operations}
                for v in self.story.verdicts
            ],
            "usage": usage.model_dump(mode="json"),
            "seconds": self.story.seconds,
        }
        return json.dumps(content, ensure_ascii=False)

    @property
    def _title(self) -> str:
        kept = f"{fmt.count(len(self.new), 'experience')} learned" if self.new else "nothing was learned"
        old = len(self.library) - len(self.new)
        more = f", {old} kept from before" if old else ""
        return f"{self.run.name}: {kept}{more}; library version {self.library.version}"

    def _why_nothing(self) -> str:
        if not any(step.taught for step in self.story.steps):
            return (
                "No group taught anything: all attempts at a task got the same reward. Try harder or easier tasks, "
                "a higher --temperature, or a larger --group-size."
            )
        if not any(verdict.operations for verdict in self.story.verdicts):
            return (
                "Groups taught, but nothing new was proposed. A model that is too small to write lessons may still "
                "learn from its own successes: --extractor exemplar."
            )
        return "Nothing passed the gate: no candidate was shown to be better than the library as it was."

    def _lines(self) -> list[str]:
        tried = [verdict for verdict in self.story.verdicts if verdict.operations]
        lines = [f"gate, step {v.step + 1}: {verdict_words(v)}" for v in tried]
        usage = self.story.usage
        spent = f"{fmt.count(usage.calls, 'call')}, {fmt.count(usage.tokens, 'token')}"
        return [*lines, f"cost: {fmt.dollars(usage.dollars)}, {spent}, {fmt.seconds(self.story.seconds)}"]


def verdict_words(event: GateDecided) -> str:
    """What the gate decided, and on what evidence, in one line.

    Example:
        >>> verdict_words(GateDecided(0, False, "-0.100 on 24 held-out tasks", 2))
        '2 operations refused: -0.100 on 24 held-out tasks'
        >>> verdict_words(GateDecided(0, False, "no operation to try", 0))
        'nothing was proposed'
    """
    if not event.operations:
        return "nothing was proposed"
    verdict = "accepted" if event.accepted else "refused"
    return f"{fmt.count(event.operations, 'operation')} {verdict}: {event.reason}"


def says(experience: Experience) -> str:
    """What an experience says, in one short line; of a worked example the question and the answer.

    Example:
        >>> says(Experience(id="e-1", text="Check the units.", when="there are units"))
        'Check the units. (when there are units)'
    """
    if experience.turns:
        text = " → ".join(turn.content for turn in experience.turns)
    else:
        text = f"{experience.text} (when {experience.when})" if experience.when else experience.text
    line = " ".join(text.split())
    if len(line) <= SHOWN:
        return line
    if experience.turns:  # the answer is what it shows
        answer = " ".join(experience.turns[-1].content.split())[: SHOWN // 2]
        return f"{line[: SHOWN - len(answer) - 4]}… → {answer}"
    return f"{line[: SHOWN - 1]}…"


def _origin(experience: Experience) -> tuple[str, str, str]:
    if not experience.origins:
        return "", "", ""
    origin = experience.origins[-1]  # the newest: what changed it last
    more = f" (+{len(experience.origins) - 1})" if len(experience.origins) > 1 else ""
    rewards = " ".join(f"{reward:g}" for reward in origin.rewards)
    return origin.task_id + more, ", ".join(map(str, origin.rollouts)), rewards
