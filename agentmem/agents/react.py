"""The ReAct agent: think, call tools, read their results, answer (2210.03629)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentmem.agents.context import Context
from agentmem.agents.quoting import as_message
from agentmem.agents.trimming import trimmed
from agentmem.domain.trajectory import Message, Step, ToolCall, ToolResult, Trajectory
from agentmem.domain.value import fingerprint
from agentmem.errors import LimitReached
from agentmem.models.model import Reply, ToolSpec
from agentmem.prompts import render
from agentmem.sandbox.thread import in_thread
from agentmem.tools.pictures import shown_with_question


async def react(context: Context) -> Trajectory:
    """One attempt by tool calling."""
    return await Loop(context, await context.tool_specs()).run(await _prompt(context))


@dataclass
class Loop:
    """Think, call tools, read their results; until there is an answer or a limit is reached.

    The last permitted turn is reserved for the answer: no tools are offered in it, so that the last results are
    always read. A model that uses up its tokens ends with what it had said.
    """

    context: Context
    tools: Sequence[ToolSpec]
    steps: list[Step] = field(default_factory=list)
    """What was done so far; it is there also where `run` raised."""

    async def run(self, prompt: tuple[Message, ...]) -> Trajectory:
        """Go on from this prompt to the end."""
        context, settings = self.context, self.context.settings
        assert context.model is not None  # an Agent that acts by ReAct or by plans has one; see Agent
        turns = list[Message]()
        for turn in range(settings.max_steps):
            last = turn == settings.max_steps - 1
            if last and self.steps:
                turns.append(Message(role="user", content=render("answer_now")))
            messages = trimmed(prompt, turns, max_tokens=settings.context_tokens)
            try:
                reply = await context.model.complete(messages, tools=() if last else self.tools)
            except LimitReached:
                return self._ended(prompt, "tokens")
            results = tuple(await asyncio.gather(*(_use(context, call) for call in reply.message.tool_calls)))
            self.steps.append(step_of(reply, results))
            if not reply.message.tool_calls:
                return Trajectory(prompt=prompt, steps=tuple(self.steps), output=reply.text)
            mark = await context.scope.run.mark() if any(result.untrusted for result in results) else ""
            turns += [reply.message, *(as_message(result, mark) for result in results), *_pictures(results)]
        return self._ended(prompt, "steps")

    def _ended(self, prompt: tuple[Message, ...], by: str) -> Trajectory:
        said = next((step.reply.content for step in reversed(self.steps) if step.reply.content.strip()), None)
        return Trajectory.model_validate(
            {"prompt": prompt, "steps": tuple(self.steps), "output": said, "ended_by": by}
        )


def _pictures(results: Sequence[ToolResult]) -> tuple[Message, ...]:
    """What tools showed beside text, as a message of its own: the answer to a call can hold text alone."""
    media = tuple(one for result in results for one in result.media)
    if not media:
        return ()
    names = ", ".join(one.name or one.kind for one in media)
    return (Message(role="user", content=render("shown_files", names=names), media=media),)


def step_of(reply: Reply, results: tuple[ToolResult, ...] = ()) -> Step:
    """A turn of a model, as a trajectory keeps it."""
    return Step(
        reply=reply.message,
        results=results,
        usage=reply.usage,
        finish_reason=reply.finish_reason,
        logprob=sum(token.logprob for token in reply.logprobs) if reply.logprobs else None,
    )


async def _prompt(context: Context) -> tuple[Message, ...]:
    """System text, lessons and quoted cases; worked examples and cases as turns; then the task, with its pictures."""
    system = "\n\n".join(part for part in (context.system, context.prior.lessons, context.shown.block) if part)
    start = (Message(role="system", content=system),) if system else ()
    files, accepts = context.task.files, context.model.accepts if context.model else ()
    media = await in_thread(lambda: shown_with_question(map(Path, files), accepts)) if files and accepts else ()
    question = Message(role="user", content=context.task.input, media=media)
    return (*start, *context.prior.turns, *context.shown.turns, question)


async def _use(context: Context, call: ToolCall) -> ToolResult:
    return await context.scope.step(
        f"tool/{context.place}" if context.place else "tool",
        lambda: context.tools.call(call, context.at),
        returns=ToolResult,
        request=fingerprint([call.name, call.arguments]),
    )
