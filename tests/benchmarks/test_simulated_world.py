"""The simulated world has the probabilities that it states, leaks nothing, and recognises what it is asked."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence

import pytest
from scipy.stats import binomtest

from agentmem.domain.trajectory import Message
from agentmem.domain.value import fingerprint
from agentmem.prompts import render
from agentmem.testing.chat import ChatRequest
from benchmarks.simulated_learner.curve import Curve, quartiles
from benchmarks.simulated_learner.distiller import Distiller, Said, entries, lessons_in
from benchmarks.simulated_learner.ours import ARMS, available, learn
from benchmarks.simulated_learner.server import PEERS, TEMPLATES, Roles, Simulation, Tally, first_line, serve
from benchmarks.simulated_learner.world import (
    FAMILIES,
    SYSTEM,
    WRONG,
    World,
    failing_families,
    harmful_lessons,
    judge,
    read,
    true_lessons,
)

WORLD = World(3)
TRUE = [family.lesson for family in FAMILIES]
ALL_TRUE = "\n".join(lesson.paraphrases[0] for lesson in TRUE)
DRAWS = 2000


def chat(*messages: tuple[str, str], seed: int | None = None, occurrence: int = 0) -> ChatRequest:
    body = {"model": "simulated", "messages": [{"role": role, "content": text} for role, text in messages]}
    if seed is not None:
        body["seed"] = seed
    return ChatRequest(body, fingerprint(body), occurrence, 0)


def share_right(prompt: str, family: int, *, draws: int = DRAWS) -> int:
    """How many of `draws` answers to a task of the family are right."""
    task = next(task for task in WORLD.train if task.metadata["family"] == family)
    simulation = Simulation(WORLD)
    answers = [simulation(chat(("system", prompt), ("user", task.input), seed=n)).text for n in range(draws)]
    wrong = {answer for answer in answers if not judge(task, answer).score}
    assert len(wrong) > 20, "wrong answers vary"
    return sum(bool(judge(task, answer).score) for answer in answers)


@pytest.mark.parametrize(
    ("prompt", "family", "p"),
    [
        (SYSTEM, 2, 0.15),
        (ALL_TRUE, 2, 0.95),
        (TRUE[1].paraphrases[3], 2, 0.15),
        (f"{ALL_TRUE}\n{WRONG[2].paraphrases[1]}", 2, 0.65),
        (f"{ALL_TRUE}\n{WRONG[2].paraphrases[1]}\n{WRONG[2].paraphrases[0]}", 5, 0.65),
        (f"{ALL_TRUE}\n{WRONG[2].paraphrases[1]}", 3, 0.95),
        (f"{ALL_TRUE}\n{TRUE[2].contradictions[0]}", 2, 0.15),
        (f"{ALL_TRUE}\n{WRONG[2].paraphrases[1]}\n{WRONG[2].contradictions[0]}", 2, 0.95),
    ],
)
def test_answers_are_right_with_the_stated_probability(prompt: str, family: int, p: float) -> None:
    assert WORLD.p(family, prompt) == pytest.approx(p)
    assert binomtest(share_right(prompt, family), DRAWS, p).pvalue > 0.001


def test_each_wrong_lesson_takes_its_share_off_two_families() -> None:
    for lesson in WRONG:
        lost = [0.95 - WORLD.p(family, f"{ALL_TRUE}\n{lesson.paraphrases[0]}") for family in range(len(FAMILIES))]
        assert sorted(lost) == pytest.approx([0] * 6 + [0.3] * 2)


def test_the_true_score_is_the_mean_over_families() -> None:
    assert WORLD.score(SYSTEM) == pytest.approx(0.15)
    assert WORLD.score(ALL_TRUE) == pytest.approx(WORLD.best)
    seven = "\n".join(lesson.paraphrases[0] for lesson in TRUE[:7])
    assert WORLD.score(seven) == pytest.approx((7 * 0.95 + 0.15) / 8)
    assert true_lessons(seven) == 7
    everything = "\n".join(lesson.paraphrases[0] for lesson in WRONG)
    assert (WORLD.score(everything), harmful_lessons(everything)) == (0.0, 8)


def test_a_lesson_counts_wherever_it_stands_before_the_answer() -> None:
    task = WORLD.train[0]
    lesson = TRUE[task.metadata["family"]].paraphrases[0]
    simulation = Simulation(WORLD)
    with_it = [
        chat(("system", lesson), ("user", task.input), seed=1),
        chat(("user", f"{lesson}\n\n{task.input}"), seed=1),
        chat(("user", lesson), ("assistant", "Noted."), ("user", task.input), seed=1),
    ]
    for request in with_it:
        answers = [
            simulation(ChatRequest(request.body, request.hash, occurrence, 0)).text for occurrence in range(400)
        ]
        assert binomtest(sum(bool(judge(task, a).score) for a in answers), 400, 0.95).pvalue > 0.001


def test_every_paraphrase_is_recognised_and_none_is_taken_for_another() -> None:
    for lesson in (*TRUE, *WRONG):
        assert len(set(lesson.paraphrases)) >= 4
        for sentence in lesson.paraphrases:
            for text in (sentence, sentence.upper(), f"[e-12345678] {sentence} (Applies when: always)"):
                assert (read(text).advised, read(text).denied) == ({lesson.key}, set())
        for sentence in lesson.contradictions:
            assert (read(sentence).advised, read(sentence).denied) == (set(), {lesson.key})


def test_no_task_and_no_feedback_gives_a_lesson_away() -> None:
    words = {word for lesson in (*TRUE, *WRONG) for word in lesson.key.split() if len(word) > 4}
    for task in (*WORLD.train, *WORLD.validation):
        shown = f"{task.input} {judge(task, '7').feedback} {judge(task, task.answer).feedback}"
        assert not read(shown).advised
        assert not words & set(shown.lower().replace(".", " ").replace(",", " ").split())
        assert task.answer not in task.input


def test_the_family_shows_in_every_task() -> None:
    for task in (*WORLD.train, *WORLD.validation):
        assert FAMILIES[task.metadata["family"]].name in task.input
        assert WORLD.tasks_in(f"some words\n{task.input}") == [task]
    assert len(WORLD.by_code) == len(WORLD.train) + len(WORLD.validation) == 96
    assert WORLD.train == World(3).train
    assert WORLD.train != World(4).train


def test_the_last_number_is_judged_and_feedback_names_family_and_answer() -> None:
    task = WORLD.train[0]
    name = FAMILIES[task.metadata["family"]].name
    assert judge(task, f"First 12, so the answer is {task.answer}.").score == 1
    wrong = judge(task, f"{task.answer}, or rather 12")
    assert (wrong.score, wrong.feedback) == (0, f"This task is about {name}. The answer 12 is wrong.")
    assert judge(task, None).score == 0
    assert failing_families(f"x {wrong.feedback} {judge(task, task.answer).feedback}") == [task.metadata["family"]]


def requests() -> list[ChatRequest]:
    """Tasks with and without seeds, repeated ones, and distillation."""
    tasks = [chat(("user", task.input), seed=n) for n, task in enumerate(WORLD.train)]
    again = [chat(("user", WORLD.train[0].input), occurrence=n) for n in range(5)]
    distil = [chat(("user", distil_prompt([], family_task=n)), seed=n) for n in range(8)]
    return [*tasks, *again, *distil]


def test_answers_do_not_depend_on_the_order_of_requests() -> None:
    asked = requests()
    in_order = {(c.hash, c.occurrence): Simulation(WORLD)(c).text for c in asked}
    shuffled = list(asked)
    random.Random(1).shuffle(shuffled)
    simulation = Simulation(WORLD)
    assert {(c.hash, c.occurrence): simulation(c).text for c in shuffled} == in_order
    assert len({in_order[c.hash, c.occurrence] for c in asked if c.occurrence}) > 1, (
        "a repeated request is a new draw"
    )


def test_the_request_seed_and_the_server_seed_change_the_draws() -> None:
    simulation, task = Simulation(WORLD), WORLD.train[0]
    assert len({simulation(chat(("user", task.input), seed=n)).text for n in range(20)}) > 10
    one = chat(("user", task.input))
    assert len({simulation(ChatRequest(one.body, one.hash, 0, seed)).text for seed in range(20)}) > 10


def test_the_tally_counts_calls_and_characters_by_role() -> None:
    simulation = Simulation(WORLD)
    answer = simulation(chat(("system", "abcd" * 3), ("user", WORLD.train[0].input)))
    simulation(chat(("user", distil_prompt([]))))
    cost = simulation.tally.by_role["task"]
    assert cost.calls == 1
    assert cost.prompt_tokens == 3 + -(-len(WORLD.train[0].input) // 4)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == cost.completion_tokens == -(-len(answer.text) // 4)
    assert set(simulation.tally.by_role) == {"task", "distil"}
    assert simulation.tally.calls == 2


# The roles


def distil_prompt(library: Sequence[tuple[str, str]], *, family_task: int = 0) -> str:
    task = next(task for task in WORLD.train if task.metadata["family"] == family_task)
    attempts = [
        {"number": 1, "reward": 1, "feedback": "good", "seen": [], "transcript": "12"},
        {"number": 2, "reward": 0, "feedback": "", "seen": ["e-11111111"], "transcript": "13"},
    ]
    return render(
        "distil",
        task=task.input,
        attempts=attempts,
        answer=task.answer,
        library=[{"id": id, "text": text, "when": "", "when_not": ""} for id, text in library],
        agent_objective="",
        learning_objective="",
        graded=True,
        tools=[],
        most=2,
        words=32,
    )


def update_prompt(lessons: Sequence[str], library: Sequence[tuple[str, str]]) -> str:
    return render(
        "group_update",
        lessons=[{"text": text, "when": "", "when_not": "", "why": "seen", "tool": ""} for text in lessons],
        library=[{"id": id, "text": text, "when": "", "when_not": ""} for id, text in library],
        words=32,
    )


def consolidate_prompt(clusters: Sequence[tuple[Sequence[str], Sequence[tuple[str, str]]]]) -> str:
    return render(
        "consolidate",
        clusters=[
            {
                "number": number,
                "operations": [{"text": text} for text in operations],
                "entries": [{"id": id, "text": text} for id, text in held],
            }
            for number, (operations, held) in enumerate(clusters, start=1)
        ],
        words=32,
    )


def gepa_prompt(instruction: str, examples: str) -> str:
    return (
        f"{PEERS['reflect']}\n```\n{instruction}\n```\n\nThe following are examples of different task inputs:\n"
        f"```\n{examples}\n```\n\nProvide the new instructions within ``` blocks."
    )


DSPY_SYSTEM = (
    "[[ ## current_instruction ## ]]\n{current_instruction}\n\n[[ ## examples_with_feedback ## ]]\n"
    f"{{examples_with_feedback}}\n\nyour objective is: \n        {PEERS['reflect_dspy']} You are given"
)


def dspy_messages(instruction: str, examples: str) -> tuple[tuple[str, str], ...]:
    user = (
        f"[[ ## current_instruction ## ]]\n{instruction}\n\n"
        f"[[ ## examples_with_feedback ## ]]\n{examples}\n\nRespond"
    )
    return ("system", DSPY_SYSTEM), ("user", user)


def test_each_role_is_recognised() -> None:
    roles = Roles()
    prompts = {
        "distil": distil_prompt([("e-11111111", TRUE[0].paraphrases[0])]),
        "group_update": update_prompt([TRUE[0].paraphrases[0]], []),
        "consolidate": consolidate_prompt([(["add: x"], [])]),
        "reflect": gepa_prompt(SYSTEM, "none"),
        "task": f"{ALL_TRUE}\n\n{WORLD.train[0].input}",
    }
    for role, prompt in prompts.items():
        assert roles.of([Message(role="system", content=SYSTEM), Message(role="user", content=prompt)]) == role
    for role in TEMPLATES:
        assert first_line(role), f"the template {role} is known"
        assert roles.of([Message(role="user", content=f"{first_line(role)}\nmore")]) == role
    assert first_line("no-such-template") == ""
    marks = list(roles.marks.values())
    assert not [(a, b) for a in marks for b in marks if a != b and a.startswith(b)], "no mark begins another"
    dspy = [Message(role=role, content=text) for role, text in dspy_messages(SYSTEM, "[]")]  # type: ignore[arg-type]
    assert roles.of(dspy) == "reflect_dspy"


def test_what_is_no_task_of_this_world_is_refused() -> None:
    with pytest.raises(ValueError, match="neither a task"):
        Simulation(WORLD)(chat(("user", "What is 2 + 2?")))


def said(role: str, *messages: tuple[str, str], draws: int = 600) -> list[str]:
    simulation = Simulation(WORLD)
    answers = [simulation(chat(*messages, seed=n)).text for n in range(draws)]
    assert set(simulation.tally.by_role) == {role}
    return answers


def operations(role: str, prompt: str, *, draws: int = 600) -> list[list[dict[str, object]]]:
    return [json.loads(text)["operations"] for text in said(role, ("user", prompt), draws=draws)]


def test_a_fifth_of_the_distilled_lessons_is_wrong() -> None:
    texts = [str(op["text"]) for ops in operations("distil", distil_prompt([])) for op in ops]
    assert len(texts) == 600
    wrong = sum(harmful_lessons(text) for text in texts)
    assert binomtest(wrong, 600, 0.2).pvalue > 0.001
    assert sum(TRUE[0].key in read(text).advised for text in texts) == 600 - wrong
    assert len(set(texts)) > 20, "it paraphrases"


def test_a_tenth_repeats_or_contradicts_what_the_library_says() -> None:
    known = distil_prompt([("e-11111111", TRUE[5].paraphrases[0]), ("e-22222222", TRUE[0].paraphrases[0])])
    texts = [str(op["text"]) for ops in operations("distil", known) for op in ops]
    stray = [text for text in texts if not harmful_lessons(text)]
    assert binomtest(len(stray), 600, 0.1).pvalue > 0.001, "otherwise the true lesson is known already"
    against = sum(bool(read(text).denied) for text in stray)
    assert binomtest(against, len(stray), 0.5).pvalue > 0.001


def test_a_contradicted_true_lesson_is_put_right() -> None:
    held = [("e-11111111", TRUE[0].contradictions[0])]
    mended = [ops for ops in operations("distil", distil_prompt(held)) if ops and ops[0]["op"] == "modify"]
    assert len(mended) > 200
    assert all(ops[0]["id"] == "e-11111111" for ops in mended)


def test_contrast_draws_lessons_and_a_summary_names_the_record() -> None:
    task = WORLD.train[0]
    summary = render(
        "summarise",
        task=task.input,
        attempt={"number": 1, "reward": 0, "feedback": "", "seen": [], "transcript": "12"},
        answer=task.answer,
        agent_objective="",
        learning_objective="",
        graded=True,
    )
    (text,) = said("summarise", ("user", summary), draws=1)
    assert WORLD.tasks_in(text) == [task]
    prompt = render(
        "contrast",
        task=task.input,
        attempts=[{"number": 1, "reward": 0, "summary": text}],
        answer=None,
        library=[],
        agent_objective="",
        learning_objective="",
        graded=True,
        tools=[],
        most=2,
        words=32,
    )
    lessons = [json.loads(text)["lessons"] for text in said("contrast", ("user", prompt), draws=50)]
    assert all(len(found) == 1 for found in lessons)
    assert sum(TRUE[task.metadata["family"]].key in read(found[0]["text"]).advised for found in lessons) > 30


def test_an_update_merges_what_says_the_same_nine_times_in_ten() -> None:
    prompt = update_prompt([TRUE[1].paraphrases[4]], [("e-11111111", TRUE[1].paraphrases[0])])
    kinds = [ops[0]["op"] for ops in operations("group_update", prompt)]
    assert binomtest(kinds.count("modify"), 600, 0.9).pvalue > 0.001
    assert set(kinds) == {"modify", "add"}
    doubled = update_prompt(
        [TRUE[1].paraphrases[4]], [("e-11111111", TRUE[1].paraphrases[0]), ("e-22222222", TRUE[1].paraphrases[1])]
    )
    merged = [ops[0] for ops in operations("group_update", doubled) if ops[0]["op"] == "merge"]
    assert len(merged) > 480
    assert merged[0]["ids"] == ["e-11111111", "e-22222222"]
    fresh = operations("group_update", update_prompt([WRONG[0].paraphrases[0]], []), draws=20)
    assert all([op["op"] for op in ops] == ["add"] for ops in fresh)


def test_consolidation_settles_each_cluster() -> None:
    prompt = consolidate_prompt(
        [
            ([f"add: {TRUE[1].paraphrases[0]}", f"add: {TRUE[1].paraphrases[5]} (because: x)"], []),
            ([f"add: {TRUE[2].paraphrases[0]}", f"modify e-33333333: {TRUE[2].contradictions[0]}"],
             [("e-33333333", TRUE[2].paraphrases[2])]),
            (["delete e-44444444 (because: it harms)"], [("e-44444444", WRONG[0].paraphrases[0])]),
        ]
    )  # fmt: skip
    answers = [json.loads(text)["clusters"] for text in said("consolidate", ("user", prompt))]
    assert all([cluster["number"] for cluster in clusters] == [1, 2, 3] for clusters in answers)
    one = sum([op["op"] for op in clusters[0]["operations"]] == ["add"] for clusters in answers)
    assert binomtest(one, 600, 0.9).pvalue > 0.001
    settled = [clusters[1]["operations"] for clusters in answers if len(clusters[1]["operations"]) == 1]
    rightly = sum(TRUE[2].key in read(ops[0]["text"]).advised for ops in settled)
    assert binomtest(rightly, len(settled), 0.8).pvalue > 0.001
    assert all(clusters[2]["operations"] == [{"op": "delete", "id": "e-44444444"}] for clusters in answers)


def examples(*families: int) -> str:
    shown = []
    for family in families:
        task = next(task for task in WORLD.train if task.metadata["family"] == family)
        shown.append(f"{task.input} {judge(task, '7').feedback}")
    return "\n".join(shown)


@pytest.mark.parametrize("peer", ["reflect", "reflect_dspy"])
def test_a_reflection_adds_a_lesson_for_a_failing_family(peer: str) -> None:
    instruction = f"{SYSTEM}\n{TRUE[4].paraphrases[0]}"
    shown = examples(4, 6)
    messages = (
        (("user", gepa_prompt(instruction, shown)),) if peer == "reflect" else dspy_messages(instruction, shown)
    )
    better = []
    for text in said(peer, *messages):
        new = (
            text.split("```\n")[1].removesuffix("\n```")
            if peer == "reflect"
            else json.loads(text)["new_instruction"]
        )
        assert new.startswith(f"{instruction}\n"), "the current instruction is kept"
        better.append(new.removeprefix(f"{instruction}\n"))
    assert all(len(text.splitlines()) == 1 for text in better)
    wrong = sum(harmful_lessons(text) for text in better)
    assert binomtest(wrong, 600, 0.2).pvalue > 0.001
    assert sum(TRUE[6].key in read(text).advised for text in better) == 600 - wrong, "for the family without help"


def test_a_kinder_reflection_names_every_failing_family() -> None:
    kind = Distiller(WORLD, wrong=0.0, every_failure=True)
    text = kind.answer("reflect", gepa_prompt(SYSTEM, examples(1, 2, 7)), random.Random(0))
    assert read(text).advised == {TRUE[1].key, TRUE[2].key, TRUE[7].key}


def test_entries_are_read_once_with_their_ids() -> None:
    prompt = f"[e-11111111] {TRUE[0].paraphrases[0]}\n[e-11111111] {TRUE[0].paraphrases[1]}\n[e-2222222a] nothing"
    assert entries(prompt) == [Said(TRUE[0].key, False, "e-11111111")]
    assert lessons_in(f"modify e-2222222a: {WRONG[0].contradictions[0]}") == [
        Said(WRONG[0].key, True, "e-2222222a")
    ]


# The measurement


def test_the_curve_notes_when_the_target_is_reached() -> None:
    tally, seven = Tally(), "\n".join(lesson.paraphrases[0] for lesson in TRUE[:7])
    curve = Curve(WORLD, tally)
    curve.now(SYSTEM)
    simulation = Simulation(WORLD)
    simulation.tally = tally
    for prompt in (seven, ALL_TRUE):
        simulation(chat(("user", WORLD.train[0].input)))
        curve.now(prompt)
    assert [round(point.score, 3) for point in curve.points] == [0.15, 0.85, 0.95]
    figures = curve.figures()
    assert (figures["calls_to_target"], figures["true_lessons"], figures["final_score"]) == (
        2,
        8,
        pytest.approx(0.95),
    )
    one_wrong = Curve(WORLD, tally)
    one_wrong.now(f"{ALL_TRUE}\n{WRONG[0].paraphrases[0]}")
    assert one_wrong.reached is not None, "0.875 is above 90 % of 0.95"
    two_wrong = Curve(WORLD, tally)
    two_wrong.now(f"{ALL_TRUE}\n{WRONG[0].paraphrases[0]}\n{WRONG[1].paraphrases[0]}")
    assert two_wrong.reached is None


def test_never_is_larger_than_any_number() -> None:
    assert quartiles([10, 20, 30, None, None]) == {"q1": 20.0, "median": 30.0, "q3": None}
    assert quartiles([None, None, 5]) == {"q1": None, "median": None, "q3": None}


def test_arms_pass_on_what_the_settings_know_and_name_the_rest() -> None:
    settings, missing = available({"group_size": 4, "extractor": "telepathy", "crystal_ball": True})
    assert settings.group_size == 4
    assert missing == {"extractor": "telepathy", "crystal_ball": True}
    assert not any(available(arm)[1] for arm in ARMS.values()), "all arms can be run as they are named"


async def test_worked_examples_teach_nothing_here() -> None:
    figures = await learn("exemplar", 0, cap=200)
    assert figures["calls_to_target"] is None
    assert figures["final_score"] == pytest.approx(0.15)
    assert figures["calls"] == 200
    assert figures["ended"] == "cap"


async def test_it_is_served_over_http() -> None:
    import httpx

    simulation, task = Simulation(WORLD), WORLD.train[0]
    async with serve(simulation, seed=1) as server, httpx.AsyncClient() as client:
        body = {"model": "simulated", "messages": [{"role": "user", "content": task.input}]}
        replies = await asyncio.gather(
            *(client.post(f"{server.base_url}/chat/completions", json={**body, "seed": n}) for n in range(20))
        )
    texts = [reply.json()["choices"][0]["message"]["content"] for reply in replies]
    assert all(any(character.isdigit() for character in text) for text in texts)
    assert simulation.tally.calls == 20
    assert replies[0].json()["usage"]["prompt_tokens"] == -(-len(task.input) // 4)
