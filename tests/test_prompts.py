"""Prompts: each template's exact text, and what is wrong with a broken one is said before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem import prompts
from agentmem.errors import InputError
from agentmem.prompts import fenced, fingerprint, load, names, render, use_prompts

SNAPSHOTS = Path(__file__).parent / "snapshots"
LESSONS = [
    {"id": "e-1", "text": "Check the units.", "when": "", "when_not": ""},
    {"id": "e-2", "text": "Write\n[e-9] {{ small }} steps.", "when": "a proof", "when_not": "a  lookup"},
]
JUDGED = {"input": "2 + 3?", "answer": "5", "output": "```\nfive {{ answer }}\n```\n", "rubric": ""}
ABOUT = {
    "task": "2 + 3?",
    "answer": "5",
    "agent_objective": "Bookkeeping.",
    "learning_objective": "",
    "graded": True,
}
BLIND = {**ABOUT, "answer": None, "graded": False}
ATTEMPTS = [
    {"number": 1, "reward": "1", "feedback": "", "seen": ["e-1"], "transcript": "5", "summary": "It added."},
    {
        "number": 2,
        "reward": "0",
        "feedback": "got '6'",
        "seen": [],
        "transcript": "```6",
        "summary": "It guessed.",
    },
]
CLUSTERS = [
    {"number": 1, "operations": [{"text": "add: Check the units."}], "entries": [{"id": "e-1", "text": "Units."}]}
]
LIMITS = {"most": 2, "words": 32}
WORKED = {"id": "c-1", "state": "My password is lost", "action": "IT desk", "trace": ["ask {{ who }} -> Bob"]}
FAILED = {"id": "c-2", "state": "I am\n[hungry", "action": "Finance", "trace": []}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "prior": ("prior", {"lessons": LESSONS}),
    "cases": ("cases", {"worked": [WORKED], "failed": [FAILED], "mark": "A1B2", "cite": True}),
    "judge": ("judge", JUDGED),
    "judge_without_reference": ("judge", {**JUDGED, "answer": None, "rubric": "It is short."}),
    "answer_now": ("answer_now", {}),
    "shown_files": ("shown_files", {"names": "chart.png"}),
    "confidence": ("confidence", {}),
    "distil": ("distil", {**ABOUT, **LIMITS, "attempts": ATTEMPTS, "library": LESSONS, "tools": []}),
    "distil_without_reference": (
        "distil",
        {**BLIND, **LIMITS, "attempts": ATTEMPTS, "library": [], "tools": ["fetch", "python"]},
    ),
    "summarise": ("summarise", {**ABOUT, "attempt": ATTEMPTS[1]}),
    "contrast": ("contrast", {**ABOUT, **LIMITS, "attempts": ATTEMPTS, "library": LESSONS, "tools": ["fetch"]}),
    "group_update": (
        "group_update",
        {"lessons": [{**LESSONS[1], "why": "attempt 1 did", "tool": ""}], "library": LESSONS, "words": 32},
    ),
    "group_update_with_tools": (
        "group_update",
        {"lessons": [{**LESSONS[1], "why": "", "tool": "fetch"}], "library": [], "words": 32},
    ),
    "attached": ("attached", {"question": "How many {{ rows }}?", "name": "a.csv"}),
    "gaia": ("gaia", {"tools": True}),
    "gaia_without_tools": ("gaia", {"tools": False}),
    "left_out": ("left_out", {"turns": 3}),
    "only_answer": ("only_answer", {}),
    "plan": ("plan", {"tools": [{"name": "python", "description": "Run code."}], "most": 8, "cycles": 3}),
    "plan_without_tools": ("plan", {"tools": [], "most": 8, "cycles": 1}),
    "quoted": ("quoted", {"mark": "A1B2", "source": "https://example.org", "text": "Obey {{ me }}."}),
    "results": (
        "results",
        {
            "subtasks": [
                {"id": "p1.a", "status": "result", "result": "21"},
                {"id": "p1.b", "status": "failed", "result": "It said nothing."},
            ],
            "left": 1,
        },
    ),
    "results_of_the_last_plan": (
        "results",
        {"subtasks": [{"id": "p3.a", "status": "result", "result": "21"}], "left": 0},
    ),
    "subtask": (
        "subtask",
        {
            "tools": ["fetch: 4 calls, 50 % ok"],
            "lessons": [{"id": "e-1", "tool": "fetch", "text": "Use read_file for a PDF."}],
        },
    ),
    "subtask_without_memory": ("subtask", {"tools": [], "lessons": []}),
    "subtask_asked": (
        "subtask_asked",
        {"description": "Add them.", "needed": [{"description": "Find one.", "result": "21"}]},
    ),
    "consolidate": ("consolidate", {"clusters": CLUSTERS, "words": 32}),
    "tips": ("tips", {**LIMITS, "tasks": ["2 + 3?", "```"], "agent_objective": "", "learning_objective": ""}),
    "critique": ("critique", {"task": "2 + 3?", "attempt": "6", "feedback": "got '6'", "answer": None}),
}


@pytest.fixture(autouse=True)
def _packaged_prompts_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("AGENTMEM_PROMPTS", raising=False)
    use_prompts(None)
    yield
    monkeypatch.delenv("AGENTMEM_PROMPTS", raising=False)
    use_prompts(None)


def template(folder: Path, text: str, name: str = "mine") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.md").write_text(text)
    return folder


def mine(body: str, variables: str = "\n  x: something") -> str:
    return f"---\npurpose: test\nvariables: {variables}\n---\n{body}"


@pytest.mark.parametrize("case", CASES)
def test_text_is_as_in_the_snapshot(case: str) -> None:
    name, variables = CASES[case]
    assert render(name, **variables) + "\n" == (SNAPSHOTS / f"{case}.txt").read_text(), (
        f"The text of prompt {name!r} changed. If it is meant, write the new text to tests/snapshots/{case}.txt."
    )


def test_every_template_has_a_snapshot() -> None:
    assert {name for name, _ in CASES.values()} == set(names())
    assert {file.stem for file in SNAPSHOTS.iterdir()} == set(CASES)


@pytest.mark.parametrize("name", names())
def test_declared_variables_are_the_used_ones(name: str) -> None:
    assert load(name).used_variables() == load(name).variables.keys()
    assert load(name).purpose.endswith(".")


@given(st.text())
def test_a_variable_is_never_read_as_a_template(text: str) -> None:
    shown = render("judge", input="?", answer=None, output=text + "{{ input }}{% raw %}", rubric="")
    assert text + "{{ input }}{% raw %}" in shown


@given(st.text(alphabet="`ab\n", max_size=20))
def test_no_text_can_end_its_fence(text: str) -> None:
    first, *inside, last = fenced(text).split("\n")
    assert first == last == "`" * len(first)
    assert "\n".join(inside) == text
    assert first not in text


def test_no_lesson_can_pose_as_another() -> None:
    text = render(
        "prior", lessons=[{"id": "e-1", "text": "a\n[e-2] b\u2028[e-3]", "when": "\n[e-4]", "when_not": ""}]
    )
    assert [line[:5] for line in text.splitlines()[1:]] == ["[e-1]"]


@pytest.mark.parametrize(
    ("name", "variables", "message"),
    [
        (
            "judge",
            {"input": "", "output": "", "rubric": ""},
            "Prompt 'judge' needs the variable 'answer' (the reference",
        ),
        ("prior", {"lessons": [], "lesson": 1}, "Prompt 'prior' has no variable 'lesson'. Known: lessons"),
        ("answer_now", {"x": 1}, "Prompt 'answer_now' has no variable 'x'. Known: none"),
        ("prio", {}, "There is no prompt 'prio'. Did you mean 'prior'? Known: answer_now, "),
        ("../prior", {}, "'../prior' is no name of a prompt"),
    ],
)
def test_a_wrong_call_names_template_and_variable(name: str, variables: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        render(name, **variables)
    assert str(caught.value).startswith(message)


def test_a_fault_inside_a_value_names_the_line() -> None:
    with pytest.raises(InputError, match=r"prior\.md, line 9: 'dict object' has no attribute 'text'"):
        render("prior", lessons=[{"id": "e-1"}])
    with pytest.raises(InputError, match=r"prior\.md, line 10: 'dict object' has no attribute 'when'"):
        render("prior", lessons=[{"id": "e-1", "text": "a"}])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Hello", "line 1: no front matter; begin with '---'"),
        ("---\npurpose: test\n", "line 3: the front matter does not end; close it with '---'."),
        ("---\npurpose: a\n x: [\n---\n", "line 3: the front matter is broken: "),
        ("---\n- a\n---\n", "line 2: the front matter must be keys with values"),
        ("---\nvariables: {}\n---\n", "line 2: 'purpose' must say in one line what the prompt is for"),
        (
            "---\npurpose: test\nvariable: {}\n---\n",
            "line 3: the front matter has no key 'variable'; known: purpose,",
        ),
        ("---\npurpose: test\nvariables: [x]\n---\n", "line 3: 'variables' must be lines of the form"),
        (mine("", "\n  x-y: a"), "line 4: 'x-y' is no name of a variable"),
        (mine("", "\n  x:"), "line 4: the variable 'x' needs a line that says what it is"),
        ("---\npurpose: test\noutput: 3\n---\n", "line 3: 'output' must be the name of a schema"),
        (mine("\n\n{{ x }\n"), "line 8: unexpected '}'; correct the template."),
        (mine("a\n{% if x %}\nb"), "line 8: Unexpected end of template."),
        (mine("a\n{{ x | nosuch }}"), "line 7: No filter named 'nosuch'; correct"),
        (
            mine("a\n\n{{ x }} {{ other }}"),
            "line 8: the variable 'other' is not declared in the front matter. Declared: x.",
        ),
    ],
)
def test_a_broken_template_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        use_prompts(template(tmp_path, text))
    assert str(caught.value).startswith(f"{tmp_path / 'mine.md'}, {message}")
    assert "mine" not in names(), "the templates in use stay"


def test_a_template_cannot_run_code(tmp_path: Path) -> None:
    use_prompts(template(tmp_path, mine("{{ x.__class__.__mro__ }}")))
    with pytest.raises(InputError, match=r"mine\.md, line 6: access to attribute '__class__'.*unsafe"):
        render("mine", x="")


def test_own_templates_come_first_and_the_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = render("answer_now")
    template(tmp_path / "a", mine("Env.", "{}"), "answer_now")
    template(tmp_path / "b", mine("Chosen.", "{}"), "answer_now")
    monkeypatch.setenv("AGENTMEM_PROMPTS", str(tmp_path / "a"))
    assert render("answer_now") == "Env."
    use_prompts(tmp_path / "b")
    assert render("answer_now") == "Chosen."
    assert "[e-1]" in render("prior", lessons=LESSONS)
    use_prompts(None)
    assert render("answer_now") == "Env."
    monkeypatch.delenv("AGENTMEM_PROMPTS")
    assert render("answer_now") == packaged


def test_an_own_template_must_take_the_same_variables(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"prior\.md, line 1: declares the variables x, but prompt 'prior' is .*lessons"
    ):
        use_prompts(template(tmp_path, mine("{{ x }}"), "prior"))


def test_an_own_folder_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"The prompt folder '.*nowhere' is no folder"):
        use_prompts(tmp_path / "nowhere")
    monkeypatch.setenv("AGENTMEM_PROMPTS", "nowhere")
    with pytest.raises(InputError, match=r"'nowhere' \(from AGENTMEM_PROMPTS\) is no folder; make it"):
        render("answer_now")


def test_fingerprints_follow_the_text(tmp_path: Path) -> None:
    all_before, one, other = fingerprint(), fingerprint("answer_now"), fingerprint("prior")
    assert len({all_before, one, other}) == 3
    assert fingerprint("prior", "answer_now") == fingerprint("answer_now", "prior")
    use_prompts(template(tmp_path, mine("Other.", "{}"), "answer_now"))
    assert fingerprint("answer_now") != one
    assert fingerprint() != all_before
    assert fingerprint("prior") == other


def test_a_run_keeps_one_wording(tmp_path: Path) -> None:
    use_prompts(template(tmp_path, mine("First.", "{}")))
    template(tmp_path, mine("Second.", "{}"))
    assert render("mine") == "First."
    use_prompts(tmp_path)
    assert render("mine") == "Second."


def test_only_a_checkout_lends_its_prompts_folder(tmp_path: Path) -> None:
    package = tmp_path / "agentmem"
    package.mkdir()
    (tmp_path / "prompts").mkdir()
    with pytest.raises(InputError, match="templates are missing"):
        prompts._packaged_folder(package)
    (tmp_path / "pyproject.toml").write_text("")
    assert prompts._packaged_folder(package) == tmp_path / "prompts"
    (package / "_prompts").mkdir()
    assert prompts._packaged_folder(package) == package / "_prompts"


def test_a_folder_of_the_same_name_elsewhere_is_another_one(tmp_path: Path, monkeypatch) -> None:
    """Templates are kept by path, and a relative path means something else after a change of folder."""
    monkeypatch.setenv("AGENTMEM_PROMPTS", "own")
    for place, text in (("a", "First."), ("b", "Second.")):
        (tmp_path / place).mkdir()
        template(tmp_path / place / "own", mine(text, "{}"), "answer_now")
        monkeypatch.chdir(tmp_path / place)
        assert render("answer_now") == text
