"""A tool: a function that a model may call, with its description and the schema of its arguments."""

from __future__ import annotations

import copy
import functools
import inspect
import re
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, overload, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, PydanticSchemaGenerationError, PydanticUserError, create_model
from pydantic_core import to_json

from agentmem.domain.callable import source_hash
from agentmem.domain.media import Media, MediaKind
from agentmem.errors import InputError
from agentmem.models.model import ToolSpec
from agentmem.settings import SandboxName


@dataclass(frozen=True)
class ToolContext:
    """Where a tool call happens. A function with a parameter of this type is given it; the model is not told."""

    folder: Path
    """The working folder of the attempt."""
    seconds: float = 30.0
    """Seconds that the call may take."""
    files: tuple[Path, ...] = ()
    """The task's own files, which a tool may read wherever they lie."""
    sandbox: SandboxName = "auto"
    """Where code runs, see `agentmem.sandbox.sandbox.find_sandbox`."""
    accepts: frozenset[MediaKind] = frozenset()
    """What the model takes beside text."""


@dataclass(frozen=True)
class ToolOutput:
    """What a function may return instead of its text alone."""

    text: str
    source: str = ""
    """Where the text comes from: an address, a file, a server."""
    media: tuple[Media, ...] = ()
    """Pictures and sounds, of the kinds that `ToolContext.accepts`."""


class Tool:
    """A function that a model may call.

    Its name and description are those of the function; what its docstring says under `Args:` describes the
    parameters. A plain function runs in a thread, an async one on the loop.

    Args:
        function: every parameter has a type that JSON can express; one may be a `ToolContext`.
        name: instead of the function's name.
        description: instead of the docstring's text.
        untrusted: whether its results hold text from outside, such as pages and files; they stay marked.
        sandboxed: whether it runs programs in the sandbox, which is then tried out before an attempt begins.

    Raises:
        InputError: the function has no name or description, or a parameter that JSON cannot express.

    Example:
        >>> def add(a: int, b: int = 1) -> int:
        ...     "Add two numbers."
        ...     return a + b
        >>> tool = Tool(add)
        >>> tool.name, tool.description, tool.spec.parameters["required"]
        ('add', 'Add two numbers.', ['a'])
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        untrusted: bool = False,
        sandboxed: bool = False,
    ) -> None:
        self._function = function
        self.untrusted = untrusted
        self.sandboxed = sandboxed
        self.name = name or getattr(function, "__name__", "") or type(function).__name__
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.name):
            raise InputError(
                f"A tool cannot be named {self.name!r}: models accept 1 to 64 letters, digits, _ and -; "
                "pass another with name=..."
            )
        text, about = _docstring(function)
        self.description = (description or text).strip()
        if not self.description:
            raise InputError(
                f"Tool {self.name!r} has no description, and a model would not know when to use it; "
                "give the function a docstring."
            )
        self._arguments, self._context_name = _arguments_model(function, self.name, about)
        self.spec = ToolSpec(name=self.name, description=self.description, parameters=_schema(self._arguments))

    @property
    def fingerprint(self) -> str:
        """Its name; of a function of the user's with a hash of the source, which changes when it does."""
        module = getattr(self._function, "__module__", None) or ""
        ours = module.partition(".")[0] == __name__.partition(".")[0]
        return self.name if ours else f"{self.name}#{source_hash(self._function)}"

    async def run(self, arguments: str, context: ToolContext) -> ToolOutput:
        """Call the function with the model's arguments.

        Args:
            arguments: a JSON object, as text.
            context: where the call happens.

        Returns:
            The result: a text as it is, None as an empty text, anything else as JSON.

        Raises:
            ValidationError: the arguments do not fit.
            Exception: whatever the function raises.
        """
        values = self._arguments.model_validate_json(arguments.strip() or "{}")
        given = {str(field.alias): getattr(values, key) for key, field in type(values).model_fields.items()}
        given |= values.model_extra or {}
        if self._context_name:
            given[self._context_name] = context
        if inspect.iscoroutinefunction(self._function) or inspect.iscoroutinefunction(
            type(self._function).__call__
        ):
            result = await self._function(**given)
        else:
            from agentmem.sandbox.thread import in_thread

            result = await in_thread(functools.partial(self._function, **given), name=f"tool-{self.name}")
            if inspect.isawaitable(result):
                result = await result
        return result if isinstance(result, ToolOutput) else ToolOutput(_as_text(result))

    def renamed(self, name: str) -> Tool:
        """The same tool under another name."""
        other = copy.copy(self)
        other.name = name
        other.spec = self.spec.model_copy(update={"name": name})
        return other

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it were no tool."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"


