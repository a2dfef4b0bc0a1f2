"""How a number, an interval, a cost or a duration looks, decided once; and the table that results are shown in."""

from __future__ import annotations

import html
import json
import math
import sys
import textwrap
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

MISSING = "–"
"""What stands where nothing is known."""

Justify = Literal["left", "right"]


def number(value: float | None) -> str:
    """A score or another plain number: three decimals, fewer where the number is large.

    Example:
        >>> number(0.5416), number(1234.5), number(None)
        ('0.542', '1,234', '–')
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    size = abs(value)
    text = f"{value:.3f}" if size < 100 else f"{value:.1f}" if size < 1000 else f"{value:,.0f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def signed(value: float | None) -> str:
    """A difference, always with its sign.

    Example:
        >>> signed(0.0833), signed(-0.0833), signed(0)
        ('+0.083', '-0.083', '±0.000')
    """
    text = number(value)
    if text == MISSING or text.startswith("-"):
        return text
    return ("+" if text.strip("0.") else "±") + text


def interval(low: float, high: float, *, signs: bool = False) -> str:
    """An interval in brackets; `signs` for the interval of a difference.

    Example:
        >>> interval(0.4, 0.6756), interval(-0.01, 0.175, signs=True)
        ('[0.400, 0.676]', '[-0.010, +0.175]')
    """
    if math.isinf(low) and math.isinf(high):
        return "[not known]"
    show = signed if signs else number
    return f"[{show(low)}, {show(high)}]"


def score(value: float | None, low: float, high: float, *, signs: bool = False) -> str:
    """A score, or with `signs` a difference, and its interval.

    Example:
        >>> score(0.5416, 0.4, 0.6756)
        '0.542 [0.400, 0.676]'
    """
    return f"{signed(value) if signs else number(value)} {interval(low, high, signs=signs)}"


def percent(share: float | None) -> str:
    """A share between 0 and 1; only 0 reads as 0 % and only 1 as 100 %.

    Example:
        >>> percent(0.5416), percent(0.9999), percent(1)
        ('54.2 %', '>99.9 %', '100 %')
    """
    if share is None or not math.isfinite(share):
        return MISSING
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    if 0 < share < 0.0005:
        return "<0.1 %"
    if 0.9995 <= share < 1:
        return ">99.9 %"
    return f"{100 * share:.1f} %"


def p_value(p: float | None) -> str:
    """A p-value with its name.

    Example:
        >>> p_value(0.0312), p_value(0.00001)
        ('p = 0.031', 'p < 0.001')
    """
    text = probability(p)
    return f"p {text[0]} {text[1:]}" if text.startswith("<") else f"p = {text}"


def probability(p: float | None) -> str:
    """A probability as such; a small one never reads as 0.

    Example:
        >>> probability(0.0312), probability(0.00001)
        ('0.031', '<0.001')
    """
    if p is None or math.isnan(p):
        return MISSING
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def dollars(value: float | None) -> str:
    """US dollars; None is a cost that is not known, which is not a cost of 0.

    Example:
        >>> dollars(0.0), dollars(0.00423), dollars(12.5), dollars(None)
        ('$0', '$0.0042', '$12.50', 'unknown')
    """
    if value is None:
        return "unknown"
    sign, size = "-" if value < 0 else "", abs(value)
    if size == 0:
        return "$0"
    if size < 0.0001:
        return f"{sign}<$0.0001"
    return f"{sign}${size:.4f}" if size < 0.1 else f"{sign}${size:,.2f}"


def seconds(value: float | None) -> str:
    """A duration, in the two largest units that say something.

    Example:
        >>> seconds(0.0421), seconds(12.34), seconds(125), seconds(7380)
        ('42 ms', '12.3 s', '2 min 5 s', '2 h 3 min')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if value < 0.9995:
        return f"{1000 * value:.0f} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    whole = round(value)
    for large, small, names in ((86400, 3600, ("d", "h")), (3600, 60, ("h", "min")), (60, 1, ("min", "s"))):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large} {names[0]}" + (f" {rest} {names[1]}" if rest else "")
    raise AssertionError("a minute or more has a unit")


def count(n: int, noun: str = "", plural: str = "") -> str:
    """A count, with its noun in the right number where one is given.

    Example:
        >>> count(12345), count(1, "task"), count(2, "task"), count(2, "try", "tries")
        ('12,345', '1 task', '2 tasks', '2 tries')
    """
    if not noun:
        return f"{n:,}"
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def some(names: list[str] | tuple[str, ...], limit: int = 10) -> str:
    """The first `limit` names, and how many more there are.

    Example:
        >>> some(["a", "b", "c"], 2)
        'a, b and 1 more'
    """
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit:,} more" if len(names) > limit else shown


def printable(text: str, encoding: str | None = "utf-8") -> str:
    """`text` with what `encoding` cannot show replaced, so that printing it never raises.

    Example:
        >>> printable("0.5 ± 0.1 → –", "ascii")
        '0.5 +/- 0.1 -> -'
    """
    encoding = encoding or "ascii"
    try:
        text.encode(encoding)
        return text
    except LookupError:
        encoding = "ascii"
    except UnicodeEncodeError:
        pass
    return "".join(_shown(char, encoding) for char in text)


