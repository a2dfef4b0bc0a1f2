"""Every error of the library, and `boundary`, which names the place where user code failed.

    AgentMemError
    ├── InputError                what was asked cannot be done as asked; nothing was spent
    ├── RunError                  a run directory cannot be used
    │   ├── RunMismatch           ... it holds a run that was asked for with other settings
    │   ├── RunBusy               ... another process works in it
    │   ├── SlotMismatch          ... the stored result answers another request
    │   └── JournalError          ... it cannot be read or written (full disk, damage, newer schema)
    ├── MemoryStoreError          a memory on disk cannot be used (full disk, damage, newer schema, lock)
    │   ├── EmbedderMismatch      ... its vectors are another embedder's
    │   └── MemoryIndexError      ... the index derived from it cannot be built; the memory itself can be used
    ├── NoSupport                 a log cannot say what another policy would have brought
    ├── BudgetExceeded            the next call does not fit the budget; all that was paid for is stored
    ├── TooManyErrors             too large a share of the rollouts failed for reasons that are not the agent's
    ├── ModelError                one model call failed
    │   ├── ModelUnavailable      ... no connection, 5xx, overloaded            (retried)
    │   │   ├── ModelTimeout      ... no answer in time                         (retried)
    │   │   └── RateLimited       ... 429                                       (retried)
    │   ├── MalformedReply        ... the answer was no valid completion        (retried)
    │   ├── BadRequest            ... 400: this request is refused              (fails the rollout)
    │   ├── AccessDenied          ... 401, 403, 404: every request is refused   (stops the run)
    │   ├── QuotaExhausted        ... no money left at the provider             (stops the run)
    │   └── StructuredOutputError ... no valid structure, also after a re-ask   (fails what needed it)
    ├── AgentError                a user's agent raised
    ├── StreamError               the source of a stream of tasks raised, or who takes its answers did
    ├── LimitReached              an attempt has used the tokens that it may use
    ├── RewardError               a reward could not be computed; never a score of 0
    ├── ToolError                 a tool could not be run
    └── SandboxError              the killable process could not be started
        └── SandboxUnavailable    ... no sandbox works on this machine           (stops the run)

A failed rollout is data, not a crash: an error with `stops_run = False` becomes a typed `Failure` on the rollout.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class AgentMemError(Exception):
    """The root of all errors that the library raises on purpose."""

    kind: ClassVar[str] = "error"
    """The error's name in stored data; stable between versions."""
    retryable: ClassVar[bool] = False
    """Whether the same request may succeed in a moment."""
    stops_run: ClassVar[bool] = True
    """Whether going on makes no sense; if not, the error is stored as a `Failure` and the run goes on."""


class InputError(AgentMemError):
    """What was asked cannot be done as asked. The message names the place and the repair."""

    kind = "input"


class RunError(AgentMemError):
    """A run directory cannot be used."""

    kind = "run"


class RunMismatch(RunError):
    """The directory holds a run that was asked for with other settings; the message names the keys."""

    kind = "run_mismatch"


class RunBusy(RunError):
    """Another process works in this run directory."""

    kind = "run_busy"


class SlotMismatch(RunError):
    """The result stored in a slot answers another request than the one now made there."""

    kind = "slot_mismatch"


class JournalError(RunError):
    """The journal cannot be read or written: full disk, damage, or a newer schema."""

    kind = "journal"


class MemoryStoreError(AgentMemError):
    """A memory on disk cannot be used: full disk, damage, a newer schema, or a writer that does not let go."""

    kind = "memory"


class EmbedderMismatch(MemoryStoreError):
    """A memory's vectors are another embedder's; vectors of two embedders cannot be compared."""

    kind = "embedder_mismatch"


class MemoryIndexError(MemoryStoreError):
    """The index that is derived from a memory cannot be built. Nothing is lost: all cases are compared instead."""

    kind = "memory_index"


class NoSupport(AgentMemError):
    """A log cannot say what another policy would have brought: what that would recall was not tried at random."""

    kind = "no_support"
    stops_run = False


