"""Whether any strategies meet the shared constraints: a conic programme that minimises their total violation.

min Σ s_j  over x ∈ Ω_1 × … × Ω_N, s ≥ 0, with G x − s ≤ b. A positive minimum proves that no x is feasible, and the
rows with s_j > 0 are named. A convex h is replaced by its tangents h(x_k) + ∇h(x_k)(x − x_k) ≤ s, which lie below it,
so that a positive minimum is a proof too; more tangents are added until one answer or the other is certain (Kelley).
A block whose set has no conic form, or a function, is left free, which only makes the proof harder.
"""

from itertools import combinations
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._checks import InputError, refuse
from epszero._double import double
from epszero._lazy import sp
from epszero._types import Array, FloatArray, PyTree
from epszero.oracles import Coupling
from epszero.problems.backward import Backward
from epszero.problems.seen import NotConvex
from epszero.problems.shared import AffineConstraint
from epszero.sets import Set
from epszero.sets.conic import ConicForm, minimise

if TYPE_CHECKING:
    from epszero.problems._base import Problem

BENT = 1e-8  # above the chord, relative to the values, beyond rounding
LARGEST = 20_000  # entries of x beyond which the question is left open
ROUNDS = 40  # tangents of each convex constraint
VIOLATED = 1e-6  # relative to the size of a row


def refuse_infeasible(problem: "Problem", x: PyTree = None) -> None:
    """Refuse, in a sentence, shared constraints that no strategies meet; at construction where the shapes are known."""
    if problem.coupling is None:
        return
    x = problem.start if x is None else x
    if any(leaf is None for leaf in jax.tree.leaves(x, is_leaf=lambda leaf: leaf is None)):
        return
    with double():
        problem.coupling.rows(x)
        if isinstance(problem.coupling, AffineConstraint):
            problem.coupling.refuse_bent(x)
        elif bent_constraint(problem.coupling, points_around(problem.strategies, x)):
            return  # tangents prove nothing
        if sum(np.size(leaf) for leaf in jax.tree.leaves(x)) > LARGEST:
            return
        violation = _least_violation(problem, x)
    broken = np.flatnonzero(violation > VIOLATED)
    if len(broken):
        named = ", ".join(f"constraint {row} by {violation[row]:.3g}" for row in broken[:10])
        refuse(
            "shared",
            f"no strategies meet all the constraints: at the least total violation, {named} of its size stays violated",
            "Relax these constraints, or enlarge the strategy sets",
        )


def points_around(strategies: Backward, x: PyTree, spread: float = 1.0) -> list[PyTree]:
    """x, two strategies on both sides of it, and the midpoints between these three; the same every time."""
    rng = np.random.default_rng(0)
    away = jax.tree.map(lambda leaf: spread * (1 + np.abs(leaf)) * rng.normal(size=np.shape(leaf)), x)
    u, v = (strategies.into_domain(jax.tree.map(lambda a, b, s=sign: a + s * b, x, away)) for sign in (1, -1))
    return [x, u, v, *(jax.tree.map(lambda a, b: (a + b) / 2, *pair) for pair in ((x, u), (x, v), (u, v)))]


def bent_constraint(coupling: Coupling | None, points: list[PyTree]) -> NotConvex | None:
    """The evidence that a shared constraint is not convex, None where there is none."""
    if coupling is None or coupling.affine:
        return None
    values = _values(coupling, tuple(points))
    size = np.max(np.abs(values), axis=0)
    for (i, u), (j, v) in combinations(enumerate(points), 2):
        (between,) = _values(coupling, (jax.tree.map(lambda a, b: (a + b) / 2, u, v),))
        gap = between - (values[i] + values[j]) / 2
        bent = np.flatnonzero(gap > BENT * size)
        if len(bent):
            row = int(bent[0])
            return NotConvex(
                "shared",
                None,
                f"constraint {row} is not convex: halfway between two strategies it is {gap[row]:.3g} above the mean "
                "of its values there. What is found may not be an equilibrium.",
            )
    return None


def _values(coupling: Coupling, points: tuple[PyTree, ...]) -> list[FloatArray]:
    return [np.asarray(_value(coupling.traced(points[0]), point)) for point in points]


@eqx.filter_jit
def _value(coupling: Coupling, x: PyTree) -> Array:
    return coupling.value(x)