@runtime_checkable
class ToolServer(Protocol):
    """Whoever has tools that are known only when it is asked, such as an MCP server."""

    @property
    def name(self) -> str:
        """How it is named in messages; no secret is in it."""
        ...

    async def tools(self) -> Sequence[Tool]:
        """Its tools; it is started where it does not run yet.

        Raises:
            ToolError: it cannot be started, or gives no answer.
        """
        ...

    async def close(self) -> None:
        """End what belongs to the running event loop, such as a process; it may be used again."""
        ...


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, untrusted: bool = False, sandboxed: bool = False
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    untrusted: bool = False,
    sandboxed: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool; see `Tool`.

    Example:
        >>> @tool
        ... def shout(text: str) -> str:
        ...     "Write a text in capital letters."
        ...     return text.upper()
        >>> shout("hello"), shout.name
        ('HELLO', 'shout')
    """
    if function is not None:
        return Tool(function, name=name, description=description, untrusted=untrusted, sandboxed=sandboxed)
    return lambda function: Tool(
        function, name=name, description=description, untrusted=untrusted, sandboxed=sandboxed
    )


def _arguments_model(
    function: Callable[..., Any], name: str, about: dict[str, str]
) -> tuple[type[BaseModel], str | None]:
    """The class of the arguments object, and the name of the parameter that takes the context."""
    try:
        signature = inspect.signature(function)
        target = function if inspect.isroutine(function) else type(function).__call__
        hints = typing.get_type_hints(target, include_extras=True)
    except (TypeError, ValueError, NameError) as error:
        raise InputError(
            f"The types of tool {name!r} cannot be read ({error}); use types that its module knows."
        ) from None
    fields: dict[str, Any] = {}
    context_name: str | None = None
    extra: Literal["allow", "forbid"] = "forbid"
    for parameter in signature.parameters.values():
        kind = hints.get(parameter.name, parameter.annotation)
        if kind is ToolContext:
            context_name = parameter.name
        elif parameter.kind is parameter.VAR_KEYWORD:
            extra = "allow"
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise InputError(f"Tool {name!r} takes {parameter}, but models name every argument; give it a name.")
        elif kind is parameter.empty:
            raise InputError(f"Tool {name!r} has no type for {parameter.name!r}; annotate it, such as `: str`.")
        else:
            default = ... if parameter.default is parameter.empty else parameter.default
            # An alias, because pydantic has its own use for names such as `_x`, `schema` and `copy`.
            text: dict[str, Any] = {"description": about[parameter.name]} if parameter.name in about else {}
            fields[f"p{len(fields)}"] = (kind, Field(default, alias=parameter.name, **text))
    try:
        model = create_model(f"{name}_arguments", __config__=ConfigDict(extra=extra), **fields)
        model.model_json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, NameError) as error:
        first = str(error).split("\n", 1)[0]
        raise InputError(f"The parameters of tool {name!r} cannot be described as JSON: {first}") from None
    return model, context_name


def _schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema without the titles that pydantic adds, which cost tokens and say nothing."""

    def bare(node: Any, *, names: bool = False) -> Any:
        if isinstance(node, dict):
            kept = node.items() if names else ((k, v) for k, v in node.items() if k != "title")
            return {k: bare(v, names=k in ("properties", "$defs") and not names) for k, v in kept}
        return [bare(item) for item in node] if isinstance(node, list) else node

    schema: dict[str, Any] = bare(arguments.model_json_schema())
    return {"type": "object", "properties": {}} | schema


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What a docstring says of the function, and of each parameter (Google style)."""
    doc = inspect.getdoc(function if inspect.isroutine(function) else type(function)) or ""
    text, _, sections = doc.partition("\nArgs:\n")
    text = re.split(r"\n(?:Returns|Raises|Yields|Example|Examples|Note):\s*\n", text)[0]
    about: dict[str, str] = {}
    last = ""
    for line in sections.split("\n"):
        if line and not line[0].isspace():
            break
        if entry := re.match(r"\s{1,4}(\w+)(?:\s*\([^)]*\))?:\s*(.*)", line):
            last = entry[1]
            about[last] = entry[2]
        elif last and line.strip():
            about[last] += " " + line.strip()
    return " ".join(text.split()), about


def _as_text(result: Any) -> str:
    if result is None:
        return ""
    return result if isinstance(result, str) else to_json(result, fallback=str, inf_nan_mode="constants").decode()
