"""Learning ends where several steps in a row taught nothing new."""

from __future__ import annotations

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import alearn
from agentmem.events import Noted, StepFinished
from agentmem.testing.hash_embedder import HashEmbedder
from tests.learning.zork import TASKS, Zork


async def learned(tmp_path, **options):
    steps, notes = [], []

    def hear(event):
        if isinstance(event, StepFinished):
            steps.append(event.library.version)
        if isinstance(event, Noted):
            notes.append(event.message)

    world = Zork(p=0.4)
    settings = {"epochs": 6, "batch_size": 16, "group_size": 3, "gate": "always", "concurrency": 8, **options}
    library = await alearn(
        Agent(world.model),
        TASKS,
        reward="exact",
        run=tmp_path / "run",
        embedder=HashEmbedder(),
        listeners=[hear],
        **settings,
    )
    return steps, notes, library


async def test_it_stops_after_so_many_steps_without_a_new_library(tmp_path):
    steps, notes, library = await learned(tmp_path, patience=2)
    assert len(library) == 1
    assert len(steps) == 3, "the first taught; two more did not"
    assert "2 steps taught nothing new; 9 more are left out." in notes
    again = await learned(tmp_path, patience=2)
    assert again[2].to_json() == library.to_json(), "going on with it stops at the same step"


async def test_without_patience_it_goes_through_all_epochs(tmp_path):
    steps, _, library = await learned(tmp_path)
    assert (len(steps), len(library)) == (12, 1)


@pytest.mark.parametrize("patience", [0, -1])
def test_a_patience_that_is_none_is_refused(patience):
    from agentmem.errors import InputError
    from agentmem.settings import LearnSettings, settings_of

    with pytest.raises(InputError, match="patience"):
        settings_of(LearnSettings, None, {"patience": patience})