class BudgetExceeded(AgentMemError):
    """The next call does not fit the budget. What was paid for is stored; a larger budget goes on from here."""

    kind = "budget"


class TooManyErrors(AgentMemError):
    """Too large a share of the rollouts failed for reasons that are not the agent's; the run stopped early."""

    kind = "too_many_errors"


class ModelError(AgentMemError):
    """One model call failed."""

    kind = "model"
    stops_run = False

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds after which the server asks to be called again, where it says so."""


class ModelUnavailable(ModelError):
    """No connection, or the server failed (5xx)."""

    kind = "model_unavailable"
    retryable = True


class ModelTimeout(ModelUnavailable):
    """The server did not answer in time."""

    kind = "model_timeout"


class RateLimited(ModelUnavailable):
    """The server asks to be called less often (429)."""

    kind = "rate_limited"


class MalformedReply(ModelError):
    """The server's answer is no valid completion (broken or truncated JSON, no choices)."""

    kind = "malformed_reply"
    retryable = True


class BadRequest(ModelError):
    """The server refuses this request (400: too long, filtered, an unknown parameter)."""

    kind = "bad_request"


class AccessDenied(ModelError):
    """The server refuses every request (401, 403, 404: key, permission or model name)."""

    kind = "access_denied"
    stops_run = True


class QuotaExhausted(ModelError):
    """There is no money or quota left at the provider; waiting does not help."""

    kind = "quota_exhausted"
    stops_run = True


class StructuredOutputError(ModelError):
    """The model gave no valid structure, also when it was shown its error."""

    kind = "structured_output"


class AgentError(AgentMemError):
    """A user's agent raised."""

    kind = "agent"
    stops_run = False


class StreamError(AgentMemError):
    """The source of a stream of tasks raised, or who takes its answers did. What was answered and learned is stored."""

    kind = "stream"


class RewardError(AgentMemError):
    """A reward could not be computed. This is never a score of 0."""

    kind = "reward"
    stops_run = False


class LimitReached(AgentMemError):
    """The attempt has used the tokens that it may use. It is the agent's own doing: what it said so far is scored."""

    kind = "limit"
    stops_run = False


class ToolError(AgentMemError):
    """A tool could not be run, or not do what was asked; the message is for the model."""

    kind = "tool"
    stops_run = False

    def __init__(self, message: str, *, error_class: str = "tool") -> None:
        super().__init__(message)
        self.error_class = error_class
        """What went wrong, in one word that is stored with the result: `refused`, `unreadable`, `no_server` ..."""


class SandboxError(AgentMemError):
    """The killable process could not be started or answered out of turn."""

    kind = "sandbox"
    stops_run = False


class SandboxUnavailable(SandboxError):
    """No sandbox works on this machine, or not the one that was asked for; the message says why and the repair."""

    kind = "sandbox_unavailable"
    stops_run = True


@contextmanager
def boundary(error: type[AgentMemError], what: str) -> Iterator[None]:
    """Name the place where user code failed.

    Ordinary exceptions come out as `error`, with `what` in front and the original as cause. The library's own
    errors, cancellation and interrupts pass unchanged.

    Example:
        >>> with boundary(RewardError, "reward 'mine'"):
        ...     1 / 0
        Traceback (most recent call last):
        ...
        agentmem.errors.RewardError: reward 'mine' raised ZeroDivisionError: division by zero
    """
    try:
        yield
    except AgentMemError:
        raise
    except Exception as cause:
        raise error(f"{what} raised {type(cause).__name__}: {cause}") from cause


def stored_error(kind: str, message: str) -> AgentMemError:
    """The error that a stored failure of this kind stands for, to be raised again on replay."""
    return _KINDS.get(kind, AgentMemError)(message)


def _all_kinds(root: type[AgentMemError]) -> Iterator[type[AgentMemError]]:
    yield root
    for child in root.__subclasses__():
        yield from _all_kinds(child)


_KINDS = {error.kind: error for error in _all_kinds(AgentMemError)}
