"""The 22 defects of the reference implementation of Training-Free GRPO: each has a test that fails when it comes back.

The table names the tests; those that stand nowhere else are below. That the named ones exist is tested too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import alearn
from agentmem.domain.task import Task, TaskSet
from agentmem.errors import ModelUnavailable, TooManyErrors
from agentmem.rewards.judge import Judge
from agentmem.runs.journal import Journal
from agentmem.settings import ModelSettings
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel, load_script
from tests.learning.zork import TASKS, Zork

TESTS = Path(__file__).parents[1]
DEFECTS = {
    1: ("the python tool mixes rollouts", "tools/test_python_tool.py::test_32_at_once_do_not_mix"),
    2: (
        "a slow tool call freezes the loop",
        "sandbox/test_worker.py::test_a_hanging_request_is_killed_and_the_next_one_served",
    ),
    3: ("resume corrupts the library", "runs/test_resume.py::test_kill_9_at_30_random_moments"),
    4: (
        "one of the two ways to learn always raises",
        "learning/test_distillation.py::test_faithful_makes_the_papers_calls",
    ),
    5: ("DELETE without text is ignored", "learning/test_proposals.py::test_a_delete_needs_no_text"),
    6: (
        "operations on unknown ids vanish, or become additions",
        "learning/test_distillation.py::test_each_rejected_operation_is_logged_with_its_reason",
    ),
    7: ("shuffle has no effect", "learning/test_reference_defects.py::test_7_every_epoch_has_an_order_of_its_own"),
    8: (
        "evaluation runs at the rollouts' temperature",
        "learning/test_reference_defects.py::test_8_each_phase_has_its_temperature",
    ),
    9: (
        "later evaluations return the first one's results",
        "learning/test_reference_defects.py::test_9_epoch_2_gets_answers_of_its_own",
    ),
    10: ("the export is another prompt", "learning/test_export.py::test_the_prompt_is_the_prior_byte_for_byte"),
    11: (
        "answers leak without ground truth",
        "learning/test_distillation.py::test_without_references_no_answer_grade_or_feedback_reaches_a_prompt",
    ),
    12: (
        "failures of the infrastructure count as wrong",
        "runs/test_resume.py::test_faults_beyond_the_cap_are_typed_and_the_run_is_still_useful",
    ),
    13: ("equal half scores teach", "domain/test_rollout.py::test_which_groups_teach"),
    14: (
        "a missing math-verify falls back in silence",
        "rewards/test_math_reward.py::test_without_math_verify_it_says_what_to_install",
    ),
    15: (
        "the judge's temperature is not used",
        "learning/test_reference_defects.py::test_15_the_judge_is_asked_at_temperature_0",
    ),
    16: (
        "bad batch JSON loses a step",
        "learning/test_distillation.py::test_a_failed_consolidation_loses_nothing",
    ),
    17: (
        "all rollouts failing is a crash",
        "learning/test_reference_defects.py::test_17_when_all_rollouts_fail_it_is_said",
    ),
    18: (
        "failed summaries turn a group uniform",
        "learning/test_reference_defects.py::test_18_a_failed_summary_drops_no_rollout_in_silence",
    ),
    19: ("the cache ignores the configuration", "runs/test_run.py::test_other_settings_are_refused_and_named"),
    20: ("keys are written to disk", "learning/test_reference_defects.py::test_20_no_key_reaches_the_run"),
    21: ("stragglers idle the pool", "agents/test_sampler.py::test_a_straggler_holds_up_nobody_else"),
    22: (
        "the whole library, uncapped, in every prompt",
        "agents/test_prior.py::test_the_budget_holds_and_earlier_ones_come_first",
    ),
}
QUICK = {"reward": "numeric", "extractor": "exemplar", "gate": "always", "group_size": 3, "listeners": ()}
SUMS = TaskSet(
    [Task(id=f"{a}+{b}", input=f"What is {a} + {b}?", answer=str(a + b)) for a in range(5) for b in range(4)]
)


@pytest.mark.parametrize("number", DEFECTS)
def test_each_defect_has_a_test(number):
    file, name = DEFECTS[number][1].split("::")
    assert re.search(rf"^(async )?def {name}\(", (TESTS / file).read_text(), re.MULTILINE)


def test_there_are_22():
    assert sorted(DEFECTS) == list(range(1, 23))


async def test_7_every_epoch_has_an_order_of_its_own(tmp_path):
    model = ScriptedModel(load_script("coin?p=0.5"), latency=0.0)
    await alearn(
        Agent(model), SUMS, run=tmp_path / "r", **{**QUICK, "epochs": 2, "concurrency": 1, "group_size": 2}
    )
    asked = list(dict.fromkeys((n // 40, r.messages[-1].content) for n, r in enumerate(model.requests)))
    first, second = ([text for epoch, text in asked if epoch == e] for e in (0, 1))
    assert sorted(first) == sorted(second)
    assert first != second


async def test_8_each_phase_has_its_temperature(tmp_path):
    model = ScriptedModel(load_script("learner?p=0.5"))
    changes = {
        "gate": "paired",
        "gate_min_tasks": 6,
        "gate_rounds": 1,
        "temperature": 0.9,
        "gate_temperature": 0.2,
    }
    await alearn(Agent(model), SUMS, run=tmp_path / "r", epochs=1, **{**QUICK, **changes})
    assert {request.temperature for request in model.requests} == {0.9, 0.2}
    assert sum(request.temperature == 0.9 for request in model.requests) == 14 * 3


async def test_9_epoch_2_gets_answers_of_its_own(tmp_path):
    model = ScriptedModel(load_script("coin?p=0.5"))
    await alearn(Agent(model), SUMS, run=tmp_path / "r", epochs=2, **QUICK)
    assert model.calls == 2 * len(SUMS) * 3
    assert len({request.seed for request in model.requests}) == model.calls


async def test_15_the_judge_is_asked_at_temperature_0(tmp_path):
    judge = ScriptedModel(lambda request: '{"reasoning": "fine", "score": 1}')
    agent = Agent(ScriptedModel(lambda request: "yes"))
    options = {**QUICK, "reward": Judge(judge), "temperature": 0.9}
    await alearn(agent, SUMS.head(3), run=tmp_path / "r", epochs=1, **options)
    assert {request.temperature for request in judge.requests} == {0.0}


async def test_17_when_all_rollouts_fail_it_is_said(tmp_path):
    model = ScriptedModel(lambda request: ModelUnavailable("the server is gone"))
    agent = Agent(model, calls=ModelSettings(attempts=1))
    with pytest.raises(TooManyErrors, match="the server is gone"):
        await alearn(agent, SUMS, run=tmp_path / "r", epochs=1, **QUICK)


async def test_18_a_failed_summary_drops_no_rollout_in_silence(tmp_path):
    calls = []

    def summarise(request):
        calls.append(1)
        return ModelUnavailable("down") if len(calls) == 1 else "It added."

    world = Zork(p=0.5, summarise=summarise)
    agent = Agent(world.model, calls=ModelSettings(attempts=1))
    options = {**QUICK, "extractor": "faithful", "embedder": HashEmbedder(), "group_size": 4}
    library = await alearn(agent, TASKS, run=tmp_path / "r", epochs=1, **options)
    assert len(library) == 1  # the other groups teach
    journal = Journal(tmp_path / "r" / "journal.sqlite")
    record = next(journal.rows("SELECT result FROM steps WHERE purpose='decision'"))[0]
    journal.close()
    assert record.count(": down") == 1  # and the one that could not be summarised is named


async def test_20_no_key_reaches_the_run(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    agent = Agent(ScriptedModel(load_script("coin?p=0.5")), calls=ModelSettings(attempts=1))
    await alearn(agent, SUMS, run=tmp_path / "r", epochs=1, **QUICK)
    written = b"".join(file.read_bytes() for file in (tmp_path / "r").rglob("*") if file.is_file())
    assert b"sk-very-secret" not in written
    assert b"What is 1 + 1?" in written
