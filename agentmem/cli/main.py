"""`agentmem VERB ...`: finds the verb, runs it, and turns what went wrong into a sentence and an exit code.

0 clean, 1 failed, 2 usage, 3 worse than the baseline, 4 budget stop, 5 too many errors, 130 interrupted.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from agentmem.errors import AgentMemError, BudgetExceeded, InputError, RunError, TooManyErrors

FAILED, USAGE, WORSE, BUDGET, ERRORS, INTERRUPTED = 1, 2, 3, 4, 5, 130

VERBS = {
    "quickstart": "agentmem.cli.quickstart:quickstart",
    "learn": "agentmem.cli.learn:learn",
    "eval": "agentmem.cli.eval:evaluate",
    "compare": "agentmem.cli.compare:compare",
    "library": "agentmem.cli.library:library",
    "check": "agentmem.cli.check:check",
    "prompts": "agentmem.cli.prompts:prompts",
}
"""Each verb's function, imported only when it is needed."""


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
        return _say(f"{_usage_sentence(error)} See `agentmem {' '.join(arguments[:1])} --help`.", USAGE)
    except BudgetExceeded as error:
        return _say(f"{error} To go on, give more and {_again(arguments)}", BUDGET)
    except TooManyErrors as error:
        return _say(str(error), ERRORS)
    except (InputError, RunError) as error:
        return _say(str(error), USAGE)
    except AgentMemError as error:
        return _say(f"{error} What was paid for is stored; {_again(arguments)}", FAILED)
    except KeyboardInterrupt:
        return _say(f"Interrupted. What was paid for is stored; {_again(arguments)}", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        sys.stderr.close()
        return 0


def _app() -> Any:
    from cyclopts import App

    from agentmem import __version__

    app = App(
        name="agentmem",
        version=__version__,
        help="Lets any LLM agent learn from experience instead of from gradients.",
        help_format="plaintext",
        suppress_keyboard_interrupt=False,  # run() says how to go on
    )
    for verb, target in VERBS.items():
        app.command(target, name=verb)
    return app


def _again(arguments: Sequence[str]) -> str:
    return f"start the same command again: agentmem {shlex.join(arguments)}"


def _usage_sentence(error: Any) -> str:
    """Cyclopts' message; pydantic's, in it, is shortened to what a person needs."""
    from pydantic import ValidationError

    cause = error.__cause__ or error.__context__
    if isinstance(cause, ValidationError):
        first = cause.errors()[0]
        flag = "--" + ".".join(str(part) for part in first["loc"]).replace("_", "-")
        return f"{flag} {first['input']!r}: {first['msg']}."
    return str(error).strip()


def _say(message: str, code: int) -> int:
    from agentmem.format import printable

    print(printable(f"agentmem: {message}", sys.stderr.encoding), file=sys.stderr)
    return code
