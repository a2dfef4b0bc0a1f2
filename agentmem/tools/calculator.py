"""The `calculator` tool: arithmetic that is exact where it can be, and quick to refuse what would never end."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from fractions import Fraction

from agentmem.errors import ToolError
from agentmem.tools.tool import tool

EXPRESSION_CHARACTERS = 1000
"""How long an expression may be."""
NUMBER_BITS = 20_000
"""How large a number may grow: about 6,000 digits."""

Number = int | Fraction | float


@tool
def calculator(expression: str) -> str:
    """Work out an arithmetic expression, exactly where possible.

    It knows + - * / // % ** and brackets, the constants pi, e and tau, and the functions abs, acos, asin, atan, atan2,
    cbrt, ceil, comb, cos, cosh, degrees, exp, factorial, floor, gcd, hypot, isqrt, lcm, log, log10, log2, max, min,
    perm, radians, round, sin, sinh, sqrt, sum, tan, tanh and trunc. Angles are in radians.

    Args:
        expression: such as `(17.5 - 3) * 2**10 / 7`.
    """
    return as_text(evaluate(expression))


def evaluate(expression: str) -> Number:
    """The value of an arithmetic expression.

    Whole and decimal numbers and what `+ - * / // % **` make of them are exact; roots that come out even and the
    functions on whole numbers too; the rest is a float.

    Raises:
        ToolError: it is no arithmetic, has no value, or its value is too large.

    Example:
        >>> evaluate("0.1 + 0.2"), evaluate("1/3 + 1/6"), evaluate("sqrt(16) * 2**3")
        (Fraction(3, 10), Fraction(1, 2), 32)
    """
    text = expression.strip().translate(_SIGNS)
    if len(text) > EXPRESSION_CHARACTERS:
        raise _refused(f"it has {len(text)} characters, and {EXPRESSION_CHARACTERS} are the most; split it")
    if "^" in text:
        raise _refused("a power is written with **, not ^")
    try:
        tree = ast.parse(text, mode="eval")
        return _value(tree.body, text)
    except ToolError:
        raise
    except ZeroDivisionError:
        raise _refused("it divides by zero") from None
    except OverflowError:
        raise _refused("a result is too large for a decimal number") from None
    except (SyntaxError, RecursionError, MemoryError):
        raise _refused(f"{expression[:80]!r} is not written as arithmetic, such as (2 + 3) * 4") from None
    except (ValueError, TypeError) as error:
        raise _refused(str(error)) from None


def as_text(number: Number) -> str:
    """A number as one reads it: exact, and with 15 digits where its decimals do not end.

    Example:
        >>> as_text(Fraction(3, 10)), as_text(Fraction(1, 3)), as_text(2.5e-7), as_text(10**3)
        ('0.3', '1/3 (about 0.333333333333333)', '2.5e-07', '1000')
    """
    if isinstance(number, float):
        return f"{number:.15g}"
    if number.denominator == 1:
        return _digits(number.numerator)
    rest = number.denominator
    places = [0, 0]
    for n, prime in enumerate((2, 5)):
        while rest % prime == 0:
            rest //= prime
            places[n] += 1
    try:
        about = f"{float(number):.15g}"
    except OverflowError:
        about = "a very large number"
    if rest != 1 or max(places) > 30:
        exact = f"{_digits(number.numerator)}/{_digits(number.denominator)}"
        return f"{exact} (about {about})" if len(exact) <= 100 else f"about {about}"
    digits = str(abs(number.numerator) * 10 ** max(places) // number.denominator).rjust(max(places) + 1, "0")
    return f"{'-' * (number < 0)}{digits[: -max(places)]}.{digits[-max(places) :]}"


def _value(node: ast.expr, text: str) -> Number:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int(whole)):
            return _bounded(whole)
        case ast.Constant(value=float()):
            return _decimal((ast.get_source_segment(text, node) or "").replace("_", ""))
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, text)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, text)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _bounded(_power(_value(left, text), _value(right, text)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _bounded(_OPERATORS[type(op)](_value(left, text), _value(right, text)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            values = [v for argument in arguments for v in _values(argument, text)]
            return _bounded(_FUNCTIONS[name](*values))
        case ast.Call(func=ast.Name(id=name)) | ast.Name(id=name):
            known = ", ".join(sorted({*_FUNCTIONS, *_CONSTANTS}))
            raise _refused(f"there is no {name!r}; it knows {known}")
        case ast.Tuple():
            raise _refused("a comma only separates the arguments of a function; write 1000, not 1,000")
    raise _refused(f"{ast.unparse(node)[:60]!r} is no arithmetic")


def _values(node: ast.expr, text: str) -> list[Number]:
    """An argument, or those of a list, as in `max([1, 2])`."""
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(part, text) for part in node.elts]
    return [_value(node, text)]


def _decimal(text: str) -> Fraction | float:
    """What is written `0.1` is a tenth, exactly; an exponent that is out of all proportion is a float's."""
    exponent = int(found[1]) if (found := re.search(r"[eE]([+-]?\d+)$", text)) else 0
    if abs(exponent) > 400:
        raise _refused(f"{text[:40]} is out of range")
    return Fraction(text)


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        exponent = exponent.numerator
    if isinstance(exponent, int) and not isinstance(base, float):
        size = max(abs(base.numerator).bit_length(), base.denominator.bit_length())
        if size > 1 and size * abs(exponent) > 2 * NUMBER_BITS:
            raise _too_large()
        exact: Number = Fraction(base) ** exponent
        return exact
    if base < 0:
        raise _refused("a broken power of a negative number has no real value")
    if exponent == Fraction(1, 2):
        return _root(base)
    return math.pow(base, exponent)


