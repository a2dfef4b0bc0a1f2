"""A model that follows a script: deterministic, free, and without a network. For tests only."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qsl

from agentmem.domain.seed import split_seed
from agentmem.domain.trajectory import Message
from agentmem.domain.usage import Usage
from agentmem.errors import InputError, ModelError, stored_error
from agentmem.models.model import Reply, Request, TokenLogprob

Answer = str | Message | Reply | ModelError
"""What a script may say; a `ModelError` is raised."""
Script = Callable[[Request], Answer | Awaitable[Answer]]


class ScriptedModel:
    """A model whose answers are known beforehand. Tokens are counted as words between white space.

    Args:
        answers: a list, used up in order; a mapping from what the user said last; or a function of the request,
            which may be a coroutine function.
        name: what it is called.
        latency: seconds before each answer, or a function of the request.
        parallel: requests that it claims to take at once.

    Example:
        >>> import asyncio
        >>> model = ScriptedModel(["one", "two"])
        >>> asyncio.run(model.complete(Request(messages=(Message(role="user", content="?"),)))).text, model.unused
        ('one', ('two',))
    """

    def __init__(
        self,
        answers: Sequence[Answer] | Mapping[str, Answer] | Script,
        *,
        name: str = "scripted/test",
        latency: float | Callable[[Request], float] = 0.0,
        parallel: int | None = None,
    ) -> None:
        self.name = name
        self.parallel = parallel
        self.latency = latency
        self.requests: list[Request] = []
        """Every request, in order of arrival."""
        self._script = _script_of(answers)
        self._list = self._script if isinstance(self._script, _InOrder) else None

    @classmethod
    def from_name(cls, name: str) -> ScriptedModel:
        """The model `scripted/SCRIPT`, where SCRIPT is `path.py:function` or one of the built-in scripts.

        - `echo` repeats what the user said last.
        - `say?text=...` says the same always.
        - `coin?p=0.3` solves "What is A + B?" with probability p, else is off by a little. The draw depends on the
          request's seed and what the user said last.
        - `learner?p=0.3&learned=0.9` does so with probability `learned` once the conversation holds an earlier
          answer, as a worked example in its prior does: learning becomes visible without a real model.
        - `fail?kind=rate_limited&share=0.5&then=echo` fails on this share of the requests.

        All take `latency=SECONDS`. These are scripts, for tests only: they say nothing about any real model.

        Raises:
            InputError: there is no such script.
        """
        script, options = _split_options(name.removeprefix("scripted/"))
        latency = _number(name, "latency", options.pop("latency", "0"))
        return cls(_find_script(name, script, options), name=name, latency=latency)

    @property
    def unused(self) -> tuple[Answer, ...]:
        """Answers of a list that nobody has asked for yet."""
        return tuple(self._list.answers[self._list.used :]) if self._list else ()

    @property
    def calls(self) -> int:
        """Requests received."""
        return len(self.requests)

    async def prepare(self) -> None:
        """Nothing to load."""

    async def complete(self, request: Request) -> Reply:
        """Answer one request from the script.

        Raises:
            ModelError: the script says so.
            InputError: a list is used up, or a mapping has no answer: the test is wrong, not the model.
        """
        self.requests.append(request)
        answer = self._script(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if wait := self.latency(request) if callable(self.latency) else self.latency:
            await asyncio.sleep(wait)
        return _reply(answer, request, self.name)

    async def close(self) -> None:
        """Nothing to give back."""

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r})"


def load_script(text: str) -> Script:
    """The script that follows `scripted/` in a model's name.

    Raises:
        InputError: there is no such script.
    """
    script, options = _split_options(text)
    return _find_script(f"scripted/{text}", script, options)


def count_words(request: Request, message: Message) -> Usage:
    """Usage in words: what stands between white space, of everything read and written."""
    read = sum(len(_said(m).split()) for m in request.messages)
    read += sum(len(f"{tool.name} {tool.description} {tool.parameters}".split()) for tool in request.tools)
    return Usage(prompt_tokens=read, completion_tokens=len(_said(message).split()))


def words_in(text: str) -> list[str]:
    """The text cut into words with the white space before each, so that together they are the text."""
    return re.findall(r"\s*\S+|\s+$", text)


def last_user(request: Request) -> str:
    """What the user said last."""
    return next((m.content for m in reversed(request.messages) if m.role == "user"), "")


def _echo() -> Script:
    return last_user


def _say(text: str = "ok") -> Script:
    return lambda request: text


def _coin(p: float = 0.5) -> Script:
    return lambda request: _solve(request, p)


def _learner(p: float = 0.3, learned: float = 0.9) -> Script:
    def answer(request: Request) -> str:
        asked = max((n for n, m in enumerate(request.messages) if m.role == "user"), default=0)
        has_example = any(m.role == "assistant" for m in request.messages[:asked])
        return _solve(request, learned if has_example else p)

    return answer


def _fail(kind: str = "model_unavailable", share: float = 1.0, then: str = "echo") -> Script:
    error = stored_error(kind, f"the script fails with {kind}")
    if not isinstance(error, ModelError):
        raise InputError(f"No model error is called {kind!r}; write for example fail?kind=rate_limited.")
    otherwise = load_script(then)

    def answer(request: Request) -> Answer | Awaitable[Answer]:
        draw = Random(split_seed(request.seed or 0, "fail", last_user(request))).random()
        return type(error)(str(error)) if draw < share else otherwise(request)

    return answer


_BUILT_IN: dict[str, Callable[..., Script]] = {
    "echo": _echo,
    "say": _say,
    "coin": _coin,
    "learner": _learner,
    "fail": _fail,
}
_SUM = re.compile(r"What is (-?\d+) \+ (-?\d+)\?")


def _solve(request: Request, p: float) -> str:
    """The right answer to the sum asked for, or one that is off by 1 to 9."""
    asked = last_user(request)
    if not (found := _SUM.findall(asked)):
        return "I can only add."
    right = int(found[-1][0]) + int(found[-1][1])
    draw = Random(split_seed(request.seed or 0, "coin", asked))
    return str(right if draw.random() < p else right + draw.randint(1, 9))


class _InOrder:
    """Answers that are used up one by one."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)
        self.used = 0

    def __call__(self, request: Request) -> Answer:
        if self.used == len(self.answers):
            raise InputError(
                f"The script of {self.used} answers is used up, and a further request asks: "
                f"{last_user(request)[:200]!r}. Give the ScriptedModel more answers, or a function."
            )
        self.used += 1
        return self.answers[self.used - 1]


