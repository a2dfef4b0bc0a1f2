"""Scripts in place of a model: one follows the plans, one slips on the way, one has skills that can be learned.

They are scripts: they know the plans, and say nothing about any real model. As models on the command line:

    --model scripted/benchmarks/offline_gaia/scripted.py:replay      follows the plans
    --model scripted/benchmarks/offline_gaia/scripted.py:slip        misreads everything that it finds
    --model scripted/benchmarks/offline_gaia/scripted.py:skilled     knows a third of the ways, and what a case shows
"""

from __future__ import annotations

from random import Random

from agentmem.domain.seed import split_seed
from agentmem.domain.trajectory import Message
from agentmem.models.model import Request
from benchmarks.offline_gaia.episode import Episode, slipped, way_of, ways_shown

KNOWN_SHARE = 0.35
"""How often the skilled one knows a way by itself."""


def replay(request: Request) -> Message | str:
    """Follow the plan of the task that is asked for."""
    return Episode.of(request).next()


def slip(request: Request) -> Message | str:
    """Follow the plan, and take down everything that is found with a slip."""
    return Episode.of(request).next(slipped)


def skilled(request: Request) -> Message | str:
    """Follow the plan if the way is known by itself, or a case that worked shows it; else give up at once."""
    episode = Episode.of(request)
    draw = Random(split_seed(request.seed or 0, "skill", episode.task.id)).random()
    if episode.results or draw < KNOWN_SHARE or way_of(episode.task) in ways_shown(request):
        return episode.next()
    return "I do not know a way.\nFINAL ANSWER: unknown"
