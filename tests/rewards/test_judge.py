"""The judge: a model's verdict, and never a 0 where the judge failed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message, Trajectory
from agentmem.errors import AgentMemError, BudgetExceeded, ModelTimeout, QuotaExhausted
from agentmem.models.model import Reply
from agentmem.rewards.judge import Judge, judge

TASK = Task(id="t", input="What is {{ 2 + 3 }}?", answer="5")


class Handle:
    def __init__(self, reply: str | AgentMemError) -> None:
        self.reply = reply
        self.prompts: list[str] = []

    async def complete(self, messages: Sequence[Message], **options: Any) -> Reply:
        self.prompts.append(messages[0].content)
        if isinstance(self.reply, AgentMemError):
            raise self.reply
        return Reply(message=Message(role="assistant", content=self.reply))


class Context:
    def __init__(self, reply: str | AgentMemError) -> None:
        self.handle = Handle(reply)
        self.asked: list[object] = []

    def model(self, name: object | None) -> Handle:
        self.asked.append(name)
        return self.handle


async def judged(
    reply: str | AgentMemError, task: Task = TASK, output: str = "5", **how: Any
) -> tuple[Reward, Context]:
    context = Context(reply)
    return await Judge(**how)(task, Trajectory.said(output), context), context


async def test_the_verdict_becomes_the_reward() -> None:
    reward, context = await judged(json.dumps({"reasoning": "the same", "score": 0.75}), model="openai/x")
    assert reward == Reward.of(0.75, feedback="the same", source="judge")
    assert context.asked == ["openai/x"]


async def test_task_and_output_are_data_in_the_prompt() -> None:
    _, context = await judged(
        '{"reasoning": "", "score": 1}', output="{% raw %} {{ answer }} five", rubric="Be short."
    )
    prompt = context.handle.prompts[0]
    for text in ("What is {{ 2 + 3 }}?", "{% raw %} {{ answer }} five", "Be short."):
        assert text in prompt


@pytest.mark.parametrize("reply", ['{"reasoning": "x", "score": 7}', "certainly!", "", ModelTimeout("too slow")])
async def test_a_judge_that_fails_is_an_error_and_never_0(reply: Any) -> None:
    reward, _ = await judged(reply)
    assert (reward.score, reward.status) == (None, "error")
    assert reward.feedback.startswith("the judge failed: ")


@pytest.mark.parametrize("error", [QuotaExhausted("no money"), BudgetExceeded("no budget")])
async def test_what_stops_the_run_passes(error: AgentMemError) -> None:
    with pytest.raises(type(error)):
        await judged(error)


async def test_no_reference_needs_a_rubric_and_no_output_asks_nobody() -> None:
    bare = TASK.model_copy(update={"answer": None})
    reward, context = await judged("", bare)
    assert (reward.status, context.handle.prompts) == ("unverifiable", [])
    reward, _ = await judged('{"reasoning": "", "score": 1}', bare, rubric="Polite.")
    assert reward.score == 1.0
    reward, context = await judged("", output=" ")
    assert (reward.score, context.handle.prompts) == (0.0, [])
    assert (judge().needs_answer, judge(rubric="x").needs_answer) == (True, False)


async def test_a_task_may_have_a_rubric_of_its_own_beside_the_judges() -> None:
    task = Task(id="t", input="Explain tides.", metadata={"rubric": "- It names the moon."})
    verdict = '{"reasoning": "it does", "score": 0.5}'
    reward, context = await judged(verdict, task, "The moon pulls.", rubric="Be brief.")
    assert reward.score == 0.5
    assert "Be brief.\n\n- It names the moon." in context.handle.prompts[0]
    # With one, neither the judge nor the task needs anything else.
    reward, context = await judged(verdict, task, "The moon pulls.")
    assert reward.score == 0.5
    assert "What counts: - It names the moon." in context.handle.prompts[0]
    assert Judge().unscorable(task) == ""
    assert Judge().unscorable(task.model_copy(update={"metadata": {}})) != ""
