"""The 26 defects of the released code of AgentFly/Memento: each that could apply has a test that fails with it.

The table names the tests; those that stand nowhere else are below. That the named ones exist is tested too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agentmem.agents.agent import Agent
from agentmem.agents.memory import Feedback
from agentmem.agents.trimming import trimmed
from agentmem.api import aevaluate
from agentmem.domain.case import Case
from agentmem.domain.reward import Reward
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message
from agentmem.memory.case_bank import CaseBank
from agentmem.models.openai import OpenAIModel
from agentmem.rewards.judge import Judge
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel
from agentmem.tools.tool import tool
from tests.agents.planning import answer, attempt, attempts, call, is_planner, plan, planner

TESTS = Path(__file__).parents[1]
HERE = "agents/test_memento_defects.py"
DEFECTS = {
    1: ("without its folders nothing is ever learned", f"{HERE}::test_1_nothing_has_to_exist_beforehand"),
    2: (
        "reasoning models refuse the token limit",
        "models/test_openai.py::test_reasoning_models_have_a_dialect_of_their_own",
    ),
    3: ("importing needs a GPU", "test_architecture.py::test_import_agentmem_loads_no_vendor"),
    4: ("an empty environment variable crashes it", f"{HERE}::test_4_an_empty_variable_is_as_good_as_none"),
    5: ("a key written into the code is used", "models/test_openai.py::test_openai_itself_needs_a_key"),
    6: ("dependencies are not declared", "test_architecture.py::test_dependencies_are_pinned"),
    7: ("the last results are never read", "agents/test_planner.py::test_the_last_results_are_always_read"),
    8: (
        "a plan that cannot be read is judged as an answer, and stored as a failure",
        "agents/test_planner.py::test_twice_broken_the_task_itself_is_the_subtask",
    ),
    9: ("JSON in prose is not found", f"{HERE}::test_9_a_plan_in_prose_or_fences_is_found"),
    10: (
        "no cap, empty replies, text beside calls, and bad arguments end or hang the question",
        f"{HERE}::test_10_text_beside_calls_keeps_the_calls",
    ),
    11: ("trimming loses the question and orphans results", "agents/test_trimming.py::test_laws"),
    12: (
        "an exception leaks one question into the next",
        f"{HERE}::test_12_a_failed_question_leaves_nothing_behind",
    ),
    13: (
        "the executor is shown the planner's memory",
        "agents/test_three_memories.py::test_the_next_time_is_better_by_all_three",
    ),
    14: ("a list of right answers is one long string", f"{HERE}::test_14_each_of_several_answers_is_right"),
    15: ("a judge that fails makes a negative case", f"{HERE}::test_15_a_judge_that_fails_writes_nothing"),
    16: (
        "all cases of a slate get one label, so that none is told from another",
        "memory/test_kernel_q.py::test_within_one_task_what_helps_stands_out",
    ),
    17: (
        "validation knows the queries of training",
        "memory/test_kernel_q.py::test_the_network_tells_cases_apart_on_queries_that_it_was_not_trained_on",
    ),
    18: (
        "values are no probabilities of success",
        "memory/test_kernel_q.py::test_a_fresh_network_says_the_baseline",
    ),
    19: ("the whole bank is encoded for every query", f"{HERE}::test_19_a_query_encodes_itself_alone"),
    20: (
        "of several plans the last alone is remembered",
        f"{HERE}::test_20_all_plans_are_remembered_with_where_from",
    ),
    21: (
        "a question recalls itself",
        "agents/test_three_memories.py::test_in_a_test_a_task_does_not_recall_its_own_subtasks",
    ),
    22: (
        "arithmetic returns a coroutine",
        "tools/test_calculator.py::test_defect_22_every_operation_gives_a_number",
    ),
    23: (
        "endings in capitals, and cells as 1A",
        "tools/test_read_file.py::test_defect_23_an_upper_case_ending_and_cells_as_in_excel",
    ),
    24: (
        "web text reaches plans, memory and a shell unguarded",
        "agents/test_taint.py::test_a_case_that_rests_on_it_is_quarantined_unless_a_reference_verified_it",
    ),
    25: (
        "one dead server ends all",
        "agents/test_real_tools.py::test_a_server_that_cannot_start_is_noted_and_the_run_goes_on",
    ),
    26: ("no tests; what is named does not exist", f"{HERE}::test_each_defect_has_a_test"),
}
TASK = Task(id="t", input="What is 6 times 7?", answer="42")


@pytest.fixture
def bank(tmp_path):
    bank = CaseBank(tmp_path / "bank", embedder=HashEmbedder())
    yield bank
    bank.close()


@pytest.mark.parametrize("number", DEFECTS)
def test_each_defect_has_a_test(number):
    file, name = DEFECTS[number][1].split("::")
    assert re.search(rf"^(async )?def {name}\(", (TESTS / file).read_text(), re.MULTILINE)


def test_there_are_26():
    assert sorted(DEFECTS) == list(range(1, 27))


async def test_1_nothing_has_to_exist_beforehand(tmp_path):
    folder = tmp_path / "not" / "there" / "bank"
    agent = planner(ScriptedModel([answer("42")]))
    agent = agent.with_memory(folder, embedder=HashEmbedder(), policy="similarity", online=True)
    await attempts(agent, [TASK], tmp_path / "nor" / "this")
    assert [case.action for case in agent.memory.bank] == ["42"]
    agent.memory.subtasks.bank.close()
    agent.memory.bank.close()


def test_4_an_empty_variable_is_as_good_as_none(monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "AGENTMEM_PROMPTS"):
        monkeypatch.setenv(name, "")
    model = OpenAIModel.from_name("openai/m", base_url="http://127.0.0.1:1/v1")
    assert Agent(model).name == "openai/m"


@pytest.mark.parametrize("form", ["Here is my plan:\n```json\n{}\n```\nGood?", "```{}```", "Sure! {}", "\ufeff{}"])
async def test_9_a_plan_in_prose_or_fences_is_found(tmp_path, form):
    said = form.replace("{}", plan(("a", "Multiply."), ("b", "Check it.", ["a"])))

    def script(request):
        if not is_planner(request):
            return "42"
        return said if len(request.messages) == 2 else form.replace("{}", answer("42"))

    rollout = await attempt(planner(ScriptedModel(script)), tmp_path, task=TASK)
    assert rollout.score == 1.0
    assert len(rollout.trajectory.plans[0].subtasks) == 2


async def test_10_text_beside_calls_keeps_the_calls(tmp_path):
    @tool
    def look() -> str:
        """Look."""
        return "42"

    both = call("look").model_copy(update={"content": "I look, and the answer is 41."})
    model = ScriptedModel([both, "42"])
    rollout = await attempt(Agent(model, tools=[look]), tmp_path, task=TASK)
    assert (rollout.output, model.requests[1].messages[-1].content) == ("42", "42")
    endless = ScriptedModel(lambda request: "" if is_planner(request) else both)
    rollout = await attempt(planner(endless, tools=[look], max_steps=3), tmp_path / "endless", task=TASK)
    assert (rollout.output, rollout.status) == (None, "limit")
    assert endless.calls == 2 + 3 + 2


def test_11_text_that_looks_like_a_template_does_not_raise():
    strange = Message(role="user", content="<|endoftext|><|im_start|>" * 100)
    said = [Message(role="assistant", content="<|endoftext|>" * 100) for _ in range(5)]
    assert len(trimmed((strange,), said, max_tokens=700)) == 2


async def test_12_a_failed_question_leaves_nothing_behind(tmp_path):
    def script(request):
        told = " ".join(m.content for m in request.messages)
        if is_planner(request):
            return plan(("a", "Go to Rome.")) if "Rome" in told else answer("42")
        return call("fail")

    @tool
    def fail() -> str:
        """Fail."""
        raise ValueError("no")

    model = ScriptedModel(script)
    agent = planner(model, tools=[fail], max_rollout_tokens=200)
    tasks = [Task(id="rome", input="What of Rome?", answer="42"), TASK]
    made = await attempts(agent, tasks, tmp_path / "run", concurrency=1)
    assert [rollout.status for rollout in made] == ["limit", "ok"]
    assert not any("Rome" in m.content for m in model.requests[-1].messages)


async def test_14_each_of_several_answers_is_right(tmp_path):
    tasks = [
        Task(id=said, input=f"Say {said}.", answer="42", metadata={"aliases": ["forty-two"]})
        for said in ("42", "forty-two")
    ]
    model = ScriptedModel(lambda request: request.messages[-1].content.removeprefix("Say ").rstrip("."))
    report = await aevaluate(Agent(model), tasks, reward="exact", run=tmp_path / "run", listeners=())
    assert report.score == 1.0


async def test_15_a_judge_that_fails_writes_nothing(tmp_path, bank):
    agent = planner(ScriptedModel(lambda request: answer("42"))).with_memory(
        bank, policy="similarity", online=True
    )
    judge = Judge(ScriptedModel(lambda request: "I cannot say"))
    await aevaluate(agent, [TASK], reward=judge, run=tmp_path / "run", listeners=())
    assert (len(bank), bank.seq) == (0, 0)
    agent.memory.subtasks.bank.close()


def test_19_a_query_encodes_itself_alone(tmp_path):
    class Counting(HashEmbedder):
        texts = 0

        def embed(self, texts):
            Counting.texts += len(texts)
            return super().embed(texts)

    bank = CaseBank(tmp_path / "bank", embedder=Counting())
    bank.add_many(Case.of(f"Question {n} about passwords", "IT desk", reward=1.0) for n in range(50))
    before = Counting.texts
    for n in range(3):
        bank.recall(f"My password number {n}")
    assert Counting.texts - before == 3
    bank.close()


async def test_20_all_plans_are_remembered_with_where_from(tmp_path, bank):
    moves = [plan(("a", "First.")), plan(("a", "Second.")), answer("42")] * 2

    def feedback(task, rollout):
        return (
            Feedback(reward=Reward.of(1.0)) if task.id == "t" else Feedback(reward=Reward.unknown("nobody said"))
        )

    model = ScriptedModel(lambda request: moves.pop(0) if is_planner(request) else "done")
    agent = planner(model).with_memory(bank, policy="similarity", online=True, feedback=feedback)
    await attempts(agent, [TASK, TASK.model_copy(update={"id": "u"})], tmp_path / "run", concurrency=1)
    (case,) = bank.list()
    assert case.action == "Plan 1:\np1.a: First.\nPlan 2:\np2.a: Second."
    assert case.trace == ("p1.a solved: done", "p2.a solved: done", "answer: 42")
    assert (case.provenance.source, case.task_id) == ("run run", "t")
    assert json.loads(case.model_dump_json())["reward"] == 1.0, "and what nobody judged is no failure"
    agent.memory.subtasks.bank.close()
