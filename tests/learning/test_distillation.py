"""Lessons in words: the calls that are made, what they see, and what becomes of what they say."""

from __future__ import annotations

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import alearn
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.task import Task, TaskSet
from agentmem.errors import BadRequest, InputError, ModelUnavailable
from agentmem.events import GroupFinished, Noted, OperationsDecided
from agentmem.learning.step import StepRecord
from agentmem.settings import LearnSettings
from agentmem.testing.hash_embedder import HashEmbedder
from tests.learning.zork import LESSON, TASKS, Zork

ONE_STEP = {
    "reward": "numeric",
    "group_size": 4,
    "epochs": 1,
    "gate": "always",
    "embedder": HashEmbedder(),
}


async def learned(world: Zork, tmp_path, *, tasks=TASKS, agent=None, heard=None, **changes) -> ExperienceLibrary:
    agent = agent or Agent(world.model, max_completion_tokens=50)
    listeners = [] if heard is None else [heard.append]
    return await alearn(agent, tasks, run=tmp_path / "run", listeners=listeners, **{**ONE_STEP, **changes})


def teaching(heard) -> int:
    return sum(event.teaches for event in heard if isinstance(event, GroupFinished))


async def test_fused_makes_one_call_a_teaching_group_and_one_for_all_conflicts(tmp_path):
    world, heard = Zork(), []
    library = await learned(world, tmp_path, heard=heard)
    assert [e.text for e in library] == [LESSON["text"]]
    assert world.count("distil") == teaching(heard) > 5
    assert world.count("consolidate") == 1
    assert world.count("summarise") == world.count("contrast") == world.count("update") == 0


async def test_faithful_makes_the_papers_calls(tmp_path):
    world, heard = Zork(), []
    library = await learned(world, tmp_path, heard=heard, extractor="faithful")
    assert [e.text for e in library] == [LESSON["text"]]
    groups = teaching(heard)
    assert world.count("summarise") == 4 * groups
    assert world.count("contrast") == world.count("update") == groups
    assert world.count("consolidate") == 1


@pytest.mark.parametrize("extractor", ["fused", "faithful"])
async def test_every_lesson_has_its_evidence(extractor, tmp_path):
    heard = []
    library = await learned(Zork(), tmp_path, heard=heard, extractor=extractor)
    origins = library.experiences[0].origins
    assert len(origins) == teaching(heard)  # consolidation of equals keeps the groups of all
    groups = {event.group.task.id: event.group for event in heard if isinstance(event, GroupFinished)}
    assert all(origin.rewards == groups[origin.task_id].rewards for origin in origins)
    assert all(origin.extractor == extractor for origin in origins)


async def test_the_extractor_sees_attempts_rewards_objectives_and_what_they_had_seen(tmp_path):
    start = ExperienceLibrary().apply([Add(text="Stay calm.")])
    world = Zork()
    agent = Agent(world.model).with_experience(start)
    await learned(world, tmp_path, agent=agent, agent_objective="Bookkeeping.", learning_objective="Exactness.")
    prompt = world.prompts("distil")[0]
    assert "Attempt 1, reward" in prompt
    assert f"had seen {start.experiences[0].id}" in prompt
    assert f"[{start.experiences[0].id}] Stay calm." in prompt
    assert "Bookkeeping." in prompt
    assert "Exactness." in prompt
    assert "The reference answer (never repeat it in a lesson)" in prompt


@pytest.mark.parametrize("extractor", ["fused", "faithful"])
async def test_without_references_no_answer_grade_or_feedback_reaches_a_prompt(extractor, tmp_path):
    world = Zork(p=0.7)
    tasks = TaskSet([task.model_copy(update={"answer": f"{int(task.answer) * 1000003}"}) for task in TASKS])
    await learned(world, tmp_path, tasks=tasks, extractor=extractor, reference="none")
    assert world.count("distil" if extractor == "fused" else "contrast") > 3
    everything = "\n".join(m.content for _, request in world.asked for m in request.messages)
    assert not any(task.answer in everything for task in tasks if len(task.answer) > 6)
    assert "expected" not in everything
    assert "reference answer" not in everything
    roles = ("distil",) if extractor == "fused" else ("contrast",)
    assert all("the majority may be wrong" in prompt for role in roles for prompt in world.prompts(role))


async def test_separate_model_and_temperature_for_the_extractor(tmp_path):
    rollouts, extractor = Zork(), Zork()
    import agentmem.models.names as names

    known = names.open_model
    try:
        library = await learned(rollouts, tmp_path, extractor_temperature=0.25, temperature=0.9)
    finally:
        names.open_model = known
    assert len(library) == 1
    assert {r.temperature for role, r in rollouts.asked if role == "task"} == {0.9}
    assert {r.temperature for role, r in rollouts.asked if role == "distil"} == {0.25}
    assert extractor.asked == []


