"""The options of a verb on a case bank: how the bank is opened, and how what comes of it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from agentmem.cli.output import OutputOptions
from agentmem.cli.user_code import load_function

if TYPE_CHECKING:
    from agentmem.memory.case_bank import CaseBank
    from agentmem.memory.embedder import Embedder


@dataclass(frozen=True)
class BankOptions:
    """How a bank is opened, and how the result is shown."""

    json: bool = False
    """Print the result as JSON."""
    embedder: str | None = None
    """Needed where the bank was written with one that a program made: FILE.py:FUNCTION, which makes it. Or a name."""
    index: str = "auto"
    """What finds the nearest cases: auto, exact, ivf, chroma, or the address of a Chroma server."""

    @contextmanager
    def bank(self, path: Path, *, create: bool = False) -> Iterator[CaseBank]:
        """The bank at a path; no weights are loaded before a text has to be embedded."""
        from agentmem.memory.case_bank import CaseBank

        embedder = None if self.embedder is None else made(self.embedder)
        bank = CaseBank(path, embedder=embedder, index=self.index, create=create)
        try:
            yield bank
        finally:
            bank.close()

    def show(self, result: object) -> None:
        """Print a result."""
        OutputOptions(json=self.json).show(result)

    def show_fields(self, **facts: object) -> None:
        """Print named facts."""
        OutputOptions(json=self.json).show_fields(**facts)


@dataclass(frozen=True)
class ChangeOptions(BankOptions):
    """How a bank is changed."""

    why: str = ""
    """The reason, for the record."""

    @contextmanager
    def change(self, path: Path, *, create: bool = False) -> Iterator[CaseBank]:
        """The bank at a path; afterwards, what was done to it is shown."""
        from agentmem.memory.case_display import Done

        with self.bank(path, create=create) as bank:
            before = bank.seq
            yield bank
            self.show(Done(path, len(bank), bank.log(since=before)))


def made(embedder: str) -> Embedder:
    """The embedder of this name, or the one that a function of the user's makes.

    Raises:
        InputError: there is none, or the function gave something else.
    """
    from agentmem.errors import AgentError, InputError, boundary
    from agentmem.memory.embedder import Embedder, open_embedder

    if ".py:" not in embedder:
        return open_embedder(embedder)
    make = load_function(embedder)
    with boundary(AgentError, f"embedder {embedder!r}"):
        found = make()
    if not isinstance(found, Embedder):
        raise InputError(f"{embedder} gave {type(found).__name__}; an embedder has a `name` and `embed(texts)`.")
    return found


Bank = Annotated[Path, Parameter(help="The case bank's folder.")]
_GROUP = Parameter(name="*", group=Group("Options", sort_key=1))
Reading = Annotated[BankOptions, _GROUP]
Changing = Annotated[ChangeOptions, _GROUP]
Count = Annotated[int, Parameter(validator=Number(gte=1))]
READ, CHANGE = BankOptions(), ChangeOptions()