def _script_of(answers: Sequence[Answer] | Mapping[str, Answer] | Script) -> Script:
    if isinstance(answers, str):
        raise InputError(f"ScriptedModel({answers!r}): give a list of answers, a mapping or a function.")
    if isinstance(answers, Mapping):
        table = dict(answers)

        def look_up(request: Request) -> Answer:
            if (asked := last_user(request)) not in table:
                raise InputError(f"The script has no answer for {asked[:200]!r}; it knows {len(table)} questions.")
            return table[asked]

        return look_up
    return answers if callable(answers) else _InOrder(answers)


def _reply(answer: Answer, request: Request, model: str) -> Reply:
    match answer:
        case ModelError():
            raise answer.with_traceback(None)
        case Reply():
            return answer
        case str():
            message = Message(role="assistant", content=answer)
        case Message():
            message = answer
        case _:
            raise InputError(f"A script returns str, Message, Reply or ModelError, not {type(answer).__name__}.")
    return Reply(
        message=message,
        finish_reason="tool_calls" if message.tool_calls else "stop",
        usage=count_words(request, message),
        logprobs=tuple(TokenLogprob(token=word, logprob=-0.5) for word in words_in(message.content))
        if request.logprobs
        else None,
        model=model,
    )


def _said(message: Message) -> str:
    return " ".join([message.content, *(f"{call.name} {call.arguments}" for call in message.tool_calls)])


def _split_options(text: str) -> tuple[str, dict[str, str]]:
    script, _, options = text.partition("?")
    return script, dict(parse_qsl(options, keep_blank_values=True))


def _find_script(name: str, script: str, options: dict[str, str]) -> Script:
    path, colon, function = script.rpartition(":")
    if colon and path.endswith(".py"):
        if options:
            raise InputError(f"{name!r}: a script from a file takes no options but latency.")
        return _load_function(Path(path), function)
    if script not in _BUILT_IN:
        raise InputError(f"No script named {script!r}. Known: path.py:function, {', '.join(_BUILT_IN)}.")
    make = _BUILT_IN[script]
    known = inspect.signature(make).parameters
    given: dict[str, Any] = {}
    for key, value in options.items():
        if key not in known:
            raise InputError(
                f"{name!r}: the script {script!r} has no option {key!r}. Known: latency, {', '.join(known)}."
            )
        given[key] = _number(name, key, value) if isinstance(known[key].default, float) else value
    return make(**given)


def _number(name: str, key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InputError(f"{name!r}: {key} = {value!r} is no number.") from None


def _load_function(path: Path, function: str) -> Script:
    if not path.is_file():
        raise InputError(f"There is no file {str(path)!r} with a script.")
    spec = spec_from_file_location(f"agentmem_script_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, function, None)
    if not callable(found):
        raise InputError(f"{path} has no function {function!r}.")
    script: Script = found
    return script
