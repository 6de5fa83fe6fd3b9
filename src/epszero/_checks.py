"""Validation that speaks in sentences: each names the argument, the rule and the remedy."""

import difflib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, ParamSpec, Self, TypeVar

import numpy as np

from epszero._types import FloatArray, Real

MOST = 2**53  # whole numbers up to here are numbers of float64 too

P = ParamSpec("P")
T = TypeVar("T")


class InputError(ValueError):
    """An argument breaks a rule. The message names the argument, the rule and the remedy.

    The three are fields too, for programs that ask which argument it was; None where only a sentence was given.
    """

    def __init__(
        self, sentence: str, *, argument: str | None = None, rule: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(sentence)
        self.argument, self.rule, self.remedy = argument, rule, remedy

    @classmethod
    def about(cls, argument: str, rule: str, remedy: str) -> Self:
        """One sentence in the house's form, to be raised."""
        rule, remedy = rule.rstrip("."), remedy.rstrip(".")
        end = "" if remedy.endswith("?") else "."
        return cls(f"{argument}: {rule}. {remedy}{end}", argument=argument, rule=rule, remedy=remedy)


class UnknownArgumentError(InputError, TypeError):
    """A keyword that the function does not have."""


def refuse(argument: str, rule: str, remedy: str) -> NoReturn:
    """Raise `InputError` with one sentence in the house's form."""
    raise InputError.about(argument, rule, remedy)


def known_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Answer a misspelt keyword with the nearest name that exists, instead of Python's bare TypeError."""
    names = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self" and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in names:
                made = function.__qualname__.endswith(".__init__") and args  # by a class, perhaps one below
                title = type(args[0]).__name__ if made else function.__qualname__
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else "Remove it."
                remedy = f"{hint} It takes: {', '.join(names) or 'nothing'}"
                raise UnknownArgumentError.about(name, f"{title} has no such argument", remedy)
        return function(*args, **kwargs)

    return checked


def real_array(argument: str, value: Real, *, allow_infinite: bool = False, allow_nan: bool = False) -> FloatArray:
    """`value` as a float64 array, refused when it is not numeric, ragged, or (unless allowed) NaN or infinite."""
    try:
        if np.iscomplexobj(value):
            refuse(
                argument,
                "must be real, but it is complex",
                "Pass its real part, or real and imaginary parts as entries",
            )
        if np.ma.is_masked(value):
            refuse(argument, "has entries that are masked", "Fill them in, or drop them")
        array = np.asarray(value, dtype=np.float64)
    except InputError:
        raise
    except Exception as error:  # whatever an object does when it is asked for numbers
        raise InputError.about(
            argument,
            "must be a number or a rectangular array of real numbers",
            f"Pass something that NumPy reads as float64 (got {type(value).__name__}: {error})",
        ) from error
    if allow_infinite and allow_nan:
        return array
    bad = np.isnan(array) if allow_infinite else ~np.isfinite(array)
    if bad.any():
        where = first_index(bad)
        what = "NaN" if np.isnan(array[where]) else "infinite"
        refuse(
            f"{argument}{label(where)}",
            f"must be {'a number' if allow_infinite else 'finite'}, but it is {what}",
            "Replace or drop that entry",
        )
    return array


def positive(argument: str, value: Real, *, strict: bool = True) -> FloatArray:
    """A real array with every entry > 0 (≥ 0 when not strict)."""
    array = real_array(argument, value)
    bad = array <= 0 if strict else array < 0
    if bad.any():
        where = first_index(bad)
        sign = "positive" if strict else "nonnegative"
        refuse(f"{argument}{label(where)}", f"must be {sign}, but it is {array[where]:g}", f"Pass a {sign} number")
    return array


def one_positive(argument: str, value: Any, *, strict: bool = True) -> float:
    """One real number > 0 (≥ 0 when not strict)."""
    array = positive(argument, value, strict=strict)
    if isinstance(value, bool) or array.ndim:
        refuse(argument, f"must be one number, but it is {value!r}", "Pass a number")
    return float(array)


def one_of(argument: str, value: Any, choices: Sequence[Any], remedy: str) -> None:
    """Refuse what is not among a few words or numbers."""
    if not (isinstance(value, str | int | float) and value in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        refuse(argument, f"must be one of {listed}, but it is {value!r}", remedy)


def first_index(mask: "np.ndarray[Any, Any]") -> tuple[int, ...]:
    """Index of the first true entry."""
    return tuple(int(i) for i in np.argwhere(mask)[0])


def label(index: Sequence[int]) -> str:
    """`[2, 3]` behind a name; nothing for a scalar."""
    return str(list(index)) if index else ""


def count(argument: str, value: Any, *, least: int = 0) -> int:
    """A whole number ≥ least."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        refuse(argument, f"must be a whole number, but it is {value!r}", f"Pass an integer ≥ {least}")
    if value < least:
        refuse(argument, f"must be at least {least}, but it is {value}", f"Pass an integer ≥ {least}")
    if value > MOST:
        refuse(argument, f"is more than can be counted, {value}", "Pass a smaller integer")
    return int(value)