def _least_violation(problem: "Problem", x: PyTree) -> FloatArray:
    """Of every constraint, relative to the size of its row; zeros where nothing is proved."""
    coupling = problem.coupling
    assert coupling is not None
    rows = coupling.rows(x)
    form = product_form(problem.strategies, x)
    if isinstance(coupling, AffineConstraint):
        G, b = coupling.matrix(x), np.broadcast_to(coupling.b, rows)
        return _elastic(form, G, b, np.arange(rows), rows)[1]
    flat, _ = ravel_pytree(jax.tree.map(np.asarray, x))
    try:
        coupling = coupling.traced(x)
        jax.eval_shape(_tangent, coupling, x, flat)
    except Exception as error:
        why = str(error).splitlines()[0].rstrip(".")
        remedy = "Compute with jax.numpy, or write it down (jax.custom_vjp)"
        raise InputError.about("shared", f"its derivative cannot be computed: {why}", remedy) from error
    cuts: list[Any] = []
    bounds: list[FloatArray] = []
    point = np.asarray(flat)
    for _ in range(ROUNDS):
        value, slope = (np.asarray(part) for part in _tangent(coupling, x, point))
        if not np.isfinite(value).all() or not np.isfinite(slope).all() or (value <= 0).all():
            return np.zeros(rows)
        cuts.append(sp.csr_matrix(slope))
        bounds.append(slope @ point - value)
        which = np.tile(np.arange(rows), len(cuts))
        point, violation = _elastic(form, sp.vstack(cuts, format="csr"), np.concatenate(bounds), which, rows)
        if (violation > VIOLATED).any():
            return violation
    return np.zeros(rows)


@jax.jit
def _tangent(coupling: Coupling, x: PyTree, v: Any) -> tuple[Array, Array]:
    """h and its slope at a flat point; x shows how it is nested."""
    unravel = ravel_pytree(x)[1]
    return coupling.value(unravel(v)), jax.jacrev(lambda u: coupling.value(unravel(u)))(v)


def _elastic(form: ConicForm, G: Any, b: FloatArray, which: Any, rows: int) -> tuple[FloatArray, FloatArray]:
    """(x, s) of min Σ s over Gx − s ≤ b, every row of G scaled to size 1; several rows may share one s."""
    import clarabel  # noqa: PLC0415  (only shared constraints need it)

    size = np.sqrt(np.asarray(G.multiply(G).sum(axis=1)).ravel()) + np.abs(b)
    size = np.where(size > 0, size, 1.0)
    n, extra = form.n, form.A.shape[1] - form.n
    slack = sp.csr_matrix((np.ones(len(b)), (np.arange(len(b)), which)), shape=(len(b), rows))
    A = sp.vstack(
        [
            sp.hstack([form.A[:, :n], sp.csr_matrix((form.A.shape[0], rows)), form.A[:, n:]]),
            sp.hstack([sp.diags(1 / size) @ G, -slack, sp.csr_matrix((len(b), extra))]),
            sp.hstack([sp.csr_matrix((rows, n)), -sp.identity(rows), sp.csr_matrix((rows, extra))]),
        ],
        format="csr",
    )
    cones = (*form.cones, clarabel.NonnegativeConeT(len(b)), clarabel.NonnegativeConeT(rows))
    whole = ConicForm(A, np.concatenate([form.b, b / size, np.zeros(rows)]), cones, n + rows)
    result = minimise(whole, np.concatenate([np.zeros(n), np.ones(rows)]))
    if result.status != "solved":
        return np.zeros(n), np.zeros(rows)
    return result.x[:n], result.x[n:]


def product_form(strategies: Backward, x: PyTree) -> ConicForm:
    """All strategy sets as one conic form over the entries of x in their order; a block without one is free."""
    blocks: list[ConicForm] = []
    strategies.each(lambda part, leaf: blocks.extend(_leaf_forms(part, leaf)), x)
    n, extra = sum(form.n for form in blocks), sum(form.A.shape[1] - form.n for form in blocks)
    rows, at, aux = [], 0, n
    for form in blocks:
        entries = form.A.tocoo()
        column = np.where(entries.col < form.n, entries.col + at, entries.col - form.n + aux)
        rows.append(sp.csr_matrix((entries.data, (entries.row, column)), shape=(form.A.shape[0], n + extra)))
        at, aux = at + form.n, aux + form.A.shape[1] - form.n
    cones = tuple(cone for form in blocks for cone in form.cones)
    return ConicForm(sp.vstack(rows, format="csr"), np.concatenate([form.b for form in blocks]), cones, n)


def is_conic(part: Any, n: int) -> bool:
    """Whether a single part is a set with a conic form in Rⁿ."""
    try:
        form = part.conic(n) if isinstance(part, Set) else None
    except InputError:
        return False
    return form is not None


def _leaf_forms(part: Any, leaf: Any) -> list[ConicForm]:
    """The conic forms of the sets that one leaf of x lies in, one per row of its batch; no rows where there is none."""
    shape = np.shape(leaf) or (1,)
    rank = part.rank if isinstance(part, Set) else len(shape)
    n = int(np.prod(shape[len(shape) - rank :]))
    places = list(np.ndindex(shape[: len(shape) - rank]))
    batched = isinstance(part, Set) and part.batch_shape
    members = [part.member(place) for place in places] if batched else [part] * len(places)
    free = ConicForm(sp.csr_matrix((0, n)), np.zeros(0), (), n)
    return [member.conic(n) if is_conic(member, n) else free for member in members]
