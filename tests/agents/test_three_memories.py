"""Cases, subtasks and tools: each memory changes what happens next time, and does not where it is emptied."""

from __future__ import annotations

import sqlite3

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.task import Task
from agentmem.memory.case_bank import CaseBank
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel
from agentmem.tools.tool import tool
from tests.agents.planning import answer, asked, attempts, call, is_planner, plan, planner

FIRST = Task(id="first", input="How many people live in Rome?", answer="3 million")
SECOND = Task(id="second", input="How many people live in Rome today?", answer="3 million")
LOOK = "Look up the number of people in Rome."


@tool
def library(what: str) -> str:
    """Look something up in the library."""
    raise ValueError("closed")


@tool
def archive(what: str) -> str:
    """Look something up in the archive."""
    return "3 million"


def script(request):
    """Does better with each memory: plans well with a case, calls the right tool with a lesson of either memory."""
    told = "\n".join(m.content for m in request.messages)
    if is_planner(request):
        if len(request.messages) > 2:
            return answer("3 million" if "3 million" in request.messages[-1].content else "unknown")
        return (
            plan(("a", LOOK))
            if "plan like this" in told or "Plan 1" in told
            else plan(("x", "Think."), ("a", LOOK))
        )
    if request.messages[-1].role == "tool":
        if "3 million" in request.messages[-1].content:
            return "3 million"
        return call("archive", what="Rome")
    if "Think." in asked(request):
        return "hm"
    known = "archive {" in told or "library: 1 call, 0 % ok" in told
    return call("archive" if known else "library", what="Rome")


@pytest.fixture
def bank(tmp_path):
    bank = CaseBank(tmp_path / "bank", embedder=HashEmbedder())
    yield bank
    bank.close()


def agent_with(bank, **changes) -> Agent:
    made = planner(ScriptedModel(script), tools=[library, archive])
    return made.with_memory(bank, policy="similarity", **{"online": True, **changes})


async def two(bank, tmp_path, emptied=None):
    """The second of two like tasks: its rollout, and what its planner and its executor were told."""
    agent = agent_with(bank)
    await attempts(agent, [FIRST], tmp_path / "one")
    if emptied:
        emptied(agent)
    agent = agent_with(bank)
    made = (await attempts(agent, [SECOND], tmp_path / "two"))[0]
    seen = [("planner" if is_planner(r) else "executor", r.messages[0].content) for r in agent.model.requests]
    told = {who: "\n".join(text for each, text in seen if each == who) for who in ("planner", "executor")}
    agent.memory.subtasks.bank.close()
    return made, told


def tools_called(rollout):
    return [result.call.name for step in rollout.trajectory.steps for result in step.results]


async def test_the_next_time_is_better_by_all_three(bank, tmp_path):
    made, told = await two(bank, tmp_path)
    assert (made.score, tools_called(made)) == (1.0, ["archive"])
    assert [s.description for s in made.trajectory.plans[0].subtasks] == [LOOK]
    assert "p1.a: Look up" in told["planner"], "cases are plans, and the planner's"
    assert "p1.a: Look up" not in told["executor"]
    assert "archive {" in told["executor"], "solved subtasks are the executor's"
    assert "library: 1 call, 0 % ok" in told["executor"]
    assert "library: 1 call" not in told["planner"]


async def test_without_cases_it_plans_as_at_first(bank, tmp_path):
    made, told = await two(bank, tmp_path, lambda agent: bank.rollback(0))
    assert len(made.trajectory.plans[0].subtasks) == 2
    assert "Plan 1" not in told["planner"]
    assert tools_called(made) == ["archive"], "the other two still help"


async def test_without_subtasks_and_tools_it_calls_the_wrong_tool_again(bank, tmp_path):
    def empty(agent):
        agent.memory.subtasks.bank.rollback(0)
        forget_tools(agent)

    made, told = await two(bank, tmp_path, empty)
    assert tools_called(made) == ["library", "archive"]
    assert "archive {" not in told["executor"]


async def test_subtask_memory_alone_is_enough_to_call_the_right_tool(bank, tmp_path):
    made, told = await two(bank, tmp_path, forget_tools)
    assert tools_called(made) == ["archive"]
    assert "How your tools did" not in told["executor"]


