"""The curvature and the reach of agents: what turns residuals into savings.

M_i is the own Hessian where it is proved to be constant, exactly; else μI, as a μ-strongly monotone pseudogradient
makes every own cost μ-strongly convex. A minimisation is a game of one agent.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from epszero._memory import remembered, shape_of
from epszero._points import flat_of, shaped_like
from epszero._types import FloatArray, PyTree
from epszero.certificates._base import Leaning
from epszero.certificates.case import Case
from epszero.certificates.residuals import Residuals
from epszero.facts import Constant, Gram, Known, OwnHessians, Provenance, Unknown, places_of
from epszero.oracles import PrimalDual
from epszero.problems import AggregativeGame, Game
from epszero.problems.backward import is_part
from epszero.sets import Set
from epszero.solve.equilibrium import fenchel_gaps

ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Curvatures:
    """M_i⁻¹ for every agent, and which entries of a flat point are its own."""

    places: list[Any]  # of each agent's entries
    inverse: list[Any] | FloatArray  # M_i⁻¹; or one number 1/μ for all; ∞ where none is known
    because: str
    leans_on: tuple[Leaning, ...]
    key: Hashable  # all that the inverses depend on besides the problem

    @cached_property
    def stacked(self) -> tuple[Any, Any] | None:
        """Places and inverses as arrays, where all agents have strategies of one size."""
        alike = len({len(place) for place in self.places}) == 1
        return (np.stack(self.places), self.inverse_stack) if alike else None

    @cached_property
    def inverse_stack(self) -> Any:
        """M_i⁻¹ along a leading axis, or the one number."""
        return self.inverse if isinstance(self.inverse, np.ndarray) else np.stack(self.inverse)

    def lengths(self, e: FloatArray) -> FloatArray:
        """‖M_i^{−½}e_i‖."""
        if isinstance(self.inverse, np.ndarray) and not np.isfinite(self.inverse):
            return np.full(len(self.places), np.inf)
        if self.stacked is not None:
            own = e[self.stacked[0]]
            bent = own * self.stacked[1] if self.stacked[1].ndim == 0 else np.einsum("iab,ib->ia", self.stacked[1], own)
            return np.sqrt(np.maximum(np.sum(own * bent, axis=1), 0.0))
        if isinstance(self.inverse, np.ndarray):
            return np.array([float(np.linalg.norm(e[place])) for place in self.places]) * np.sqrt(self.inverse)
        return np.array([np.sqrt(max(e[p] @ M @ e[p], 0.0)) for p, M in zip(self.places, self.inverse, strict=True)])

    @cached_property
    def steepest(self) -> FloatArray:
        """‖M_i^{−½}‖."""
        if isinstance(self.inverse, np.ndarray):
            finite = float(self.inverse) if np.isfinite(self.inverse) else 0.0
            return np.full(len(self.places), float(np.sqrt(finite)))
        return np.array([np.sqrt(np.linalg.norm(M, 2)) for M in self.inverse])

    def grams(self, residuals: Residuals) -> Gram:
        """C_iᵀM_i⁻¹C_i of every agent."""
        return self._of(residuals, "curvature", self._grams)

    def gram_of_all(self, residuals: Residuals) -> Gram:
        """Σ C_iᵀM_i⁻¹C_i."""
        return self._of(residuals, "all curvatures", lambda C: np.sum(self._grams(C), axis=0))

    def plain_grams(self, residuals: Residuals) -> Gram:
        """C_iᵀC_i of every agent."""
        return self._of(residuals, "agents", lambda C: np.stack([C[p].T @ C[p] for p in self.places]))

    def _of(self, residuals: Residuals, name: str, gram: Callable[[FloatArray], FloatArray]) -> Gram:
        """Worked out once for each C, whose own Gram matrix remembers."""
        C = residuals.map
        assert C is not None
        return remembered(residuals.gram, (name, self.key), lambda: Gram(gram(C)))

    def _grams(self, C: FloatArray) -> FloatArray:
        if isinstance(self.inverse, np.ndarray):
            factor = float(self.inverse) if np.isfinite(self.inverse) else 0.0  # ∞ is in the lengths already
            return np.stack([factor * C[place].T @ C[place] for place in self.places])
        return np.stack([C[p].T @ M @ C[p] for p, M in zip(self.places, self.inverse, strict=True)])


def curvatures(case: Case, search: bool = True) -> Curvatures | Unknown:
    """The agents' own curvatures, or why they are not known. `search`: μ is worth one, where it is not declared."""
    exact, convex, derivative, shared = (
        getattr(case.facts, name) for name in ("own_hessians", "convex", "derivative", "constraints")
    )
    unknown = next((one for one in (convex, derivative, shared) if isinstance(one, Unknown)), None)
    if unknown is not None or case.bent:
        return unknown or Unknown(str(case.bent[0]))
    worth = search or case.problem.declared.mu is not None
    shapes, mu = case.facts.shapes, case.mu if worth else Unknown("no μ is looked for")
    costs = *derivative_leaning(derivative), *constraints_leaning(case, shared)
    if isinstance(exact, OwnHessians) and exact.inverses is not None:
        return remembered(case.problem, ("curvatures", shapes, costs), lambda: _by_hessians(case, exact, costs))
    strong = mu.value if isinstance(mu, Constant) and mu.provenance is not Provenance.VIOLATED else None
    places = remembered(case.problem, ("places", shapes), lambda: places_of(case.problem, case.x))
    if strong is None or isinstance(mu, Unknown):
        leans_on = Leaning("own costs convex", convex.provenance, convex.evidence), *costs
        return Curvatures(places, np.array(np.inf), "support functions", leans_on, (shapes, None))
    said = f"½‖e‖²/μ with μ = {strong:.4g}"
    leans_on = Leaning.on("strong monotonicity μ", mu), *costs
    return Curvatures(places, np.array(1 / strong), said, leans_on, (shapes, strong))


