"""Task files: what is accepted, and the one sentence for each thing that is not."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.domain.task import Task
from agentmem.errors import InputError
from agentmem.task_files import load_tasks
from agentmem.task_sources import json_rows
from agentmem.task_sources.json_rows import MAX_LINE


def written(folder: Path, content: str | bytes, name: str = "tasks.jsonl") -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def refused(folder: Path, content: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        load_tasks(written(folder, content))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(folder / "tasks.jsonl"))
    return message.removeprefix(str(folder / "tasks.jsonl")).lstrip(", ")


# What is accepted


def test_reads_every_field_and_keeps_the_rest_as_metadata(tmp_path: Path) -> None:
    record = {
        "id": "a",
        "input": "2 + 3?",
        "answer": "5",
        "files": ["x.png"],
        "level": 2,
        "cluster": "sums",
        "split": "train",
        "license": "MIT",
        "gated": True,
        "choices": ["4", "5"],
        "metadata": {"source": "book"},
    }
    assert load_tasks(written(tmp_path, lines(record)))[0] == Task(
        id="a",
        input="2 + 3?",
        answer="5",
        files=("x.png",),
        level="2",
        cluster="sums",
        split="train",
        license="MIT",
        gated=True,
        metadata={"choices": ["4", "5"], "source": "book"},
    )


@pytest.mark.parametrize("key", ["input", "question", "prompt", "problem"])
def test_names_of_the_input(tmp_path: Path, key: str) -> None:
    assert load_tasks(written(tmp_path, lines({key: "x"})))[0].input == "x"


@pytest.mark.parametrize("key", ["answer", "target", "final_answer"])
def test_names_of_the_answer(tmp_path: Path, key: str) -> None:
    assert load_tasks(written(tmp_path, lines({"input": "x", key: "y"})))[0].answer == "y"


def test_the_plain_name_counts_and_the_alias_becomes_metadata(tmp_path: Path) -> None:
    task = load_tasks(written(tmp_path, lines({"prompt": "p", "input": "x", "target": "t", "answer": "y"})))[0]
    assert (task.input, task.answer, task.metadata) == ("x", "y", {"prompt": "p", "target": "t"})


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (5, "5"),
        (0.5, "0.5"),
        (-0.0, "-0.0"),
        (True, "true"),
        ([1, "é"], '[1, "é"]'),
        ({"a": None}, '{"a": null}'),
        (None, None),
        ("  x ", "  x "),
    ],
)
def test_answers_become_text(tmp_path: Path, answer: Any, text: str | None) -> None:
    assert load_tasks(written(tmp_path, lines({"input": "x", "answer": answer})))[0].answer == text


def test_without_any_id_the_line_number_is_the_id(tmp_path: Path) -> None:
    tasks = load_tasks(written(tmp_path, '{"input": "a"}\n\n{"input": "b", "id": null}\n'))
    assert [task.id for task in tasks] == ["1", "3"]


def test_a_json_array_is_read_too(tmp_path: Path) -> None:
    tasks = load_tasks(written(tmp_path, '\ufeff\n [{"input": "ä"},\n {"input": "b"}]\n', "set.json"))
    assert [(task.id, task.input) for task in tasks] == [("1", "ä"), ("2", "b")]
    assert tasks.name == "set"
    assert load_tasks(tmp_path / "set.json", name="mine").name == "mine"


def test_byte_order_mark_crlf_blank_lines_and_no_last_newline_are_fine(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf{"input": "a", "id": 7}\r\n   \r\n{"input": "b\\r\\n\xc3\xa9", "id": "x"}'
    assert [(t.id, t.input) for t in load_tasks(written(tmp_path, content))] == [("7", "a"), ("x", "b\r\né")]


def test_a_separator_inside_a_string_ends_no_line(tmp_path: Path) -> None:
    assert load_tasks(written(tmp_path, '{"input": "a\u2028b\x85c"}'))[0].input == "a\u2028b\x85c"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
visible = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: bool(text.strip())
)
a_task = st.builds(
    Task,
    id=visible,
    input=visible,
    answer=st.none() | visible,
    files=st.lists(st.text(), max_size=2).map(tuple),
    level=st.none() | st.text(),
    cluster=st.none() | st.text(),
    split=st.none() | st.text(),
    license=st.none() | st.text(),
    gated=st.booleans(),
    metadata=st.dictionaries(st.text(), json_values, max_size=3),
)


@given(st.lists(a_task, min_size=1, max_size=5, unique_by=lambda task: task.id), st.booleans(), st.booleans())
def test_what_is_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory, tasks: list[Task], array: bool, ascii: bool
) -> None:
    records = [task.model_dump(mode="json") for task in tasks]
    if array:
        content = json.dumps(records, ensure_ascii=ascii, indent=1)
    else:
        content = "\n".join(json.dumps(record, ensure_ascii=ascii) for record in records)
    assert list(load_tasks(written(tmp_path_factory.getbasetemp(), content, "round.jsonl"))) == tasks


@given(st.binary(max_size=60))
def test_any_bytes_are_tasks_or_one_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    try:
        load_tasks(written(tmp_path_factory.getbasetemp(), content, "any.jsonl"))
    except InputError as error:
        said = str(error)
    else:
        return
    assert "any.jsonl" in said
    assert "\n" not in said


# What is refused

GOOD = '{"input": "a"}\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty: it needs one JSON object a line, each with at least an 'input'."),
        (" \n\r\n", "is empty: it needs"),
        ("[]", "is empty: it needs"),
        # Ids
        ('{"id": 1, "input": "a"}\n{"input": "b"}\n', "line 2: no id, but line 1 has one; give every task an id"),
        ('{"input": "a"}\n\n{"input": "b", "id": "x"}\n', "line 1: no id, but line 3 has one"),
        (
            '{"id": 1, "input": "a"}\n\n{"id": "1", "input": "b"}\n',
            "line 3: the id '1' was used in line 1 already; results are stored under the id, so give each",
        ),
        ('[{"id": 1, "input": "a"}, {"id": 1, "input": "b"}]', "item 2: the id '1' was used in item 1 already"),
        ('{"id": " ", "input": "a"}', "line 1: the id is empty"),
        ('{"id": 1.5, "input": "a"}', "line 1: the id 1.5 is neither text nor a whole number; write it in quotes"),
        ('{"id": true, "input": "a"}', "line 1: the id true is neither text nor a whole number"),
        # Input and answer
        (GOOD + "{}", "line 2: no 'input' (nor 'question', 'prompt' or 'problem')"),
        (GOOD + '{"input": " \\n"}', "line 2: 'input' is empty"),
        (GOOD + '{"input": 5}', "line 2: 'input' is 5, not text; write it in quotes"),
        ('{"question": "a", "prompt": "b"}', "line 1: 'question' and 'prompt' could both be the input; rename"),
        (
            '{"input": "a", "target": "b", "final_answer": "b"}',
            "line 1: 'target' and 'final_answer' could both be",
        ),
        (
            GOOD + '{"input": "a", "answer": ""}',
            "line 2: 'answer' is empty; write it, or leave 'answer' out where there is none.",
        ),
        (GOOD + '{"input": "a", "answer": " \\t"}', "line 2: 'answer' is empty"),
        (GOOD + '{"input": "a", "target": ""}', "line 2: 'answer' is empty"),
        ('{"input": "a\\u0000"}', "line 1: id, input or answer contains the character \\u0000"),
        ('{"input": "a\\ud800"}', "line 1: an escape \\ud800 to \\udfff stands alone"),
        # Other fields
        ('{"input": "a", "files": [1]}', "line 1: 'files.0' is 1: Input should be a valid string."),
        ('{"input": "a", "gated": "maybe"}', "line 1: 'gated' is 'maybe': Input should be a valid boolean"),
        ('{"input": "a", "metadata": 3}', "line 1: 'metadata' is not an object"),
        ('{"input": "a", "x": 1, "metadata": {"x": 2}}', "line 1: 'x' stands in 'metadata' and beside it"),
        # JSON
        (GOOD + '{"input": }', "line 2: broken JSON at column 11: Expecting value."),
        (GOOD + '{"input": "a"', "line 2: broken JSON at column 14: Expecting ',' delimiter; it ends too early"),
        ('{\n "input": "a"\n}', "line 1: broken JSON at column 2: Expecting property name"),
        (
            '{"input": "a"} {"input": "b"}',
            "line 1: broken JSON at column 16: Extra data; one line holds one object",
        ),
        ('[{"input": "a"},\n {"input": b}]', "line 1: broken JSON at line 2, column 12: Expecting value."),
        (
            "input,answer\n2 + 3?,5\n",
            "line 1: broken JSON at column 1: Expecting value; each line is a JSON object",
        ),
        ('"text"', "line 1: this is a string, not an object such as"),
        ("[1]", "item 1: this is a number, not an object such as"),
        ("null", "line 1: this is null, not an object"),
        ('{"input": "a", "x": NaN}', "line 1: NaN is no JSON number; write null, or leave the key out."),
        ('{"input": "a", "x": [-Infinity]}', "line 1: -Infinity is no JSON number"),
        ('{"input": "a", "answer": 1e999}', "line 1: 1e999 is too large for a number; write it as text"),
        ('{"input": "a", "input": "b"}', "line 1: the key 'input' stands twice in one object"),
        ('{"input": "a", "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "line 1: the JSON is nested too deeply"),
        ('{"input": "a", "answer": ' + "9" * 5000 + "}", "line 1: Exceeds the limit"),
        # Bytes
        (
            GOOD.encode() + '{"input": "é"}'.encode("latin-1"),
            "line 2, byte 12: 0xe9 is not UTF-8. Convert it, for example (if it is WINDOWS-1252): "
            "iconv -f WINDOWS-1252 -t UTF-8 tasks.jsonl > tasks.utf8.jsonl",
        ),
        (b'[{"input": "a"},\n{"input": "\xff"}]', "line 2, byte 12: 0xff is not UTF-8."),
        (GOOD.encode("utf-16"), "line 1, byte 1: this is UTF-16, not UTF-8. Convert it"),
        (GOOD.encode("utf-16-le"), "line 1, byte 2: this is UTF-16LE, not"),
        (GOOD.encode("utf-16-be"), "line 1, byte 1: this is UTF-16BE, not"),
        (GOOD.encode("utf-32"), "line 1, byte 1: this is UTF-32, not UTF-8."),
        (b"\x1f\x8b\x08\x00", "line 1, byte 1: this is a gzip file, not text; unpack or convert it first."),
        (b"PAR1\x15", "line 1, byte 1: this is a Parquet file"),
        (GOOD.encode() + b'{"input": "a\0b"}', "line 2: byte 13 is a NUL; the file is damaged"),
        (b'[{"input": "a"},\n{"input": "a\0b"}]', "line 2: byte 13 is a NUL"),
    ],
)
def test_bad_input_gets_one_sentence_with_place_and_repair(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    assert refused(tmp_path, content).startswith(message)


def test_a_missing_file_offers_those_with_a_similar_name(tmp_path: Path) -> None:
    for name in ("problems.jsonl", "Problem_set.jsonl", "notes.txt"):
        written(tmp_path, GOOD, name)
    with pytest.raises(InputError, match=r"no task file '.*problem\.jsonl'\. Did you mean .*problems\.jsonl"):
        load_tasks(tmp_path / "problem.jsonl")
    with pytest.raises(InputError, match=r"no task file '.*zzz'\. '.*' holds .*Problem_set\.jsonl.*notes\.txt"):
        load_tasks(tmp_path / "zzz")
    with pytest.raises(InputError, match=r"There is no folder '.*nowhere' either; check the path"):
        load_tasks(tmp_path / "nowhere" / "zzz")
    (tmp_path / "void").mkdir()
    with pytest.raises(InputError, match=r"The folder '.*void' is empty\."):
        load_tasks(tmp_path / "void" / "zzz")


def test_a_folder_is_no_task_file(tmp_path: Path) -> None:
    written(tmp_path, GOOD)
    with pytest.raises(InputError, match=r"is a folder; name the task file in it\. It holds .*tasks\.jsonl\."):
        load_tasks(tmp_path)
    with pytest.raises(InputError, match="Cannot read the task file"):
        load_tasks("a\0b")


def test_a_line_over_ten_megabytes_is_refused_with_its_size_and_without_holding_it(tmp_path: Path) -> None:
    with (tmp_path / "tasks.jsonl").open("wb") as out:
        out.write(GOOD.encode() + b'{"input": "')
        for _ in range(80):
            out.write(b"x" * 1_000_000)
        out.write(b'"}\n' + GOOD.encode())
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"line 2: 80\.0 MB in one line, and 10 MB are the most; put large"):
            load_tasks(tmp_path / "tasks.jsonl")
        assert tracemalloc.get_traced_memory()[1] < 25_000_000
    finally:
        tracemalloc.stop()


def test_a_line_of_just_ten_megabytes_is_read(tmp_path: Path) -> None:
    frame = len('{"input": ""}')
    exact = '{"input": "' + "é" * ((MAX_LINE - frame) // 2) + '"}'
    assert MAX_LINE - len(exact.encode()) in (0, 1)
    assert len(load_tasks(written(tmp_path, exact + "\n" + GOOD))) == 2
    assert "line 1: 10.0 MB in one line" in refused(tmp_path, exact[:-2] + 'éé"}\n')


def test_a_huge_array_is_sent_to_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "MAX_ARRAY", 20)
    assert "jq -c '.[]' tasks.jsonl > tasks.lines.jsonl" in refused(tmp_path, '[{"input": "a and more"}]')