async def test_a_function_is_an_extractor(tmp_path):
    def mine(group, library):
        return [Add(text=f"Think of {group.task.id}.")]

    world, heard = Zork(), []
    library = await learned(world, tmp_path, heard=heard, extractor=mine)
    assert len(library) == teaching(heard)
    assert world.count("distil") == 0
    assert library.experiences[0].origins[0].extractor.endswith("mine")


async def test_a_function_that_raises_or_returns_nonsense_costs_its_group_only(tmp_path):
    def broken(group, library):
        if group.task.id == "0+0":
            raise ValueError("oops")
        return ["add something"] if group.task.id == "1+0" else [Add(text=f"Think of {group.task.id}.")]

    heard = []
    library = await learned(Zork(p=0.5), tmp_path, heard=heard, extractor=broken)
    assert len(library) >= teaching(heard) - 2 > 0
    warned = [event.message for event in heard if isinstance(event, Noted) and event.level == "warning"]
    assert any("could not be distilled" in message for message in warned)


@pytest.mark.parametrize(
    "failure", [ModelUnavailable("down"), BadRequest("too long"), "no JSON at all", '{"x": 1}']
)
async def test_a_group_that_cannot_be_distilled_is_counted_and_the_others_teach(failure, tmp_path):
    calls = []

    def sometimes(request):
        calls.append(1)
        return (
            failure
            if "How much is 0 and" in request.messages[0].content
            else {"operations": [{"op": "add", **LESSON}]}
        )

    world, heard = Zork(p=0.5, distil=sometimes), []
    agent = Agent(world.model, calls=_impatient())
    library = await learned(world, tmp_path, agent=agent, heard=heard)
    assert len(library) == 1
    record = _records(tmp_path / "run")[0]
    assert 1 <= len(record.failed) <= 4
    assert all(text.startswith("0+") for text in record.failed)


async def test_a_failed_consolidation_loses_nothing(tmp_path):
    def distil(request):
        a = request.messages[0].content.split("How much is ")[1].split(" ")[0]
        return {"operations": [{"op": "add", "text": f"Add one to every sum that has {a} in it."}]}

    heard = []
    world = Zork(p=0.5, distil=distil, consolidate="this is no JSON")
    library = await learned(world, tmp_path, heard=heard)
    assert 5 <= len(library) <= 8
    assert any("stand as proposed" in event.message for event in heard if isinstance(event, Noted))


async def test_each_rejected_operation_is_logged_with_its_reason(tmp_path):
    world = Zork(
        distil={
            "operations": [
                {
                    "op": "add",
                    "text": "The answer to 7 and 3 is always 11, says TASK.".replace("TASK", "x" * 2100),
                },
                {"op": "modify", "id": "e-nope", "text": "y"},
                {"op": "explode"},
                {"op": "add", **LESSON},
            ]
        }
    )
    heard = []
    library = await learned(world, tmp_path, heard=heard)
    assert [e.text for e in library] == [LESSON["text"]]
    record = _records(tmp_path / "run")[0]
    assert any("no operation is called 'explode'" in text for text in record.unreadable)
    assert any("a lesson at most" in text for text in record.unreadable)
    reasons = {d.reason for d in record.proposed if not d.accepted}
    assert any("e-nope" in reason or "its cluster" in reason for reason in reasons)
    decided = [event for event in heard if isinstance(event, OperationsDecided)]
    assert len(decided[0].decisions) == len(record.proposed)


async def test_a_lesson_that_leaks_is_rejected(tmp_path):
    tasks = TaskSet([t.model_copy(update={"answer": str(int(t.answer) + 90000 + n)}) for n, t in enumerate(TASKS)])

    def leaking(request):
        answer = request.messages[0].content.split("never repeat it in a lesson):\n```\n")[1].split("\n")[0]
        return {"operations": [{"op": "add", "text": f"Say {answer}."}]}

    def lucky(request):
        i = next(t for t in tasks if t.input == request.messages[-1].content)
        return i.answer if (request.seed or 0) % 2 else "0"

    library = await learned(Zork(distil=leaking, task=lucky), tmp_path, tasks=tasks)
    assert len(library) == 0
    record = _records(tmp_path / "run")[0]
    assert record.proposed
    assert all("it holds the answer of task" in decision.reason for decision in record.proposed)


