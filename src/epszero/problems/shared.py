"""Shared constraints: affine Gx ≤ b, with G a matrix (sparse too) or a linear function; and convex h(x) ≤ 0.

The columns of a matrix are the entries of x in the order of the agents. A matrix with few nonzeros is kept as a list of
them, so that G x and Gᵀλ cost what there is; a linear function is transposed by automatic differentiation.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._checks import InputError, known_arguments, real_array, refuse
from epszero._lazy import sp
from epszero._types import Array, FloatArray, PyTree, Real
from epszero.oracles import Coupling, Opaque
from epszero.oracles.traced import traced
from epszero.problems.given import Linear, Shared

DENSE = 0.2  # a matrix with this share of nonzeros, or more, is multiplied as a whole


class AffineConstraint(Coupling):
    """Gx ≤ b.

    `G`: a matrix, dense or of SciPy's sparse ones, with one column per entry of x (agent after agent); a list of
    matrices, one per agent; or a linear function of x in jax.numpy. `b`: one number per row, or one for all.
    """

    affine: ClassVar[bool] = True
    static = ("count", "width")
    linear: Any  # x ↦ Gx, where no matrix was given
    dense: FloatArray | None
    entries: Any  # (row, column, value) of the nonzeros, where they are few
    b: FloatArray
    count: int | None  # rows, None while only a function knows
    width: int | None  # columns

    @known_arguments
    def __init__(self, G: Linear, b: Real) -> None:
        self.b = real_array("b", b)
        if self.b.ndim > 1:
            refuse("b", f"must be a number or one per row of G, but its shape is {self.b.shape}", "Pass a vector")
        self.linear = Opaque(G) if callable(G) else None
        if callable(G):
            self.dense, self.entries, self.width = None, None, None
            self.count = len(self.b) if self.b.ndim else None
            return
        matrix = _matrix(G)
        self.count, self.width = matrix.shape
        if not self.count:
            refuse("G", "has no row, that is, no constraint", "Leave shared out, or give one row per constraint")
        if self.b.ndim and len(self.b) != self.count:
            refuse("b", f"has {len(self.b)} entries for {self.count} rows of G", "Give one bound per row")
        few = matrix.nnz < DENSE * matrix.shape[0] * matrix.shape[1]
        coo = matrix.tocoo()
        self.entries = (coo.row.astype(np.int32), coo.col.astype(np.int32), coo.data) if few else None
        self.dense = None if few else matrix.toarray()

    def traced(self, x: PyTree) -> "AffineConstraint":
        return self if self.linear is None else self.replaced(linear=traced(self.linear, x))

    def value(self, x: PyTree) -> Array:
        return self.times(x) - self.b

    def times(self, x: PyTree) -> Array:
        """Gx."""
        if self.linear is not None:
            return jnp.atleast_1d(self.linear(x))
        flat = ravel_pytree(x)[0]
        if self.dense is not None:
            return jnp.asarray(self.dense) @ flat
        row, column, data = self.entries
        return jax.ops.segment_sum(data * flat[column], row, self.count)

    def pull(self, x: PyTree, multipliers: Array) -> PyTree:
        if self.linear is not None:
            return jax.vjp(self.times, x)[1](multipliers)[0]
        flat, unravel = ravel_pytree(x)
        if self.dense is not None:
            return unravel(jnp.asarray(multipliers @ self.dense))
        row, column, data = self.entries
        return unravel(jax.ops.segment_sum(data * multipliers[row], column, flat.size))

    def rows(self, x: PyTree) -> int:
        size = sum(np.size(leaf) for leaf in jax.tree.leaves(x))
        if self.width is not None and self.width != size:
            refuse("shared", f"G has {self.width} columns, but x has {size} entries", "Give one column per entry of x")
        if self.linear is None:
            assert self.count is not None
            return self.count
        shape = _shape_of("shared", self.times, x)
        if self.b.ndim and shape != self.b.shape:
            refuse("shared", f"G(x) has shape {shape}, but b has shape {self.b.shape}", "Give one bound per row")
        return shape[0]

    def refuse_bent(self, x: PyTree) -> None:
        """Refuse a function G that is not linear at random points: G(0), G(u + v) and G(−2u) tell."""
        if self.linear is None:
            return
        rng = np.random.default_rng(0)
        u, v = (jax.tree.map(lambda leaf: rng.normal(size=np.shape(leaf)), x) for _ in range(2))
        sums, twice = jax.tree.map(np.add, u, v), jax.tree.map(lambda leaf: -2 * leaf, u)
        zero, seen = jax.tree.map(np.zeros_like, u), self.traced(x)
        at_0, at_u, at_v, at_sum, at_twice = (np.asarray(_times(seen, point)) for point in (zero, u, v, sums, twice))
        size = 1e-9 * (np.abs(at_u) + np.abs(at_v) + np.abs(at_0)).max(initial=0.0) + 1e-300
        if np.abs(at_0).max(initial=0.0) > size:
            refuse(
                "shared",
                f"G must be linear, but G(0) is not 0 (it reaches {np.abs(at_0).max():.3g})",
                "Move the constant over to b",
            )
        if max(np.abs(at_sum - at_u - at_v).max(initial=0.0), np.abs(at_twice + 2 * at_u).max(initial=0.0)) > size:
            refuse(
                "shared",
                "G must be linear, but at random points it is not",
                "Pass a convex function h with h(x) ≤ 0 meant, as shared=h",
            )

    def matrix(self, x: PyTree) -> Any:
        """G as a sparse matrix, for conic solvers."""
        if self.linear is not None:
            flat, unravel = ravel_pytree(jax.tree.map(jnp.zeros_like, x))
            return sp.csr_matrix(np.asarray(jax.jacrev(lambda v: self.times(unravel(v)))(flat)))
        if self.dense is not None:
            return sp.csr_matrix(self.dense)
        row, column, data = self.entries
        return sp.csr_matrix((data, (row, column)), shape=(self.count, self.width))

    def gram(self, x: PyTree) -> FloatArray:
        """G Gᵀ; where G is a function, from one product with G and one with Gᵀ per row."""
        if self.linear is None:
            G = self.matrix(x)
            return (G @ G.T).toarray()
        return np.asarray(_gram(self.traced(x), x, self.rows(x)))


@eqx.filter_jit
def _times(constraint: AffineConstraint, x: PyTree) -> Array:
    return constraint.times(x)


@eqx.filter_jit
def _gram(constraint: AffineConstraint, x: PyTree, rows: int) -> Array:
    zero = jax.tree.map(jnp.zeros_like, x)
    return jax.lax.map(lambda unit: constraint.times(constraint.pull(zero, unit)), jnp.eye(rows))


class ConvexConstraint(Coupling):
    """h(x) ≤ 0: `h` a function of all strategies in jax.numpy, each entry convex; a number is one constraint."""

    function: Any  # an `Opaque`, or `Traced`

    @known_arguments
    def __init__(self, h: Callable[..., Any]) -> None:
        if not callable(h):
            refuse("h", f"must be a function of x, but it is a {type(h).__name__}", "Pass h with h(x) ≤ 0 meant")
        self.function = Opaque(h)

    def traced(self, x: PyTree) -> Coupling:
        return self.replaced(function=traced(self.function, x))

    def value(self, x: PyTree) -> Array:
        return jnp.atleast_1d(self.function(x))

    def pull(self, x: PyTree, multipliers: Array) -> PyTree:
        return jax.vjp(self.value, x)[1](multipliers)[0]

    def rows(self, x: PyTree) -> int:
        return _shape_of("shared", self.value, x)[0]


class Several(Coupling):
    """Constraints of both kinds, one after another."""

    members: tuple[Coupling, ...]

    def __init__(self, members: tuple[Coupling, ...]) -> None:
        self.members = members

    def traced(self, x: PyTree) -> Coupling:
        return self.replaced(members=tuple(member.traced(x) for member in self.members))

    def value(self, x: PyTree) -> Array:
        return jnp.concatenate([member.value(x) for member in self.members])

    def pull(self, x: PyTree, multipliers: Array) -> PyTree:
        return jax.vjp(self.value, x)[1](multipliers)[0]

    def rows(self, x: PyTree) -> int:
        return sum(member.rows(x) for member in self.members)


def as_coupling(given: Shared | None) -> Coupling | None:
    """What a user may pass as `shared`: a constraint, a pair (G, b), a function h, or a list of these."""
    if given is None or isinstance(given, Coupling):
        return given
    if callable(given):
        return ConvexConstraint(given)
    if not isinstance(given, list | tuple) or not given:
        what = f"a {type(given).__name__}" if not isinstance(given, list | tuple) else "empty"
        refuse(
            "shared",
            f"must be a pair (G, b), a function h with h(x) ≤ 0, or a list of such, but it is {what}",
            "Write shared=(G, b), or ez.AffineConstraint(G, b), or ez.ConvexConstraint(h)",
        )
    several: list[Any] = list(given)
    if len(several) == 2 and _is_right_side(several[1]):
        return AffineConstraint(*several)
    if any(one is None for one in several):
        refuse("shared", "holds None", "Leave it out; a pair (G, b) needs both")
    members = [as_coupling(one) for one in several]
    affine = [one for one in members if isinstance(one, AffineConstraint) and one.linear is None]
    if len(affine) == len(members):
        bounds = [np.broadcast_to(one.b, one.count or 0) for one in affine]
        together: Any = sp.vstack([one.matrix(None) for one in affine])
        return AffineConstraint(together, np.concatenate(bounds))
    return Several(tuple(one for one in members if one is not None))


def _is_right_side(value: Any) -> bool:
    if value is None or callable(value) or isinstance(value, Coupling | dict) or sp.issparse(value):
        return False
    try:
        return real_array("b", value, allow_infinite=True, allow_nan=True).ndim <= 1
    except InputError:
        return isinstance(value, np.ndarray | complex)  # which is then refused by its name


def _matrix(G: Any) -> Any:
    blocks = G if isinstance(G, list | tuple) and any(sp.issparse(one) or np.ndim(one) == 2 for one in G) else [G]
    read: list[Any] = [sp.csr_matrix(one) if sp.issparse(one) else _dense("G", one) for one in blocks]
    if len({one.shape[0] for one in read}) > 1:
        refuse("G", f"its blocks have {[one.shape[0] for one in read]} rows", "Give every block one row per constraint")
    joined: Any = sp.hstack(read, format="csr").astype(np.float64)
    if not np.isfinite(joined.data).all():
        refuse("G", "must be finite, but it has an entry that is not", "Replace or drop that row")
    return joined


def _dense(argument: str, value: Real) -> Any:
    array = real_array(argument, value)
    if array.ndim not in (1, 2):
        refuse(argument, f"must be a matrix, but its shape is {array.shape}", "Give one row per constraint")
    return sp.csr_matrix(np.atleast_2d(array))


def _shape_of(argument: str, function: Callable[[PyTree], Any], x: PyTree) -> tuple[int, ...]:
    try:
        value = jax.eval_shape(function, x)
    except Exception as error:
        reason = str(error).splitlines()[0].rstrip(".")
        refuse(argument, f"cannot be evaluated at x: {reason}", "Make it a function of all strategies, in jax.numpy")
    shape: tuple[int, ...] = value.shape
    if not jnp.issubdtype(value.dtype, jnp.floating):
        refuse(argument, f"must return real numbers, but it returns {value.dtype}", "Return h(x), with h(x) ≤ 0 meant")
    if len(shape) != 1:
        refuse(argument, f"must return a number or a vector, but its shape is {shape}", "Return one entry a constraint")
    return shape
