"""Tables: CSV and Parquet give the tasks that the same JSON Lines give, and say in one sentence what is wrong."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.errors import InputError
from agentmem.task_files import load_tasks
from agentmem.task_sources import csv_rows as csv_file

COLUMNS = {"id": "no", "input": "ask", "answer": "gold"}


def table(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def refused(file: Path, columns: dict[str, str] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        load_tasks(file, columns=columns)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(file))
    return str(caught.value).removeprefix(str(file)).lstrip(", ")


def test_a_csv_file_is_read_under_its_header(tmp_path: Path) -> None:
    content = 'question,answer,level,aliases\n"2, or\n3?",5,,"[""five"", ""V""]"\n\n 4? ,"say ""four""",2,\n'
    tasks = load_tasks(table(tmp_path, content), columns={"aliases": "aliases"})
    assert [(t.id, t.input, t.answer, t.level) for t in tasks] == [
        ("1", "2, or\n3?", "5", None),
        ("2", " 4? ", 'say "four"', "2"),
    ]
    assert [t.metadata for t in tasks] == [{"aliases": ["five", "V"]}, {}]
    assert tasks.name == "t"


@pytest.mark.parametrize(("name", "mark"), [("t.csv", ","), ("t.csv", ";"), ("t.csv", "\t"), ("t.tsv", "\t")])
def test_cells_stand_between_commas_semicolons_or_tabs(tmp_path: Path, name: str, mark: str) -> None:
    content = "\ufeff" + mark.join(["input", "answer"]) + "\r\n" + mark.join(["a", "b"]) + "\r\n"
    assert [(t.input, t.answer) for t in load_tasks(table(tmp_path, content, name))] == [("a", "b")]


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)
visible = cells.filter(lambda text: bool(text.strip()))


@given(st.lists(st.tuples(visible, visible, cells), min_size=1, max_size=5), st.sampled_from(",;\t"))
def test_what_csv_writes_comes_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], mark: str
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=mark, lineterminator="\n")
    writer.writerow(["input", "answer", "more"])
    writer.writerows(rows)
    file = table(tmp_path_factory.getbasetemp(), out.getvalue(), "round.csv")
    tasks = load_tasks(file)
    assert [(task.input, task.answer) for task in tasks] == [row[:2] for row in rows]
    assert [task.metadata.get("more") for task in tasks] == [row[2] if row[2].strip() else None for row in rows]


@given(st.binary(max_size=60))
def test_any_bytes_are_tasks_or_one_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = table(tmp_path_factory.getbasetemp(), content, "any.csv")
    try:
        load_tasks(file)
    except InputError as error:
        said = str(error)
    else:
        return
    assert "any.csv" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty: it needs a row for each task."),
        ("input,answer\n", "is empty: it needs a row for each task."),
        ("a,b\n1,2\n", "line 2: no 'input' (nor 'question', 'prompt' or 'problem'), which is what the agent is given; "
         "add it, or say which column it is: columns={'input': ...}, --columns input=..."),
        ("input,answer\na,b\nc\n", "line 3: 1 cells, and the header has 2; put a cell that holds the separator"),
        ("input,answer\na,b,c\n", "line 2: 3 cells, and the header has 2"),
        ('input,answer\n"a\nb",c\nd,e,f\n', "line 4: 3 cells"),
        ("input,answer\na,b\nc,\n", "line 3: 'answer' is empty; write it, or leave 'answer' out where there is none."),
        ("input,answer\n,b\n", "line 2: 'input' is empty"),
        ("id,input\n7,a\n\n7,b\n", "line 4: the id '7' was used in line 2 already"),
        ("id,input\n7,a\n,b\n", "line 3: the id is empty"),
        ("input,,x\na,b,c\n", "line 1: column 2 has no name; the first line names the columns"),
        ("input,input\na,b\n", "line 1: two columns are called 'input'; rename one"),
        ('input,answer\n"a,b\n', "line 2: broken CSV: unexpected end of data; close each quote"),
        ('input\n"a"b\n', "line 2: broken CSV: ',' expected after '\"'"),
        (b"input\na\n" + b"\xe9\n", "line 3, byte 1: 0xe9 is not UTF-8. Convert it, for example"),
        (b"input\na\0\n", "line 2: a NUL; the file is damaged"),
        (b"PAR1 and more", "line 1, byte 1: this is a Parquet file"),
    ],
)  # fmt: skip
def test_a_faulty_csv_file_is_one_sentence_with_line_and_repair(
    tmp_path: Path, content: str | bytes, said: str
) -> None:
    assert refused(table(tmp_path, content)).startswith(said)


