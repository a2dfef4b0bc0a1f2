"""`agentmem VERB ...`: finds the verb, runs it, and turns what went wrong into a sentence and an exit code.

0 clean, 1 failed, 2 usage, 3 worse than the baseline, 4 budget stop, 5 too many errors, 130 interrupted.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import sys
from collections.abc import Sequence
from typing import Any

from agentmem.errors import AgentMemError, BudgetExceeded, InputError, RunError, TooManyErrors

FAILED, USAGE, WORSE, BUDGET, ERRORS, INTERRUPTED = 1, 2, 3, 4, 5, 130

VERBS = {
    "quickstart": ("agentmem.cli.quickstart:quickstart", "Watch a small real model learn from its own successes."),
    "learn": ("agentmem.cli.learn:learn", "Learn an experience library from tasks."),
    "eval": ("agentmem.cli.eval:evaluate", "Judge an agent on tasks."),
    "rescore": ("agentmem.cli.rescore:rescore", "Score the answers of an evaluation again, without the agent."),
    "compare": ("agentmem.cli.compare:compare", "Compare two evaluations of the same tasks, paired."),
    "study": (
        "agentmem.cli.study:study",
        "Curves, orders, forgetting, transfer and credit, from stored runs.",
    ),
    "library": ("agentmem.cli.library:library", "Show, question, undo, export and import what was learned."),
    "memory": ("agentmem.cli.memory:memory", "Show, search, correct, undo, audit, export and import a case bank."),
    "bench": ("agentmem.cli.bench:bench", "Run GAIA, or a set of its form, and check such a set."),
    "check": ("agentmem.cli.check:check", "Try out what a run needs, and name the repair for what fails."),
    "prompts": ("agentmem.cli.prompts:prompts", "List or show the prompts that are sent to models."),
}
"""Each verb's function, imported only when it is needed, and its line on the help page."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code."""
    from cyclopts import CycloptsError

    try:
        code: Any = _app()(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        return code if isinstance(code, int) else 0
    except CycloptsError as error:
        verb = f"{arguments[0]} " if arguments and arguments[0] in VERBS else ""
        return _say(f"{_usage_sentence(error)} See `agentmem {verb}--help`.", USAGE)
    except BudgetExceeded as error:
        return _say(f"{error} To go on, give more and start the same command again:", BUDGET, arguments)
    except TooManyErrors as error:
        return _say(f"{error} The command:", ERRORS, arguments)
    except (InputError, RunError) as error:
        # A full disk is nobody's wrong usage.
        return _say(str(error), FAILED if isinstance(error.__cause__, sqlite3.OperationalError) else USAGE)
    except AgentMemError as error:
        if isinstance(error.__cause__, BrokenPipeError):  # met where answers of a stream are handed out
            return _reader_gone()
        if arguments[0] in ("memory", "study"):  # which pays for nothing
            return _say(str(error), FAILED)
        return _say(f"{error} What was paid for is stored; start the same command again:", FAILED, arguments)
    except KeyboardInterrupt:
        return _say(
            "Interrupted. What was paid for is stored; start the same command again:", INTERRUPTED, arguments
        )
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # how rich says it
            return _reader_gone()
        return _say(f"The code of the agent or the reward called exit({stop.code!r}); return instead.", FAILED)


def _app() -> Any:
    from cyclopts import App, Parameter

    from agentmem import __version__
    from agentmem.cli.recipe import from_file

    app = App(
        name="agentmem",
        version=__version__,
        help="Lets any LLM agent learn from experience instead of from gradients.",
        help_format="plaintext",
        config=from_file,
        default_parameter=Parameter(negative="", show_default=_shown_default),
        suppress_keyboard_interrupt=False,  # run() says how to go on
    )
    for verb, (target, line) in VERBS.items():
        app.command(target, name=verb, help=line)
    return app


def _shown_default(value: Any) -> str | None:
    """What the help page says of a default; nothing where it is what everybody expects of a missing flag."""
    return None if value is None or value is False or value in ("", ()) else str(value)


def _usage_sentence(error: Any) -> str:
    """What a person needs to know of an error of cyclopts, or of pydantic's inside it."""
    from cyclopts.exceptions import MissingArgumentError, UnusedCliTokensError
    from pydantic import ValidationError

    cause = error.__cause__ or error.__context__
    if isinstance(cause, ValidationError):
        first = cause.errors()[0]
        name = "_".join(str(part) for part in first["loc"])
        place = f"--{name.replace('_', '-')} {first['input']!r}"
        for child in error.argument.children if error.argument is not None else ():
            if child.keys[-1:] == first["loc"] and child.tokens and child.tokens[0].source != "cli":
                place = f"{child.tokens[0].source}: {name} = {first['input']!r}"
        return f"{place}: {first['msg']}."
    if isinstance(error, UnusedCliTokensError):
        return f"{shlex.join(error.unused_tokens or [])} is more than was asked for."
    if isinstance(error, MissingArgumentError) and error.argument is not None and not error.argument.tokens:
        name = error.keyword or error.argument.name
        required = error.argument.required
        return (
            f"{name.lstrip('-').upper().replace('-', '_')} is missing." if required else f"{name} needs a value."
        )
    return " ".join(str(error).split())


def _say(message: str, code: int, again: Sequence[str] = ()) -> int:
    """Say it on standard error in one line; the command that goes on stands in a line of its own."""
    from agentmem.format import one_line, printable

    lines = [f"agentmem: {one_line(message)}", *([f"  agentmem {shlex.join(again)}"] if again else [])]
    print(printable("\n".join(lines), sys.stderr.encoding), file=sys.stderr)
    return code


def _reader_gone() -> int:
    """The reader of our output went away, as `| head` does; Python must not complain of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
