"""What is printed fits the terminal that it is printed to."""

from __future__ import annotations

import io
import json
import sys

import pytest

from agentmem.cli.output import OutputOptions, write, write_json
from agentmem.errors import AgentMemError
from agentmem.format import Table


def ascii_out(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Standard output that takes ASCII alone; called in a test, as pytest sets its own before each."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    return raw


def test_json_keeps_its_content_on_a_narrow_encoding(monkeypatch) -> None:
    written = ascii_out(monkeypatch)
    content = {"é": "日本 😀 \ud800"}
    write_json(json.dumps(content, ensure_ascii=False, indent=1))
    assert json.loads(written.getvalue()) == content


def test_text_is_shown_as_well_as_it_can_be(monkeypatch) -> None:
    written = ascii_out(monkeypatch)
    write("± é → 日")
    assert written.getvalue() == b"+/- e -> ?\n"


def test_a_full_disk_is_said(monkeypatch) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(AgentMemError, match=r"Standard output cannot be written \(No space left on device\)"):
        write("x")


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (OutputOptions(), "title\na\n-\n1\n"),
        (OutputOptions(json=True), '{"title": "title", "columns": [{"name": "a", "justify": "left"}], '
                                   '"rows": [["1"]], "caption": ""}\n'),
    ],
)  # fmt: skip
def test_a_result_is_a_table_or_json(capsys, options, shown) -> None:
    class Result:
        def table(self) -> Table:
            return Table("title", (("a", "left"),), (("1",),))

        def to_json(self) -> str:
            return self.table().to_json()

    options.show(Result())
    assert capsys.readouterr() == (shown, "")
