"""Learning on a stream: answers come first and are scored first; what they teach is learned behind them."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from itertools import count

import pytest

from agentmem.agents.agent import Agent
from agentmem.api import aevaluate, alearn_online, learn_online
from agentmem.domain.task import Task
from agentmem.errors import BudgetExceeded, InputError, RunMismatch, StreamError, TooManyErrors
from agentmem.evaluation.comparison import compare
from agentmem.events import GateDecided, Noted
from agentmem.learning.history import History
from agentmem.learning.online import MOST_WAITING
from agentmem.learning.online_result import OnlineResult
from agentmem.library_files import load_library
from agentmem.runs.journal import Journal
from agentmem.settings import Budget, ModelSettings
from agentmem.testing.hash_embedder import HashEmbedder
from agentmem.testing.scripted import ScriptedModel, load_script
from tests.learning.paced import QUICK, VALIDATION, Paced, zork_task
from tests.learning.zork import Zork, role_of


async def online(agent, stream, run, **changes):
    if isinstance(stream, Paced):
        paced = {"on_answer": stream.on_answer, "listeners": [stream.hear], "validation": VALIDATION}
        changes = {**paced, **changes, "listeners": [stream.hear, *changes.get("listeners", ())]}
    return await alearn_online(agent, stream, run=run, **{**QUICK, "embedder": HashEmbedder(), **changes})


async def test_it_learns_and_later_answers_are_better(tmp_path):
    zork = Zork(p=0.2)
    tasks = [zork_task(n) for n in range(64)]
    heard = []
    result = await online(Agent(zork.model), Paced(tasks), tmp_path / "r", listeners=[heard.append])
    assert [e.text for e in result.library] == ["Add one to every sum."]
    assert load_library(tmp_path / "r") == result.library
    assert result.n == 64
    assert result.curve[-1].score == 1.0
    assert result.curve[0].score < 0.8
    assert result.score in result.interval
    # The first answer under a version comes after the gate accepted it, and all later ones are under it or a newer one.
    versions = [arrival.version for arrival in result.arrivals]
    assert versions == sorted(versions)
    accepted = next(event for event in heard if isinstance(event, GateDecided) and event.accepted)
    assert result.steps[accepted.step].verdict.accepted
    assert versions[0] == 0
    assert versions[-1] == result.library.version


async def test_a_task_is_scored_before_anything_is_learned_from_it(tmp_path):
    """The model is always right once it has the lesson, and never without: answers given before it must be wrong."""
    right = iter(range(10**6))

    def task(request):
        a, b = [int(word) for word in request.messages[-1].content.split() if word.isdigit()]
        told = any("Add one" in message.content for message in request.messages)
        # Of the rollouts that are no answers, every other one is right, so that every group teaches.
        return str(a + b + (told or (next(right) % 2 == 1)))

    zork = Zork(task=task)
    seen = []
    result = await online(
        Agent(zork.model), [zork_task(n) for n in range(24)], tmp_path / "r", concurrency=1, on_answer=seen.append
    )
    journal = Journal(tmp_path / "r" / "journal.sqlite")
    (first_lesson,) = next(journal.rows("SELECT min(seq) FROM steps WHERE purpose='distil'"))
    scored = dict(
        journal.rows("SELECT step, seq FROM steps WHERE phase='online' AND rollout=0 AND purpose='rollout'")
    )
    windows = [json.loads(row[0]) for row in journal.rows("SELECT result FROM steps WHERE purpose='window'")]
    journal.close()
    assert all(scored[position] < first_lesson for position in windows[0]["positions"])
    assert [answer.arrival.position for answer in seen] == list(range(1, 25))
    for answer in seen:
        assert ("Add one" in str(answer.rollout.mask)) is False
        assert bool(answer.rollout.mask) == (answer.arrival.version > 0)
    assert [answer.score for answer in result.answers()] == [answer.score for answer in seen]


async def test_nothing_is_promoted_that_the_gate_refused(tmp_path):
    guess = {"operations": [{"op": "add", "text": "Guess high.", "when": "always", "why": "no reason"}]}
    zork = Zork(distil=guess, consolidate={"clusters": [{"number": 1, **guess}]})
    result = await online(Agent(zork.model), Paced([zork_task(n) for n in range(20)]), tmp_path / "r")
    assert len(result.library) == 0
    assert {arrival.version for arrival in result.arrivals} == {0}
    assert result.steps
    assert not any(version.verdict.accepted for version in result.steps)


async def test_answers_do_not_wait_for_a_hanging_extractor(tmp_path):
    hangs = asyncio.Event()

    async def model(request):
        if role_of(request) == "distil":
            await hangs.wait()
        return zork(request)

    zork = Zork()
    answered = 0

    def on_answer(answer):
        nonlocal answered
        answered += 1
        if answered == 60:
            hangs.set()

    # Two requests may fly at once: learning may take one of them, and not the other.
    agent = Agent(ScriptedModel(model, name="scripted/hangs"), calls=ModelSettings(max_in_flight=2))
    async with asyncio.timeout(20):
        result = await online(agent, [zork_task(n) for n in range(80)], tmp_path / "r", on_answer=on_answer)
    assert answered == 80
    # Learning was bounded meanwhile: so many groups wait, and the others were skipped and counted.
    roles = [arrival.role for arrival in result.arrivals]
    taught_before_60 = sum(role == "teaches" for role in roles[:56])
    assert taught_before_60 == MOST_WAITING * 4
    assert "skipped" in roles
    assert len(result.steps) >= MOST_WAITING


async def test_an_endless_stream_is_not_read_ahead_and_takes_no_memory(tmp_path):
    pulled = 0
    answered = 0
    ahead = []

    def endless():
        nonlocal pulled
        for n in count():
            pulled += 1
            yield Task(id=str(n), input=f"What is {n} + 1? " + "x" * 40_000, answer=str(n + 1))

    class Enough(Exception):
        pass

    def on_answer(answer):
        nonlocal answered
        answered += 1
        ahead.append(pulled - answered)
        if answered == 60:
            tracemalloc.start()
        if answered == 260:
            raise Enough

    async def slow(task, prior):
        await asyncio.sleep(0.005)
        return "7"

    agent = Agent(slow)  # a scripted model would keep all requests
    small = {"concurrency": 3, "group_size": 2, "batch_size": 2, "gate_min_tasks": 2, "extractor": "exemplar"}
    with pytest.raises(StreamError, match="on_answer, given the answer to task 260, raised Enough"):
        await online(agent, endless(), tmp_path / "r", on_answer=on_answer, **small)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert max(ahead) == 2  # those that are under way beside the one that was just answered
    # 200 more tasks of 40 kB each were answered twice each; a few waiting groups may be held, not all.
    assert grown < 200 * 40_000 / 2
    assert OnlineResult.of(tmp_path / "r").n >= 259


async def test_held_out_tasks_never_teach_even_when_they_come_again(tmp_path):
    zork = Zork()
    tasks = [zork_task(n % 30) for n in range(60)]  # each comes twice
    result = await online(Agent(zork.model), tasks, tmp_path / "r")
    journal = Journal(tmp_path / "r" / "journal.sqlite")
    gated = {row[0] for row in journal.rows("SELECT DISTINCT task FROM steps WHERE phase LIKE 'gate/%'")}
    taught = {row[0] for row in journal.rows("SELECT DISTINCT task FROM steps WHERE purpose='distil'")}
    journal.close()
    assert gated
    assert taught
    assert not {name.partition("@")[0] for name in gated} & {name.partition("@")[0] for name in taught}
    roles = {}
    for arrival in result.arrivals:
        roles.setdefault(arrival.task_id, set()).add(arrival.role == "held out")
    assert all(len(sides) == 1 for sides in roles.values())


async def test_an_id_that_comes_again_is_an_arrival_of_its_own(tmp_path):
    seen = []
    agent = Agent(lambda task, prior: seen.append(task.id) or "1")
    tasks = [Task(id=id, input=f"What is {n}?", answer="1") for n, id in enumerate(["a", "b", "a", "a@3", "a"])]
    result = await online(agent, tasks, tmp_path / "r", gate="always", extractor="exemplar", group_size=1)
    assert sorted(seen) == ["a", "a@3", "a@3@4", "a@5", "b"]
    assert [arrival.task_id for arrival in result.arrivals] == ["a", "b", "a", "a@3", "a"]
    assert result.report.n == 5
    assert result.interval.n == 3  # clusters: what comes again is not independent


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_source_that_raises_costs_nothing_that_was_earned(tmp_path, asynchronous):
    zork = Zork()
    tasks = [zork_task(n) for n in range(60)]

    def plain(broken):
        for n, task in enumerate(tasks):
            if n == 37 and broken:
                raise ConnectionError("the queue is gone")
            yield task

    async def waiting(broken):
        for task in plain(broken):
            yield task

    source = waiting if asynchronous else plain
    with pytest.raises(StreamError, match=r"The stream raised ConnectionError: the queue is gone, .* task 38\."):
        await online(Agent(zork.model), source(True), tmp_path / "r")
    so_far = OnlineResult.of(tmp_path / "r")
    assert so_far.n == 37
    assert so_far.library == load_library(tmp_path / "r")
    taught = sum(arrival.role == "teaches" for arrival in so_far.arrivals)
    assert len(so_far.steps) == -(-taught // 4)  # also the last groups, which were no whole batch
    calls = zork.model.calls
    result = await online(Agent(zork.model), source(False), tmp_path / "r")
    assert result.n == 60
    assert result.report.outcomes[:37] == so_far.report.outcomes
    assert zork.model.calls - calls < 23 * 4 + 6 * 3 * 2 * 8  # nothing of the first 37 tasks was bought again


async def test_what_is_no_task_is_refused_in_one_sentence(tmp_path):
    agent = Agent(ScriptedModel(load_script("say?text=7")))
    with pytest.raises(InputError, match=r"gave \{'input': '2 \+ 2\?'\} as task 2; it must give Task"):
        await online(agent, [zork_task(0), {"input": "2 + 2?"}], tmp_path / "r")
    assert OnlineResult.of(tmp_path / "r").n == 1
    with pytest.raises(InputError, match="gave None as task 1"):
        await online(agent, [None], tmp_path / "n")
    with pytest.raises(InputError, match="an iterable of tasks"):
        await online(agent, 7, tmp_path / "s")


async def test_a_finished_run_is_replayed_without_a_call_and_can_go_on(tmp_path):
    zork = Zork()
    tasks = [zork_task(n) for n in range(70)]
    first = await online(Agent(zork.model), Paced(tasks[:50]), tmp_path / "r")
    library, calls = (tmp_path / "r" / "library.json").read_bytes(), zork.model.calls
    again = await online(Agent(zork.model), Paced(tasks[:50]), tmp_path / "r")
    assert zork.model.calls == calls
    assert (tmp_path / "r" / "library.json").read_bytes() == library
    assert again == first
    longer = await online(Agent(zork.model), Paced(tasks), tmp_path / "r")  # its last step had but two groups
    assert longer.n == 70
    assert longer.report.outcomes[:50] == first.report.outcomes
    journal = Journal(tmp_path / "r" / "journal.sqlite")
    windows = [json.loads(row[0]) for row in journal.rows("SELECT result FROM steps WHERE purpose='window'")]
    journal.close()
    assert [len(window["positions"]) for window in windows] == [4] * 12 + [2] + [4] * 5


async def test_another_stream_in_the_same_run_is_refused(tmp_path):
    zork = Zork()
    tasks = [zork_task(n) for n in range(30)]
    await online(Agent(zork.model), tasks, tmp_path / "r")
    with pytest.raises(RunMismatch, match="task 1 of the stream, '1\\+0', is not the one that arrived there"):
        await online(Agent(zork.model), tasks[1:], tmp_path / "r")
    with pytest.raises(RunMismatch, match="the stream ended before its task"):
        await online(Agent(zork.model), tasks[:2], tmp_path / "r")


async def test_a_spent_budget_keeps_what_was_learned_and_goes_on(tmp_path):
    tasks = [zork_task(n) for n in range(32)]
    whole = Zork()
    reference = await online(Agent(whole.model), Paced(tasks), tmp_path / "whole")
    zork = Zork()
    for budget in range(40, 2000, 120):
        try:
            result = await online(Agent(zork.model), Paced(tasks), tmp_path / "r", budget=Budget(max_calls=budget))
            break
        except BudgetExceeded:
            OnlineResult.of(tmp_path / "r")
    assert (tmp_path / "r/library.json").read_bytes() == (tmp_path / "whole/library.json").read_bytes()
    assert result.arrivals == reference.arrivals
    assert zork.model.calls == whole.model.calls  # all that was paid for was stored


async def test_a_candidate_waits_for_enough_tasks_and_says_so_once_with_its_power(tmp_path):
    heard = []
    zork = Zork()
    result = await online(
        Agent(zork.model),
        [zork_task(n) for n in range(40)],
        tmp_path / "r",
        gate_share=0.1,
        gate_min_tasks=30,
        listeners=[heard.append],
    )
    said = [event.message for event in heard if isinstance(event, Noted)]
    waits = [message for message in said if message.startswith("A candidate waits for the gate")]
    assert len(waits) == 1
    assert "80 % power" in waits[0] or "no difference at all" in waits[0]
    assert "it begins with 30" in waits[0]
    assert sum(message.startswith("The stream has ended") for message in said) == 1
    assert "skipped" in {arrival.role for arrival in result.arrivals}
    assert result.n == 40


async def test_validation_tasks_are_the_gates_and_never_teach(tmp_path):
    zork = Zork()
    tasks = [zork_task(n) for n in range(40)]
    result = await online(
        Agent(zork.model), tasks, tmp_path / "r", validation=[zork_task(n) for n in range(0, 40, 4)]
    )
    assert {a.position for a in result.arrivals if a.role == "held out"} == set(range(1, 41, 4))
    assert all("10 held-out tasks" in v.verdict.reason for v in result.steps if v.verdict.tasks)


async def test_without_any_score_it_says_so_and_goes_on(tmp_path):
    heard = []
    agent = Agent(ScriptedModel(load_script("echo")))
    tasks = [Task(id=str(n), input=f"What is {n}?") for n in range(30)]
    result = await online(agent, tasks, tmp_path / "r", reward="exact", listeners=[heard.append])
    said = [event.message for event in heard if isinstance(event, Noted)]
    assert sum("None of the first 20 answers could be scored" in message for message in said) == 1
    assert result.score is None
    assert result.report.unverifiable == 30
    assert len(list(result.answers())) == 30
    assert str(result)


async def test_all_wrong_teaches_nothing(tmp_path):
    result = await online(Agent(Zork(p=0.0).model), [zork_task(n) for n in range(30)], tmp_path / "r")
    assert result.score == 0.0
    assert len(result.library) == 0
    assert "No step proposed anything that could be tried." in str(result)


async def test_too_many_failures_stop_the_run_and_are_tried_again(tmp_path):
    broken = True
    agent = Agent(lambda task, prior: 1 / 0 if broken else str(sum(map(int, task.id.split("+"))) + 1))
    tasks = [zork_task(n) for n in range(30)]
    with pytest.raises(TooManyErrors, match="ZeroDivisionError"):
        await online(agent, tasks, tmp_path / "r", extractor="exemplar")
    assert len(list(OnlineResult.of(tmp_path / "r").answers())) < 20
    broken = False
    result = await online(agent, tasks, tmp_path / "r", extractor="exemplar")
    assert (result.score, result.n) == (1.0, 30)
    assert not result.report.errors


async def test_without_references_answers_are_scored_and_learning_does_not_see_it(tmp_path):
    zork = Zork(p=0.6)
    tasks = [zork_task(n) for n in range(40)]
    result = await online(Agent(zork.model), tasks, tmp_path / "r", reference="none")
    assert result.n == 40
    assert 0 < result.score < 1
    assert zork.prompts("distil")
    assert not any("The reference answer" in prompt for prompt in zork.prompts("distil"))
    journal = Journal(tmp_path / "r" / "journal.sqlite")
    rewards = {
        row[0]
        for row in journal.rows(
            "SELECT json_extract(result,'$.reward.source') FROM steps WHERE phase='online' AND purpose='rollout'"
        )
    }
    journal.close()
    assert rewards == {"unscored"}


async def test_the_two_records_of_one_stream_can_be_compared(tmp_path):
    tasks = [zork_task(n) for n in range(60)]
    learned = await online(Agent(Zork().model), Paced(tasks), tmp_path / "r")
    before = await aevaluate(
        Agent(Zork().model), tasks, reward="numeric", temperature=0.7, run=tmp_path / "e", listeners=()
    )
    paired = compare(before, learned.report)
    assert paired.difference > 0
    assert History.of(tmp_path / "r").newest.library == learned.library


def test_the_sync_door(tmp_path):
    asked = {**QUICK, "gate": "always", "embedder": HashEmbedder()}
    result = learn_online(Agent(Zork().model), (zork_task(n) for n in range(12)), run=tmp_path / "r", **asked)
    assert result.n == 12
    assert len(result.library) == 1