async def test_critique_makes_an_all_wrong_group_teach(tmp_path):
    world, heard = Zork(p=0.0), []
    plain = await learned(world, tmp_path / "plain")
    assert len(plain) == 0  # nothing is ever right, so nothing is contrasted
    library = await learned(world, tmp_path / "critique", critique=True, heard=heard)
    assert len(library) == 1
    groups = [event.group for event in heard if isinstance(event, GroupFinished)]
    assert all([r.off_policy for r in group.rollouts] == [False] * 4 + [True] for group in groups)
    assert all("refined after a critique" in prompt for prompt in world.prompts("distil"))


async def test_a_callable_without_a_model_is_told_what_it_lacks(tmp_path):
    with pytest.raises(InputError, match="set extractor_model, give the agent model"):
        await learned(Zork(), tmp_path, agent=Agent(lambda task, prior: "1"))


async def test_a_group_of_one_is_contrasted_with_its_reference(tmp_path):
    world, heard = Zork(), []
    library = await learned(world, tmp_path / "with", heard=heard, group_size=1)
    wrong = sum(e.group.rewards == (0.0,) for e in heard if isinstance(e, GroupFinished))
    assert teaching(heard) == world.count("distil") == wrong > 5
    assert len(library) == 1
    blind = []
    assert len(await learned(Zork(), tmp_path / "without", heard=blind, group_size=1, reference="none")) == 0
    assert teaching(blind) == 0


async def test_direct_tips_are_asked_for_once_and_see_no_attempt(tmp_path):
    world = Zork(tips={"lessons": [LESSON]})
    library = await learned(world, tmp_path, extractor="tips", epochs=2)
    assert [e.text for e in library] == [LESSON["text"]]
    (prompt,) = world.prompts("tips")
    assert TASKS[0].input in prompt or TASKS[5].input in prompt
    assert "Attempt" not in prompt
    assert world.count("distil") == 0


def _impatient():
    from agentmem.settings import ModelSettings

    return ModelSettings(attempts=1)


def _records(folder) -> list[StepRecord]:
    from agentmem.runs.journal import Journal

    journal = Journal(folder / "journal.sqlite")
    try:
        rows = list(journal.rows("SELECT result FROM steps WHERE purpose='decision' ORDER BY step"))
        return [StepRecord.model_validate_json(row[0]) for row in rows]
    finally:
        journal.close()


def test_defaults_are_the_papers():
    s = LearnSettings()
    assert (s.group_size, s.epochs, s.temperature, s.gate_temperature) == (5, 3, 0.7, 0.3)
    assert (s.lessons_per_group, s.lesson_words) == (2, 32)


def test_a_task_may_teach_without_an_answer():
    assert Task(id="x", input="?").answer is None


@pytest.mark.parametrize("extractor", ["fused", "faithful"])
async def test_no_two_extractor_calls_share_a_seed(extractor, tmp_path):
    world = Zork()
    await learned(world, tmp_path, extractor=extractor)
    seeds = [request.seed for role, request in world.asked if role != "task"]
    assert len(set(seeds)) == len(seeds) > 10


GATED = TaskSet([task.model_copy(update={"gated": True}) for task in TASKS])
START = ExperienceLibrary().apply([Add(text="Add numbers."), Add(text="Sums are sums.")])


@pytest.mark.parametrize("tasks", [TASKS, GATED])
@pytest.mark.parametrize("kind", ["modify", "merge"])
async def test_words_that_a_gated_data_set_brought_into_a_lesson_mark_it(kind, tasks, tmp_path):
    ids = [e.id for e in START]
    named = {"modify": {"id": ids[0]}, "merge": {"ids": ids}}[kind]
    said = {"op": kind, **named, "text": LESSON["text"]}
    world = Zork(distil={"operations": [said]}, consolidate={"clusters": [{"number": 1, "operations": [said]}]})
    library = await learned(world, tmp_path, tasks=tasks, agent=Agent(world.model).with_experience(START))
    assert [e.gated for e in library if e.text == LESSON["text"]] == [tasks is GATED]
    assert not any(e.gated for e in library if e.text != LESSON["text"])


async def test_what_is_settled_with_a_gated_lesson_is_gated(tmp_path):
    start = ExperienceLibrary().apply([Add(text=LESSON["text"], when="a sum is in Zorkian", gated=True)])
    add = {"op": "add", "text": "Add one, in Zork.", "when": "", "when_not": "", "why": ""}
    world = Zork(consolidate={"clusters": [{"number": 1, "operations": [add]}]})
    world.p = 0.4
    library = await learned(world, tmp_path, agent=Agent(world.model).with_experience(start), inclusion=0.5)
    assert world.count("consolidate") == 1
    assert [e.gated for e in library] == [True, True]
