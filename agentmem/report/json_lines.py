"""A run as JSON lines: one event a line, for other programs."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, TextIO

from pydantic import BaseModel

from agentmem.events import Answered, Event, GroupFinished, RolloutFinished, StepFinished


class JSONLines:
    """A listener that prints every event as one JSON object, with its name under `event`.

    Trajectories and libraries are left out: the run's directory holds them.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def hear(self, event: Event) -> None:
        """Print the event."""
        print(json.dumps({"event": type(event).__name__, **_content(event)}), file=self._out, flush=True)


def _content(event: Event) -> dict[str, Any]:
    match event:
        case RolloutFinished(rollout=rollout):
            about = rollout.model_dump(mode="json", exclude={"trajectory", "mask"})
            return {"phase": event.phase, "step": event.step, **about}
        case Answered(rollout=rollout):
            about = rollout.model_dump(mode="json", exclude={"trajectory", "mask"})
            return {"position": event.position, "version": event.version, **about}
        case GroupFinished(group=group):
            return {
                "step": event.step,
                "task_id": group.task.id,
                "rewards": group.rewards,
                "teaches": event.teaches,
            }
        case StepFinished(library=library):
            about = {f.name: getattr(event, f.name) for f in fields(event) if f.name != "library"}
            return {**about, "version": library.version, "experiences": len(library)}
        case _:
            return {f.name: _plain(getattr(event, f.name)) for f in fields(event)}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
