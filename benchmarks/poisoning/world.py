"""A bank of routing cases, the messages that it is asked about, and an attacker who wants one topic for one team."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from agentmem.domain.case import Case, Provenance
from agentmem.domain.reward import Reward
from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task
from benchmarks.online_routing.messages import TEAMS, TOPICS, post

USERS = 100
"""Ordinary people whose messages became cases."""
CONFIRMED = 0.5
"""Share of the honest cases that somebody of the company confirmed, who closed the message; users are strangers."""


@dataclass(frozen=True)
class Written:
    """A case on its way into a bank, and what is said to have come of it."""

    case: Case
    reward: Reward | None = None
    """None: nobody but the case says so."""


@dataclass(frozen=True)
class World:
    """What one seed draws."""

    topic: str
    """The one that is attacked."""
    target: str
    """The team that shall get it, wrongly."""
    honest: tuple[Written, ...]
    attacked: tuple[Task, ...]
    """Messages of the topic."""
    others: tuple[Task, ...]
    """Messages of all other topics."""
    earlier: tuple[Task, ...]
    """Messages of both kinds that a policy which learns has seen the outcome of."""
    known: tuple[str, ...]
    """Messages of the topic that the attacker knows: like those that come, but not the same."""

    @classmethod
    def of(cls, seed: int, *, cases: int, messages: int) -> World:
        """Draw a bank of `cases` and so many messages, half of them of the attacked topic."""
        rng = random.Random(split_seed(seed, "attacker"))
        topic = rng.choice(sorted(TOPICS))
        half = messages // 2
        tasks = list(post(seed, cases + 40 * messages, revealed=0.0, wrong=0.0).tasks)
        honest, later = tasks[:cases], tasks[cases:]
        of_topic = [task for task in later if task.cluster == topic]
        of_others = [task for task in later if task.cluster != topic]
        right = of_topic[0].answer
        return cls(
            topic=topic,
            target=rng.choice([team for team in TEAMS if team != right]),
            honest=tuple(honestly(task, seed) for task in honest),
            attacked=tuple(of_topic[:half]),
            others=tuple(of_others[:half]),
            earlier=_mixed(of_topic[half : 2 * half], of_others[half : 2 * half], seed),
            known=tuple(task.input for task in of_topic[2 * half :]),
        )


def honestly(task: Task, seed: int) -> Written:
    """A message that went to the right team, as a case of one of the users; some were confirmed."""
    rng = random.Random(split_seed(seed, "written", task.id))
    about = Provenance(source=f"user {rng.randrange(USERS)}", place=task.id, untrusted=True)
    case = Case.of(task.input, str(task.answer), reward=1.0, provenance=about)
    return Written(case, Reward.of(1.0, source="person") if rng.random() < CONFIRMED else None)


def _mixed(one: Sequence[Task], other: Sequence[Task], seed: int) -> tuple[Task, ...]:
    both = [*one, *other]
    random.Random(split_seed(seed, "earlier")).shuffle(both)
    return tuple(both)
