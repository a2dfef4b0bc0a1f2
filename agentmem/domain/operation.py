"""What may be done to a library: add, modify, merge, delete, keep, and what undoes these; with reason and origin."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentmem.domain.origin import Origin
from agentmem.domain.provenance import Provenance
from agentmem.domain.trajectory import Message
from agentmem.domain.value import Value


class _Operation(Value):
    why: str = ""
    """The reason, in words."""
    origins: tuple[Origin, ...] = ()


class _Saying(_Operation):
    gated: bool = False
    """Whether its words come from a gated data set; what it makes is marked so."""
    provenance: Provenance = Field(default=Provenance(), exclude_if=lambda value: value == Provenance())
    """Where its words come from; what rests on untrusted text is quarantined, unless somebody vouches for it."""
    vouched: str = Field(default="", exclude_if=lambda value: not value)
    """Who does so, such as a gate that tries it before it may stay; empty for nobody."""


class Add(_Saying):
    """Add a new experience."""

    op: Literal["add"] = "add"
    kind: Literal["lesson", "example"] = "lesson"
    text: str = Field(min_length=1)
    when: str = ""
    when_not: str = ""
    turns: tuple[Message, ...] = ()
    tool: str = Field(default="", exclude_if=lambda value: not value)
    """The tool that it is about; empty for one about the tasks themselves."""


class Modify(_Saying):
    """Change the words of an experience; None leaves a field as it is."""

    op: Literal["modify"] = "modify"
    id: str
    text: Annotated[str, Field(min_length=1)] | None = None
    when: str | None = None
    when_not: str | None = None


class Merge(_Saying):
    """Replace several experiences by one."""

    op: Literal["merge"] = "merge"
    ids: tuple[str, ...]
    text: str = Field(min_length=1)
    when: str = ""
    when_not: str = ""


class Delete(_Operation):
    """Remove an experience; it needs no text."""

    op: Literal["delete"] = "delete"
    id: str


class Keep(_Operation):
    """Remember that these similar experiences are all wanted."""

    op: Literal["keep"] = "keep"
    ids: tuple[str, ...]


class Restore(_Operation):
    """Bring a retired experience back under its own id, or give an experience words back that it had."""

    op: Literal["restore"] = "restore"
    id: str
    after: str | None = None
    """Of a retired one: the experience that it is put behind. "" is the front; None, or one that is gone, the end."""
    text: Annotated[str, Field(min_length=1)] | None = None
    when: str | None = None
    when_not: str | None = None
    turns: tuple[Message, ...] | None = None
    taught_by: tuple[Origin, ...] | None = None
    """The groups that those words rest on; None leaves them, as it leaves every field."""
    gated: bool | None = None
    """Whether those words come from a gated data set."""


class Unkeep(_Operation):
    """Forget that these similar experiences are all wanted, so that a merge may be proposed again."""

    op: Literal["unkeep"] = "unkeep"
    ids: tuple[str, ...]


class Promote(_Operation):
    """Let a quarantined experience into priors: a verified reward, a person or the gate vouches for it."""

    op: Literal["promote"] = "promote"
    id: str


class Quarantine(_Operation):
    """Keep an experience, but out of every prior, until it is promoted."""

    op: Literal["quarantine"] = "quarantine"
    id: str


Operation = Annotated[
    Add | Modify | Merge | Delete | Keep | Restore | Unkeep | Promote | Quarantine, Field(discriminator="op")
]


class Decision(Value):
    """What became of one operation."""

    operation: Operation
    accepted: bool
    reason: str = ""
    """Why it was rejected; empty where it was accepted."""
