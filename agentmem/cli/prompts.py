"""`agentmem prompts`: the templates that are sent to models."""

from __future__ import annotations

from typing import Literal

from agentmem.cli.options import OutputOptions, OutputPart


def prompts(
    action: Literal["list", "show"] = "list",
    name: str | None = None,
    *,
    output: OutputPart = OutputOptions(),  # noqa: B008  # frozen
) -> None:
    """List the prompts, or show one with its purpose and variables.

    Args:
        action: list or show.
        name: The prompt to show.
    """
    from agentmem.errors import InputError
    from agentmem.prompts import fingerprint, load, names

    if action == "list":
        output.show_fields(**{each: load(each).purpose for each in names()})
        return
    if name is None:
        raise InputError(f"Name the prompt to show: {', '.join(names())}.")
    template = load(name)
    output.show_fields(
        name=name,
        purpose=template.purpose,
        variables=template.variables,
        fingerprint=fingerprint(name),
        source=template.source,
    )
