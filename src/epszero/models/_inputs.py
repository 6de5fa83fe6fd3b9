"""What models ask of their arguments, in the house's sentences: argument, rule, remedy."""

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

import epszero as ez

FloatArray = NDArray[np.float64]
PathLike = str | os.PathLike[str]
MOST = 2**53


def refuse(argument: str, rule: str, remedy: str) -> NoReturn:
    """Raise `ez.InputError` with one sentence and its remedy."""
    raise ez.InputError.about(argument, rule, remedy)


def count(argument: str, value: object, *, least: int = 1) -> int:
    """A whole number ≥ least."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        refuse(argument, f"must be a whole number ≥ {least}, but it is {value!r}", "Pass such a number")
    if value > MOST:
        refuse(argument, f"is more than can be counted, {value}", "Pass a smaller number")
    return int(value)


def numbers(argument: str, value: ArrayLike, *, least: float | None = None, above: float | None = None) -> FloatArray:
    """A float64 array, finite, with every entry ≥ least and > above."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError):  # ragged, or no numbers
        given = np.asarray(None)
    if given.dtype.kind not in "iuf" or given.size == 0:
        kind = f"a {type(value).__name__}" if given.size else "empty"
        refuse(argument, f"must be a number or an array of real numbers, but it is {kind}", "Pass numbers")
    array = given.astype(np.float64)
    _refuse_first(argument, array, ~np.isfinite(array), "must be finite")
    if least is not None:
        _refuse_first(argument, array, array < least, f"must be at least {least:g}")
    if above is not None:
        _refuse_first(argument, array, array <= above, f"must be above {above:g}")
    return array


def number(argument: str, value: ArrayLike, *, least: float | None = None, above: float | None = None) -> float:
    """One finite number."""
    array = numbers(argument, value, least=least, above=above)
    if array.ndim:
        refuse(argument, f"must be one number, but its shape is {array.shape}", "Pass one number")
    return float(array)


def each(
    argument: str, value: ArrayLike, many: int, what: str, *, least: float | None = None, above: float | None = None
) -> FloatArray:
    """One number per `what`: an array of `many`, or one number for all."""
    array = numbers(argument, value, least=least, above=above)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != many):
        shape = f"its shape is {array.shape}" if array.ndim > 1 else f"it has {len(array)} entries for {many}"
        refuse(argument, f"must be one number, or one per {what}, but {shape}", f"Pass {many} entries, or one number")
    return np.broadcast_to(array, many).copy()


def each_or_drawn(
    argument: str, value: ArrayLike, unit: FloatArray, what: str, *, least: float | None = None
) -> FloatArray:
    """As `each`; a tuple (lo, hi) stands for draws from that interval, made of `unit`, which are draws from [0, 1)."""
    if not isinstance(value, tuple):
        return each(argument, value, len(unit), what, least=least)
    pair = numbers(argument, value, least=least)
    if pair.shape != (2,):
        refuse(
            argument,
            f"as a tuple it must be an interval (lo, hi), but it has {len(value)} entries",
            f"Pass a list or an array for one entry per {what}",
        )
    if pair[0] > pair[1]:
        refuse(argument, f"the interval ({pair[0]:g}, {pair[1]:g}) is empty", "Exchange its ends")
    return pair[0] + (pair[1] - pair[0]) * unit


def generator(seed: int | np.random.Generator) -> np.random.Generator:
    """A source of draws that gives the same ones again."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(count("seed", seed, least=0))


def _refuse_first(argument: str, array: FloatArray, bad: NDArray[np.bool_], rule: str) -> None:
    if not bad.any():
        return
    index = [int(i) for i in np.argwhere(bad)[0]]
    entry = array[tuple(index)]
    what = "NaN" if np.isnan(entry) else f"{entry:g}"
    refuse(f"{argument}{index or ''}", f"{rule}, but it is {what}", "Correct that entry" if index else "Correct it")


class Made:
    """What a factory returned, a function inside a function, which is pickled as the call that made it."""

    def __init__(self, factory: "Factory", arguments: tuple[Any, ...]) -> None:
        self._factory, self._arguments = factory, arguments
        self._function = factory.function(*arguments)
        self.__signature__ = inspect.signature(self._function)

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._factory, self._arguments


class Factory:
    """Decorates a factory of functions, so that they can be pickled; `remember`: equal arguments give the same one."""

    def __init__(self, function: Callable[..., Callable[..., Any]], *, remember: bool = True) -> None:
        self.function = function
        self.__doc__, self.__module__, self.__qualname__ = function.__doc__, function.__module__, function.__qualname__
        self._made = functools.lru_cache(maxsize=128)(self._make) if remember else self._make

    def __call__(self, *arguments: Any) -> Made:
        return self._made(*arguments)

    def _make(self, *arguments: Any) -> Made:
        return Made(self, arguments)

    def __reduce__(self) -> str:
        return self.__qualname__  # a name in its module
