"""A person's word on an experience: whether prompts may show it."""

from __future__ import annotations

from difflib import get_close_matches

from agentmem.domain.experience import ExperienceLibrary, Revision
from agentmem.domain.operation import Promote, Quarantine
from agentmem.domain.provenance import Trust
from agentmem.errors import InputError


def entrust(library: ExperienceLibrary, id: str, trust: Trust, *, why: str = "") -> Revision:
    """The next version, in which an experience is trusted, or in quarantine.

    Args:
        library: the newest version.
        id: the experience.
        trust: what it is to be.
        why: the reason, in words.

    Raises:
        InputError: the library does not have it in use, or it is that already.

    Example:
        >>> from agentmem.domain.operation import Add
        >>> first = ExperienceLibrary().apply([Add(text="Check units.")])
        >>> entrust(first, first.experiences[0].id, "quarantined").library.trusted
        ()
    """
    known = [experience.id for experience in library]
    if id not in known:
        near = get_close_matches(id, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else " `show` lists those that there are."
        raise InputError(f"The library has no experience {id!r} in use.{hint}")
    revision = library.revise([Promote(id=id, why=why) if trust == "trusted" else Quarantine(id=id, why=why)])
    if revision.library is library:
        raise InputError(f"The experience {id!r} is {trust} already; nothing was changed.")
    return revision
