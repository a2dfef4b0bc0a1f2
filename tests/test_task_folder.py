"""Sets in GAIA's form: what loads, and every fault with its row and its repair."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from agentmem.errors import InputError
from agentmem.rewards.gaia import faults_of
from agentmem.task_folder import PRIVATE, load_task_folder

ROW = {"task_id": "a", "Question": "How many?", "Level": "1", "Final answer": "17", "file_name": ""}


def folder(path: Path, *rows: object, card: str = 'name = "own"', files: tuple[str, ...] = ()) -> Path:
    path.mkdir(exist_ok=True)
    (path / "files").mkdir(exist_ok=True)
    for name in files:
        (path / "files" / name).write_text("content")
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (path / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    (path / "dataset.toml").write_text(card)
    return path


def faults(path: Path) -> list[str]:
    return [str(fault) for fault in load_task_folder(path, faults_of=faults_of).faults]


def test_a_sound_set(tmp_path: Path) -> None:
    card = 'name = "own"\nversion = "2"\nlicense = "CC0"\ngated = true\n'
    more = {"cluster": "c", "split": "train", "tags": ["x"], "Annotator Metadata": {"Steps": "1."}}
    found = load_task_folder(
        folder(
            tmp_path / "s",
            ROW | {"file_name": "a.txt"} | more,
            ROW | {"task_id": "b"},
            card=card,
            files=("a.txt",),
        )
    )
    assert found.faults == ()
    first, second = found.tasks
    assert (first.id, first.input, first.level, first.answer) == ("a", "How many?", "1", "17")
    assert (first.cluster, first.split, first.gated, first.license) == ("c", "train", True, "CC0")
    assert first.files == (str(tmp_path / "s" / "files" / "a.txt"),)
    assert first.metadata["tags"] == ["x"]
    assert first.metadata["sha256"] == hashlib.sha256(b"content").hexdigest()
    assert second.files == ()
    assert found.counts() == {("", "1"): 1, ("train", "1"): 1}
    assert [task.id for task in found.chosen(split="train")] == ["a"]
    with pytest.raises(InputError, match=r"no task of level '3'\. Levels: 1; splits: none, train"):
        found.chosen(level="3")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ('{"task_id": "a"', "line 2: broken JSON at column 16"),
        ("[1]", "line 2: no JSON object; write one object a line"),
        (ROW, "line 2 (task 'a'): the task_id was used in tasks.jsonl, line 1 already; give each task its own"),
        (ROW | {"task_id": ""}, "line 2: there is no 'task_id'; write it"),
        (
            {"task_id": "b", "question": "?", "Level": 1, "Final answer": "5"},
            "is it the column 'question'; write it as 'Question'",
        ),
        (ROW | {"task_id": "b", "Level": None}, "(task 'b'): there is no 'Level'; write it"),
        (
            ROW | {"task_id": "b", "Final answer": " "},
            "its 'Final answer' is ' '; write it, or name the split under",
        ),
        (ROW | {"task_id": "b", "Final answer": None}, "there is no 'Final answer'; write it"),
        (ROW | {"task_id": "b", "Final answer": "nan"}, "'nan', and it does not score true against itself"),
        (ROW | {"task_id": "b", "Final answer": "inf"}, "answers that have nothing to do with it score true"),
        (
            ROW | {"task_id": "b", "file_name": "a.tx"},
            "no file 'a.tx'; put it into files/, or did you mean 'a.txt'",
        ),
        (ROW | {"task_id": "b", "file_name": "../x"}, "its file '../x' leads out of the folder"),
        (ROW | {"task_id": "b", "file_name": "/etc/passwd"}, "its file '/etc/passwd' leads out of the folder"),
        (ROW | {"task_id": "b", "file_path": "..\\x"}, "leads out of the folder; name one inside of it"),
        (ROW | {"task_id": "b", "file_name": "a.txt", "sha256": "0"}, "not the one that 'sha256' names; restore"),
    ],
)
def test_each_fault_names_its_row_and_its_repair(tmp_path: Path, row: object, says: str) -> None:
    found = faults(folder(tmp_path / "s", ROW, row, files=("a.txt",)))
    assert len(found) == 1
    assert says in found[0]
    assert found[0].startswith("tasks.jsonl, line 2")


def test_all_faults_are_found_at_once_and_the_first_stops_a_run(tmp_path: Path) -> None:
    path = folder(tmp_path / "s", ROW | {"Level": ""}, ROW | {"file_name": "no"}, "x", ROW | {"task_id": "d"})
    assert len(faults(path)) == 4
    with pytest.raises(InputError, match=r"line 1 .*there is no 'Level'.*3 more faults: agentmem bench validate"):
        load_task_folder(path).chosen()


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "s", ROW | {"file_name": "a.txt"})
    (tmp_path / "secret").write_text("x")
    (path / "files" / "a.txt").symlink_to(tmp_path / "secret")
    assert "a link that leads out of the folder" in faults(path)[0]


@pytest.mark.parametrize(
    ("card", "says"),
    [
        ("name = ", "is no TOML"),
        ('version = "1"', "'name': Field required"),
        ('name = "x"\ngatd = true', "Did you mean 'gated'?"),
        ('name = "x"\ngated = "often"', "'gated'"),
    ],
)
def test_a_card_that_cannot_be_used(tmp_path: Path, card: str, says: str) -> None:
    with pytest.raises(InputError, match=r"dataset\.toml") as refused:
        load_task_folder(folder(tmp_path / "s", ROW, card=card))
    assert says in str(refused.value)


def test_what_is_no_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no folder"):
        load_task_folder(tmp_path / "none")
    with pytest.raises(InputError, match=r"holds neither tasks\.jsonl nor a copy"):
        load_task_folder(tmp_path)
    assert "holds no task" in faults(folder(tmp_path / "s"))[0]


def gaia(path: Path, *, parquet: bool) -> Path:
    """A copy of GAIA as its repository lays it out, with rows of our own."""
    for split, answer in (("validation", "17"), ("test", "?")):
        place = path / "2023" / split
        place.mkdir(parents=True)
        (place / "t.txt").write_text("content")
        steps = {"Steps": "1. Count.", "Number of steps": "1"}
        row = {"Question": "How many?", "Final answer": answer, "Annotator Metadata": steps}
        named = {"file_name": "t.txt", **({"file_path": f"2023/{split}/t.txt"} if parquet else {})}
        level = "2" if parquet else 2
        rows = [
            {"task_id": f"{split}-1", "Level": level, **row, **named},
            {"task_id": f"{split}-2", "Level": level, **row, **dict.fromkeys(named, "")},
        ]
        if parquet:
            pyarrow = pytest.importorskip("pyarrow", reason="the extra 'parquet' is part of 'dev'")
            from pyarrow import parquet as files

            files.write_table(pyarrow.Table.from_pylist(rows), place / "metadata.parquet")
        else:
            rows.insert(0, {"task_id": "0-0-0-0-0", "Level": 1, **row, "file_name": ""})
            (place / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("parquet", [False, True])
def test_a_copy_of_gaia_loads_unchanged(tmp_path: Path, parquet: bool) -> None:
    found = load_task_folder(gaia(tmp_path / "g", parquet=parquet), faults_of=faults_of)
    assert found.faults == ()
    assert found.counts() == {("test", "2"): 2, ("validation", "2"): 2}
    assert found.dataset.gated
    assert all(task.gated for task in found.tasks), "GAIA's terms forbid passing it on"
    validation, test = found.chosen(split="validation"), found.chosen(split="test")
    assert [task.answer for task in validation] == ["17", "17"]
    assert [(task.answer, task.metadata[PRIVATE]) for task in test] == [(None, True)] * 2
    assert validation[0].files == (str(tmp_path / "g" / "2023" / "validation" / "t.txt"),)
    assert validation[0].metadata["Annotator Metadata"]["Steps"] == "1. Count."


def test_a_split_of_gaia_and_the_hub_cache_load_too(tmp_path: Path) -> None:
    path = gaia(tmp_path / "g", parquet=False)
    assert load_task_folder(path / "2023" / "validation").counts() == {("validation", "2"): 2}
    cache = tmp_path / "datasets--gaia"
    (cache / "blobs").mkdir(parents=True)
    (cache / "snapshots").mkdir()
    (path).rename(cache / "snapshots" / "682dd72")
    file = cache / "snapshots" / "682dd72" / "2023" / "validation" / "t.txt"
    file.rename(cache / "blobs" / "0a")
    file.symlink_to("../../../../blobs/0a")
    assert load_task_folder(cache / "snapshots" / "682dd72").faults == ()


def test_broken_parquet_says_so(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the extra 'parquet' is part of 'dev'")
    (tmp_path / "metadata.parquet").write_bytes(b"PAR1 not")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        load_task_folder(tmp_path)
