"""What a person does to a run's library: the next version, noted in the journal and put in `library.json`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from agentmem.domain.experience import ExperienceLibrary, Revision
from agentmem.errors import InputError
from agentmem.learning.history import ByHand, History, Version
from agentmem.library_files import save_library
from agentmem.runs.records import Records

Verb = Literal["revert", "rollback", "import", "promote", "quarantine"]


def revise(
    folder: str | Path,
    verb: Verb,
    change: Callable[[History, ExperienceLibrary], Revision],
    *,
    out: str | Path | None = None,
) -> Revision:
    """Make the next version of a run's library.

    What learning wrote in the journal is never changed: the new version gets a row in the table `revisions`, with
    its operations, and then takes the place of `library.json`. An edited `library.json` is noted first.

    Args:
        folder: a learning run's directory.
        verb: what is done.
        change: makes the revision, given the history and the current library.
        out: write the new version to this file instead, and leave the run as it is.

    Raises:
        InputError: it cannot be done; nothing was changed.
        RunBusy: the run is under way.
        JournalError: the journal cannot be written; nothing was changed.
    """
    if out is not None:
        history = History.of(folder)
        revision = change(history, head(history))
        save_library(revision.library, out)
        return revision
    records = Records(Path(folder))
    with records.locked():
        history = History.of(folder)
        _must_be_finished(history)
        revision = change(history, head(history))
        if history.newest.made_by == "edit":
            _note(records, history.newest, ByHand(verb="edit", base=history.newest.base or 0))
        done = ByHand(
            verb=verb,
            base=history.current.number,
            decisions=revision.decisions,
            why=next((d.operation.why for d in revision.decisions), ""),
        )
        _note(records, _version(history, verb, revision.library), done)
        save_library(revision.library, records.folder / "library.json")
    return revision


def head(history: History) -> ExperienceLibrary:
    """The current library, with the highest number that was given so far, so that no number is given twice."""
    highest = max(version.number for version in history.versions)
    return history.current.library.model_copy(update={"version": highest})


def _version(history: History, verb: Verb, library: ExperienceLibrary) -> Version:
    return Version(number=library.version, made_by=verb, step=history.last_step, library=library)


def _note(records: Records, version: Version, what: ByHand) -> None:
    records.revise(
        step=version.step,
        version=version.number,
        library=version.library.to_json(),
        record=what.model_dump_json(),
    )


def _must_be_finished(history: History) -> None:
    """A run that stopped inside a step goes on from the library that the step began with, so that one must stay."""
    query = "SELECT max(step) FROM steps WHERE phase='learn'"
    ((begun,),) = history.records.rows((query, ()))[0]
    if begun is not None and begun > history.last_step:
        raise InputError(
            f"{history.records.folder} stopped inside step {begun + 1}; start its command again so that it finishes, "
            "or write the new library to a file of its own with --out FILE."
        )