def _root(number: Number) -> Number:
    """The square root, exact where it comes out even."""
    if number < 0:
        raise _refused("a negative number has no real root")
    if not isinstance(number, float):
        top, bottom = math.isqrt(number.numerator), math.isqrt(number.denominator)
        if top * top == number.numerator and bottom * bottom == number.denominator:
            return Fraction(top, bottom)
    return math.sqrt(number)


def _bounded(number: Number) -> Number:
    """The number: whole where it is whole, and refused where it is too large to go on with."""
    if isinstance(number, float):
        if not math.isfinite(number):
            raise _refused("a result is no finite number")
        return number
    if max(abs(number.numerator).bit_length(), number.denominator.bit_length()) > NUMBER_BITS:
        raise _too_large()
    return number.numerator if number.denominator == 1 else number


def _whole(function: Callable[..., int], *, largest: int | None = None) -> Callable[..., int]:
    """A function of whole numbers, which refuses others and those that would take for ever."""

    def of(*numbers: Number) -> int:
        for number in numbers:
            if not isinstance(number, int):
                raise _refused(f"{function.__name__} takes whole numbers, not {as_text(number)}")
            if largest is not None and abs(number) > largest:
                raise _too_large()
        return function(*numbers)

    return of


def _rounded(number: Number, places: Number = 0) -> Number:
    if not isinstance(places, int) or abs(places) > 1000:
        raise _refused("round takes a number and a whole number of places")
    return round(number, places) if isinstance(number, float) else round(Fraction(number), places)


def _digits(number: int) -> str:
    """All digits; Python itself refuses more than 4,300 (and sets that limit for the whole process)."""
    if number < 0:
        return "-" + _digits(-number)
    pieces: list[str] = []
    while number >= 10**4000:
        number, piece = divmod(number, 10**4000)
        pieces.append(str(piece).zfill(4000))
    return str(number) + "".join(reversed(pieces))


def _refused(why: str) -> ToolError:
    return ToolError(f"This cannot be worked out: {why}.", error_class="arithmetic")


def _too_large() -> ToolError:
    return _refused(f"a number would have more than {NUMBER_BITS * 3 // 10:,} digits")


_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "\n": " ", "\u00a0": " "})
_CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau}
_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b if isinstance(a, float) or isinstance(b, float) else Fraction(a) / Fraction(b),
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    **{
        name: getattr(math, name)
        for name in (
            "acos", "asin", "atan", "atan2", "cbrt", "ceil", "cos", "cosh", "degrees", "exp", "floor", "hypot", "log",
            "log10", "log2", "radians", "sin", "sinh", "tan", "tanh", "trunc",
        )
    },
    **{name: _whole(getattr(math, name)) for name in ("gcd", "isqrt", "lcm")},
    **{name: _whole(getattr(math, name), largest=2000) for name in ("comb", "factorial", "perm")},
    "abs": abs, "max": max, "min": min, "round": _rounded, "sqrt": _root, "sum": lambda *numbers: sum(numbers),
}  # fmt: skip
