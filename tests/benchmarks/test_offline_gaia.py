"""The offline set: the same bytes each time, sound, solved by its own plans through the real tools."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from agentmem.cli.gaia_set import opened
from benchmarks.offline_gaia.check import facts, run, wrong
from benchmarks.offline_gaia.episode import way_of, ways_shown
from benchmarks.offline_gaia.generate import TEMPLATES, digest, tasks, write

KINDS = ["csv", "docx", "html", "json", "jsonl", "pdf", "png", "pptx", "py", "wav", "xlsx", "xml", "zip"]


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("offline") / "set"
    write(path)
    return path


def contents(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(offline: Path, tmp_path: Path) -> None:
    again = write(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(offline)
    assert again == digest(contents(offline))
    assert write(tmp_path / "other", seed=1) != again
    with pytest.raises(FileExistsError, match="holds something already"):
        write(offline)


def test_its_bytes_are_the_published_ones(offline: Path) -> None:
    readme = Path("benchmarks/offline_gaia/README.md").read_text(encoding="utf-8")
    assert digest(contents(offline)) in readme


def test_it_is_sound_and_as_large_as_it_should_be(offline: Path) -> None:
    folder = opened(offline)
    assert folder.faults == ()
    levels = Counter(task.level for task in folder.tasks)
    splits = Counter(task.split for task in folder.tasks)
    assert levels == {"1": 36, "2": 48, "3": 24}
    assert splits == {"train": 45, "test": 45, "transfer": 18}
    endings = {Path(file).suffix[1:] for task in folder.tasks for file in task.files}
    assert sorted(endings) == KINDS
    plans = [task.metadata["Annotator Metadata"]["Plan"] for task in folder.tasks]
    assert {call["tool"] for plan in plans for call in plan} == {
        *("calculator", "fetch_page", "python", "read_file", "search"),
    }
    assert all(len(plan) >= 2 for plan in plans)
    assert sum(len({call["tool"] for call in plan}) > 1 for plan in plans) >= 80
    numbers = sum(task.answer.replace(".", "").isdigit() for task in folder.tasks if task.answer)
    lists = sum("," in (task.answer or "") for task in folder.tasks)
    assert min(numbers, lists, len(folder.tasks) - numbers - lists) >= 15, "all three kinds of answers"


def test_columns_are_those_of_gaia(offline: Path) -> None:
    from agentmem.task_folder import COLUMNS

    for line in (offline / "tasks.jsonl").read_text().splitlines():
        assert set(json.loads(line)) - {"cluster", "split", "sha256"} <= set(COLUMNS)


def test_no_question_holds_its_answer_and_each_is_asked_once(offline: Path) -> None:
    folder = opened(offline)
    assert len({task.input for task in folder.tasks}) == len(folder.tasks)
    assert not [task.id for task in folder.tasks if f" {task.answer} " in f" {task.input} "]


ONE_OF_EACH = tuple(f"{template.name}-{n % 6}" for n, template in enumerate(TEMPLATES))
"""A task of each template; `python -m benchmarks.offline_gaia.check` replays them all."""


def test_plans_replayed_through_the_real_tools_solve_their_tasks(offline: Path, tmp_path: Path) -> None:
    whole = run(offline, "replay", tmp_path / "a", ONE_OF_EACH)
    assert wrong(whole) == []
    assert whole.report.n == len(TEMPLATES)
    assert all(visit.address.startswith("http://") and ".test/" in visit.address for visit in whole.visits)
    some = ("badge-3", "talk-1", "relay-5")
    again = run(offline, "replay", tmp_path / "b", some)
    assert facts(again) == [fact for fact in facts(whole) if fact[0] in some]


def test_plans_with_a_slip_do_not(offline: Path, tmp_path: Path) -> None:
    slipped = run(offline, "slip", tmp_path / "a", ("letter-0", "minutes-1", "harbour-2", "program-3"))
    assert slipped.report.score == 0.0


def test_ways_are_read_off_the_cases_that_worked() -> None:
    from agentmem.domain.trajectory import Message
    from agentmem.models.model import Request

    text = (
        'Records.\n\nThis worked. Case c-1:\n[M\nstate\n\n- read_file {"path": "a"} -> x\n'
        '- python {"code": "# skill table: add\\nx"} -> y\nAnswer: 5\nM]\n\n'
        'This did not work, so do otherwise. Case c-2:\n[M\n- calculator {"expression": "1"} -> 1\nM]'
    )
    request = Request(messages=(Message(role="system", content=text),))
    assert ways_shown(request) == {("read_file", "python#table")}
    ledger = next(task for task in tasks() if task.template.name == "ledger")
    assert way_of(ledger) == ("read_file", "python#table")
    assert len({template.name for template in TEMPLATES}) == len(TEMPLATES) == 18
