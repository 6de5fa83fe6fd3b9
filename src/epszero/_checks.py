"""Validation that speaks in sentences: each names the argument, the rule and the remedy."""

import difflib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np

from epszero._types import FloatArray, Real

P = ParamSpec("P")
T = TypeVar("T")


class InputError(ValueError):
    """An argument breaks a rule. The message names the argument, the rule and the remedy."""


class UnknownArgumentError(InputError, TypeError):
    """A keyword that the function does not have."""


def refuse(argument: str, rule: str, remedy: str) -> NoReturn:
    """Raise `InputError` with one sentence in the house's form."""
    raise InputError(f"{argument}: {rule.rstrip('.')}. {remedy.rstrip('.')}.")


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
                title = function.__qualname__.removesuffix(".__init__")
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else "Remove it."
                raise UnknownArgumentError(
                    f"{name}: {title} has no such argument. {hint} It takes: {', '.join(names) or 'nothing'}."
                )
        return function(*args, **kwargs)

    return checked


def real_array(argument: str, value: Real, *, allow_infinite: bool = False) -> FloatArray:
    """`value` as a float64 array, refused when it is not numeric, ragged, NaN or (unless allowed) infinite."""
    if np.iscomplexobj(value):
        refuse(
            argument, "must be real, but it is complex", "Pass its real part, or real and imaginary parts as entries"
        )
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{argument}: must be a number or a rectangular array of real numbers. "
            f"Pass something that NumPy reads as float64 (got {type(value).__name__}: {error})."
        ) from error
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
    if isinstance(value, bool) or np.ndim(value):
        refuse(argument, f"must be one number, but it is {value!r}", "Pass a number")
    return float(positive(argument, value, strict=strict))


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
    return int(value)