def derivative_leaning(derivative: Known) -> tuple[Leaning, ...]:
    """What is said of B where it is not proved to be the derivative of the costs."""
    if derivative.provenance is Provenance.EXACT:
        return ()
    return (Leaning("B is the derivative of the costs", derivative.provenance, derivative.evidence),)


def constraints_leaning(case: Case, shared: Known) -> tuple[Leaning, ...]:
    """Shared constraints, whoever vouches for them."""
    if case.problem.coupling is None:
        return ()
    return (Leaning("shared constraints convex", shared.provenance, shared.evidence),)


def _by_hessians(case: Case, exact: OwnHessians, costs: tuple[Leaning, ...]) -> Curvatures:
    assert exact.inverses is not None
    convex = Leaning("own costs strongly convex", Provenance.EXACT, "constant own Hessians")
    places, shapes = places_of(case.problem, case.x), case.facts.shapes
    return Curvatures(places, exact.inverses, "½eᵀM⁻¹e with the own Hessians", (convex, *costs), (shapes, "exact"))


def slack_of(case: Case) -> float:
    """λᵀ[−h(x)]₊, 0 without shared constraints."""
    if case.problem.coupling is None or not isinstance(case.point, PrimalDual):
        return 0.0
    h = np.asarray(case.problem.coupling.value(case.x))
    return float(case.point.multipliers @ np.maximum(-h, 0.0))


def support_savings(case: Case, known: Curvatures, residuals: Residuals) -> FloatArray:
    """max_y ⟨F_i(x), x_i − y⟩ + g_i(x_i) − g_i(y) for every agent, over all F that are possible."""
    uncertain = uncertain_savings(case, known, residuals)
    if not np.isfinite(uncertain).any():
        return uncertain
    n = sum(len(place) for place in known.places)
    v = shaped_like(case.x, (residuals.centre - case.z)[:n])
    return np.maximum(fenchel_gaps(case.problem, case.x, v), 0.0) + uncertain


