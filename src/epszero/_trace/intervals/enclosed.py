"""Enclosures of what a function returns while its inputs range over boxes: interval arithmetic on its jaxpr.

A function is traced once, and becomes a list of steps, each of which knows how to act on intervals. Every number the
function may return, in exact arithmetic, for inputs in the boxes lies in the enclosure; the enclosure may be larger
than need be. What has no rule has no enclosure: `NoEnclosure` says so, either when a function is traced or when it is
evaluated.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from epszero._trace.intervals.arithmetic import Interval as Interval
from epszero._trace.intervals.arithmetic import NoEnclosure as NoEnclosure
from epszero._trace.intervals.arithmetic import point
from epszero._trace.intervals.program import Program
from epszero._trace.intervals.rules import Strict, Value, lifted
from epszero._trace.intervals.shifts import matters
from epszero._trace.programs import CUSTOM, applied, call_of, inner_programs, rerun, written_at
from epszero._types import PyTree


class Enclosed:
    """A function traced once, at the shapes of its examples, to be evaluated on many boxes."""

    def __init__(self, function: Callable[..., Any], *examples: PyTree) -> None:
        with jax.enable_x64(True):
            shapes = jax.tree.map(_shape, examples)
            closed, returned = jax.make_jaxpr(function, return_shape=True)(*shapes)
        self._leaves, self._structure = jax.tree.flatten(shapes)
        self._returned = jax.tree.structure(returned)
        self._closed = closed
        self._varies = [np.dtype(leaf.dtype).kind == "f" for leaf in self._leaves]
        self._program = Program(closed, [None] * len(self._leaves)) if all(self._varies) else None

    def __call__(
        self,
        *boxes: PyTree,
        defined: bool = False,
        continuous: bool = False,
        moving: Sequence[int] | None = None,
    ) -> PyTree:
        """An interval around each output, for inputs in the boxes: intervals, or plain arrays, which are points.

        With `defined`, `NoEnclosure` also where the function may be undefined within the boxes; with `continuous`, also
        where it may jump as some of its arguments move: those with numbers in `moving`, or any.
        """
        leaves, structure = jax.tree.flatten(boxes, is_leaf=lambda part: isinstance(part, Interval))
        if structure != self._structure:
            raise ValueError(f"the boxes are {structure}, but the examples {self._structure}")
        with np.errstate(all="ignore"):
            pairs = list(zip(leaves, self._leaves, self._varies, strict=True))
            values = [_box(leaf, example) if varies else np.asarray(leaf) for leaf, example, varies in pairs]
            varying = [value for value, varies in zip(values, self._varies, strict=True) if varies]
            program = self._program
            if program is None:  # whole numbers among the inputs: constants, which may say where to look
                given = [None if varies else value for value, varies in zip(values, self._varies, strict=True)]
                program = Program(self._closed, given)
            strict = Strict.JUMPS if continuous else Strict.UNDEFINED if defined else Strict.NOTHING
            outputs = [_output(value) for value in program.run(varying, strict, self._moved(boxes, moving))]
        return jax.tree.unflatten(self._returned, outputs)

    def _moved(self, boxes: Sequence[PyTree], moving: Sequence[int] | None) -> list[bool] | None:
        """Which of the inputs that vary are asked about."""
        if moving is None:
            return None
        counts = [len(jax.tree.leaves(box, is_leaf=lambda part: isinstance(part, Interval))) for box in boxes]
        asked = [place in moving for place, count in enumerate(counts) for _ in range(count)]
        return [yes for yes, varies in zip(asked, self._varies, strict=True) if varies]


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    dtype = np.dtype(leaf.dtype) if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
    return jax.ShapeDtypeStruct(np.shape(leaf), np.float64 if dtype.kind == "f" else dtype)


def _box(leaf: Any, example: Any) -> Interval:
    box = Interval(*(np.asarray(end, np.float64) for end in leaf)) if isinstance(leaf, Interval) else point(leaf)
    if box.lower.shape != example.shape or box.upper.shape != example.shape:
        raise ValueError(f"a box of shape {box.lower.shape} where {example.shape} was traced")
    if not np.all(box.lower <= box.upper):
        raise ValueError("a box has a lower end above its upper end, or NaN")
    return box


def _output(value: Value) -> Interval:
    lower, upper = (np.asarray(end, np.float64) for end in lifted(value))
    return Interval(np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper))


def without_custom_rules(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same values, but of derivatives of the user's making, and of gradients stopped, nothing is left.

    A stopped gradient is kept where it is the truth: where the value provably cancels, as in logsumexp and softmax.
    """

    def plain(*arguments: PyTree) -> PyTree:
        closed, returned = jax.make_jaxpr(function, return_shape=True)(*arguments)
        outputs = rerun(closed.jaxpr, closed.consts, jax.tree.leaves(arguments), _made)
        return jax.tree.unflatten(jax.tree.structure(returned), outputs)

    return plain


def _made(jaxpr: Any, equation: Any, operands: list[Any]) -> list[Any]:
    if equation.primitive.name == "stop_gradient" and matters(jaxpr, equation.outvars[0], call_of):
        return operands
    return _plain(equation, operands)


def _plain(equation: Any, operands: list[Any]) -> list[Any]:
    primitive, params = equation.primitive, equation.params
    inside = call_of(equation)
    if inside is not None:
        return [_logaddexp(*operands)] if is_logaddexp(inside[0]) else rerun(*inside, operands, _made)
    if any(_custom(part) for part in inner_programs(params)):
        raise NoEnclosure(f"{primitive.name} around a derivative of the user's making")
    return applied(primitive, operands, params)


@jax.custom_jvp
def _logaddexp(a: Any, b: Any) -> Any:
    """JAX's own, with a derivative that is as smooth as the function: between its branches |a − b| has a kink."""
    return jax.numpy.logaddexp(a, b)


@_logaddexp.defjvp
def _slope_of_logaddexp(primals: Any, tangents: Any) -> Any:
    (a, b), (da, db) = primals, tangents
    return _logaddexp(a, b), da * jax.nn.sigmoid(a - b) + db * jax.nn.sigmoid(b - a)


def is_logaddexp(jaxpr: Any) -> bool:
    """Whether it is JAX's: by the place where it is written down."""
    where = written_at(jaxpr)
    return where.startswith("logaddexp at ") and "/jax/_src/lax/" in where


def _custom(jaxpr: Any) -> bool:
    return any(
        equation.primitive.name in CUSTOM
        or equation.primitive.name == "stop_gradient"
        or any(_custom(part) for part in inner_programs(equation.params))
        for equation in jaxpr.eqns
    )
