"""Where a traced f(x, ξ) has kinks, and the function around them: f(x, ξ) = F(x, t, ξ), t_k = max_b a_kb(x, t, ξ).

Every kink (max, min, abs, relu, clip, a maximum over an axis, `where` on a comparison) becomes a variable t_k of its
own. By degrees it is proved that F is affine in t, F = g(x, ξ) + ⟨w(ξ), t⟩, and that all branches a_kb are affine in x
and in the kinks before them. Signs are numbers: for given ξ the weights w and the slopes between kinks say whether f
is convex (solve/tables.py). `where(u > 0, p, q)` is a maximum or a minimum only if p − q = c·u, which is a matter of
numbers, too: the margin u is handed on.
What is not of this form is named, with the line where it is written. Everything that a user's own derivative says is
passed by: programs are followed to the operations that make the values. Cost: one trace.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from epszero._double import is_traced
from epszero._trace.degrees import INDEXED, LINEAR, degrees
from epszero._trace.intervals.enclosed import is_logaddexp
from epszero._trace.programs import CUSTOM, applied, call_of, equations_in, inner_programs, is_literal, line_of
from epszero._types import Array, PyTree

SMOOTH = LINEAR | INDEXED | frozenset({
    "mul", "dot_general", "conv_general_dilated", "div", "integer_pow", "square", "exp", "exp2", "expm1", "log",
    "log1p", "tanh", "logistic", "sin", "cos", "sinh", "cosh", "atan", "erf", "convert_element_type",
})  # fmt: skip
"""Operations without kinks where they are defined."""

KINKED = ("max", "min", "abs", "clamp", "reduce_max", "reduce_min")
BENT = frozenset({"sign", "floor", "ceil", "round", "rem", "sort", "top_k", "argmax", "argmin", "cummax", "cummin",
                  "reduce_precision", "stop_gradient", "nextafter", "pure_callback"})  # fmt: skip
MOVING = frozenset({"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "slice", "rev", "copy"})
COMPARED = {"gt": 1, "ge": 1, "lt": -1, "le": -1}  # the sign of left − right where it holds
SPOKEN = {"max": "maximum", "min": "minimum", "reduce_max": "max", "reduce_min": "min", "select_n": "where",
          "convert_element_type": "comparison"}  # fmt: skip
AFFINE, QUADRATIC, SMOOTHLY = 1, 2, 3  # in x, the function between the kinks


class Piece(NamedTuple):
    """One operation with kinks: of each entry of `shape`, the largest (sense 1) or least (−1) of some branches.

    Sense 0: `where`, of which the margin says which it is.
    """

    name: str
    where: str  # file and line
    sense: int
    branches: int
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} at {self.where}" if self.where else self.name


class Parts(NamedTuple):
    """F, and of every piece the branches (along the first axis) and, of `where`, the margin."""

    value: Array
    branches: list[Array]
    margins: list[Array | None]


class Kinks(NamedTuple):
    """f(x, ξ) = F(x, t, ξ) with F affine in t and branches affine in x and t."""

    pieces: tuple[Piece, ...]
    parts: Callable[[PyTree, Sequence[Array], PyTree], Parts]  # of x, t (one array per piece), ξ
    nested: bool  # some branches depend on other kinks
    degree: int  # of F in x: AFFINE, QUADRATIC or SMOOTHLY
    one_bend: bool  # the Hessian of F in x does not depend on ξ


class Unread(NamedTuple):
    """There are kinks, not of this form."""

    where: str  # the first kink
    why: str

    def __str__(self) -> str:
        return f"a kink ({self.where}): {self.why}"


def read_kinks(
    function: Callable[[PyTree, PyTree], Any], x: PyTree, xi: PyTree, *, smooth: bool = False
) -> Kinks | Unread | None:
    """Of arguments shaped like these; None where the function has no kinks, unless `smooth` asks for those, too."""
    x, xi = jax.tree.map(_shaped, x), jax.tree.map(_shaped, xi)
    closed = jax.make_jaxpr(function)(x, xi)
    first = len(jax.tree.leaves(x))

    def walked(walk: "_Walk", x: PyTree, xi: PyTree) -> Array:
        leaves = [*jax.tree.leaves(x), *jax.tree.leaves(xi)]
        given = [_Value(leaf, place < first, entries=place < first) for place, leaf in enumerate(leaves)]
        (value,) = walk.through(closed.jaxpr, closed.consts, given)
        return value.array

    def parts(x: PyTree, kinks: Sequence[Array], xi: PyTree) -> Parts:
        walk = _Walk(kinks)
        value = walked(walk, x, xi)
        return Parts(value, walk.branches, walk.margins)

    scout = _Walk(None)
    try:
        jax.eval_shape(lambda x, xi: walked(scout, x, xi), x, xi)
    except _NotRead as reason:
        return Unread(str(scout.pieces[0] if scout.pieces else reason.piece), reason.why)
    if not (scout.pieces or smooth):
        return None
    if scout.unknown:
        where = str(scout.pieces[0]) if scout.pieces else scout.unknown
        return Unread(where, f"{scout.unknown}, in the same function, is not followed here")
    return _proved(tuple(scout.pieces), parts, x, xi)


def _shaped(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype)


def _proved(pieces: tuple[Piece, ...], parts: Callable[..., Parts], x: PyTree, xi: PyTree) -> Kinks | Unread:
    """The form, where degrees prove it."""
    kinks = [jax.ShapeDtypeStruct(piece.shape, np.float64) for piece in pieces]
    nested = False
    for place, piece in enumerate(pieces):

        def branch(kinks: Any, x: PyTree, xi: PyTree, place: int = place) -> Any:
            found = parts(x, kinks, xi)
            return found.branches[place], found.margins[place]

        degree = degrees(branch, kinks, x, xi)
        if max(degree.u, degree.v) > 1 or degree.mixed:
            return Unread(str(piece), "what it chooses from is not affine in x")
        nested |= degree.u > 0
    around = degrees(lambda kinks, x, xi: parts(x, kinks, xi).value, kinks, x, xi)
    if around.u > 1 or around.mixed:
        return Unread(str(pieces[0]), "it is multiplied by what depends on x, or goes through a function that bends")
    none = [np.zeros(piece.shape) for piece in pieces]
    slope = degrees(jax.grad(lambda x, xi: parts(x, none, xi).value), x, xi)
    degree = AFFINE if around.v <= 1 else QUADRATIC if slope.u <= 1 else SMOOTHLY
    return Kinks(pieces, parts, nested, degree, degree < SMOOTHLY and not slope.mixed)


# -- following the operations ------------------------------------------------------------------------------------------


class _NotRead(Exception):
    """Something that depends on x is neither smooth nor a kink that is known here."""

    def __init__(self, why: str, piece: Piece) -> None:
        super().__init__(why)
        self.why, self.piece = why, piece


class _Value(NamedTuple):
    array: Any
    moves: bool  # it depends on x
    margin: Any = None  # of a comparison: positive where it holds
    entries: bool = False  # entries of x, moved about: not NaN


class _Walk:
    """One evaluation of a program, with a variable in place of every kink."""

    def __init__(self, kinks: Sequence[Array] | None) -> None:
        self.kinks = kinks
        self.pieces: list[Piece] = []
        self.branches: list[Array] = []
        self.margins: list[Array | None] = []
        self.unknown = ""  # an operation on the way that is neither a kink nor known to be smooth
        self._call: Any = None  # the outermost call that is being followed: lines inside may be of an earlier caller

    def through(self, jaxpr: Any, consts: Sequence[Any], given: Sequence[_Value]) -> list[_Value]:
        known = dict(zip(jaxpr.constvars, (_Value(const, False) for const in consts), strict=True))
        known.update(zip(jaxpr.invars, given, strict=True))

        def of(atom: Any) -> _Value:
            return _Value(np.asarray(atom.val, atom.aval.dtype), False) if is_literal(atom) else known[atom]

        for equation in jaxpr.eqns:
            results = self.made(equation, [of(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [of(atom) for atom in jaxpr.outvars]

    def made(self, equation: Any, operands: list[_Value]) -> list[_Value]:  # noqa: PLR0911  (one for each kind)
        """What an operation makes."""
        name, moves = equation.primitive.name, any(operand.moves for operand in operands)
        inside = call_of(equation)
        if inside is not None and not (name in CUSTOM and is_logaddexp(inside[0])):
            outer, self._call = self._call, self._call or equation
            results = self.through(*inside, operands)
            self._call = outer
            return results
        arrays = [operand.array for operand in operands]
        if not equation.outvars:  # it prints, or so
            return []
        if not moves:
            return [_Value(array, False) for array in _computed(equation, arrays)]
        if name == "ne" and equation.invars[0] is equation.invars[1] and operands[0].entries:  # is it NaN?
            return [_Value(np.zeros(equation.outvars[0].aval.shape, bool), False)]
        if equation.outvars[0].aval.dtype.kind == "b":
            return [_Value(array, True, _margin(equation, operands)) for array in _computed(equation, arrays)]
        kink = self._kink(equation, operands)
        if kink is not None:
            return [_Value(kink, True)]
        if name == "convert_element_type" and equation.invars[0].aval.dtype.kind == "b":
            raise _NotRead("a comparison is used as a number", self._piece(equation, 0, 1))
        if name in BENT:
            raise _NotRead(f"{_spoken(equation)} is not followed here", self._piece(equation, 0, 1))
        if inside is None and any(
            equations_in(part, kink) for part in inner_programs(equation.params) for kink in KINKED
        ):
            raise _NotRead("it is inside a loop or a branch", self._piece(equation, 0, 1))
        if not (name in SMOOTH or inside is not None):
            self.unknown = self.unknown or _spoken(equation)
        entries = name in MOVING and operands[0].entries
        return [_Value(array, True, entries=entries) for array in _computed(equation, arrays)]

    def _kink(self, equation: Any, operands: list[_Value]) -> Any:
        """The variable in place of a kink; None where there is none."""
        name, arrays = equation.primitive.name, [operand.array for operand in operands]
        if name in ("max", "min"):
            return self._extreme(equation, arrays, 1 if name == "max" else -1)
        if name == "clamp":
            low, middle, high = arrays
            return self._extreme(equation, [self._extreme(equation, [middle, low], 1), high], -1)
        if name == "abs":
            return self._new(equation, [arrays[0], -arrays[0]], 1)
        if name in ("reduce_max", "reduce_min"):
            axes = equation.params["axes"]
            rows = jnp.moveaxis(arrays[0], axes, tuple(range(len(axes))))
            rows = rows.reshape(-1, *rows.shape[len(axes) :])
            return self._new(equation, list(rows), 1 if name == "reduce_max" else -1)
        if name == "select_n" and operands[0].moves:  # cases: where it does not hold, where it holds
            if operands[0].margin is None or len(arrays) != 3:
                raise _NotRead("it asks for something else than u > v", self._piece(equation, 0, 1))
            return self._new(equation, [arrays[2], arrays[1]], 0, operands[0].margin)
        return None

    def _extreme(self, equation: Any, pair: list[Any], sense: int) -> Any:
        """The larger or less of two; of infinity and the other, the other."""
        for one, other in (pair, pair[::-1]):
            if not is_traced(other) and np.all(np.asarray(other) == -sense * np.inf):
                return one
        return self._new(equation, pair, sense)

    def _new(self, equation: Any, branches: list[Any], sense: int, margin: Any = None) -> Any:
        shape, place = equation.outvars[0].aval.shape, len(self.pieces)
        self.pieces.append(self._piece(equation, sense, len(branches)))
        self.branches.append(jnp.stack([jnp.broadcast_to(branch, shape) for branch in branches]))
        self.margins.append(None if margin is None else jnp.broadcast_to(margin, shape))
        if equation.outvars[0].aval.dtype != np.float64:
            raise _NotRead(f"it is computed in {equation.outvars[0].aval.dtype}", self.pieces[-1])
        return jnp.zeros(shape) if self.kinks is None else self.kinks[place]

    def _piece(self, equation: Any, sense: int, branches: int) -> Piece:
        return Piece(
            _spoken(equation), line_of(self._call or equation), sense, branches, equation.outvars[0].aval.shape
        )


def _margin(equation: Any, operands: list[_Value]) -> Any:
    """Of a condition that is a comparison, perhaps moved about or negated: what is positive where it holds."""
    name, first = equation.primitive.name, operands[0]
    if name in COMPARED:
        return COMPARED[name] * (first.array - operands[1].array)
    if first.margin is None:
        return None
    return _computed(equation, [first.margin])[0] if name in MOVING else -first.margin if name == "not" else None


def _computed(equation: Any, arrays: list[Any]) -> list[Any]:
    """What the operation itself makes; of constants at once, so that their values are known."""
    if is_traced(arrays):
        return applied(equation.primitive, arrays, equation.params)
    with jax.ensure_compile_time_eval():
        return applied(equation.primitive, arrays, equation.params)


def _spoken(equation: Any) -> str:
    name = str(equation.primitive.name)
    return SPOKEN.get(name, name)
