"""`agentmem compare`: two evaluations of the same tasks, paired."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentmem.cli.options import OutputOptions, OutputPart

if TYPE_CHECKING:
    from agentmem.evaluation.report import EvaluationReport


def compare(
    before: Path,
    after: Path,
    *,
    also: tuple[Path, ...] = (),
    fail_if_worse: bool = False,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> int:
    """Compare two evaluation runs task by task: difference with interval, p, flipped tasks, cost.

    Args:
        before: An evaluation's run directory, or its report.json.
        after: Another on the same tasks.
        also: The second arm under another learning seed; may be given several times. The interval is then over seeds
            and tasks.
        fail_if_worse: Exit with 3 when the upper limit of the paired 95 % interval is below 0.
    """
    from agentmem.cli.main import WORSE
    from agentmem.evaluation.comparison import compare as compare_reports
    from agentmem.evaluation.seeds import compare_seeds

    if also:
        over_seeds = compare_seeds(stored_report(before), [stored_report(path) for path in (after, *also)])
        output.show(over_seeds)
        return WORSE if fail_if_worse and over_seeds.verdict == "worse" else 0
    comparison = compare_reports(stored_report(before), stored_report(after))
    output.show(comparison)
    return WORSE if fail_if_worse and comparison.worse else 0


def stored_report(path: Path) -> EvaluationReport:
    """The report of a finished evaluation, by its folder or its file.

    Raises:
        InputError: there is none.
    """
    from agentmem.errors import InputError
    from agentmem.evaluation.report import EvaluationReport
    from agentmem.text_file import open_existing

    if path.is_dir() and not (path / "report.json").is_file():
        finish = (
            "finish it: start its command again" if (path / "run.toml").is_file() else "name an evaluation's run"
        )
        raise InputError(f"There is no finished evaluation in {path}; {finish}.")
    file = path / "report.json" if path.is_dir() else path
    with open_existing(file, "evaluation report") as opened:
        return EvaluationReport.from_json(opened.read(), source=str(file))
