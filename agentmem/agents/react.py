"""The ReAct agent: think, call tools, read their results, answer (2210.03629)."""

from __future__ import annotations

import asyncio

from agentmem.agents.context import Context
from agentmem.domain.trajectory import Message, Step, ToolCall, ToolResult, Trajectory
from agentmem.domain.value import fingerprint
from agentmem.errors import LimitReached
from agentmem.prompts import render


async def react(context: Context) -> Trajectory:
    """One attempt by tool calling.

    The last permitted turn is reserved for the answer: no tools are offered in it, so that the last results are
    always read. A model that uses up its tokens ends with what it had said.
    """
    assert context.model is not None  # an Agent that acts by ReAct has one; see Agent
    prompt = _prompt(context)
    messages, steps = list(prompt), list[Step]()
    tools = await context.tool_specs()
    for turn in range(context.settings.max_steps):
        last = turn == context.settings.max_steps - 1
        if last and steps:
            messages.append(Message(role="user", content=render("answer_now")))
        try:
            reply = await context.model.complete(messages, tools=() if last else tools)
        except LimitReached:
            return _ended(prompt, steps, "tokens")
        results = tuple(await asyncio.gather(*(_use(context, call) for call in reply.message.tool_calls)))
        logprob = sum(token.logprob for token in reply.logprobs) if reply.logprobs else None
        steps.append(
            Step(
                reply=reply.message,
                results=results,
                usage=reply.usage,
                finish_reason=reply.finish_reason,
                logprob=logprob,
            )
        )
        if not reply.message.tool_calls:
            return Trajectory(prompt=prompt, steps=tuple(steps), output=reply.text)
        messages += [reply.message, *(result.as_message() for result in results)]
    return _ended(prompt, steps, "steps")


def _prompt(context: Context) -> tuple[Message, ...]:
    """System text, lessons and quoted cases; worked examples and cases as turns; then the task."""
    system = "\n\n".join(part for part in (context.system, context.prior.lessons, context.shown.block) if part)
    start = (Message(role="system", content=system),) if system else ()
    return (*start, *context.prior.turns, *context.shown.turns, Message(role="user", content=context.task.input))


async def _use(context: Context, call: ToolCall) -> ToolResult:
    return await context.scope.step(
        "tool",
        lambda: context.tools.call(call, context.at),
        returns=ToolResult,
        request=fingerprint([call.name, call.arguments]),
    )


def _ended(prompt: tuple[Message, ...], steps: list[Step], by: str) -> Trajectory:
    said = next((step.reply.content for step in reversed(steps) if step.reply.content.strip()), None)
    return Trajectory.model_validate({"prompt": prompt, "steps": tuple(steps), "output": said, "ended_by": by})
