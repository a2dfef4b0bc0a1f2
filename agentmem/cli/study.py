"""`agentmem study`: what stored runs say about the learning; no model is called, and nothing is changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from agentmem.cli.compare import stored_report
from agentmem.cli.options import OutputOptions, OutputPart

if TYPE_CHECKING:
    from agentmem.evaluation.report import EvaluationReport

study = App(
    name="study",
    help="What stored runs say about the learning: curves, orders, forgetting, transfer, what a lesson was worth.",
    help_format="plaintext",
)


@study.command
def curve(
    *runs: Path,
    axis: Literal["tasks", "tokens", "dollars"] = "tasks",
    windows: Annotated[int, Parameter(validator=Number(gte=1, lte=1000))] = 8,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """Show the score against tasks, tokens or dollars, with bands; several runs are taken for the same learning.

    Args:
        runs: Learning runs (also on a stream), or evaluations with a memory that learns.
        axis: What the score is set against. Tokens and dollars hold all that was spent by then.
        windows: Stretches of the axis.
    """
    from agentmem.evaluation.answered import Course
    from agentmem.evaluation.curve import curve as curve_of

    _some(len(runs), "RUN, such as runs/learn-1a2b3c4d")
    output.show(curve_of([Course.of(run) for run in runs], axis=axis, windows=windows))


@study.command
def order(*runs: str, output: OutputPart = OutputOptions()) -> None:  # noqa: B008  # frozen
    """Show whether it matters in which order the tasks were learned.

    Args:
        runs: ORDER=RUN: evaluations, on the same tasks, of what was learned in each order. Several of one order are
            learnings with other seeds, which tell order and chance apart.
    """
    from agentmem.evaluation.order import order_sensitivity

    orders: dict[str, list[EvaluationReport]] = {}
    for name, report in _labelled(runs, "ORDER=RUN"):
        orders.setdefault(name, []).append(report)
    output.show(order_sensitivity(orders))


@study.command
def forgetting(*runs: str, output: OutputPart = OutputOptions()) -> None:  # noqa: B008  # frozen
    """Show what learning new domains did to the old ones (BWT), and the old ones to the new (FWT).

    Args:
        runs: DOMAIN=RUN: evaluations made when DOMAIN had just been learned, in the order of learning, or before=RUN;
            a domain is a task set, and has the name that its evaluation's report shows.
    """
    from agentmem.evaluation.forgetting import BEFORE
    from agentmem.evaluation.forgetting import forgetting as forgetting_of

    stages: dict[str, dict[str, EvaluationReport]] = {}
    for name, report in _labelled(runs, "DOMAIN=RUN"):
        row = stages.setdefault(name, {})
        if report.tasks_name in row:
            _refuse(f"Two evaluations of {name!r} are on {report.tasks_name!r}; leave one out.")
        row[report.tasks_name] = report
    output.show(forgetting_of([stage for stage in stages if stage != BEFORE], stages))


@study.command
def transfer(*runs: str, output: OutputPart = OutputOptions()) -> None:  # noqa: B008  # frozen
    """Show which memory helps which model on which tasks, and which one harms.

    Args:
        runs: Evaluations of any models and task sets, MEMORY=RUN or RUN alone: without a name, a memory has its hash,
            and an agent that saw none is the one that the others are held against.
    """
    from agentmem.evaluation.transfer import NONE, transfer_matrix

    found = []
    for text in runs:
        name, given, path = _split(text)
        report = stored_report(path)
        found.append((name if given else report.prior_hash or NONE, report))
    _some(len(found), "MEMORY=RUN or RUN, such as law=runs/eval-1a2b3c4d")
    output.show(transfer_matrix(found))


@study.command
def credit(run: Path, *, output: OutputPart = OutputOptions()) -> None:  # noqa: B008  # frozen
    """Show what each lesson was worth, from the rollouts that saw it and those that did not.

    Args:
        run: A learning run that was made with --inclusion below 1.
    """
    from agentmem.learning.lesson_credit import LessonCredit

    output.show(LessonCredit.of(run))


def _labelled(texts: tuple[str, ...], form: str) -> list[tuple[str, EvaluationReport]]:
    """The evaluations, each with its label."""
    found = []
    for text in texts:
        name, given, path = _split(text)
        if not given:
            _refuse(f"{text!r} is not {form}, such as first=runs/eval-1a2b3c4d.")
        found.append((name, stored_report(path)))
    _some(len(found), form)
    return found


def _split(text: str) -> tuple[str, bool, Path]:
    """`NAME=PATH`, or a path alone; a path that exists is one, also with an equals sign in it."""
    name, equals, path = text.partition("=")
    if not equals or not name.strip() or not path or Path(text).exists():
        return "", False, Path(text)
    return name.strip(), True, Path(path)


def _some(n: int, form: str) -> None:
    if not n:
        _refuse(f"Name at least one {form}.")


def _refuse(why: str) -> None:
    from agentmem.errors import InputError

    raise InputError(why)