async def test_tool_memory_alone_is_enough_to_call_the_right_tool(bank, tmp_path):
    made, told = await two(bank, tmp_path, lambda agent: agent.memory.subtasks.bank.rollback(0))
    assert tools_called(made) == ["archive"]
    assert "archive {" not in told["executor"]


def forget_tools(agent):
    agent.memory.tools.close()
    with sqlite3.connect(agent.memory.tools.path) as db:
        db.execute("DELETE FROM calls")
    db.close()


async def test_frozen_nothing_is_written_on_any_level(bank, tmp_path):
    agent = agent_with(bank, online=False)
    await attempts(agent, [FIRST], tmp_path / "run")
    assert (bank.seq, agent.memory.subtasks.bank.seq, agent.memory.tools.snapshot) == (0, 0, "")
    agent.memory.subtasks.bank.close()


async def test_going_on_with_a_run_writes_nothing_twice_on_any_level(bank, tmp_path):
    agent = agent_with(bank)
    await attempts(agent, [FIRST, SECOND], tmp_path / "run")
    before = bank.seq, agent.memory.subtasks.bank.seq, agent.memory.tools.snapshot
    again = await attempts(agent, [FIRST, SECOND], tmp_path / "run")
    assert (bank.seq, agent.memory.subtasks.bank.seq, agent.memory.tools.snapshot) == before
    assert before[2].startswith("3:"), "two calls the first time, one the second"
    assert again[1].trajectory.plans[0].subtasks[0].recall.ids, "what was recalled then"
    agent.memory.subtasks.bank.close()


async def test_in_a_test_a_task_does_not_recall_its_own_subtasks(bank, tmp_path):
    agent = agent_with(bank)
    await attempts(agent, [FIRST], tmp_path / "one")
    frozen = agent_with(bank, online=False)
    made = (await attempts(frozen, [FIRST], tmp_path / "two"))[0]
    assert made.recall.cases == ()
    assert all(s.recall.cases == () for p in made.trajectory.plans for s in p.subtasks)
    agent.memory.subtasks.bank.close()
    frozen.memory.subtasks.bank.close()


async def test_a_subtask_is_worth_what_its_episode_was_worth(bank, tmp_path):
    wrong = FIRST.model_copy(update={"answer": "5 million"})
    agent = agent_with(bank)
    await attempts(agent, [wrong], tmp_path / "run")
    assert {case.reward for case in agent.memory.subtasks.bank} == {0.0}
    assert next(iter(bank)).action.startswith("Plan 1:\np1.x: Think.")
    agent.memory.subtasks.bank.close()


async def test_a_plan_that_could_not_be_read_is_no_case(bank, tmp_path):
    def garbles(request):
        return "" if is_planner(request) else "hm"

    agent = planner(ScriptedModel(garbles)).with_memory(bank, policy="similarity", online=True)
    made = (await attempts(agent, [FIRST], tmp_path / "run"))[0]
    assert made.output is None
    assert len(bank) == 0
    agent.memory.subtasks.bank.close()


async def test_lessons_about_tools_are_the_executors_and_a_react_agents(tmp_path):
    lessons = ExperienceLibrary().apply(
        [
            Add(text="Prefer the archive.", tool="library"),
            Add(text="Never used here.", tool="fetch_page"),
            Add(text="Answer in millions."),
        ]
    )
    agent = planner(ScriptedModel(script), tools=[library, archive]).with_experience(lessons)
    made = (await attempts(agent, [FIRST], tmp_path / "plans"))[0]
    plans, does = (
        next(r.messages[0].content for r in agent.model.requests if is_planner(r) == who) for who in (True, False)
    )
    assert "Answer in millions." in plans
    assert "Prefer the archive." not in plans
    assert "Prefer the archive." in does
    assert "Answer in millions." not in does
    assert "Never used here." not in does
    assert made.mask == agent.prior.ids, "all of them are measured"
    assert len(made.mask) == 3
    model = ScriptedModel(["3 million"])
    await aevaluate(
        Agent(model, tools=[library]).with_experience(lessons),
        [FIRST],
        reward="exact",
        run=tmp_path / "r",
        listeners=(),
    )
    assert "With library: Prefer the archive." in model.requests[0].messages[0].content
