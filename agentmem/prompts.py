"""The prompts: Markdown templates that are found, checked, rendered and fingerprinted.

A template is a file `NAME.md`: YAML front matter, then jinja2.

    ---
    purpose: Marks one answer.
    variables:
      output: what the agent answered
    output: text
    ---
    Mark this answer: {{ output }}

Looked up in a folder of the user's own (`use_prompts`, or the environment variable AGENTMEM_PROMPTS), then among
the packaged templates. In a checkout, `prompts/` stands in for the packaged ones.
"""

from __future__ import annotations

import os
import re
import traceback
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmem.domain.value import fingerprint as _fingerprint
from agentmem.errors import InputError
from agentmem.text_file import BOM, decode

if TYPE_CHECKING:
    import jinja2

ENVIRONMENT_VARIABLE = "AGENTMEM_PROMPTS"
"""Names the folder with the user's own templates, where `use_prompts` does not."""


@dataclass(frozen=True)
class Template:
    """One prompt: what it is for, what it needs, and its text."""

    name: str
    path: Path
    purpose: str
    variables: dict[str, str]
    """The variables that it is rendered with, each with a line that says what it is."""
    output: str
    """The schema that the model's answer has, or `text`."""
    source: str
    """The file's whole text, front matter included."""
    _body: str
    _first_line: int

    def render(self, **variables: Any) -> str:
        """The prompt's text, without a newline at its end. A variable's own text is never read as a template.

        Raises:
            InputError: a variable is missing or unknown, or the template cannot be rendered with them.
        """
        if missing := sorted(self.variables.keys() - variables.keys()):
            raise InputError(
                f"Prompt {self.name!r} needs the variable {missing[0]!r} ({self.variables[missing[0]]}); pass it."
            )
        if unknown := sorted(variables.keys() - self.variables.keys()):
            known = ", ".join(self.variables) or "none"
            raise InputError(f"Prompt {self.name!r} has no variable {unknown[0]!r}. Known: {known} ({self.path}).")
        try:
            return self._compiled().render(variables).rstrip("\n")
        except Exception as error:
            raise InputError(f"{self.path}, line {self._line_of(error)}: {str(error).rstrip('.')}.") from error

    def used_variables(self) -> frozenset[str]:
        """The variables that the text uses, whether declared or not."""
        from jinja2 import meta

        return frozenset(meta.find_undeclared_variables(_environment().parse(self._body)))

    def _check(self) -> None:
        """Refuse a text that does not compile or uses what is not declared, before anything is spent on it."""
        from jinja2 import TemplateError

        try:
            self._compiled()
            used = self.used_variables()
        except TemplateError as error:
            line = self._first_line + (getattr(error, "lineno", None) or 1) - 1
            raise InputError(
                f"{self.path}, line {line}: {str(error.message).rstrip('.')}; correct the template."
            ) from None
        if undeclared := sorted(used - self.variables.keys()):
            name = undeclared[0]
            line = self._first_line + next(
                (n for n, text in enumerate(self._body.split("\n")) if re.search(rf"\b{name}\b", text)), 0
            )
            known = ", ".join(self.variables) or "none"
            raise InputError(
                f"{self.path}, line {line}: the variable {name!r} is not declared in the front matter. "
                f"Declared: {known}."
            )

    def _compiled(self) -> jinja2.Template:
        return _compile(self._body, str(self.path))

    def _line_of(self, error: BaseException) -> int:
        # jinja2 rewrites tracebacks so that the template's own lines stand in them.
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(self.path) and frame.lineno]
        return self._first_line + (lines[-1] if lines else 1) - 1


def render(name: str, /, **variables: Any) -> str:
    """The text of a prompt.

    Args:
        name: the template, such as `"prior"`.
        variables: what it declares, no more and no less.

    Raises:
        InputError: no such template, it is broken, or a variable is missing or unknown.

    Example:
        >>> print(render("prior", lessons=[{"id": "e-1", "text": "Check units.", "when": "", "when_not": ""}]))
        Experiences from earlier tasks. Use those that apply to the task at hand, and pass over the others:
        [e-1] Check units.
    """
    return load(name).render(**variables)


def load(name: str) -> Template:
    """Find, read and check a template. Within a process a template is read once, so that a run has one wording.

    Raises:
        InputError: there is none of this name, or it is broken; the message names file and line.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise InputError(
            f"{name!r} is no name of a prompt: letters, digits, - and _ only, without the ending .md."
        )
    own = _own_folder()
    packaged = _packaged_folder()
    standard = _read(packaged / f"{name}.md", packaged) if (packaged / f"{name}.md").is_file() else None
    if own is None or not (own / f"{name}.md").is_file():
        if standard is None:
            known = names()
            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(f"There is no prompt {name!r}.{hint} Known: {', '.join(known)}.")
        return standard
    template = _read(own / f"{name}.md", Path.cwd())
    if standard is not None and template.variables.keys() != standard.variables.keys():
        raise InputError(
            f"{template.path}, line 1: declares the variables {', '.join(template.variables) or 'none'}, "
            f"but prompt {name!r} is rendered with {', '.join(standard.variables) or 'none'}; declare just these."
        )
    return template


def names() -> tuple[str, ...]:
    """The names of all templates, the user's own included."""
    folders = [_packaged_folder(), *filter(None, [_own_folder()])]
    found = {file.stem for folder in folders for file in folder.glob("*.md")}
    return tuple(sorted(name for name in found if name.upper() != "README"))


