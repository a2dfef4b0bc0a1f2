"""The planner: plans with needs, subtasks at the same time, an answer in the end; whatever is wrong has a way on."""

from __future__ import annotations

import asyncio
import json

import pytest

from agentmem.agents.agent import Agent
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Trajectory
from agentmem.errors import BadRequest, BudgetExceeded, InputError, ModelUnavailable
from agentmem.runs.journal import Journal
from agentmem.settings import Budget, ModelSettings
from agentmem.testing.scripted import ScriptedModel
from agentmem.tools.tool import tool
from tests.agents.planning import TASK, answer, asked, attempt, attempts, call, is_planner, plan, planner, team

TWO = plan(("a", "Find the first."), ("b", "Find the second."), ("sum", "Add them.", ["a", "b"]))
FOUND = {"Find the first.": "20", "Find the second.": "22", "Add them.": "42"}


async def test_plan_subtasks_answer(tmp_path):
    model = team([TWO, answer("42")], FOUND)
    rollout = await attempt(planner(model, system="Be brief."), tmp_path)
    assert (rollout.output, rollout.score, rollout.status) == ("42", 1.0, "ok")
    record = [(s.id, s.status, s.result, s.needs) for s in rollout.trajectory.plans[0].subtasks]
    assert record == [
        ("p1.a", "solved", "20", ()),
        ("p1.b", "solved", "22", ()),
        ("p1.sum", "solved", "42", ("p1.a", "p1.b")),
    ]
    assert [step.subtask for step in rollout.trajectory.steps] == ["", "p1.a", "p1.b", "p1.sum", ""]
    assert rollout.usage.calls == 5


async def test_an_executor_sees_its_subtask_and_what_it_needs_and_nothing_else(tmp_path):
    model = team([TWO, answer("42")], FOUND)
    await attempt(planner(model, system="SYSTEM"), tmp_path)
    first, _, last = (request for request in model.requests if not is_planner(request))
    whole = "\n".join(m.content for m in first.messages)
    assert asked(first) == "Find the first."
    assert TASK.input not in whole
    assert "SYSTEM" not in whole
    assert "20" in asked(last)
    assert "22" in asked(last)
    results = model.requests[-1].messages
    assert [m.role for m in results] == ["system", "user", "assistant", "user"], "results are told, not said"


async def test_independent_subtasks_are_done_at_the_same_time(tmp_path):
    under_way = most = 0

    async def does(request):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.02)
        under_way -= 1
        return FOUND[asked(request).splitlines()[-1]]

    await attempt(planner(team([TWO, answer("42")], does)), tmp_path)
    assert most == 2


async def test_what_is_answered_at_once_needs_no_executor(tmp_path):
    model = ScriptedModel([answer("42")])
    rollout = await attempt(planner(model), tmp_path)
    assert (rollout.score, rollout.trajectory.plans, model.calls) == (1.0, (), 1)


async def test_a_later_plan_may_need_what_was_solved_earlier(tmp_path):
    moves = [plan(("a", "Find the first.")), plan(("b", "Add them.", ["p1.a"])), answer("42")]
    model = team(moves, FOUND)
    rollout = await attempt(planner(model), tmp_path)
    assert [s.id for p in rollout.trajectory.plans for s in p.subtasks] == ["p1.a", "p2.b"]
    assert "20" in asked([r for r in model.requests if not is_planner(r)][-1])
    assert rollout.score == 1.0


async def test_the_last_results_are_always_read(tmp_path):
    moves = [plan(("a", "Find the first.")), plan(("a", "Add them.")), answer("42")]
    model = team(moves, FOUND)
    rollout = await attempt(planner(model, max_cycles=2), tmp_path)
    assert rollout.score == 1.0
    assert "No further plan is possible" in model.requests[-1].messages[-1].content
    assert "42" in model.requests[-1].messages[-1].content


async def test_a_planner_that_never_answers_is_at_its_limit_and_its_plan_is_no_answer(tmp_path):
    one = plan(("a", "Find the first."))
    model = team([one] * 4, FOUND)
    rollout = await attempt(planner(model, max_cycles=2), tmp_path)
    assert (rollout.output, rollout.status, rollout.trajectory.ended_by) == (None, "limit", "steps")
    assert len(rollout.trajectory.plans) == 2


BROKEN = {
    "text": "I would first find the numbers.",
    "prose": "FINAL ANSWER: 42",
    "empty": "",
    "null": "null",
    "a list": "[1, 2]",
    "100 steps": plan(*((f"s{i}", "Do it.") for i in range(100))),
    "no steps": json.dumps({"plan": []}),
    "both": json.dumps({"answer": "1", "plan": [{"id": "a", "description": "x"}]}),
    "double": plan(("a", "x"), ("a", "y")),
    "unknown": plan(("a", "x", ["z"])),
    "circle": plan(("a", "x", ["b"]), ("b", "y", ["a"]), ("c", "z")),
    "itself": plan(("a", "x", ["a"])),
    "blank": plan(("a", " ")),
    "no id": json.dumps({"plan": [{"description": "x"}]}),
    "a path": plan(("../a", "x")),
}


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_broken_plan_is_asked_for_again_with_what_is_wrong(tmp_path, broken):
    model = team([BROKEN[broken], plan(("a", "Find the first.")), answer("42")], FOUND)
    rollout = await attempt(planner(model), tmp_path)
    assert (rollout.score, rollout.status) == (1.0, "ok")
    assert "That is not valid" in model.requests[1].messages[-1].content


