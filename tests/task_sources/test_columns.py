"""Column mapping: what a column can be, nested ones, and the one sentence for each thing that does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.errors import InputError
from agentmem.task_files import load_tasks, stream_tasks
from agentmem.task_sources.columns import FIELDS, Columns


def written(folder: Path, *records: dict[str, Any], name: str = "t.jsonl") -> Path:
    file = folder / name
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def refused(folder: Path, columns: dict[str, str], *records: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        load_tasks(written(folder, *records), columns=columns)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(str(folder / "t.jsonl")).lstrip(",: ")


def test_every_field_can_come_from_a_column_of_another_name(tmp_path: Path) -> None:
    row = {
        "no": 7, "ask": "2 + 3?", "gold": 5, "also": ["five", "V"], "passage": "Sums are easy.", "paths": "a.png",
        "options": ["4", "5"], "marks": "Is short.", "hard": 2, "group": "g", "side": "train", "terms": "MIT", "x": 1,
    }  # fmt: skip
    columns = {
        "id": "no", "input": "ask", "answer": "gold", "aliases": "also", "context": "passage", "files": "paths",
        "choices": "options", "rubric": "marks", "level": "hard", "cluster": "group", "split": "side",
        "license": "terms",
    }  # fmt: skip
    assert set(columns) == set(FIELDS)
    (task,) = load_tasks(written(tmp_path, row), columns=columns)
    assert (task.id, task.input, task.answer) == ("7", "Sums are easy.\n\n2 + 3?", "5")
    assert (task.files, task.level, task.cluster, task.split, task.license) == (
        ("a.png",),
        "2",
        "g",
        "train",
        "MIT",
    )
    assert task.metadata == {"aliases": ["five", "V"], "choices": ["4", "5"], "rubric": "Is short.", "x": 1}


def test_columns_within_columns(tmp_path: Path) -> None:
    row = {
        "prompt": [{"role": "user", "content": "2 + 3?"}],
        "answer": {"value": "5", "aliases": ["V"]},
        "a.b": "x",
    }
    columns = {"input": "prompt.0.content", "answer": "answer.value", "aliases": "answer.aliases", "level": "a.b"}
    (task,) = load_tasks(written(tmp_path, row), columns=columns)
    assert (task.input, task.answer, task.metadata["aliases"], task.level) == ("2 + 3?", "5", ["V"], "x")


def test_tasks_that_share_a_context_are_one_cluster(tmp_path: Path) -> None:
    rows = [{"input": str(n), "page": page} for n, page in enumerate(["one", "one", ["two", "more"], None, ""])]
    tasks = load_tasks(written(tmp_path, *rows), columns={"context": "page"})
    assert tasks[0].cluster == tasks[1].cluster != tasks[2].cluster
    assert tasks[2].input == "two\n\nmore\n\n2"
    assert [(task.input, task.cluster) for task in tasks[3:]] == [("3", None), ("4", None)]


def test_what_has_the_name_of_a_field_and_is_not_it_is_metadata(tmp_path: Path) -> None:
    row = {"ask": "2 + 3?", "input": "a file", "prompt": "p", "metadata": "from a book", "answer": "5"}
    (task,) = load_tasks(written(tmp_path, row), columns={"input": "ask"})
    assert (task.input, task.answer) == ("2 + 3?", "5")
    assert task.metadata == {"input": "a file", "prompt": "p", "metadata": "from a book"}


def test_without_columns_nothing_changes(tmp_path: Path) -> None:
    file = written(tmp_path, {"question": "a", "context": "c", "aliases": "x"})
    assert load_tasks(file).fingerprint == load_tasks(file, columns={}).fingerprint
    assert load_tasks(file)[0].metadata == {"context": "c", "aliases": "x"}
    assert load_tasks(file)[0].cluster is None


def test_a_stream_has_columns_too(tmp_path: Path) -> None:
    file = written(tmp_path, {"ask": "a"}, {"ask": "b"})
    assert [task.input for task in stream_tasks(file, columns={"input": "ask"})] == ["a", "b"]


ROW = {"no": 1, "ask": "a", "gold": "b"}


@pytest.mark.parametrize(
    ("columns", "rows", "said"),
    [
        ({"input": "asks"}, [ROW], "line 1: no 'asks', the column of 'input'; there is 'no', 'ask', 'gold', did you "
         "mean 'ask'."),
        ({"answer": "x"}, [ROW], "line 1: no 'x', the column of 'answer'; there is 'no', 'ask', 'gold', name one of "
         "them."),
        ({"input": "ask", "id": "no"}, [ROW, {"ask": "b"}], "line 2: no 'no', the column of 'id'; there is 'ask'"),
        ({"input": "ask", "level": "x"}, [ROW, ROW], "no row has 'x', the column of 'level'; there is 'no', 'ask'"),
        ({"input": "ask", "answer": "gold"}, [ROW, {**ROW, "gold": " "}],
         "line 2: 'gold', the column of 'answer', is empty; fill it in, or take the row out."),
        ({"input": "ask", "answer": "gold"}, [ROW, {**ROW, "gold": None}],
         "line 2: 'gold', the column of 'answer', is empty"),
        ({"input": "ask", "id": "no"}, [ROW, ROW], "line 2: the id '1' was used in line 1 already"),
        ({"input": "ask", "aliases": "gold"}, [{**ROW, "gold": [1]}],
         "line 1: 'gold', the column of 'aliases', is [1]; it must be one text or a list of texts."),
        ({"input": "ask", "aliases": "gold"}, [{**ROW, "gold": "[1"}],
         "line 1: 'gold', the column of 'aliases', begins like a JSON list and is none"),
        ({"input": "ask", "context": "no"}, [ROW], "line 1: the context is 1, not text; name the column that holds"),
        ({"inptu": "ask"}, [ROW], "columns: a task has no field 'inptu'. Did you mean 'input'? It has: id, input"),
        ({"input": ""}, [ROW], "columns: 'input' is '', not the name of a column"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_sentence_with_row_and_repair(
    tmp_path: Path, columns: dict[str, str], rows: list[dict[str, Any]], said: str
) -> None:
    assert refused(tmp_path, columns, *rows).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("input", "columns: 'input' is not FIELD=COLUMN, such as input=question."),
        ("input=a,,id=b", "columns: '' is not FIELD=COLUMN"),
        ("input=", "columns: 'input=' is not FIELD=COLUMN"),
        ("input=a,input=b", "columns: 'input' is named twice, as 'a' and as 'b'; keep one."),
        ("gold=answer", "columns: a task has no field 'gold'."),
    ],
)
def test_texts_that_name_no_columns(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        Columns.parse([text])
    assert str(caught.value).startswith(said)


names = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)


@given(st.dictionaries(st.sampled_from(FIELDS), names, max_size=5))
def test_what_is_written_as_text_is_read_again(columns: dict[str, str]) -> None:
    texts = [f"{name}={column}" for name, column in columns.items()]
    assert (Columns.parse([",".join(texts)]) if texts else Columns.of({})) == Columns.of(columns)
    assert Columns.parse(texts).names == columns