def fingerprint(*prompts: str) -> str:
    """Changes when the text of one of these templates changes; without names, of any template."""
    return _fingerprint({name: load(name).source for name in prompts or names()})


def check_prompts() -> None:
    """Read every template if some are the user's own, so that a broken one is found before money is spent.

    Raises:
        InputError: one is broken; the message names file and line.
    """
    if _own_folder() is not None:
        for name in names():
            load(name)


def use_prompts(folder: str | os.PathLike[str] | None) -> None:
    """Let the templates in a folder take the place of the packaged ones of the same name.

    Also reads all templates anew. What is in the folder is checked at once.

    Args:
        folder: the folder; None goes back to AGENTMEM_PROMPTS, or to the packaged templates.

    Raises:
        InputError: it is no folder, or one of its templates is broken; the templates in use stay.
    """
    global _chosen
    before = _chosen
    _read.cache_clear()
    _chosen = None if folder is None else Path(folder)
    try:
        for name in names():
            load(name)
    except InputError:
        _chosen = before
        raise


_chosen: Path | None = None


def _own_folder() -> Path | None:
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    folder = _chosen or (Path(named) if named else None)
    if folder is not None and not folder.is_dir():
        by = "" if _chosen else f" (from {ENVIRONMENT_VARIABLE})"
        raise InputError(f"The prompt folder {str(folder)!r}{by} is no folder; make it, or name another.")
    return folder


def _packaged_folder(package: Path = Path(__file__).parent) -> Path:
    """Where the standard templates are: in the wheel, or beside the package in a checkout."""
    if (shipped := package / "_prompts").is_dir():
        return shipped
    # A folder `prompts` beside the package in site-packages would be somebody else's.
    if (package.parent / "pyproject.toml").is_file() and (package.parent / "prompts").is_dir():
        return package.parent / "prompts"
    raise InputError(f"The prompt templates are missing beside {str(package)!r}; install agentmem again.")


@lru_cache(maxsize=256)
def _read(path: Path, within: Path) -> Template:
    """Kept by path, and by the folder that a relative path starts from."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"Cannot read the prompt {str(path)!r}: {error.strerror}; check its permissions."
        ) from None
    source = decode(content.removeprefix(BOM), path=path, where="").replace("\r\n", "\n")
    lines = source.split("\n")
    if lines[0].rstrip() != "---":
        raise InputError(f"{path}, line 1: no front matter; begin with '---', 'purpose: ...' and '---'.")
    end = next((n for n, line in enumerate(lines[1:], start=1) if line.rstrip() == "---"), None)
    if end is None:
        raise InputError(f"{path}, line {len(lines)}: the front matter does not end; close it with '---'.")
    header = _header("\n".join(lines[1:end]), path)
    body = "\n".join(lines[end + 1 :])
    start = len(body) - len(body.lstrip("\n"))
    template = Template(
        name=path.stem,
        path=path,
        source=source,
        _body=body.strip("\n"),
        _first_line=end + 2 + start,
        **header,
    )
    template._check()
    return template


def _header(text: str, path: Path) -> dict[str, Any]:
    """The fields of the front matter, checked."""
    import yaml

    try:
        fields = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "no YAML"
        raise InputError(
            f"{path}, line {(mark.line if mark else 0) + 2}: the front matter is broken: {problem}."
        ) from None

    def fault(why: str, key: str = "") -> InputError:
        lines = text.split("\n")
        number = next((n for n, line in enumerate(lines) if key and line.lstrip().startswith(f"{key}:")), 0)
        return InputError(f"{path}, line {number + 2}: {why}.")

    if not isinstance(fields, dict):
        raise fault("the front matter must be keys with values, such as 'purpose: ...'")
    for key in fields:
        if key not in ("purpose", "variables", "output"):
            raise fault(f"the front matter has no key {key!r}; known: purpose, variables, output", str(key))
    purpose, variables, output = fields.get("purpose"), fields.get("variables") or {}, fields.get("output", "text")
    if not isinstance(purpose, str) or not purpose.strip():
        raise fault("'purpose' must say in one line what the prompt is for", "purpose")
    if not isinstance(variables, dict):
        raise fault("'variables' must be lines of the form 'name: what it is'", "variables")
    for name, meaning in variables.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise fault(f"{name!r} is no name of a variable", str(name))
        if not isinstance(meaning, str) or not meaning.strip():
            raise fault(f"the variable {name!r} needs a line that says what it is", name)
    if not isinstance(output, str) or not output.strip():
        raise fault("'output' must be the name of a schema, or 'text'", "output")
    return {"purpose": purpose, "variables": variables, "output": output}


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # The sandbox: a folder of prompts from somewhere else must not be able to run code.
    environment = ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # the output is a prompt, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["fenced"] = fenced
    return environment


@lru_cache(maxsize=256)
def _compile(body: str, path: str) -> jinja2.Template:
    environment = _environment()
    code = environment.compile(body, filename=path)
    return environment.template_class.from_code(environment, code, environment.make_globals(None))


def fenced(text: str) -> str:
    """Text between lines of backticks, more of them than it has in a row itself, so that it cannot end the fence.

    Example:
        >>> print(fenced("a ``` b"))
        ````
        a ``` b
        ````
    """
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