async def test_each_fault_has_a_sentence(tmp_path):
    says = {
        "100 steps": "at most 8 subtasks, and this one has 100",
        "double": "two subtasks have the id 'a'",
        "unknown": "needs 'z', which is neither in this plan nor solved earlier",
        "circle": "the subtasks a, b need each other in a circle",
        "both": "either an 'answer' or a 'plan'",
        "blank": "needs a description",
        "a path": "must be 1 to 24 letters",
    }
    for broken, sentence in says.items():
        model = team([BROKEN[broken], answer("42")], FOUND)
        await attempt(planner(model), tmp_path / broken)
        assert sentence in model.requests[1].messages[-1].content, broken


@pytest.mark.parametrize("broken", BROKEN)
async def test_twice_broken_the_task_itself_is_the_subtask(tmp_path, broken):
    def does(request):
        assert asked(request) == TASK.input
        return "42"

    model = team([BROKEN[broken], BROKEN[broken], "42"], does)
    rollout = await attempt(planner(model), tmp_path)
    assert (rollout.output, rollout.score, rollout.status) == ("42", 1.0, "ok")
    assert [s.id for s in rollout.trajectory.plans[0].subtasks] == ["p1.task"]
    assert len(rollout.trajectory.steps) == 4, "what could not be read was paid for too"


async def test_broken_after_results_it_answers_from_them(tmp_path):
    model = team([plan(("a", "Find the first.")), "hm", "hm", answer("42")], FOUND)
    rollout = await attempt(planner(model), tmp_path)
    assert rollout.score == 1.0
    assert "No further plan" in model.requests[-1].messages[-1].content


@pytest.mark.parametrize(
    "last", ["", '{"plan": [{"id": "x", "description": "more"}]}', '```{"plan": [', '{"answer": ""}']
)
async def test_no_answer_in_the_reserved_turn_is_asked_for_once_more(tmp_path, last):
    model = team([plan(("a", "Find the first.")), last, answer("42")], FOUND)
    rollout = await attempt(planner(model, max_cycles=1), tmp_path)
    assert rollout.output == "42"
    model = team([plan(("a", "Find the first.")), last, last], FOUND)
    rollout = await attempt(planner(model, max_cycles=1), tmp_path / "again")
    assert (rollout.output, rollout.status) == (None, "limit")


async def test_an_executor_that_says_nothing_has_failed_and_who_needs_it_is_skipped(tmp_path):
    moves = [TWO, plan(("c", "Find the third.")), answer("42")]
    model = team(moves, {**FOUND, "Find the second.": "  ", "Find the third.": "22"})
    rollout = await attempt(planner(model), tmp_path)
    a, b, s = rollout.trajectory.plans[0].subtasks
    assert [a.status, b.status, s.status] == ["solved", "failed", "skipped"]
    told = model.requests[3].messages[-1].content
    assert "said nothing" in told
    assert "needs p1.b" in told
    assert rollout.score == 1.0


async def test_what_was_not_solved_cannot_be_needed(tmp_path):
    moves = [plan(("a", "Find nothing.")), plan(("b", "x", ["p1.a"])), answer("42")]
    model = team(moves, {"Find nothing.": ""})
    await attempt(planner(model), tmp_path)
    assert "neither in this plan nor solved earlier" in model.requests[-1].messages[-1].content


async def test_turns_that_run_out_are_a_status_with_the_last_words(tmp_path):
    @tool
    def look() -> str:
        """Look."""
        return "fog"

    model = team([plan(("a", "Look.")), answer("42")], lambda request: call("look"))
    rollout = await attempt(planner(model, tools=[look], max_steps=2), tmp_path)
    subtask = rollout.trajectory.plans[0].subtasks[0]
    assert (subtask.status, rollout.score) == ("limit", 1.0)
    assert "ran out of turns" in model.requests[-1].messages[-1].content


async def test_a_refused_conversation_is_the_subtasks_failure_and_a_missing_model_the_attempts(tmp_path):
    refuses = team([plan(("a", "x")), answer("42")], lambda request: BadRequest("too long"))
    rollout = await attempt(planner(refuses), tmp_path)
    assert (rollout.score, rollout.trajectory.plans[0].subtasks[0].status) == (1.0, "failed")
    gone = team([plan(("a", "x")), answer("42")], lambda request: ModelUnavailable("down"))
    rollout = await attempt(planner(gone, calls=ModelSettings(attempts=1)), tmp_path / "gone")
    assert (rollout.score, rollout.failure.kind) == (None, "model_unavailable")


