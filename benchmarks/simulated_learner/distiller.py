"""The simulated distiller: what a model that writes lessons answers in each role. It is wrong 20 % of the time.

It reads a prompt as a person would skim it: the task's record tells the family, lines that begin with `[e-...]` are
the library, texts between backticks are what was proposed. Nobody's rewards are looked at.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.simulated_learner.world import FAMILIES, WRONG, World, failing_families, lesson_of, read

Op = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """One lesson as it stands somewhere: in the library (then with its id) or in a proposal."""

    key: str
    denied: bool
    id: str = ""

    @property
    def right(self) -> bool:
        """Whether it advises what is true, or against what is wrong."""
        return lesson_of(self.key).wrong == self.denied


@dataclass(frozen=True)
class Distiller:
    """Answers the roles of a distiller; which one is asked for is recognised by the server.

    Args:
        world: whose tasks it is asked about.
        wrong: share of its lessons that are wrong ones.
        stray: share that repeats or contradicts something in the library that it is shown.
        merges: probability that it sees that two entries say the same.
        every_failure: a reflection names a lesson for every failing family that it sees, instead of for one of them.
    """

    world: World
    wrong: float = 0.2
    stray: float = 0.1
    merges: float = 0.9
    every_failure: bool = False

    def answer(self, role: str, prompt: str, rng: random.Random) -> str:
        """What it says.

        Raises:
            KeyError: it has no such role.
        """
        roles: dict[str, Callable[[str, random.Random], str]] = {
            "summarise": self._summarise,
            "contrast": self._contrast,
            "distil": self._distil,
            "group_update": self._group_update,
            "consolidate": self._consolidate,
            "reflect": self._reflect,
            "reflect_dspy": self._reflect_dspy,
        }
        return roles[role](prompt, rng)

    def _summarise(self, prompt: str, rng: random.Random) -> str:
        task = self.world.tasks_in(prompt)[0]
        way = rng.choice(("took the figures in order", "worked from the last figure back", "compared the figures"))
        return f"Record {task.id}: the attempt {way}, and then stated one number without checking it."

    def _contrast(self, prompt: str, rng: random.Random) -> str:
        said = self._lesson(_family_of(self.world, prompt), entries(prompt), rng)
        return json.dumps({"lessons": [{"text": phrase(said, rng), "when": "", "when_not": ""}] if said else []})

    def _distil(self, prompt: str, rng: random.Random) -> str:
        shown = entries(prompt)
        said = self._lesson(_family_of(self.world, prompt), shown, rng)
        if said is None:
            return json.dumps({"operations": []})
        against = [entry for entry in shown if entry.key == said.key and entry.denied != said.denied]
        if said.right and against:
            return json.dumps({"operations": self._map([said], shown, rng)})
        return json.dumps({"operations": [_add(said, rng)]})

    def _group_update(self, prompt: str, rng: random.Random) -> str:
        return json.dumps({"operations": self._map(proposals(prompt), entries(prompt), rng)})

    def _consolidate(self, prompt: str, rng: random.Random) -> str:
        clusters = []
        for part in re.split(r"(?m)^(?=Cluster \d+\s*$)", prompt)[1:]:
            number = int(part.split()[1])
            held = [said for text in fences(part) for said in lessons_in(text)]
            ops = self._map(held, entries(part), rng) if held else []
            named = {said.id for said in held}
            for text in fences(part):
                ids = [id for id in _ID.findall(text) if id not in named]
                if re.search(r"\bdelete\b", text, re.IGNORECASE) and ids and not lessons_in(text):
                    ops.append({"op": "delete", "id": ids[0]})
            clusters.append({"number": number, "operations": ops})
        return json.dumps({"clusters": clusters})

    def _reflect(self, prompt: str, rng: random.Random) -> str:
        current = prompt.split("```\n", 1)[1].split("\n```", 1)[0]
        return f"Here is a better instruction.\n```\n{self._improved(current, prompt, rng)}\n```"

    def _reflect_dspy(self, prompt: str, rng: random.Random) -> str:
        # dspy asks for JSON here, whatever format the tasks have; its fields stand in the last message.
        asked = prompt.rsplit("[[ ## current_instruction ## ]]\n", 1)[1]
        current, examples = asked.split("\n\n[[ ## examples_with_feedback ## ]]\n", 1)
        return json.dumps({"new_instruction": self._improved(current, examples, rng)})

    def _improved(self, instruction: str, examples: str, rng: random.Random) -> str:
        """The instruction with a lesson for a failing family, preferably for one that it does not help yet."""
        failing = failing_families(examples)
        held = read(instruction).in_force
        helpless = [family for family in failing if FAMILIES[family].lesson.key not in held]
        chosen = helpless or failing
        if not chosen:
            return instruction
        if not self.every_failure:
            chosen = [rng.choice(chosen)]
        said = [Said(FAMILIES[family].lesson.key, denied=False) for family in chosen]
        said = [Said(rng.choice(WRONG).key, denied=False) if rng.random() < self.wrong else one for one in said]
        return "\n".join([instruction, *(phrase(one, rng) for one in said)])

    def _lesson(self, family: int, shown: Sequence[Said], rng: random.Random) -> Said | None:
        """What a group of this family teaches it; None where the library that it is shown says so already."""
        draw = rng.random()
        if draw < self.wrong:
            return Said(rng.choice(WRONG).key, denied=False)
        if shown and draw < self.wrong + self.stray:
            known = rng.choice(shown)
            return Said(known.key, denied=known.denied if rng.random() < 0.5 else not known.denied)
        true = Said(FAMILIES[family].lesson.key, denied=False)
        same = [entry for entry in shown if entry.key == true.key]
        return None if same and not any(entry.denied for entry in same) else true

    def _map(self, new: Sequence[Said], library: Sequence[Said], rng: random.Random) -> list[Op]:
        """Operations that bring new lessons into the library; same things are merged with probability `merges`."""
        ops: list[Op] = []
        for key in dict.fromkeys(said.key for said in new):
            mine = [said for said in new if said.key == key]
            ids = list(dict.fromkeys(entry.id for entry in library if entry.key == key))
            if rng.random() >= self.merges:
                ops += [
                    {"op": "modify", "id": said.id, "text": phrase(said, rng)} if said.id else _add(said, rng)
                    for said in mine
                ]
                continue
            kept = self._settled([*mine, *(entry for entry in library if entry.key == key)], rng)
            if len(ids) > 1:
                ops.append({"op": "merge", "ids": ids, "text": phrase(kept, rng)})
            elif ids:
                ops.append({"op": "modify", "id": ids[0], "text": phrase(kept, rng)})
            else:
                ops.append(_add(kept, rng))
        return ops

    def _settled(self, said: Sequence[Said], rng: random.Random) -> Said:
        """One of several that concern the same lesson; where they contradict each other, mostly the right one."""
        if len({one.denied for one in said}) == 1:
            return said[0]
        rightly = rng.random() >= self.wrong
        return next(one for one in said if one.right == rightly)


def phrase(said: Said, rng: random.Random) -> str:
    """A sentence that says it."""
    lesson = lesson_of(said.key)
    return rng.choice(lesson.contradictions if said.denied else lesson.paraphrases)


def entries(prompt: str) -> list[Said]:
    """The lessons of the library that a prompt shows, in order, each id once."""
    found: dict[str, Said] = {}
    for id, text in re.findall(rf"(?m)^\[({_ID.pattern})\] (.*)$", prompt):
        for said in lessons_in(text)[:1]:
            found.setdefault(id, Said(said.key, said.denied, id))
    return list(found.values())


def proposals(prompt: str) -> list[Said]:
    """The lessons between lines of backticks."""
    return [said for text in fences(prompt) for said in lessons_in(text)]


def fences(prompt: str) -> list[str]:
    """The texts between lines of backticks."""
    return [text for _, text in re.findall(r"(?ms)^(`{3,})\n(.*?)\n\1$", prompt)]


def lessons_in(text: str) -> list[Said]:
    """The lessons in one text; with the id that stands in it, where there is one."""
    reading, ids = read(text), _ID.findall(text)
    held = [(key, False) for key in sorted(reading.advised)] + [(key, True) for key in sorted(reading.denied)]
    return [Said(key, denied, ids[0] if ids else "") for key, denied in held]


_ID = re.compile(r"e-[0-9a-f]{6,}")


def _add(said: Said, rng: random.Random) -> Op:
    return {"op": "add", "text": phrase(said, rng), "when": "", "when_not": "", "why": "the attempts differ here"}


def _family_of(world: World, prompt: str) -> int:
    return int(world.tasks_in(prompt)[0].metadata["family"])
