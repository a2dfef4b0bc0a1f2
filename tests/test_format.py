"""How numbers look, and a table that shows itself anywhere without harm."""

import io
import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem import format as fmt
from agentmem.format import Shown, Table

TABLE = Table("Scores", (("task", "left"), ("score", "right")), (("sums", "0.5 ± 0.1"), ("日本", "→")), "n = 2")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (fmt.number(0.5416), "0.542"),
        (fmt.number(-0.0001), "0.000"),
        (fmt.number(123.456), "123.5"),
        (fmt.number(None), "–"),
        (fmt.number(math.nan), "–"),
        (fmt.number(-math.inf), "-∞"),
        (fmt.signed(0.0001), "±0.000"),
        (fmt.signed(-0.25), "-0.250"),
        (fmt.signed(0.25), "+0.250"),
        (fmt.score(0.5, 0.25, 0.75), "0.500 [0.250, 0.750]"),
        (fmt.score(0.5, -0.25, 0.75, signs=True), "+0.500 [-0.250, +0.750]"),
        (fmt.interval(-math.inf, math.inf), "[not known]"),
        (fmt.percent(0.0), "0 %"),
        (fmt.percent(0.0001), "<0.1 %"),
        (fmt.percent(0.99999), ">99.9 %"),
        (fmt.percent(1.0), "100 %"),
        (fmt.percent(None), "–"),
        (fmt.p_value(0.0312), "p = 0.031"),
        (fmt.p_value(1e-9), "p < 0.001"),
        (fmt.p_value(None), "p = –"),
        (fmt.dollars(None), "unknown"),
        (fmt.dollars(0), "$0"),
        (fmt.dollars(1e-7), "<$0.0001"),
        (fmt.dollars(0.0042), "$0.0042"),
        (fmt.dollars(1234.5), "$1,234.50"),
        (fmt.dollars(-1.5), "-$1.50"),
        (fmt.seconds(0.0), "0 ms"),
        (fmt.seconds(59.97), "1 min"),
        (fmt.seconds(0.99999), "1.0 s"),
        (fmt.seconds(3600), "1 h"),
        (fmt.seconds(90061), "1 d 1 h"),
        (fmt.seconds(None), "–"),
        (fmt.count(1, "task"), "1 task"),
        (fmt.count(1234, "try", "tries"), "1,234 tries"),
        (fmt.some(["a", "b"], 2), "a, b"),
        (fmt.some(["a", "b", "c"], 2), "a, b and 1 more"),
    ],
)
def test_looks(shown: str, expected: str) -> None:
    assert shown == expected


@given(st.floats(min_value=0, max_value=1e9))
def test_every_duration_and_cost_has_a_look(value: float) -> None:
    assert fmt.seconds(value)
    assert "$" in fmt.dollars(value)
    assert value == 0 or fmt.dollars(value) != "$0"


@given(st.floats(min_value=0, max_value=1))
def test_only_certainty_reads_as_certain(share: float) -> None:
    assert (fmt.percent(share) == "100 %") == (share == 1)
    assert (fmt.percent(share) == "0 %") == (share == 0)
    assert fmt.percent(share) not in ("0.0 %", "100.0 %")


@given(st.text(), st.sampled_from(["ascii", "latin-1", "cp1252", "utf-8", "no-such-encoding", ""]))
def test_printable_text_can_be_encoded(text: str, encoding: str) -> None:
    shown = fmt.printable(text, encoding)
    shown.encode(encoding if encoding in ("ascii", "latin-1", "cp1252", "utf-8") else "ascii")


def test_fallbacks_keep_the_meaning() -> None:
    assert fmt.printable("± → – … ≤ é ß", "ascii") == "+/- -> - ... <= e ?"
    assert fmt.printable("± é →", "latin-1") == "± é ->"
    assert fmt.printable("± →", "utf-8") == "± →"


def test_plain_text_is_aligned_also_with_wide_characters() -> None:
    lines = TABLE.text().splitlines()
    assert Table("", (("ab", "right"),), (("Ａ",), ("1",))).text().splitlines() == ["ab", "--", "Ａ", " 1"]
    assert lines == ["Scores", "task      score", "----  ---------", "sums  0.5 ± 0.1", "日本          →", "n = 2"]


def test_text_for_a_terminal_without_unicode() -> None:
    text = TABLE.text("ascii")
    assert text.isascii()
    assert "0.5 +/- 0.1" in text
    assert "->" in text


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="row 2 has 1 cells; the table has 2 columns"):
        Table("", (("a", "left"), ("b", "left")), (("1", "2"), ("1",)))


def test_json() -> None:
    content = json.loads(TABLE.to_json())
    assert content["rows"] == [["sums", "0.5 ± 0.1"], ["日本", "→"]]
    assert content["columns"][1] == {"name": "score", "justify": "right"}


HOSTILE = "[red]x[/red] <script>alert(1)</script> \x1b[31mz\x07 \u202eevil\nline"


def test_cells_are_data_never_code() -> None:
    table = Table(HOSTILE, ((HOSTILE, "left"),), ((HOSTILE,),), HOSTILE)
    page = table._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    drawn = drawn_by_rich(table, "utf-8")
    for shown in (table.text(), page, drawn):
        assert "[red]" in shown
        assert not any(char in shown for char in "\x1b\x07\u202e")
    assert len(table.text().splitlines()) == 1 + 2 + 1 + 2, "a cell stays on one line; a caption keeps its lines"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_rich_draws_it_in_the_console_s_encoding(encoding: str) -> None:
    drawn = drawn_by_rich(TABLE, encoding)
    assert "sums" in drawn
    assert ("±" in drawn) == (encoding == "utf-8")


def drawn_by_rich(table: Table | Shown, encoding: str) -> str:
    from rich.console import Console
    from rich.panel import Panel

    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=stream, width=120, force_terminal=False).print(Panel.fit(table), table)
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


def test_printing_never_crashes_and_loads_no_vendor() -> None:
    code = (
        "import sys; from agentmem.format import Table; "
        "print(Table('a → b', (('±', 'left'),), (('日',),), '–')); "
        "sys.exit('rich' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["a -> b", "+/-", "---", "?", "-"]


def test_a_result_is_shown_as_its_table() -> None:
    class Result(Shown):
        def table(self) -> Table:
            return TABLE

    assert str(Result()) == str(TABLE)
    assert Result()._repr_html_() == TABLE._repr_html_()
    assert drawn_by_rich(Result(), "utf-8") == drawn_by_rich(TABLE, "utf-8")
