"""Controls on planted effects: what helps helps, and no control gains what the memory gains."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import evaluate, learn
from agentmem.domain.case import Case
from agentmem.domain.experience import ExperienceLibrary
from agentmem.domain.operation import Add
from agentmem.domain.seed import split_seed
from agentmem.domain.task import Task
from agentmem.domain.trajectory import Message
from agentmem.domain.usage import estimate_tokens
from agentmem.domain.write_rules import WriteRules
from agentmem.errors import InputError
from agentmem.evaluation.comparison import compare
from agentmem.evaluation.controls import CONTROLS, answer_leaks, controlled, raw_trajectories
from agentmem.evaluation.report import EvaluationReport
from agentmem.memory.case_bank import CaseBank
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel
from agentmem.tools.tool import tool

RULE = "Whenever glims are counted, a zork is worth seven of them"
TASKS = [Task(id=str(i), input=f"How many glims are {i} zorks?", answer=str(7 * i)) for i in range(1, 61)]
LESSONS = ExperienceLibrary().apply(
    [Add(text=f"{RULE}."), Add(text="Write nothing but the number.", when="a number is asked for")]
)


def counts(request) -> str:
    """Knows the rule where it reads it, and guesses right now and then without."""
    asked = request.messages[-1].content
    n = int(asked.split()[4])
    knows = any(RULE in m.content for m in request.messages)
    lucky = Random(split_seed(request.seed or 0, asked)).random() < 0.2
    return str(7 * n if knows or lucky else 7 * n + 1)


def judged(agent: Agent, folder: Path, tasks: list[Task] = TASKS, reward: str = "exact") -> EvaluationReport:
    return evaluate(agent, tasks, reward=reward, run=folder, listeners=())


@pytest.mark.parametrize("control", ["none", "shuffled", "irrelevant", "filler"])
def test_only_the_lessons_themselves_gain(tmp_path: Path, control: str) -> None:
    agent = Agent(ScriptedModel(counts)).with_experience(LESSONS)
    with_memory = judged(agent, tmp_path / "on")
    without = judged(agent.with_experience(None), tmp_path / "off")
    under = judged(controlled(agent, control), tmp_path / "control")
    assert with_memory.score == 1
    assert under.score == without.score, "the same draws, and nothing learned"
    assert compare(under, with_memory).better
    assert under.agent.endswith(f"({control})")


@pytest.mark.parametrize("control", ["shuffled", "irrelevant", "filler"])
def test_a_control_of_lessons_is_as_long(control: str) -> None:
    lessons = [
        Add(text=f"Lesson {i}: look at part {i} before part {i + 1} is begun.", when="parts") for i in range(12)
    ]
    agent = Agent("scripted/echo").with_experience(ExperienceLibrary().apply(lessons))
    under = controlled(agent, control)
    assert len(under.prior.ids) == 12
    long, short = estimate_tokens(str(agent.prior)), estimate_tokens(str(under.prior))
    assert short == pytest.approx(long, rel=0.12)
    assert under.memory_hash != agent.memory_hash
    assert controlled(agent, control, seed=0).memory_hash == under.memory_hash


def test_shuffled_lessons_have_the_same_words() -> None:
    agent = Agent("scripted/echo").with_experience(LESSONS)
    under = controlled(agent, "shuffled")
    assert under.library is not None

    def words(library: ExperienceLibrary) -> list[str]:
        return sorted(word for e in library for text in (e.text, e.when) for word in text.split())

    assert words(under.library) == words(LESSONS)
    assert [len(e.text.split()) for e in under.library] == [len(e.text.split()) for e in LESSONS]
    assert [e.text for e in under.library] != [e.text for e in LESSONS]
    assert controlled(agent, "shuffled", seed=1).library != under.library


def test_shuffled_examples_answer_other_questions() -> None:
    def example(n: int) -> Add:
        turns = (Message(role="user", content=f"Q{n}"), Message(role="assistant", content=f"A{n}"))
        return Add(kind="example", text=f"Q{n}", turns=turns)

    agent = Agent("scripted/echo").with_experience(ExperienceLibrary().apply([example(n) for n in range(5)]))
    under = controlled(agent, "shuffled").library
    assert under is not None
    pairs = [(e.turns[0].content, e.turns[1].content) for e in under]
    assert [q for q, _ in pairs] == [f"Q{n}" for n in range(5)]
    assert sorted(a for _, a in pairs) == [f"A{n}" for n in range(5)]
    assert all(q[1:] != a[1:] for q, a in pairs)
    alone = agent.with_experience(ExperienceLibrary().apply([example(0)]))
    with pytest.raises(InputError, match="one worked example cannot be shuffled"):
        controlled(alone, "shuffled")


DESKS = ["Finance", "Facilities", "People", "Security"]
WORDS = {"Finance": "invoice", "Facilities": "heating", "People": "holiday", "Security": "badge"}


def routed(request) -> str:
    """Does what was done in the case that is shown last, which is the nearest."""
    said = [m.content for m in request.messages[:-1] if m.role == "assistant"]
    return said[-1] if said else "unknown"


@pytest.mark.parametrize("control", ["none", "shuffled", "irrelevant", "filler"])
def test_only_the_right_cases_gain(tmp_path: Path, control: str) -> None:
    bank = CaseBank(tmp_path / "bank", embedder=HashEmbedder())
    bank.add_many(
        Case.of(f"Ticket {i}: the {WORDS[desk]} {WORDS[desk]} is lost", desk, reward=1.0, task_id=f"old-{i}")
        for i in range(20)
        for desk in [DESKS[i % 4]]
    )
    tasks = [
        Task(id=f"new-{i}", input=f"Where is my {WORDS[desk]}? The {WORDS[desk]}!", answer=desk)
        for i in range(40)
        for desk in [DESKS[i % 4]]
    ]
    agent = Agent(ScriptedModel(routed)).with_memory(bank, policy="similarity", show="turns", cases=2)
    with_memory = judged(agent, tmp_path / "on", tasks)
    under = judged(controlled(agent, control), tmp_path / "control", tasks)
    assert with_memory.score == 1
    assert under.score is not None
    assert under.score < 0.6
    assert compare(under, with_memory).better
    before = bank.snapshot
    again = judged(controlled(agent, control), tmp_path / "control", tasks)
    assert again == under.model_copy(update={"seconds": again.seconds})
    assert bank.snapshot == before


def test_a_shuffled_memory_deals_each_action_once_and_to_another_kind_of_task(tmp_path: Path) -> None:
    bank = CaseBank(tmp_path / "bank", embedder=HashEmbedder(), rules=WriteRules(merge_at=None))
    kinds = {"a": 2, "b": 4, "c": 4, "d": 1}
    bank.add_many(
        Case.of(f"question {kind} {n}", f"answer {kind} {n}", reward=1.0, cluster=kind)
        for kind, many in kinds.items()
        for n in range(many)
    )
    agent = Agent(ScriptedModel(["x"])).with_memory(bank, policy="similarity")
    donors = controlled(agent, "shuffled").memory._donors
    assert Counter(case.action for case in donors.values()) == Counter(case.action for case in bank)
    cluster = {case.id: case.cluster for case in bank}
    assert all(cluster[id] != donor.cluster for id, donor in donors.items())
    assert controlled(agent, "shuffled").memory._donors == donors
    assert controlled(agent, "shuffled", seed=1).memory._donors != donors
    bank.close()


def test_a_planted_leak_is_caught_by_the_memory_alone(tmp_path: Path) -> None:
    @tool
    def count(zorks: int) -> str:
        """How many glims so many zorks are."""
        return str(7 * zorks)

    leak = ExperienceLibrary().apply([Add(text="For 3 zorks say 21."), Add(text="For 5 zorks say 35.")])

    def parrot(request) -> str:
        n = request.messages[-1].content.split()[4]
        text = " ".join(m.content for m in request.messages)
        if f"For {n} zorks say" in text:
            return text.split(f"For {n} zorks say ")[1].split(".")[0]
        return str(7 * int(n)) if request.tools else "unknown"

    agent = Agent(ScriptedModel(parrot), tools=[count]).with_experience(leak)
    alone = judged(controlled(agent, "memory-alone"), tmp_path / "alone")
    bare = judged(controlled(agent, "bare"), tmp_path / "bare")
    assert answer_leaks(bare, alone) == ("3", "5")
    assert bare.score == 0


def test_raw_trajectories_are_the_best_attempts_of_a_run(tmp_path: Path) -> None:
    model = ScriptedModel(lambda r: f"{'because ' * 3}{counts(r)}" if "?" in r.messages[-1].content else "{}")
    agent = Agent(model)
    learn(
        agent, TASKS[:30], reward="numeric", extractor="exemplar", epochs=1, gate="always", embedder=HashEmbedder(),
        run=tmp_path / "l", listeners=(),
    )  # fmt: skip
    raw = raw_trajectories(agent, tmp_path / "l", embedder=HashEmbedder(), nearest=2)
    assert raw.library is not None
    assert all(e.kind == "example" and "because" in e.turns[1].content for e in raw.library)
    right = {f"How many glims are {i} zorks?": 7 * i for i in range(1, 61)}
    assert all(e.turns[1].content.endswith(f" {right[e.turns[0].content]}") for e in raw.library)
    seen = []
    watching = ScriptedModel(lambda r: seen.append(r) or "1")
    judged(raw_trajectories(Agent(watching), tmp_path / "l", embedder=HashEmbedder(), nearest=2), tmp_path / "e")
    assert all(sum(m.role == "assistant" for m in r.messages) == 2 for r in seen)


def test_what_cannot_be_controlled_is_said(tmp_path: Path) -> None:
    agent = Agent("scripted/echo")
    with pytest.raises(InputError, match="neither a library nor a memory"):
        controlled(agent, "shuffled")
    with pytest.raises(InputError, match="Did you mean 'shuffled'"):
        controlled(agent, "shufled")
    bank = CaseBank(tmp_path / "bank", embedder=HashEmbedder())
    with pytest.raises(InputError, match="online=False"):
        controlled(agent.with_memory(bank, online=True), "filler")
    assert controlled(agent, "bare").name == "scripted/echo (bare)"
    assert controlled(agent, lambda agent, seed: agent.with_experience(LESSONS)).library is LESSONS
    assert set(CONTROLS) == {"none", "shuffled", "irrelevant", "filler", "memory-alone", "bare"}
