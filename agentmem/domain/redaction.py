"""Secrets in a text, and the text without them: what is remembered is shown again, to models and to people.

A table of forms that a secret has; a secret without a form (a pet's name as a password) is not found. It errs on the
side of leaving words alone: what follows `password =` must look made up.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class _Form:
    """One form of secret: where the pattern has a group `secret`, that group alone is taken out."""

    name: str
    hints: tuple[str, ...]
    """Of these a text must hold one, in lower case, before the pattern is tried: that is fast."""
    pattern: re.Pattern[str]
    made_up: Callable[[str], bool] = lambda _: True


def _random_looking(value: str) -> bool:
    """Letters and digits in an order that says nothing, as in a key: at least 3 bits a character."""
    if len(value) < 12 or not re.search(r"\d", value) or not re.search(r"[A-Za-z]", value):
        return False
    shares = [n / len(value) for n in Counter(value).values()]
    return -sum(share * math.log2(share) for share in shares) >= 3.0


def _password_like(value: str) -> bool:
    """No word, no placeholder, no expression: a letter with a digit or a sign in it."""
    if re.match(r"[<{$*(\[]|your|xxx|example|changeme|os\.|env|process\.", value, re.IGNORECASE) or value.endswith(
        "("
    ):
        return False
    return bool(re.search(r"[A-Za-z]", value) and re.search(r"[\d!@#$%^&*?+=~]", value.rstrip("?!.,;:)")))


_FORMS = (
    _Form("private key", ("private key",), re.compile(
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----"
        r"(?:.{0,20000}?-----END [A-Z0-9 ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----|[A-Za-z0-9+/=\s\\]{0,20000})", re.DOTALL)),
    _Form("JSON web token", ("eyj",), re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}")),
    _Form("AWS key", ("akia", "asia"), re.compile(r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b")),
    _Form("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), re.compile(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{22,255})\b")),
    _Form("GitLab token", ("glpat-",), re.compile(r"\bglpat-[\w-]{20,}")),
    _Form("API key", ("sk-", "sk_", "rk_", "aiza", "hf_", "npm_", "pypi-", "xai-", "gsk_"), re.compile(
        r"\b(?:sk-(?=[\w-]*\d)[A-Za-z0-9_-]{20,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|AIza[\w-]{35}|hf_[A-Za-z]{30,}"
        r"|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,}|xai-[A-Za-z0-9]{40,}|gsk_[A-Za-z0-9]{40,})")),
    _Form("Slack token", ("xox", "hooks.slack.com"), re.compile(
        r"\bxox[abeoprs]-[\w-]{10,}|hooks\.slack\.com/services/[\w/]{20,}")),
    _Form("password in a URL", ("://",), re.compile(
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,80}:(?P<secret>(?!\[redacted)[^\s/@\"'<>]{1,200})@",
        re.IGNORECASE)),
    _Form("credentials", ("bearer ", "basic ", "token "), re.compile(
        r"\b(?:bearer|authorization[\"']?\s*[:=]\s*[\"']?(?:basic|token))\s+(?P<secret>[A-Za-z0-9._~+/=-]{12,})",
        re.IGNORECASE), _random_looking),
    _Form("password", ("passw", "pwd", "passphrase"), re.compile(
        r"(?:passw(?:or)?d|passphrase|pwd)[\"']?\s{0,3}(?:[:=]|\bis\b)\s{0,3}[\"']?(?P<secret>(?!\[redacted)[^\s\"',;]{6,200})",
        re.IGNORECASE), _password_like),
    _Form("secret", ("secret", "token", "_key", "-key", "apikey", "accesskey", "authkey"), re.compile(
        r"(?:secret|token|(?:api|access|auth|secret|private)[_-]?key)(?:[_-]?\w{1,12})?[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
        r"(?P<secret>[A-Za-z0-9._~+/=-]{12,500})", re.IGNORECASE),
        _random_looking),
)  # fmt: skip


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """A text without the secrets in it, and what kinds of secret these were. Doing it twice is doing it once.

    Example:
        >>> redact("Log in with postgres://app:s3cr3t@db/x and go on")
        ('Log in with postgres://app:[redacted: password in a URL]@db/x and go on', ('password in a URL',))
        >>> redact("The password is wrong.")
        ('The password is wrong.', ())
    """
    found: list[str] = []
    folded = text.casefold()
    for form in _FORMS:
        if any(hint in folded for hint in form.hints):
            text = form.pattern.sub(lambda match, form=form: _without(match, form, found), text)  # type: ignore[misc]  # mypy cannot type a default
    return text, tuple(dict.fromkeys(found))


def _without(match: re.Match[str], form: _Form, found: list[str]) -> str:
    group = "secret" if "secret" in form.pattern.groupindex else 0
    if not form.made_up(match[group]):
        return match[0]
    found.append(form.name)
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return f"{match[0][:start]}[redacted: {form.name}]{match[0][end:]}"