def uncertain_savings(case: Case, known: Curvatures, residuals: Residuals) -> FloatArray:
    """The part of `support_savings` that is due to F not being known, and so a lower bound of it: cheap to have."""
    far = reach(case, case.x)
    if residuals.map is not None:
        corners = _over_corners(case, known, residuals)
        if corners is not None:
            return corners
    if not np.isfinite(far).any() or (residuals.map is None and not residuals.round):
        return np.full(len(known.places), np.inf)
    if residuals.round:
        spread = np.full(len(far), residuals.radii[0])
    else:
        spread = np.asarray(residuals.through(known.plain_grams(residuals)))
    return np.where(np.isfinite(far), spread * np.where(np.isfinite(far), far, 0.0), np.inf)


def _over_corners(case: Case, known: Curvatures, residuals: Residuals) -> FloatArray | None:
    """max_y sup_v ⟨C_iv, x_i − y⟩ over the corners y of every agent's set; None where a set has many."""
    parts = jax.tree.leaves(case.problem.strategies.parts, is_leaf=is_part)
    leaves = jax.tree.leaves(case.x)
    # one part, one leaf and one agent belong together; a leaf of many rows is a point of a product, with other corners
    alone = len(parts) == len(leaves) == len(known.places) and all(np.ndim(leaf) == 1 for leaf in leaves)
    if case.anywhere or not alone or residuals.map is None or isinstance(case.problem, AggregativeGame):
        return None
    x, found = flat_of(case.x), np.empty(len(parts))
    for agent, (part, place) in enumerate(zip(parts, known.places, strict=True)):
        corners = part.corners(len(place)) if isinstance(part, Set) and part.exact else None
        if corners is None:
            return None
        moved = (x[place] - corners) @ residuals.map[place]  # (corners, d)
        found[agent] = np.max(residuals.against(moved), initial=0.0) * (1 + ROUNDING)
    return found


def reach(case: Case, x: PyTree) -> FloatArray:
    """How far an agent's other strategies can be from its own in x, ∞ where they are unbounded."""
    boxes = remembered(case.problem, ("extents", shape_of(x)), lambda: case.problem.strategies.each(_extent, x))
    squares = jax.tree.map(lambda leaf, around: _farthest(leaf, around, case.anywhere), x, boxes)
    if isinstance(case.problem, AggregativeGame):
        leaves = [np.reshape(leaf, (case.problem.agents, -1)).sum(axis=1) for leaf in jax.tree.leaves(squares)]
        return np.sqrt(np.sum(leaves, axis=0))
    blocks = squares if isinstance(case.problem, Game) else [squares]
    return np.sqrt([sum(float(np.sum(leaf)) for leaf in jax.tree.leaves(own)) for own in blocks])


class Extent(NamedTuple):
    """Around a set: corners shaped like the block, and the diameter of each row's set."""

    lower: FloatArray
    upper: FloatArray
    diameter: FloatArray
    rank: int


def _extent(part: Any, x: Any) -> "Around":
    """The smallest box around the part's domain."""
    rows = np.atleast_1d(np.asarray(x))
    if not isinstance(part, Set):
        return Around(Extent(np.full(rows.shape, -np.inf), np.full(rows.shape, np.inf), np.array(np.inf), 1))
    lower, upper = np.empty(rows.shape), np.empty(rows.shape)
    for place in np.ndindex(*rows.shape[-part.rank :]):
        unit = np.zeros(rows.shape)
        unit[(..., *place)] = 1.0
        upper[(..., *place)], lower[(..., *place)] = part.support(unit), -np.asarray(part.support(-unit))
    try:
        diameter = np.asarray(part.diameter())
    except ValueError:  # the dimension is open
        diameter = np.array(np.inf)
    return Around(Extent(lower, upper, diameter, part.rank))


class Around:
    """Holds a box where JAX would look into a tuple."""

    def __init__(self, box: Extent) -> None:
        self.box = box


def _farthest(x: Any, around: Around, anywhere: bool) -> Any:
    """The square of the distance from x, or from any point, to the farthest of the box, or of the diameter; per row."""
    box = around.box
    rows = np.atleast_1d(np.asarray(x))
    apart = box.upper - box.lower if anywhere else np.maximum(box.upper - rows, rows - box.lower)
    squares = np.square(apart)
    total = np.sum(squares, axis=tuple(range(-box.rank, 0)))
    return np.minimum(total, np.square(np.broadcast_to(box.diameter, total.shape)))
