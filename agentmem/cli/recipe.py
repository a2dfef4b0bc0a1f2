"""`--config recipe.toml`: options from a file, so that a run can be kept beside its results. Flags win over it."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cyclopts import ArgumentCollection
from cyclopts.config import Dict

from agentmem.errors import InputError


def from_file(app: Any, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Fill what no flag gave from the file that --config names; a configuration source of cyclopts.

    The file is one flat table of options, named as their flags are, with hyphens or underscores:

        model = "openai/gpt-4.1-mini"
        reward = "math"
        group_size = 5

    Args:
        app: the command line.
        commands: the verb.
        arguments: its options, with what the flags gave.

    Raises:
        InputError: the file cannot be read, or has a key that is no option; the nearest one is named.
    """
    chosen = next((a for a in arguments if "--config" in a.names and a.tokens), None)
    if chosen is None:
        return
    path = Path(chosen.tokens[-1].value)
    table = _read(path)
    known = {flag.removeprefix("--") for a in arguments for flag in a.names if flag.startswith("--")} - {"config"}
    for key, value in table.items():
        if isinstance(value, dict):
            raise InputError(f"{path}: {key!r} is a table; write its keys at the top level of the file.")
        if key.replace("_", "-") not in known:
            near = get_close_matches(key.replace("_", "-"), known, n=1, cutoff=0.5)
            hint = (
                f"Did you mean {near[0].replace('-', '_')!r}?" if near else f"See `agentmem {commands[0]} --help`."
            )
            raise InputError(f"{path}: {' '.join(commands)} has no option {key!r}. {hint}")
    Dict(table, source=str(path), use_commands_as_keys=False)(app, commands, arguments)


def _read(path: Path) -> dict[str, Any]:
    from agentmem.text_file import BOM, decode, open_existing

    with open_existing(path, "recipe") as file:
        text = decode(file.read().removeprefix(BOM), path=path, where="")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is no TOML: {error}.") from None
