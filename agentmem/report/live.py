"""A run as a live screen: reward per step, groups, experiences, what is in flight, spend and time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentmem.events import Event, Listener, Noted
from agentmem.format import count, dollars, number, one_line, seconds
from agentmem.report.progress import Progress

if TYPE_CHECKING:
    from rich.console import RenderableType

BARS = "▁▂▃▄▅▆▇█"
STEPS = 30
"""Steps that the sparkline shows, the newest ones."""


@contextmanager
def live() -> Iterator[Listener]:
    """A live display on standard error; the listener feeds it."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    progress = Progress()
    console = Console(stderr=True)
    try:
        # Drawn four times a second by a thread of rich's, so events cost only the counting.
        with Live(console=console, refresh_per_second=4, get_renderable=lambda: screen(progress)):

            def hear(event: Event) -> None:
                progress.hear(event)
                if isinstance(event, Noted):
                    console.print(Text(one_line(event.message)))

            yield hear
    finally:
        console.print()  # the result stands apart


def screen(progress: Progress) -> RenderableType:
    """What is drawn now. All text is data: nothing in it is read as markup."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    p = progress
    head = Table.grid(padding=(0, 1))
    for _ in range(4):
        head.add_column(no_wrap=True)
    head.columns[1].no_wrap = False  # on a narrow screen the bar gives way, not the words
    head.columns[1].max_width = 30
    left = "" if p.seconds_left is None else f"{seconds(p.seconds_left)} left"
    head.add_row(
        Text(_title(p), style="bold"),
        ProgressBar(total=max(p.total, 1), completed=p.done),
        Text(f"{p.done}/{p.total} rollouts" if p.total else ""),
        Text(left, style="dim"),
    )
    facts = Table.grid(padding=(0, 2))
    for label, value in _facts(p):
        facts.add_row(Text(label, style="dim", no_wrap=True), Text(one_line(value)))
    return Group(head, facts)


def _title(p: Progress) -> str:
    match p.phase:
        case "":
            return "starting"
        case "learn":
            return p.name
        case "gate":
            return f"{p.name}, gate {p.title}"
        case _:
            return one_line(p.title or p.phase)


def _facts(p: Progress) -> Iterator[tuple[str, str]]:
    if p.step_rewards:
        known = [reward for reward in p.step_rewards if reward is not None][-STEPS:]
        yield "reward per step", f"{sparkline(known)}  {' '.join(number(r) for r in known[-6:])}"
    if p.answered:
        yield "stream", p.latest
    if p.mean is not None and p.phase != "online":
        yield "this phase so far", f"{number(p.mean)} over {count(len(p.scores), 'attempt')}"
    if p.taught or p.skipped:
        yield "groups", f"{p.taught} taught, {p.skipped} skipped"
    if p.phase in ("learn", "gate", "online"):
        yield "experiences", f"{p.experiences} kept; proposed +{p.added} ~{p.changed} -{p.removed}"
    if p.verdict:
        yield "gate", p.verdict
    if p.failed:
        yield "without a score", count(p.failed, "attempt")
    if p.limit:
        yield "in flight", f"{p.in_flight} of at most {p.limit}"
    spend = f"{count(p.usage.calls, 'call')}, {count(p.usage.tokens, 'token')}, {dollars(p.usage.dollars)}"
    yield "spent", f"{spend}, {seconds(p.seconds)}"
    if p.stored:
        yield "from before", f"{count(p.stored, 'result')} stored, not bought again"


def sparkline(values: list[float]) -> str:
    """One bar a value, scaled between 0 and 1 or the values' own range where that is wider.

    Example:
        >>> sparkline([0.0, 0.5, 1.0])
        '▁▅█'
    """
    low, high = min([0.0, *values]), max([1.0, *values])
    return "".join(BARS[min(int((v - low) / (high - low) * len(BARS)), len(BARS) - 1)] for v in values)