@dataclass(frozen=True)
class Table:
    """A result as a table that shows itself in a terminal, in rich, in a notebook and as JSON.

    Cells are data: what looks like markup, HTML or a terminal's control sequence is shown, never obeyed.

    Args:
        title: what the table shows.
        columns: name and justification of each column.
        rows: the cells, one row after the other.
        caption: what must be known to read it; lines are kept.

    Raises:
        ValueError: a row has another number of cells than there are columns.

    Example:
        >>> print(Table("Scores", (("task", "left"), ("score", "right")), (("sums", "0.5"), ("dates", "0.25"))))
        Scores
        task   score
        -----  -----
        sums     0.5
        dates   0.25
    """

    title: str
    columns: tuple[tuple[str, Justify], ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    def __post_init__(self) -> None:
        for place, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise ValueError(f"row {place} has {len(row)} cells; the table has {len(self.columns)} columns")

    def text(self, encoding: str | None = "utf-8", *, width: int = 100) -> str:
        """Plain aligned text, in characters that `encoding` can show; only the caption is wrapped at `width`."""
        header = tuple(one_line(printable(name, encoding)) for name, _ in self.columns)
        rows = [tuple(one_line(printable(cell, encoding)) for cell in row) for row in self.rows]
        widths = [max(_width(row[i]) for row in (header, *rows)) for i in range(len(self.columns))]
        lines = [one_line(printable(self.title, encoding))] if self.title else []
        lines += [self._line(header, widths), "  ".join("-" * width for width in widths)] if header else []
        lines += [self._line(row, widths) for row in rows]
        for line in self.caption.splitlines():
            lines += textwrap.wrap(one_line(printable(line, encoding)), width, subsequent_indent="  ") or [""]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The table as a JSON object."""
        content = {
            "title": self.title,
            "columns": [{"name": name, "justify": justify} for name, justify in self.columns],
            "rows": [list(row) for row in self.rows],
            "caption": self.caption,
        }
        return json.dumps(content, ensure_ascii=False)

    def __str__(self) -> str:
        return self.text(getattr(sys.stdout, "encoding", None) or "utf-8")

    def __rich__(self) -> Any:
        return _RichTable(self)

    def _repr_html_(self) -> str:
        head = "".join(f'<th style="text-align:{justify}">{_html(name)}</th>' for name, justify in self.columns)
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:{justify}">{_html(cell)}</td>'
                for cell, (_, justify) in zip(row, self.columns, strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        caption = "<br>".join(_html(line) for line in self.caption.splitlines())
        return (
            f"<figure><table><caption>{_html(self.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><figcaption>{caption}</figcaption></figure>"
        )

    def _line(self, cells: tuple[str, ...], widths: list[int]) -> str:
        padded = (
            " " * (width - _width(cell)) + cell if justify == "right" else cell + " " * (width - _width(cell))
            for cell, width, (_, justify) in zip(cells, widths, self.columns, strict=True)
        )
        return "  ".join(padded).rstrip()


class Shown(ABC):
    """A result that is shown as its table: as text, in rich and in a notebook."""

    @abstractmethod
    def table(self) -> Table | Tables:
        """What is shown."""

    def __str__(self) -> str:
        return str(self.table())

    def __rich__(self) -> Any:
        return self.table()

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True)
class Tables:
    """Several tables that are shown one below the other."""

    tables: tuple[Table, ...]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables))

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield from self.tables

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables)


class _RichTable:
    """The table for a rich console, whose encoding is known only when it is drawn."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield self._drawn(options.encoding)

    def __rich_measure__(self, console: Any, options: Any) -> Any:
        from rich.measure import Measurement

        return Measurement.get(console, options, self._drawn(options.encoding))

    def _drawn(self, encoding: str) -> Any:
        from rich import box
        from rich.table import Table as Rich
        from rich.text import Text

        def cell(content: str) -> Text:
            return Text(one_line(printable(content, encoding)))

        table = self._table
        captions = [cell(line) for line in table.caption.splitlines()]
        drawn = Rich(
            title=cell(table.title) if table.title else None,
            caption=Text("\n").join(captions) if captions else None,
            title_justify="left",
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            collapse_padding=True,
        )
        for name, justify in table.columns:
            drawn.add_column(cell(name), justify=justify, overflow="fold")
        for row in table.rows:
            drawn.add_row(*(cell(content) for content in row))
        return drawn


_ASCII = {
    "±": "+/-", "→": "->", "←": "<-", "–": "-", "—": "-", "−": "-", "×": "x", "·": "-", "…": "...", "≤": "<=",
    "≥": ">=", "≠": "!=", "≈": "~", "∞": "inf", "µ": "u", "μ": "u", "Δ": "d", "✓": "ok", "✗": "no", "‘": "'",
    "’": "'", "“": '"', "”": '"', "•": "*", "\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ",
}  # fmt: skip


def _shown(char: str, encoding: str) -> str:
    try:
        char.encode(encoding)
        return char
    except UnicodeEncodeError:
        plain = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
        return _ASCII.get(char) or plain or "?"


def one_line(text: str) -> str:
    """One line without control, bidi and other invisible format characters: ids and names come from anywhere."""
    return "".join(" " if char in "\n\r\t" else "" if _hidden(char) else char for char in text)


def _hidden(char: str) -> bool:
    # The zero-width joiner is kept: it holds emoji and several scripts together.
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and char != "\N{ZERO WIDTH JOINER}"


def _html(text: str) -> str:
    return html.escape(one_line(text))


def _width(text: str) -> int:
    """Columns that a terminal gives to the text."""
    return sum(
        0 if unicodedata.combining(c) or _hidden(c) or c == "\N{ZERO WIDTH JOINER}"
        else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )  # fmt: skip
