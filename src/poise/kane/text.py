"""Expressions as text of Python or C.

Sums, products, small powers, sines and cosines are written here, which takes a tenth of the time of
SymPy's printers; anything else, which only open symbols can bring in, is left to those.
"""

from __future__ import annotations

from typing import Literal

from sympy.printing.c import C99CodePrinter
from sympy.printing.numpy import NumPyPrinter

from poise.kane.vectors import Expr

Language = Literal["numpy", "c"]

MOST_FACTORS = 4
"""Powers up to this are written as products."""

_PRINTERS = {"numpy": NumPyPrinter(), "c": C99CodePrinter()}
_MODULE = {"numpy": "numpy.", "c": ""}


def text_of(expr: Expr, language: Language) -> str:
    """The expression in a language, every digit of its numbers kept."""
    if expr.is_Symbol:
        return str(expr.name)
    if expr.is_Float:
        return repr(float(expr))
    if expr.is_Integer:
        # a C integer would divide and overflow as one
        return str(expr) if language == "numpy" else f"{expr}.0"
    if expr.is_Rational:
        return f"({expr.p}.0/{expr.q}.0)"
    if expr.is_Add:
        return _sum(expr, language)
    if expr.is_Mul:
        return _product(expr, language)
    if expr.is_Pow and expr.exp.is_Integer and 2 <= expr.exp <= MOST_FACTORS:
        return "*".join([_factor(expr.base, language)] * int(expr.exp))
    name = type(expr).__name__
    if name in ("sin", "cos"):
        return f"{_MODULE[language]}{name}({text_of(expr.args[0], language)})"
    return str(_PRINTERS[language].doprint(expr))


def _sum(expr: Expr, language: Language) -> str:
    terms = [text_of(x, language) for x in expr.args]
    first, *rest = terms
    return first + "".join(f" - {x[1:]}" if x[0] == "-" else f" + {x}" for x in rest)


def _product(expr: Expr, language: Language) -> str:
    args, sign = expr.args, ""
    if args[0] == -1:
        args, sign = args[1:], "-"
    return sign + "*".join(_factor(x, language) for x in args)


def _factor(expr: Expr, language: Language) -> str:
    """An expression as part of a product: sums and unknown forms in brackets."""
    text = text_of(expr, language)
    plain = expr.is_Symbol or (expr.is_Number and text[0] != "-") or expr.is_Function
    powers = expr.is_Pow and expr.exp.is_Integer and 2 <= expr.exp <= MOST_FACTORS
    return text if plain or powers else f"({text})"
