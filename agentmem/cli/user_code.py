"""`FILE.py:FUNCTION` and `FILE.py`: an agent, a reward or a benchmark of the user's own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from agentmem.domain.value import fingerprint
from agentmem.errors import InputError


def load_function(spec: str) -> Callable[..., Any]:
    """The function that `FILE.py:FUNCTION` names.

    The file may import what lies beside it. Two functions of one file share its module.

    Args:
        spec: the file and the name in it, such as `my_agent.py:solve`.

    Raises:
        InputError: there is no such file or function, or the file raises when it is loaded.
    """
    file, _, name = spec.rpartition(":")
    if not file.endswith(".py") or not name:
        raise InputError(f"{spec!r} names no function; write FILE.py:FUNCTION.")
    module = _load(Path(file))
    function = getattr(module, name, None)
    if not callable(function):
        own = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        defined = sorted(n for n in own if getattr(vars(module)[n], "__module__", "") == module.__name__)
        near = get_close_matches(name, defined, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(f"{file} has no function {name!r}.{hint} It has: {', '.join(defined) or 'none'}.")
    return function  # type: ignore[no-any-return]  # callable() narrows to object


def load_value(path: Path, name: str) -> Any:
    """What a Python file calls by this name; None where it has no such name.

    Raises:
        InputError: there is no such file, or it raises when it is loaded.
    """
    return getattr(_load(path), name, None)


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r}; check the path (you are in {Path.cwd()}).")
    # A name of its own: a file called json.py must not take the place of the json module.
    name = f"agentmem_user_{path.stem}_{fingerprint(str(path.resolve()), length=8)}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{str(path)!r} is no Python file.")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)  # at the end, so that nothing beside the file hides an installed package
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InputError(
            f"{path} raised {type(error).__name__} when it was loaded: {error}. Try it: python {path}"
        ) from error
    return module
