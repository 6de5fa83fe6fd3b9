"""How each primitive of JAX acts on intervals.

A rule receives the parameters of the primitive, its operands, and how strict it is to be, and returns its outputs.
An operand is an `Interval`, a `Truth` (a boolean that may be undecided), or a NumPy array that does not depend on the
inputs. Where two operands are one and the same object they are one and the same variable, which is what makes
x · x ≥ 0 and x − x = 0.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import jax
import numpy as np

from epszero._lazy import erf, expit, special
from epszero._trace.intervals import arithmetic as arithmetic
from epszero._trace.intervals.arithmetic import Interval, Mask, NoEnclosure, monotone, point, within


class Truth(NamedTuple):
    """Booleans, elementwise: true when `lower`, false unless `upper`, otherwise undecided."""

    lower: Mask
    upper: Mask


Value = Any  # Interval | Truth | np.ndarray


class Strict(IntEnum):
    """What an evaluation refuses."""

    NOTHING = 0  # where part of a box lies outside of where a function is defined, the rest counts
    UNDEFINED = 1  # a function that may be undefined somewhere in the box
    JUMPS = 2  # and what may jump there


Rule = Callable[[Any, list[Value], int], Sequence[Value]]
ListRule = Callable[[Any, list[Value], int], list[Value]]
RULES: dict[str, Rule] = {}

BASIC = frozenset({"add", "sub", "mul", "div", "sqrt", "add_any", "square"})  # rounded once in any precision
ROUNDLESS = frozenset({
    "neg", "abs", "sign", "max", "min", "clamp", "floor", "ceil", "round", "reduce_max", "reduce_min", "cummax",
    "cummin", "select_n", "reshape", "broadcast_in_dim", "transpose", "squeeze", "expand_dims", "slice", "rev",
    "concatenate", "split", "gather", "dynamic_slice", "dynamic_update_slice", "scatter", "pad", "copy", "copy_p",
    "stop_gradient", "device_put", "optimization_barrier", "sharding_constraint", "row", "stack", "cond", "while",
    "tile", "convert_element_type",
})  # fmt: skip


def varies(value: Value) -> bool:
    """Whether it depends on the inputs."""
    return isinstance(value, (Interval, Truth))


def lifted(value: Value) -> Any:
    """A constant as a point."""
    if not isinstance(value, np.ndarray):
        return value
    return Truth(value, value) if value.dtype == np.bool_ else point(value)


def interval(value: Value) -> Interval:
    """What must be numbers."""
    value = lifted(value)
    if isinstance(value, Truth):
        raise NoEnclosure("computes with truth values as numbers")
    return value


def decided(value: Truth | Interval) -> bool:
    """Whether every entry is."""
    return bool(np.all(value.lower == value.upper))


def no_jump(certain: Any, strict: int, where: str) -> None:
    """Refuse what may jump, where jumps are forbidden."""
    if strict >= Strict.JUMPS and not np.all(certain):
        raise NoEnclosure(f"jumps at {where} that depends on the point")


def rule_for(*names: str) -> Callable[[ListRule], ListRule]:
    """Enters a function as the rule of these primitives."""

    def enter(rule: ListRule) -> ListRule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return enter


def _arithmetic(name: str, function: Callable[..., Interval]) -> None:
    RULES[name] = lambda _, operands, __: [function(*map(interval, operands))]


def _bounded(low: float, high: float, *fixed: tuple[float, float]) -> Callable[..., Callable[[Interval], Interval]]:
    """Of an increasing function, its rule, from its range and where it is exact."""
    return lambda function: lambda x: within(monotone(function, x, fixed), low, high)


def _defined(low: float, high: float, name: str, rule: Callable[[Interval], Interval]) -> Callable[..., Interval]:
    def guarded(x: Interval) -> Interval:
        if np.any(x.lower < low) or np.any(x.upper > high):
            raise NoEnclosure(f"{name} is undefined somewhere")
        return rule(x)

    return guarded


def _logarithm(name: str, function: Callable[[Any], Any], start: float) -> None:
    def rule(_: Any, operands: list[Value], strict: int) -> list[Value]:
        x = interval(operands[0])
        if np.any(x.upper <= start) or (strict and not np.all(x.lower >= start)):
            raise NoEnclosure(f"{name} is undefined somewhere")
        cut = Interval(np.maximum(x.lower, start), x.upper)
        return [monotone(function, cut, ((start + 1.0, 0.0), (start, -np.inf)))]

    RULES[name] = rule


def _cosh(x: Interval) -> Interval:
    return within(monotone(np.cosh, arithmetic.magnitude(x), ((0.0, 1.0),)), 1.0, np.inf)


def _erfc_mirrored(x: Interval) -> Interval:
    """erfc(−x), of which SciPy has fewer digits than of others (Cephes: 6e-14)."""
    return within(arithmetic.widened(special.erfc(-x.lower), special.erfc(-x.upper), 1e-12), 0.0, 2.0)


def _mirrored(rule: Callable[[Interval], Interval]) -> Callable[[Interval], Interval]:
    """A decreasing function, from an increasing one of −x."""
    return lambda x: rule(arithmetic.negative(x))


def _extreme(function: Callable[..., Any], which: int) -> Callable[[Interval, Interval], Interval]:
    """max (1) or min (−1); the very operand, when it is decided which."""

    def rule(x: Interval, y: Interval) -> Interval:
        for a, b in ((x, y), (y, x)):
            ahead = a.lower >= b.upper if which > 0 else a.upper <= b.lower
            if a.lower.shape == np.broadcast_shapes(a.lower.shape, b.lower.shape) and np.all(ahead):
                return a
        return Interval(function(x.lower, y.lower), function(x.upper, y.upper))

    return rule


_greater, _less = _extreme(np.maximum, 1), _extreme(np.minimum, -1)
_odd = (0.0, 0.0)
_everywhere = _bounded(-np.inf, np.inf, _odd)
_unit_range = _bounded(-1.0, 1.0, _odd)
for _name, _function in {
    "add": arithmetic.add, "add_any": arithmetic.add, "sub": arithmetic.sub, "mul": arithmetic.mul,
    "neg": arithmetic.negative, "abs": arithmetic.magnitude, "square": arithmetic.square, "sqrt": arithmetic.sqrt,
    "max": _greater, "min": _less, "clamp": lambda low, x, high: _less(_greater(x, low), high),
    "exp": _bounded(0.0, np.inf, (0.0, 1.0))(np.exp), "exp2": _bounded(0.0, np.inf, (0.0, 1.0), (1.0, 2.0))(np.exp2),
    "expm1": _bounded(-1.0, np.inf, _odd)(np.expm1), "cbrt": _bounded(-np.inf, np.inf, _odd, (1.0, 1.0))(np.cbrt),
    "logistic": _bounded(0.0, 1.0, (0.0, 0.5))(expit), "tanh": _unit_range(np.tanh),
    "sin": lambda x: arithmetic.wave(np.sin, x, np.pi / 2), "cos": lambda x: arithmetic.wave(np.cos, x, 0.0),
    "asin": _defined(-1.0, 1.0, "asin", _everywhere(np.arcsin)), "atan": _everywhere(np.arctan),
    "acos": _defined(-1.0, 1.0, "acos", _mirrored(_bounded(0.0, np.inf, (-1.0, 0.0))(lambda x: np.arccos(-x)))),
    "sinh": _everywhere(np.sinh), "cosh": _cosh, "asinh": _everywhere(np.arcsinh),
    "acosh": _defined(1.0, np.inf, "acosh", _bounded(0.0, np.inf, (1.0, 0.0))(np.arccosh)),
    "atanh": _defined(-1.0, 1.0, "atanh", _everywhere(np.arctanh)), "erf": _unit_range(erf),
    "erfc": _mirrored(_erfc_mirrored),
}.items():  # fmt: skip
    _arithmetic(_name, _function)
_logarithm("log", np.log, 0.0)
_logarithm("log1p", np.log1p, -1.0)


@rule_for("div")
def _div(_: Any, operands: list[Value], strict: int) -> list[Value]:
    x, y = map(interval, operands)
    no_jump((y.lower > 0) | (y.upper < 0), strict, "a division by what may be 0, a thing")
    return [arithmetic.div(x, y)]


@rule_for("rsqrt")
def _rsqrt(_: Any, operands: list[Value], strict: int) -> list[Value]:
    x = interval(operands[0])
    return _div(None, [point(np.ones(())), arithmetic.sqrt(x)], strict)


@rule_for("tan")
def _tan(_: Any, operands: list[Value], strict: int) -> list[Value]:
    result, pole = arithmetic.tan(interval(operands[0]))
    no_jump(~pole, strict, "a pole")
    return [result]


@rule_for("integer_pow")
def _integer_pow(params: Any, operands: list[Value], strict: int) -> list[Value]:
    x, exponent = interval(operands[0]), int(params["y"])
    no_jump((exponent >= 0) | (x.lower > 0) | (x.upper < 0), strict, "a pole")
    return [arithmetic.integer_power(x, exponent)]


@rule_for("pow")
def _pow(_: Any, operands: list[Value], strict: int) -> list[Value]:
    x, y = map(interval, operands)
    single = (y.lower == y.upper) & (y.lower >= 0)  # 0⁰ = 1 is approached by no other 0ʸ
    no_jump((y.lower > 0) | single | (x.lower > 0) | (x.upper < 0), strict, "a pole")
    return [arithmetic.power(x, y)]


@rule_for("sign", "floor", "ceil", "round")
def _steps(params: Any, operands: list[Value], strict: int) -> list[Value]:
    x = interval(operands[0])
    lower, upper = params["step"](x.lower), params["step"](x.upper)
    no_jump(lower == upper, strict, "a step")
    return [Interval(lower, upper)]


def away_from_zero(x: Any) -> Any:
    """Round to the nearest whole number, halves away from 0."""
    whole = np.floor(np.abs(x))
    return np.copysign(np.where(np.abs(x) - whole >= 0.5, whole + 1.0, whole), x)


@rule_for("lt", "le", "gt", "ge", "eq", "ne")
def _compare(params: Any, operands: list[Value], _: int) -> list[Value]:
    name, (x, y) = params["comparison"], map(lifted, operands)
    if isinstance(x, Truth):
        if name not in ("eq", "ne"):
            raise NoEnclosure("compares the order of truth values")
        differ = _logic("xor", x, lifted(y))
        return [differ if name == "ne" else Truth(~differ.upper, ~differ.lower)]
    if name in ("gt", "ge"):
        x, y, name = y, x, {"gt": "lt", "ge": "le"}[name]
    if x is y:
        return [lifted(np.full(x.lower.shape, name in ("le", "eq")))]
    x, y = _within_reals(x, y), _within_reals(y, x)
    if name in ("lt", "le"):
        strict = name == "lt"
        surely = x.upper < y.lower if strict else x.upper <= y.lower
        maybe = x.lower < y.upper if strict else x.lower <= y.upper
        return [Truth(surely, maybe)]
    equal = (x.lower == x.upper) & (y.lower == y.upper) & (x.lower == y.lower)
    meet = (x.lower <= y.upper) & (y.lower <= x.upper)
    return [Truth(equal, meet) if name == "eq" else Truth(~meet, ~equal)]


def _within_reals(x: Any, other: Any) -> Any:
    """An interval without bound holds reals, all of them finite: compared with a constant ±∞, its ends are."""
    endless = np.isinf(other.lower) & (other.lower == other.upper) & (x.lower < x.upper)
    largest = np.finfo(np.float64).max
    return type(x)(
        np.where(endless, np.clip(x.lower, -largest, largest), x.lower),
        np.where(endless, np.clip(x.upper, -largest, largest), x.upper),
    )


@rule_for("is_finite")
def _is_finite(_: Any, operands: list[Value], __: int) -> list[Value]:
    """In exact arithmetic every number is, but a constant ∞."""
    x = interval(operands[0])
    finite = ~(np.isinf(x.lower) & (x.lower == x.upper))
    return [Truth(finite, finite)]


def _logic(name: str, x: Truth, y: Truth) -> Truth:
    if name == "and":
        return Truth(x.lower & y.lower, x.upper & y.upper)
    if name == "or":
        return Truth(x.lower | y.lower, x.upper | y.upper)
    return Truth((x.lower & ~y.upper) | (~x.upper & y.lower), (x.upper & ~y.lower) | (~x.lower & y.upper))


def _truth(value: Value) -> Truth:
    value = lifted(value)
    if not isinstance(value, Truth):
        raise NoEnclosure("computes with whole numbers that depend on the point")
    return value


for _name in ("and", "or", "xor"):
    RULES[_name] = lambda params, operands, _: [_logic(params["logic"], *map(_truth, operands))]
RULES["not"] = lambda _, operands, __: [Truth(~_truth(operands[0]).upper, ~_truth(operands[0]).lower)]


@rule_for("reduce_and", "reduce_or")
def _reduce_logic(params: Any, operands: list[Value], _: int) -> list[Value]:
    reduce = np.all if params["name"] == "reduce_and" else np.any
    return [Truth(*(np.asarray(reduce(end, axis=tuple(params["axes"]))) for end in _truth(operands[0])))]


@rule_for("select_n")
def _select(_: Any, operands: list[Value], strict: int) -> list[Value]:
    which, cases = lifted(operands[0]), [lifted(case) for case in operands[1:]]
    if all(case is operands[1] for case in operands[2:]):
        return [cases[0]]
    no_jump(which.lower == which.upper, strict, "a branch")
    low, high = (np.asarray(end, dtype=np.int64) for end in which)
    low, high = (np.clip(end, 0, len(cases) - 1) for end in (low, high))
    possible = [(low <= place) & (place <= high) for place in range(len(cases))]
    if isinstance(cases[0], Truth):
        lower = ~np.any([here & ~case.lower for here, case in zip(possible, cases, strict=True)], axis=0)
        return [Truth(lower, np.any([here & case.upper for here, case in zip(possible, cases, strict=True)], axis=0))]
    lower = np.minimum.reduce([np.where(h, c.lower, np.inf) for h, c in zip(possible, cases, strict=True)])
    upper = np.maximum.reduce([np.where(h, c.upper, -np.inf) for h, c in zip(possible, cases, strict=True)])
    return [Interval(lower, upper)]


@rule_for("convert_element_type")
def _convert(params: Any, operands: list[Value], strict: int) -> list[Value]:
    value, old, new = lifted(operands[0]), params["old_dtype"], np.dtype(params["new_dtype"])
    if isinstance(value, Truth):
        if new == np.bool_:
            return [value]
        no_jump(value.lower == value.upper, strict * (new.kind == "f"), "a comparison")
        return [Interval(*(end.astype(np.float64) for end in value))]
    if new == np.bool_:
        return _compare({"comparison": "ne"}, [value, np.zeros(())], strict)
    if new.kind in "iu":
        if old.kind not in "iu":
            value = Interval(np.trunc(value.lower), np.trunc(value.upper))
            no_jump(value.lower == value.upper, strict, "a step")
        limits = np.iinfo(new)
        if np.any(value.lower < limits.min) or np.any(value.upper > limits.max):
            raise NoEnclosure(f"convert_element_type of what may be too large for {new}")
        return [value]
    if new.kind == "f":
        no_jump(value.lower == value.upper, strict * (new.itemsize < old.itemsize), "rounding")
        return [value]  # in a lower precision it is rounded where every result of that precision is
    raise NoEnclosure(f"convert_element_type from {old} to {new}")


def rounded_to(x: Interval, dtype: Any) -> Interval:
    """What x becomes in a lower precision."""
    limits = jax.numpy.finfo(dtype)
    lower, upper = arithmetic.widened(x.lower, x.upper, float(limits.eps))
    small, large = float(limits.tiny) * (1 + 2**-10), float(limits.max)
    lower = np.where(np.abs(lower) < small, np.minimum(lower, -small), lower)
    upper = np.where(np.abs(upper) < small, np.maximum(upper, small), upper)
    zero = (x.lower == 0) & (x.upper == 0)
    lower, upper = np.where(zero, 0.0, lower), np.where(zero, 0.0, upper)
    lower = np.where(lower < -large, -np.inf, np.minimum(lower, large))
    return Interval(lower, np.where(upper > large, np.inf, np.maximum(upper, -large)))