def test_wrong_columns_and_empty_answers_are_named_by_line(tmp_path: Path) -> None:
    file = table(tmp_path, "no,ask,gold\n1,a,b\n2,c, \n")
    assert refused(file, COLUMNS).startswith("line 3: 'gold', the column of 'answer', is empty; fill it in")
    assert refused(file, {**COLUMNS, "answer": "golden"}).startswith(
        "line 2: no 'golden', the column of 'answer'; there is 'no', 'ask', 'gold', did you mean 'gold'"
    )


def test_a_long_cell_is_read_and_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = table(tmp_path, f"input\n{'x' * 300_000}\n")
    assert len(load_tasks(file)[0].input) == 300_000
    monkeypatch.setattr(csv_file, "MAX_CSV", 1000)
    assert "write it as JSON Lines or Parquet" in refused(file)


# Parquet


@pytest.fixture
def parquet(tmp_path: Path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(rows: list[dict], name: str = "t.parquet") -> Path:
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / name)
        return tmp_path / name

    return write


def test_parquet_gives_what_the_same_json_lines_give(tmp_path: Path, parquet) -> None:
    rows = [
        {"no": n, "ask": f"{n} + 1?", "gold": {"value": str(n + 1), "aliases": ["x", "y"]}, "level": n % 3}
        for n in range(3000)
    ]
    lines = tmp_path / "t.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {"id": "no", "input": "ask", "answer": "gold.value", "aliases": "gold.aliases"}
    tasks = load_tasks(parquet(rows), columns=columns)
    assert tasks.fingerprint == load_tasks(lines, columns=columns).fingerprint
    assert [task.id for task in load_tasks(parquet([{"input": "a"}, {"input": "b"}]))] == ["1", "2"]


def test_values_that_json_has_not_become_text_or_nothing(parquet) -> None:
    row = {
        "input": "a", "day": datetime.date(2025, 1, 2), "price": decimal.Decimal("1.50"), "image": b"1234",
        "share": float("nan"),
    }  # fmt: skip
    (task,) = load_tasks(parquet([row]))
    assert task.metadata == {"day": "2025-01-02", "price": "1.50", "image": "(4 bytes)", "share": None}
    assert json.loads(task.model_dump_json())["metadata"] == task.metadata


def test_a_faulty_parquet_file_is_one_sentence_with_row_and_repair(tmp_path: Path, parquet) -> None:
    rows = [{"no": 1, "ask": "a", "gold": "b"}, {"no": 1, "ask": "c", "gold": None}]
    assert refused(parquet(rows), COLUMNS).startswith(
        "row 2: 'gold', the column of 'answer', is empty; fill it in"
    )
    assert refused(parquet(rows), {"id": "no", "input": "ask"}).startswith("row 2: the id '1' was used in row 1")
    assert refused(parquet(rows), {"input": "asked"}).startswith(
        "row 1: no 'asked', the column of 'input'; there is"
    )
    assert refused(table(tmp_path, "PAR1 broken", "x.parquet")).startswith("cannot be read as Parquet (")
    assert refused(parquet([{"input": "a"}][:0] or [], "none.parquet")).startswith("is empty: it needs a row")
    with pytest.raises(InputError, match=r"There is no task file '.*nowhere\.parquet'"):
        load_tasks(tmp_path / "nowhere.parquet")


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        InputError, match=r'needs pyarrow, which is not installed: pip install "agentmem\[datasets\]"'
    ):
        load_tasks(table(tmp_path, "PAR1", "t.parquet"))
