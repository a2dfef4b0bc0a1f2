"""The ReAct agent: tools in a loop, a reserved last turn, limits that are the agent's own doing."""

from __future__ import annotations

import json
import linecache
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.rollout import Rollout
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message, ToolCall
from agentmem.errors import BadRequest, InputError, RunMismatch
from agentmem.events import RolloutFinished
from agentmem.testing.scripted import ScriptedModel

TASK = Task(id="t", input="What is 6 times 7?", answer="42")


def calls(*arguments: str, name: str = "python") -> Message:
    made = tuple(ToolCall(id=f"c{i}", name=name, arguments=a) for i, a in enumerate(arguments))
    return Message(role="assistant", content="Let me see.", tool_calls=made)


def code(text: str) -> str:
    return json.dumps({"code": text})


async def attempt(agent: Agent, tmp_path, *, task: Task = TASK, **changes) -> Rollout:
    heard: list[Rollout] = []
    hear = [lambda event: heard.append(event.rollout) if isinstance(event, RolloutFinished) else None]
    await aevaluate(agent, [task], reward="exact", run=tmp_path / "run", listeners=hear, **changes)
    return heard[0]


async def test_it_answers_without_tools(tmp_path):
    model = ScriptedModel(["42"])
    rollout = await attempt(Agent(model, system="Be brief."), tmp_path)
    assert (rollout.output, rollout.score, rollout.status) == ("42", 1.0, "ok")
    assert [m.role for m in model.requests[0].messages] == ["system", "user"]


async def test_it_uses_the_python_tool_and_reads_what_comes_back(tmp_path):
    model = ScriptedModel([calls(code("print(6 * 7)")), "42"])
    rollout = await attempt(Agent(model, tools=["python"]), tmp_path)
    assert rollout.score == 1.0
    result = rollout.trajectory.steps[0].results[0]
    assert (result.status, result.content.strip()) == ("ok", "42")
    assert model.requests[1].messages[-1].role == "tool"
    assert model.requests[1].messages[-1].tool_call_id == "c0"
    assert not (tmp_path / "run" / "work").exists() or not any((tmp_path / "run" / "work").iterdir())


async def test_tools_of_one_turn_keep_their_order_and_share_a_folder(tmp_path):
    write, read = code("open('a','w').write('7')"), code("print(open('a').read())")
    model = ScriptedModel([calls(write), calls(read, code("print(1)")), "7"])
    rollout = await attempt(Agent(model, tools=["python"]), tmp_path)
    assert [r.content.strip() for r in rollout.trajectory.steps[1].results] == ["7", "1"]
    assert [r.call.id for r in rollout.trajectory.steps[1].results] == ["c0", "c1"]


async def test_a_broken_call_is_told_to_the_model_and_the_episode_goes_on(tmp_path):
    model = ScriptedModel([calls("{not json"), calls("{}", name="nothing"), "42"])
    rollout = await attempt(Agent(model, tools=["python"]), tmp_path)
    assert rollout.score == 1.0
    assert [step.results[0].status for step in rollout.trajectory.steps[:2]] == ["error", "error"]


async def test_the_last_turn_is_reserved_for_the_answer(tmp_path):
    model = ScriptedModel([calls(code("print(6 * 7)")), "42"])
    rollout = await attempt(Agent(model, tools=["python"], max_steps=2), tmp_path)
    assert model.requests[0].tools
    assert not model.requests[1].tools
    assert model.requests[1].messages[-1].role == "user"  # asked to answer now
    assert (rollout.score, rollout.status) == (1.0, "ok")


async def test_a_model_that_never_answers_ends_at_its_limit_and_is_scored(tmp_path):
    model = ScriptedModel(lambda request: calls(code("print(1)")))
    rollout = await attempt(Agent(model, tools=["python"], max_steps=3), tmp_path)
    assert (rollout.status, rollout.trajectory.ended_by, rollout.score) == ("limit", "steps", 0.0)
    assert model.calls == 3


async def test_a_token_limit_ends_the_attempt(tmp_path):
    model = ScriptedModel(lambda request: calls(code("print(1)")))
    rollout = await attempt(Agent(model, tools=["python"], max_steps=50, max_rollout_tokens=150), tmp_path)
    assert (rollout.status, rollout.trajectory.ended_by) == ("limit", "tokens")
    assert rollout.usage.tokens >= 150
    assert model.calls < 50


async def test_a_time_limit_is_a_failure_and_no_wrong_answer(tmp_path):
    agent = Agent(ScriptedModel(["42"], latency=5), max_rollout_seconds=0.05)
    rollout = await attempt(agent, tmp_path)
    assert (rollout.status, rollout.score, rollout.failure.kind) == ("failed", None, "rollout_timeout")


async def test_a_refused_request_is_a_failure_and_no_wrong_answer(tmp_path):
    rollout = await attempt(Agent(ScriptedModel([BadRequest("too long")])), tmp_path)
    assert (rollout.status, rollout.score) == ("failed", None)
    assert rollout.failure.kind == "bad_request"
    assert "too long" in rollout.failure.message


async def test_examples_are_turns_and_lessons_are_system_text(tmp_path):
    shown = (Message(role="user", content="What is 2 times 3?"), Message(role="assistant", content="6"))
    library = ExperienceLibrary().apply(
        [Add(text="Multiply."), Add(kind="example", text="An example", turns=shown)]
    )
    model = ScriptedModel(["42"])
    agent = Agent(model, system="Be brief.").with_experience(library)
    rollout = await attempt(agent, tmp_path)
    system, *turns = model.requests[0].messages
    assert system.content.startswith("Be brief.")
    assert "Multiply." in system.content
    assert [turn.content for turn in turns] == ["What is 2 times 3?", "6", TASK.input]
    assert rollout.mask == agent.prior.ids
    assert rollout.prior_hash == agent.prior.hash != ""


def test_names_are_checked_before_anything_is_spent():
    with pytest.raises(InputError, match=r"'gpt-4\.1-mini'"):
        Agent("gpt-4.1-mini")
    with pytest.raises(InputError, match="pyhton"):
        Agent(ScriptedModel([]), tools=["pyhton"])
    with pytest.raises(InputError, match="Did you mean 'max_steps'"):
        Agent(ScriptedModel([]), max_step=3)
    with pytest.raises(InputError, match="not both"):
        Agent(ScriptedModel([]), model="scripted/echo")
    with pytest.raises(InputError, match="not a int"):
        Agent(42)


async def test_a_changed_tool_is_noticed_when_a_run_is_gone_on_with(tmp_path):
    def made(body: str):
        (tmp_path / "tools.py").write_text(f"def look(word: str) -> str:\n    'Look it up.'\n    return {body}\n")
        spec = spec_from_file_location("look_tools", tmp_path / "tools.py")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        linecache.checkcache()
        return Agent("scripted/say?text=42", tools=[module.look, "python"])

    first = made("word")
    assert (
        first.describe()["tools"][1] == "python"
    )  # what ships is named alone, or each new version would end all runs
    await attempt(first, tmp_path)
    await attempt(made("word"), tmp_path)
    with pytest.raises(RunMismatch, match=r"agent\.tools was \['look#"):
        await attempt(made("word[::-1]"), tmp_path)
