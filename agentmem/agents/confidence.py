"""How likely an agent says that its answer is right: asked in a last turn of its own, and read strictly.

Spoken confidence is mostly too high (2306.13063) and depends on the words of the question (2412.14737). Asked together
with the answer it would change the answer, so it is asked once that is given.
"""

from __future__ import annotations

import re

from agentmem.domain.rollout import Confidence
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message, Trajectory
from agentmem.errors import AgentMemError
from agentmem.models.handle import ModelHandle
from agentmem.prompts import render

_PERCENT = re.compile(r"\s*(\d{1,3})\s*%?\s*")


async def ask_confidence(task: Task, trajectory: Trajectory, model: ModelHandle) -> Confidence:
    """What the model says, one call; a call that fails is an answer that is missing, and harms nothing else.

    It is shown what it was shown before its first turn, and its answer. What its tools brought is not shown again:
    text from outside has no say in this.

    Raises:
        AgentMemError: one that stops the run.
    """
    asked = trajectory.prompt if trajectory.prompt and trajectory.prompt[-1].role == "user" else ()
    conversation = (
        *(asked or (Message(role="user", content=task.input),)),
        Message(role="assistant", content=trajectory.output or ""),
        Message(role="user", content=render("confidence")),
    )
    try:
        reply = await model.complete(conversation)
    except AgentMemError as error:
        if error.stops_run:
            raise
        return Confidence(reply=f"[{error.kind}] {error}", usage=model.usage)
    return Confidence(probability=read_percent(reply.text), reply=reply.text, usage=model.usage)


def read_percent(reply: str) -> float | None:
    """The probability that a reply states: a whole number from 0 to 100 and nothing else; None for anything else.

    Example:
        >>> read_percent(" 85 % "), read_percent("about 85"), read_percent("0.85"), read_percent("101")
        (0.85, None, None, None)
    """
    found = _PERCENT.fullmatch(reply)
    if found is None or (percent := int(found[1])) > 100:
        return None
    return percent / 100
