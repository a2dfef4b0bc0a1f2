"""`agentmem memory`: look into a case bank, ask why it recalls what it does, mend it, undo it, take it elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cyclopts import App

from agentmem.cli.bank import CHANGE, READ, Bank, ChangeOptions, Changing, Count, Reading, made

memory = App(
    name="memory",
    help="Show, search, correct, undo, audit, export and import a case bank. MEMORY is its folder.",
    help_format="plaintext",
)


@memory.command(name="list")
def list_(
    memory: Bank,
    *,
    trust: Literal["trusted", "quarantined"] | None = None,
    source: str | None = None,
    limit: Count = 50,
    options: Reading = READ,
) -> None:
    """List the cases, oldest first.

    Args:
        trust: Only trusted or only quarantined ones.
        source: Only those that this source brought.
        limit: The newest so many.
    """
    from agentmem.memory.case_display import Cases

    with options.bank(memory) as bank:
        options.show(Cases(memory, bank.list(trust=trust, source=source, limit=limit), len(bank)))


@memory.command
def show(memory: Bank, id: str, *, options: Reading = READ) -> None:
    """Show one case with its history and its uses, also one that was removed.

    Args:
        id: The case, as `list` prints it.
    """
    from agentmem.memory.case_display import OneCase

    with options.bank(memory) as bank:
        options.show(OneCase(bank.show(id)))


@memory.command
def search(
    memory: Bank,
    query: str,
    *,
    k: Count = 10,
    policy: str = "kernel_q",
    task_id: str = "",
    seed: int = 0,
    options: Reading = READ,
) -> None:
    """Show what a query recalls, and why: similarity, mu0, Q, mu, propensity, and what was withheld.

    Args:
        query: What is asked.
        k: Cases at most.
        policy: Which cases are recalled: similarity, kernel_q, parametric_q, thompson or ucb.
        task_id: Look as an evaluation of this task does, which may not see its own cases.
        seed: All draws depend on it.
    """
    from agentmem.memory.case_display import Found
    from agentmem.memory.case_search import search as found

    with options.bank(memory) as bank:
        options.show(Found(found(bank, query, k=k, policy=policy, seed=seed, task_id=task_id), k))


@memory.command
def add(
    memory: Bank,
    state: str,
    action: str,
    *,
    reward: float | None = None,
    source: str = "person",
    options: Changing = CHANGE,
) -> None:
    """Write a case; where there is no bank, it is made.

    Args:
        state: What was asked.
        action: What was done: the answer or the plan.
        reward: What it was worth; leave it out where that is not known.
        source: Who brings it.
    """
    from agentmem.domain.case import Case, Provenance

    case = Case.of(state, action, reward=reward, provenance=Provenance(source=source))
    with options.change(memory, create=True) as bank:
        bank.add(case, why=options.why)


@memory.command
def correct(
    memory: Bank,
    id: str,
    *,
    state: str | None = None,
    action: str | None = None,
    reward: float | None = None,
    options: Changing = CHANGE,
) -> None:
    """Change what a case says. With another action, what came of the old one counts no longer.

    Args:
        id: The case.
        state: What was asked.
        action: What should have been done.
        reward: What it was worth.
    """
    with options.change(memory) as bank:
        bank.correct(id, state=state, action=action, reward=reward, why=options.why)


@memory.command
def remove(memory: Bank, *ids: str, options: Changing = CHANGE) -> None:
    """Take cases out, all of them or none; `undo` brings them back.

    Args:
        ids: The cases.
    """
    from agentmem.errors import InputError

    if not ids:
        raise InputError("Name the cases that are to be removed; `agentmem memory list` shows them.")
    with options.change(memory) as bank:
        bank.remove(*ids, why=options.why)


@memory.command
def merge(memory: Bank, *ids: str, options: Changing = CHANGE) -> None:
    """Make several cases one: the oldest stays, and gets the others' rewards and uses.

    Args:
        ids: The cases, two or more.
    """
    with options.change(memory) as bank:
        bank.merge(ids, why=options.why)


@memory.command
def promote(memory: Bank, id: str, *, options: Changing = CHANGE) -> None:
    """Let a quarantined case be recalled: you vouch for it.

    Args:
        id: The case.
    """
    with options.change(memory) as bank:
        bank.promote(id, why=options.why)


@memory.command
def quarantine(memory: Bank, id: str, *, options: Changing = CHANGE) -> None:
    """Keep a case, but never recall it until it is promoted.

    Args:
        id: The case.
    """
    with options.change(memory) as bank:
        bank.quarantine(id, why=options.why)


@memory.command
def log(memory: Bank, *, since: int = 0, limit: Count = 50, options: Reading = READ) -> None:
    """List the changes, newest first.

    Args:
        since: Only those with a higher number.
        limit: The newest so many.
    """
    from agentmem.memory.case_display import Changes

    with options.bank(memory) as bank:
        options.show(Changes(memory, bank.log(since=since, limit=limit)))


@memory.command
def diff(memory: Bank, before: int | None = None, after: int | None = None, *, options: Reading = READ) -> None:
    """Show what differs between the states right after two changes.

    Args:
        before: The number of a change, 0 for the empty bank; by default the last but one.
        after: Another number; by default the last change's.
    """
    from agentmem.memory.case_display import Difference

    with options.bank(memory) as bank:
        newer = bank.seq if after is None else after
        options.show(Difference(bank.diff(max(newer - 1, 0) if before is None else before, newer)))


@memory.command
def undo(memory: Bank, change: int, *, options: Changing = CHANGE) -> None:
    """Undo one change, and keep what was done since. It can be undone too.

    Args:
        change: Its number, as `log` prints it.
    """
    with options.change(memory) as bank:
        bank.undo(change, why=options.why)


@memory.command
def rollback(memory: Bank, change: int, *, options: Changing = CHANGE) -> None:
    """Go back to the state right after a change. It can be undone like any change.

    Args:
        change: Its number, as `log` prints it; 0 is the empty bank.
    """
    with options.change(memory) as bank:
        bank.rollback(change, why=options.why)


@memory.command
def audit(memory: Bank, *, options: Reading = READ) -> None:
    """Look for duplicates, secrets, a source or a case that dominates, and what is quarantined or gated."""
    from agentmem.memory.case_display import Audited

    with options.bank(memory) as bank:
        options.show(Audited(bank.audit()))


@memory.command
def stats(memory: Bank, *, options: Reading = READ) -> None:
    """Show the bank in numbers."""
    from agentmem.memory.case_display import Stats
    from agentmem.memory.case_index import planned

    with options.bank(memory) as bank:
        options.show(Stats(memory, bank.stats(), planned(options.index, len(bank))))


@memory.command
def export(memory: Bank, out: Path, *, allow_gated: bool = False, options: Reading = READ) -> None:
    """Write the cases and their uses to a file of JSON Lines, whole or not at all.

    Args:
        out: The file.
        allow_gated: Export also what a gated data set had a part in.
    """
    with options.bank(memory) as bank:
        cases = bank.export(out, allow_gated=allow_gated)
    options.show_fields(file=str(out), cases=cases)


@memory.command(name="import")
def import_(memory: Bank, file: Path, *, options: Changing = CHANGE) -> None:
    """Add the cases of a file, all or none: an export, or one of Memento's forms. A bank is made where there is none.

    Args:
        file: JSON Lines. Of an export, what the bank has already is passed over.
    """
    from agentmem.memory import case_files

    case_files.read(file)  # before a bank is made for it
    with options.change(memory, create=True) as bank:
        bank.import_file(file, why=options.why)


@memory.command
def reindex(memory: Bank, *, options: Reading = READ) -> None:
    """Build the index that is derived from the cases anew, and wait for it. It holds nothing that they do not."""
    with options.bank(memory) as bank:
        serving = bank.reindex()
    options.show_fields(memory=str(memory), index=serving)


@memory.command
def reembed(memory: Bank, *, options: Changing = CHANGE) -> None:
    """Embed all texts again with the --embedder, minilm where none is named; the bank is then that one's."""
    named = options.embedder or "minilm"
    with ChangeOptions(json=options.json, index=options.index).change(memory) as bank:
        bank.reembed(made(named))
