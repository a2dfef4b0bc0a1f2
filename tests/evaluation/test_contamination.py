"""Contamination: what is planted is found, what merely looks alike is not, and the report keeps the two apart."""

from pathlib import Path

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import evaluate
from agentmem.domain.case import Case
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add, Quarantine
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message
from agentmem.evaluation.contamination import Contamination, contamination, sources_of
from agentmem.evaluation.evaluate import Evaluation
from agentmem.evaluation.report import EvaluationReport
from agentmem.memory.case_bank import CaseBank
from agentmem.rewards.reward_function import resolve_reward
from agentmem.settings import EvalSettings
from agentmem.testing.hash_embedder import HashEmbedder

QUESTION = "In which year did the small harbour town of Veldmere open its second lighthouse to visitors?"
REWORDED = QUESTION.replace("In which", "Name the").replace("to visitors", "at all")
TASKS = [
    Task(id="light", input=QUESTION, answer="1893"),
    Task(id="author", input="Who wrote the story of the brass heron?", answer="Ottoline Marsh"),
    Task(id="sum", input="What is 3 + 4?", answer="7"),
]


def library(*operations: Add) -> ExperienceLibrary:
    return ExperienceLibrary().apply(list(operations))


def found(tasks: list[Task] = TASKS, **sources: object) -> list[tuple[str, str]]:
    return [(o.task_id, o.kind) for o in contamination(tasks, sources_of(**sources)).overlaps]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sources", "kinds"),
    [
        ({"training": [Task(id="x", input=QUESTION.upper().replace("?", " ??"))]}, [("light", "exact")]),
        ({"training": [Task(id="x", input=f"Read this. {QUESTION} Be brief.")]}, [("light", "exact")]),
        (
            {"training": [Task(id="x", input="Tell in which year did the small harbour town of Ald fall")]},
            [],
        ),
        (
            {"training": [Task(id="x", input=REWORDED)]},
            [("light", "words")],
        ),
        ({"training": [Task(id="x", input="What is 3 + 5?", answer="1893")]}, []),
        ({"training": [Task(id="x", input="Was the bridge of 1893 high?")]}, []),
        ({"training": [Task(id="x", input="What is 3 + 4?", answer="7")]}, [("sum", "exact")]),
        ({"experiences": library(Add(text="The answer is OTTOLINE marsh."))}, [("author", "answer")]),
        ({"experiences": library(Add(text="Marshland is wet; Ottoline is a name."))}, []),
        ({"experiences": library(Add(text="Add 7 to it."))}, []),
        ({"cases": [Case.of("Some other question", "1893", reward=1.0)]}, [("light", "answer")]),
        ({"cases": [Case.of(QUESTION, "no idea")]}, [("light", "exact")]),
    ],
)  # fmt: skip
def test_what_is_planted_is_found(sources: dict[str, object], kinds: list[tuple[str, str]]) -> None:
    assert found(**sources) == kinds


def test_a_worked_example_is_its_question_and_its_answer() -> None:
    turns = (Message(role="user", content=TASKS[1].input), Message(role="assistant", content="Ottoline Marsh"))
    assert found(experiences=library(Add(kind="example", text="x", turns=turns))) == [
        ("author", "exact"),
        ("author", "answer"),
    ]


def test_what_is_in_quarantine_reaches_no_prompt() -> None:
    shown = library(Add(text="It was Ottoline Marsh."))
    hidden = shown.apply([Quarantine(id=shown.experiences[0].id)])
    assert found(experiences=hidden) == []


def test_labels_and_answers_that_the_question_names_are_no_leak() -> None:
    desks = [Task(id=str(i), input=f"Message {i}", answer=desk) for i, desk in enumerate(["Finance", "Finance"])]
    offered = [Task(id="c", input="Which?", answer="Finance", metadata={"choices": ["Finance", "IT desk"]})]
    named = [Task(id="n", input="Is Finance the right desk?", answer="Finance")]
    lesson = library(Add(text="Invoices go to Finance."))
    assert found(desks, experiences=lesson) == found(offered, experiences=lesson) == []
    assert found(named, experiences=lesson) == []
    assert found([Task(id="own", input="Where to?", answer="Finance")], experiences=lesson) == [("own", "answer")]


def test_questions_are_compared_by_meaning_where_that_is_asked_for() -> None:
    near = Task(id="x", input="The story of the brass heron: who wrote it?", answer="?")
    far = Task(id="y", input="how deep is a well", answer="?")
    by_words = contamination(TASKS, sources_of(training=[far, near]))
    by_meaning = contamination(TASKS, sources_of(training=[far, near]), embedder=HashEmbedder())
    assert not by_words.overlaps
    assert [(o.task_id, o.kind, o.where) for o in by_meaning.overlaps] == [
        ("author", "meaning", "training task x")
    ]
    assert 0.9 <= by_meaning.overlaps[0].share < 1


def test_questions_without_words_share_nothing() -> None:
    assert found([Task(id="t", input="???", answer="5")], experiences=library(Add(text="Check."))) == []


def test_many_sources_pass_by_in_batches() -> None:
    cases = (Case.of(f"state {i}", f"action {i}") for i in range(1500))
    last = Case.of(QUESTION, "1893")
    made = contamination(TASKS, sources_of(cases=[*cases, last]))
    assert (made.sources, made.dirty) == (1501, ("light",))


def test_a_report_shows_clean_and_dirty_tasks_apart(tmp_path: Path) -> None:
    tasks = [Task(id=str(i), input=f"Which word is number {i}?", answer=f"wordle{i}") for i in range(12)]
    leak = library(*(Add(text=f"Number {i} is wordle{i}.") for i in range(4)))

    def reader(task, prior):
        answer = f"wordle{task.id}"
        return answer if f"{answer}." in prior else "unknown"

    agent = Agent(reader).with_experience(leak)
    report = evaluate(agent, tasks, reward="exact", run=tmp_path / "r", listeners=())
    assert report.contamination is not None
    assert report.contamination.dirty == ("0", "1", "2", "3")
    parts = report.clean_and_dirty()
    assert (parts["clean"].score, parts["clean"].n) == (0.0, 8)
    assert (parts["dirty"].score, parts["dirty"].n) == (1.0, 4)
    assert "dirty tasks" in str(report)
    assert "4 tasks share something" in str(report)
    assert EvaluationReport.from_json(report.to_json()) == report


def test_it_is_said_before_anything_is_spent(tmp_path: Path) -> None:
    agent = Agent("scripted/echo")
    reward = resolve_reward("exact")
    plan = Evaluation.of(agent, TASKS, reward, training=[Task(id="x", input=QUESTION)])
    assert any("'light' with training task x" in note for note in plan.notes)
    assert Evaluation.of(agent, TASKS, reward).contamination is None
    bank = CaseBank(tmp_path / "bank", embedder=HashEmbedder())
    bank.retain(Case.of(QUESTION, "1893", reward=1.0))
    remembering = agent.with_memory(bank)
    named = Evaluation.of(remembering, TASKS, reward)
    assert named.contamination is not None
    assert named.contamination.dirty == ("light",)
    off = Evaluation.of(remembering, TASKS, reward, EvalSettings(contamination="none"))
    assert off.contamination is None
    assert off.asked == named.asked, "to look changes no result"
    assert str(Contamination(sources=2)) == "no task shares anything with 2 texts"
