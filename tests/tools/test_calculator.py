"""The calculator: exact where it can be, quick where it must refuse, and a number in every case."""

from __future__ import annotations

import contextlib
import math
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmem.domain.trajectory import ToolCall
from agentmem.errors import ToolError
from agentmem.tools.calculator import as_text, evaluate
from agentmem.tools.tool import ToolContext
from agentmem.tools.toolbox import Toolbox


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("2 + 3 * 4", "14"),
        ("0.1 + 0.2", "0.3"),
        ("1/3", "1/3 (about 0.333333333333333)"),
        ("10 / 4", "2.5"),
        ("-7 % 3", "2"),
        ("7 // 2", "3"),
        ("-2**2", "-4"),
        ("10**-3", "0.001"),
        ("sqrt(1/4)", "0.5"),
        ("2**0.5", "1.4142135623731"),
        ("factorial(20)", "2432902008176640000"),
        ("max([1, 2, 3])", "3"),
        ("3 × 4 − 1", "11"),
        ("5 ÷ 2", "2.5"),
        ("round(2.567, 2)", "2.57"),
        ("log(100, 10)", "2"),
        ("10**5000 - 10**5000 + 1", "1"),
        ("cos(0)", "1"),
    ],
)
def test_results_are_as_one_reads_them(expression: str, text: str) -> None:
    assert as_text(evaluate(expression)) == text


def test_defect_22_every_operation_gives_a_number() -> None:
    """Memento's multiply and divide called its own asynchronous round, and returned a coroutine."""
    for expression in ("6 * 7", "6 / 7", "round(6 / 7, 3)", "round(2)", "abs(-3) * round(1.5)"):
        assert isinstance(evaluate(expression), int | float | Fraction)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("2**10**9", "more than 6,000 digits"),
        ("9**9**9**9", "more than 6,000 digits"),
        ("(1/3)**20001", "more than 6,000 digits"),
        ("factorial(10**9)", "more than 6,000 digits"),
        ("comb(10**9, 5*10**8)", "more than 6,000 digits"),
        ("(" * 400 + "1" + ")" * 400, "not written as arithmetic"),
        ("1+" * 600 + "1", "1201 characters"),
        ("exp(10**6)", "too large"),
        ("1e999999999", "out of range"),
    ],
)
def test_what_would_never_end_is_refused_at_once(expression: str, why: str) -> None:
    started = time.monotonic()
    with pytest.raises(ToolError, match=why):
        evaluate(expression)
    assert time.monotonic() - started < 1.0


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("__import__('os').system('id')", "no arithmetic"),
        ("(1).__class__", "no arithmetic"),
        ("[x for x in (1,)]", "no arithmetic"),
        ("True + 1", "'True' is no arithmetic"),
        ("x + 1", "there is no 'x'"),
        ("1,000 + 2", "write 1000, not 1,000"),
        ("2^3", r"written with \*\*"),
        ("1/0", "divides by zero"),
        ("sqrt(-1)", "no real root"),
        ("(-8)**(1/3)", "no real value"),
        ("gcd(1.5, 2)", "whole numbers, not 1.5"),
        ("", "not written as arithmetic"),
        ("print(1)", "there is no 'print'"),
        ("inf", "there is no 'inf'"),
    ],
)
def test_what_is_no_arithmetic_is_refused_with_the_repair(expression: str, why: str) -> None:
    with pytest.raises(ToolError, match=why) as caught:
        evaluate(expression)
    assert caught.value.error_class == "arithmetic"


@given(st.fractions(max_denominator=10**6), st.fractions(max_denominator=10**6))
def test_sums_and_products_are_exact(a: Fraction, b: Fraction) -> None:
    assert evaluate(f"({a}) + ({b})") == a + b
    assert evaluate(f"({a}) * ({b})") == a * b


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9))
def test_a_decimal_is_read_back_from_its_text(number: object) -> None:
    assert Fraction(as_text(evaluate(f"({number})"))) == Fraction(str(number))


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-700, max_value=700))
def test_functions_are_those_of_math(x: float) -> None:
    assert evaluate(f"exp({x!r})") == pytest.approx(math.exp(x))


@given(st.text(max_size=40))
def test_no_text_raises_anything_else(expression: str) -> None:
    with contextlib.suppress(ToolError):
        evaluate(expression)


async def test_the_model_is_told_in_a_result(tmp_path: Path) -> None:
    box = Toolbox(["calculator"])
    call = ToolCall(id="c", name="calculator", arguments='{"expression": "2**10**9"}')
    result = await box.call(call, ToolContext(folder=tmp_path))
    assert (result.status, result.error, result.untrusted) == ("error", "arithmetic", False)