async def test_tokens_are_limited_over_the_whole_attempt(tmp_path):
    model = team([plan(("a", "x"), ("b", "y")), answer("42")], lambda request: "word " * 300)
    rollout = await attempt(planner(model, max_rollout_tokens=500), tmp_path)
    assert (rollout.output, rollout.trajectory.ended_by, rollout.status) == (None, "tokens", "limit")
    assert len(rollout.trajectory.plans) == 1


async def test_planner_and_executor_may_be_two_models_on_one_account(tmp_path):
    plans = ScriptedModel([plan(("a", "x")), answer("42")], name="scripted/plans")
    does = ScriptedModel(["20"], name="scripted/does")
    agent = Agent(plans, style="planner", executor=does, max_rollout_tokens=100_000)
    rollout = await attempt(agent, tmp_path)
    assert (rollout.score, plans.calls, does.calls, rollout.usage.calls) == (1.0, 2, 1, 3)
    assert agent.describe()["executor"] == "scripted/does"


async def test_the_executors_tokens_count_for_the_planner_too(tmp_path):
    plans = ScriptedModel(lambda request: plan(("a", "x")))
    does = ScriptedModel(lambda request: "word " * 1000)
    rollout = await attempt(planner(plans, executor=does, max_rollout_tokens=900), tmp_path)
    assert (rollout.trajectory.ended_by, plans.calls, does.calls) == ("tokens", 1, 1)


async def test_purposes_are_apart_in_the_journal_and_together_in_the_totals(tmp_path):
    await attempt(planner(team([TWO, answer("42")], FOUND)), tmp_path)
    journal = Journal(tmp_path / "run" / "journal.sqlite")
    places = {row[0] for row in journal.rows("SELECT purpose FROM steps WHERE purpose LIKE 'act%'")}
    purposes = {row[0] for row in journal.rows("SELECT purpose FROM attempts")}
    journal.close()
    assert places == {"act", "act/p1.a", "act/p1.b", "act/p1.sum"}
    assert purposes == {"act"}


@pytest.mark.parametrize("calls", range(1, 7))
async def test_stopped_in_the_middle_of_parallel_subtasks_nothing_is_bought_twice(tmp_path, calls):
    looked = []

    @tool
    def look(where: str) -> str:
        """Look somewhere."""
        looked.append(where)
        return f"{where} has 21"

    def does(request):
        where = "here" if "first" in request.messages[1].content else "there"
        return call("look", where=where) if request.messages[-1].role == "user" else f"{where}: 21"

    def script(request):
        if is_planner(request):
            return answer("42") if len(request.messages) > 2 else plan(("a", "Find first."), ("b", "Find second."))
        return does(request)

    agent = planner(ScriptedModel(script, latency=lambda request: 0.01 * (request.seed % 3)), tools=[look])
    if calls < 6:
        with pytest.raises(BudgetExceeded):
            await attempt(agent, tmp_path, budget=Budget(max_calls=calls))
    rollout = await attempt(agent, tmp_path)
    assert rollout.score == 1.0
    assert agent.model.calls == 6, "what was stored is not asked again"
    assert sorted(looked) == ["here", "there"]
    assert [s.result for s in rollout.trajectory.plans[0].subtasks] == ["here: 21", "there: 21"]


async def test_32_at_once_do_not_mix(tmp_path):
    async def script(request):
        whole = " ".join(m.content for m in request.messages)
        number = next(word for word in whole.split() if word.startswith("number-"))
        assert all(word == number for word in whole.split() if word.startswith("number-"))
        await asyncio.sleep(0.001 * (request.seed % 5))
        if not is_planner(request):
            return f"found for {number}"
        if len(request.messages) == 2:
            return plan(*((f"s{i}", f"Find part {i} of {number} .") for i in range(4)))
        assert request.messages[-1].content.count(f"found for {number}") == 4
        return answer(number)

    tasks = [Task(id=f"t{i}", input=f"What is number-{i} ?", answer=f"number-{i}") for i in range(32)]
    made = await attempts(planner(ScriptedModel(script)), tasks, tmp_path / "run", concurrency=32)
    assert [rollout.score for rollout in made] == [1.0] * 32


async def test_a_time_limit_ends_all_subtasks(tmp_path):
    ended = []

    async def does(request):
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(asked(request))

    model = team([plan(("a", "x"), ("b", "y"))], does)
    rollout = await attempt(planner(model, max_rollout_seconds=0.2), tmp_path)
    assert (rollout.score, rollout.failure.kind) == (None, "rollout_timeout")
    assert sorted(ended) == ["x", "y"]


def test_trajectories_of_older_journals_load():
    old = '{"prompt":[],"steps":[{"reply":{"role":"assistant","content":"4"}}],"output":"4","ended_by":"answer"}'
    assert Trajectory.model_validate_json(old).plans == ()


def test_what_does_not_go_together_is_refused():
    with pytest.raises(InputError, match="'react' or 'planner'"):
        Agent(ScriptedModel([]), style="plan")
    with pytest.raises(InputError, match="Only a model plans"):
        Agent(lambda task, prior: "x", style="planner")
    with pytest.raises(InputError, match="Only a planner has an executor"):
        Agent(ScriptedModel([]), executor="scripted/echo")
