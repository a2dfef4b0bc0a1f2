"""`agentmem library`: look into what was learned, undo it, vouch for it, take it elsewhere, bring lessons in."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from agentmem.cli.options import OutputOptions, OutputPart
from agentmem.domain.provenance import Trust
from agentmem.learning.export import Format

Why = Annotated[str, Parameter(help="The reason, for the record.")]
Out = Annotated[Path | None, Parameter(help="Write the new version to this file, and leave LIBRARY as it is.")]

library = App(
    name="library",
    help="Show, compare, undo, promote, export and import what was learned. LIBRARY is a run's folder or a file.",
    help_format="plaintext",
)


@library.command
def show(
    library: Path,
    *,
    version: int | None = None,
    explain: str | None = None,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """Show a library, and of a run every version with what made it.

    Args:
        library: A learning run's folder, or a library file.
        version: Of a run: show this version instead of the current one.
        explain: An experience's id: why it is believed, down to the rollouts that taught it.
    """
    from agentmem.learning.display import Shown

    if explain is not None:
        from agentmem.learning.blame import explain as explained

        output.show(explained(_history(library, "--explain"), explain))
    elif _is_run(library):
        history = _history(library)
        output.show(Shown(history.library(version), history))
    else:
        output.show(Shown(_at(library, version)))


@library.command
def diff(
    library: Path,
    before: str | None = None,
    after: str | None = None,
    *,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """Show what was added, changed, merged, retired and restored between two versions, or two libraries.

    Args:
        library: A learning run's folder, or a library file.
        before: Of a run: the older version; by default the one before the newest. Or another library.
        after: Of a run: the newer version; by default the current one.
    """
    from agentmem.errors import InputError
    from agentmem.learning.diff import diff as difference
    from agentmem.library_files import load_library

    if before is not None and not before.isdigit():
        if after is not None:
            raise InputError(f"{after!r} is too much: two libraries are compared as they are.")
        output.show(difference(load_library(library), load_library(before)))
        return
    if after is not None and not after.isdigit():
        raise InputError(f"{after!r} is no version; give a number.")
    history = _history(library, "a diff of versions")
    newer = history.current if after is None else history.version(int(after))
    older = newer.base if before is None else int(before)
    if older is None:
        raise InputError(f"Version {newer.number} is the first; there is none before it to compare with.")
    output.show(history.diff(older, newer.number))


@library.command
def blame(
    library: Path,
    id: str,
    *,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """Show what made an experience what it is: operations, reasons, gate, groups; parents of merges included.

    Args:
        library: A learning run's folder.
        id: The experience, as `show` prints it.
    """
    from agentmem.learning.blame import blame as traced

    output.show(traced(_history(library, "blame"), id))


@library.command
def revert(
    library: Path,
    operation: str,
    *,
    why: Why = "",
    out: Out = None,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """Undo one operation, and keep what was done since. It becomes a new version, which can be reverted too.

    Args:
        library: A learning run's folder.
        operation: Its name, such as 3.2 (`blame` prints it); or an experience's id, for the last that touched it.
    """
    from agentmem.learning.revise import revise
    from agentmem.learning.undo import revert as reverted

    _must_be_run(library, "revert")
    made = revise(
        library, "revert", lambda history, now: reverted(now, history.operation(operation), why=why), out=out
    )
    _tell(output, made, out or library / "library.json")


@library.command
def rollback(
    library: Path,
    version: int,
    *,
    why: Why = "",
    out: Out = None,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """Go back to an earlier version. It becomes a new version; what came between is kept in the journal.

    Args:
        library: A learning run's folder.
        version: The version to go back to.
    """
    from agentmem.learning.revise import revise
    from agentmem.learning.undo import rollback as rolled_back

    _must_be_run(library, "rollback")
    made = revise(
        library, "rollback", lambda history, now: rolled_back(now, history.library(version), why=why), out=out
    )
    _tell(output, made, out or library / "library.json")


@library.command
def promote(
    library: Path,
    id: str,
    *,
    why: Why = "",
    out: Out = None,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """Let a quarantined experience into prompts: you vouch for it.

    Args:
        library: A learning run's folder, or a library file.
        id: The experience, as `show` prints it.
    """
    _entrust(library, id, "trusted", why, out, output)


@library.command
def quarantine(
    library: Path,
    id: str,
    *,
    why: Why = "",
    out: Out = None,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """Keep an experience, but out of every prompt until it is promoted.

    Args:
        library: A learning run's folder, or a library file.
        id: The experience, as `show` prints it.
    """
    _entrust(library, id, "quarantined", why, out, output)


@library.command
def export(
    library: Path,
    *,
    format: Format = "markdown",
    out: Path | None = None,
    version: int | None = None,
    prior_tokens: int = 2000,
    allow_gated: bool = False,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """Print a library in another form, or write it to a file.

    Args:
        library: A learning run's folder, or a library file.
        format: json, markdown (for people), prompt (the very text that agents get), agents-md (a section).
        out: Write to this file. An agents-md section takes the place of the one that the file has.
        version: Of a run: this version instead of the current one.
        prior_tokens: Of prompt: tokens at most, as in the run.
        allow_gated: Export also what a gated data set had a part in.
    """
    from agentmem.agents.prior import render_prior
    from agentmem.format import count, printable
    from agentmem.learning.export import export as exported
    from agentmem.learning.export import write_export

    chosen = _at(library, version)
    options: dict[str, Any] = {"allow_gated": allow_gated, "prior_tokens": prior_tokens}
    left_out = 0
    if format == "prompt":
        left_out = len(chosen) - len(render_prior(chosen, max_tokens=prior_tokens).ids)
    if out is not None:
        write_export(chosen, out, format, **options)
        output.show_fields(
            file=str(out), format=format, version=chosen.version, experiences=len(chosen) - left_out
        )
    elif output.json:
        text = exported(chosen, format, **options)
        print(json.dumps({"format": format, "version": chosen.version, "left_out": left_out, "text": text}))
    else:
        text = exported(chosen, format, **options)
        # No newline is added: the text of a prompt is exactly what an agent gets.
        sys.stdout.write(printable(text, sys.stdout.encoding))
        sys.stdout.flush()
    if left_out:
        sentence = f"{count(left_out, 'experience')} left out, which {prior_tokens} tokens have no room for."
        print(f"agentmem: {sentence}", file=sys.stderr)


@library.command(name="import")
def import_(
    file: Path,
    *,
    into: Path | None = None,
    out: Path | None = None,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """Add lessons to a library: from another library's JSON, or from a list in plain text or Markdown.

    Args:
        file: What to bring in: a library, or a list with one lesson a bullet. It is cleaned of control characters.
        into: A learning run's folder, or a library file. By default a new library.
        out: Write the result to this file; needed for a new library, else --into is changed.
    """
    from agentmem.domain.experience import ExperienceLibrary
    from agentmem.errors import InputError
    from agentmem.learning.imports import import_file
    from agentmem.learning.revise import revise
    from agentmem.library_files import load_library, save_library

    if into is not None and _is_run(into):
        made = revise(into, "import", lambda _, now: import_file(now, file), out=out)
        target = out or into / "library.json"
    else:
        target_or_none = out or into
        if target_or_none is None:
            raise InputError("Say where the lessons go: --into LIBRARY, or --out FILE for a new one.")
        target = target_or_none
        made = import_file(load_library(into) if into else ExperienceLibrary(), file)
        if into is None and target.exists():
            raise InputError(f"{target} exists; add to it with --into {target}, or name a new file.")
        save_library(made.library, target)
    _tell(output, made, target)


def _is_run(path: Path) -> bool:
    return path.is_dir() and (path / "journal.sqlite").exists()


def _history(path: Path, what: str = "") -> Any:
    from agentmem.learning.history import History

    if what:
        _must_be_run(path, what)
    return History.of(path)


def _must_be_run(path: Path, what: str) -> None:
    from agentmem.errors import InputError

    if path.is_file():
        raise InputError(
            f"{path} is a file, which has no history; {what} needs the folder of the run that learned it."
        )


def _at(path: Path, version: int | None) -> Any:
    """The library at a path; of a run, at a version."""
    from agentmem.library_files import load_library

    if _is_run(path):
        return _history(path).library(version)
    if version is not None:
        _must_be_run(path, "--version")
    return load_library(path)


def _entrust(path: Path, id: str, trust: Trust, why: str, out: Path | None, output: OutputOptions) -> None:
    """Promote or quarantine, in a run or in a file."""
    from agentmem.learning.revise import revise
    from agentmem.learning.trust import entrust
    from agentmem.library_files import load_library, save_library

    if _is_run(path):
        verb: Literal["promote", "quarantine"] = "promote" if trust == "trusted" else "quarantine"
        made = revise(path, verb, lambda _, now: entrust(now, id, trust, why=why), out=out)
        _tell(output, made, out or path / "library.json")
    else:
        made = entrust(load_library(path), id, trust, why=why)
        save_library(made.library, out or path)
        _tell(output, made, out or path)


def _tell(output: OutputOptions, made: Any, file: Path) -> None:
    """What was done, operation by operation."""
    from agentmem.learning.display import Done

    output.show(Done(made, file))
