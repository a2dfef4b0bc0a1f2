"""`agentmem prompts`: the templates that are sent to models."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agentmem.cli.options import OutputOptions, OutputPart
from agentmem.cli.output import write, write_json

if TYPE_CHECKING:
    from agentmem.prompts import Template


def prompts(
    action: Literal["list", "show"] = "list",
    name: str | None = None,
    *,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """List the prompts, or show the text of one.

    To change one, keep its text in a folder of your own, and name that folder in AGENTMEM_PROMPTS:

    agentmem prompts show judge > my-prompts/judge.md

    Args:
        action: list or show.
        name: The prompt to show.
    """
    from agentmem.errors import InputError
    from agentmem.prompts import load, names

    if action == "list":
        if name is not None:
            raise InputError(f"To see the prompt {name!r}, write: agentmem prompts show {name}")
        output.show(_List(tuple(load(each) for each in names())))
        return
    if name is None:
        raise InputError(f"Name the prompt to show: {', '.join(names())}.")
    template = load(name)
    if output.json:
        write_json(json.dumps(_about(template) | {"source": template.source}, ensure_ascii=False))
    else:
        write(template.source.rstrip("\n"))


@dataclass(frozen=True)
class _List:
    templates: tuple[Template, ...]

    def table(self) -> Any:
        """For a person."""
        from agentmem.format import Table

        rows = tuple((each.name, each.purpose, str(each.path.parent)) for each in self.templates)
        return Table("", (("prompt", "left"), ("purpose", "left"), ("folder", "left")), rows)

    def to_json(self) -> str:
        """For a program."""
        return json.dumps([_about(each) for each in self.templates], ensure_ascii=False)


def _about(template: Template) -> dict[str, Any]:
    from agentmem.prompts import fingerprint

    return {
        "name": template.name,
        "purpose": template.purpose,
        "variables": template.variables,
        "output": template.output,
        "path": str(template.path),
        "fingerprint": fingerprint(template.name),
    }
