"""The curvature and the reach of agents: what turns residuals into savings.

M_i is the own Hessian where it is proved to be constant, exactly; else μI, as a μ-strongly monotone pseudogradient
makes every own cost μ-strongly convex. A minimisation is a game of one agent.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np

from epszero._degrees import degrees
from epszero._points import inner, norm
from epszero._types import FloatArray, PyTree
from epszero.certificates._base import Leaning
from epszero.certificates.case import Case, remembered, shape_of
from epszero.certificates.residuals import Residuals
from epszero.constants import Gram, Provenance, first_rows
from epszero.oracles import Average, OwnData, PrimalDual
from epszero.problems import AggregativeGame, Game, Problem
from epszero.problems._viewing import view_of
from epszero.problems._views import flat_of, shaped_like
from epszero.problems.feasible import points_around
from epszero.problems.game import with_own
from epszero.sets import Set
from epszero.solve.equilibrium import fenchel_gaps

HESSIANS = 4_000_000  # entries of all own Hessians together that are written down

_known: "WeakKeyDictionary[Problem, dict[Any, Any]]" = WeakKeyDictionary()


@dataclass(eq=False)
class Curvatures:
    """M_i⁻¹ for every agent, and which entries of a flat point are its own."""

    places: list[Any]  # of each agent's entries
    inverse: list[Any] | FloatArray  # M_i⁻¹; or one number 1/μ for all; ∞ where none is known
    because: str
    leans_on: tuple[Leaning, ...]

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

    def grams(self, case: Case, C: Any) -> Gram:
        """C_iᵀM_i⁻¹C_i of every agent."""
        return remembered(case.problem, "curvature", C, self._grams)

    def gram_of_all(self, case: Case, C: Any) -> Gram:
        """Σ C_iᵀM_i⁻¹C_i."""
        return remembered(case.problem, "all curvatures", C, lambda C: np.sum(self.grams(case, C).K, axis=0))

    def plain_grams(self, case: Case, C: Any) -> Gram:
        """C_iᵀC_i of every agent."""
        return remembered(case.problem, "agents", C, lambda C: np.stack([C[p].T @ C[p] for p in self.places]))

    def _grams(self, C: FloatArray) -> FloatArray:
        if isinstance(self.inverse, np.ndarray):
            factor = float(self.inverse) if np.isfinite(self.inverse) else 0.0  # ∞ is in the lengths already
            return np.stack([factor * C[place].T @ C[place] for place in self.places])
        return np.stack([C[p].T @ M @ C[p] for p, M in zip(self.places, self.inverse, strict=True)])


def curvatures(case: Case) -> Curvatures | str:
    """The agents' own curvatures, or why they are not known."""
    key = shape_of(case.x)
    known = _known.setdefault(case.problem, {})
    if key not in known:
        known[key] = _curvatures(case)
    return known[key]


def _curvatures(case: Case) -> Curvatures | str:
    places = _places(case)
    if sum(len(place) ** 2 for place in places) > HESSIANS:
        return f"the own Hessians of {len(places)} agents are too many to be written down"
    exact = _own_hessians(case, places)
    if exact is not None:
        least = min(np.linalg.eigvalsh(M)[0] for M in exact)
        if least < -1e-9 * max(np.abs(M).max() for M in exact):
            return f"own costs are not convex: an own Hessian has the eigenvalue {least:.3g}"
        if least > 0:
            convex = Leaning("own costs strongly convex", Provenance.EXACT, "constant own Hessians")
            return Curvatures(places, [np.linalg.inv(M) for M in exact], "½eᵀM⁻¹e with the own Hessians", (convex,))
    known = (Provenance.DECLARED, "what a game takes for granted") if exact is None else (
        Provenance.EXACT, "constant own Hessians")  # fmt: skip
    convex = Leaning("own costs convex", *known)
    if case.mu is None or case.mu.provenance is Provenance.VIOLATED:
        return Curvatures(places, np.array(np.inf), "support functions", (convex,))
    leans = (Leaning.on("strong monotonicity μ", case.mu),)
    return Curvatures(places, np.array(1 / case.mu.value), f"½‖e‖²/μ with μ = {case.mu.value:.4g}", leans)


def _places(case: Case) -> list[Any]:
    """Which entries of a flat point belong to each agent."""
    numbers = np.arange(len(flat_of(case.x)), dtype=float)
    if not isinstance(case.problem, Game | AggregativeGame):
        return [numbers.astype(int)]
    tree = shaped_like(case.x, numbers)
    if isinstance(case.problem, Game):
        return [flat_of(own).astype(int) for own in tree]
    rows = [np.reshape(leaf, (case.problem.agents, -1)) for leaf in jax.tree.leaves(tree)]
    return list(np.concatenate(rows, axis=1).astype(int))


def _own_hessians(case: Case, places: list[Any]) -> list[FloatArray] | None:
    """Where they are proved to depend on neither strategies nor samples."""
    if not isinstance(case.problem, Game | AggregativeGame):
        return None if case.linear is None else [(case.linear.jacobian + case.linear.jacobian.T) / 2]
    if not _own_gradients_are_affine(case, case.problem):
        return None
    view, agents = view_of(case.problem, case.data(case.samples), case.x), range(len(places))
    return [(model.hessian + model.hessian.T) / 2 for model in view.models(case.x, case.x, agents)]


def _own_gradients_are_affine(case: Case, game: Game | AggregativeGame) -> bool:
    """Whether each own gradient is proved to be affine in the own strategy, with a slope that nothing else enters."""
    row = first_rows(case.data(case.samples))
    rows = list(row) if isinstance(row, OwnData) else [row] * game.agents
    if isinstance(game, Game):
        parts = game.gradients
        found = [
            degrees(lambda own, rest, i=i: parts[i](with_own(rest[0], i, own), rest[1]), case.x[i], (case.x, seen))
            for i, seen in enumerate(rows)
        ]
    else:
        agents = game.oracle_of_agents
        own, parameters = (jax.tree.map(lambda leaf: np.asarray(leaf)[0], tree) for tree in (case.x, game.parameters))
        alone = agents.private and not isinstance(row, OwnData)
        seen = jax.tree.map(lambda leaf: leaf[0], rows[0]) if alone else rows[0]

        def gradient(own: PyTree, rest: PyTree) -> PyTree:
            average = jax.tree.map(lambda mean, mine: mean + mine / game.agents, rest[0], own)
            xi = rest[1] if agents.features is None or rest[1] is None else agents.features((), rest[1])
            return game.gradient(own, average, xi, parameters)

        found = [degrees(gradient, own, (own, seen))]
    return all(degree.u <= 1 and not degree.mixed for degree in found)


def not_convex(case: Case) -> str | None:
    """The evidence that the loss of a minimisation is not convex, between some points of the domain."""
    if case.linear is not None:
        return None
    average = case.problem.oracle.average(case.data(case.samples), case.point)
    points = [point for spread in (1.0, 100.0) for point in points_around(case.problem.strategies, case.x, spread)]
    rng = np.random.default_rng(0)
    for point in points:
        direction = jax.tree.map(lambda leaf: rng.normal(size=np.shape(leaf)), point)
        along, size = (float(number) for number in _curvature(average, point, direction))
        if along < -1e-8 * size:
            return f"the loss is not convex: at a point near x its curvature in some direction is {along:.3g}"
    return None


@jax.jit
def _curvature(average: Average, point: PyTree, direction: PyTree) -> tuple[Any, Any]:
    """dᵀHd/‖d‖² for the Jacobian H of B there, and ‖Hd‖/‖d‖."""
    slope = jax.jvp(average, (point,), (direction,))[1]
    return inner(slope, direction) / inner(direction, direction), norm(slope) / norm(direction)


def slack_of(case: Case) -> float:
    """λᵀ[−h(x)]₊, 0 without shared constraints."""
    if case.problem.coupling is None or not isinstance(case.point, PrimalDual):
        return 0.0
    h = np.asarray(case.problem.coupling.value(case.x))
    return float(case.point.multipliers @ np.maximum(-h, 0.0))


def support_savings(case: Case, known: Curvatures, residuals: Residuals) -> FloatArray:
    """max_y ⟨F_i(x), x_i − y⟩ + g_i(x_i) − g_i(y) for every agent, over all F that are possible."""
    far = reach(case, case.x)
    if not np.isfinite(far).any():
        return np.full(len(known.places), np.inf)
    n = sum(len(place) for place in known.places)
    v = shaped_like(case.x, (residuals.centre - case.z)[:n])
    gaps = np.maximum(fenchel_gaps(case.problem, case.x, v), 0.0)
    if residuals.round:
        spread = np.full(len(gaps), residuals.radii[0])
    elif residuals.map is None:
        return np.full(len(gaps), np.inf)
    else:
        spread = np.asarray(residuals.through(known.plain_grams(case, residuals.map)))
    return np.where(np.isfinite(far), gaps + spread * np.where(np.isfinite(far), far, 0.0), np.inf)


def reach(case: Case, x: PyTree) -> FloatArray:
    """How far an agent's other strategies can be from its own in x, ∞ where they are unbounded."""
    key = "boxes", shape_of(x)
    boxes = _known.setdefault(case.problem, {})
    if key not in boxes:
        boxes[key] = case.problem.strategies.each(_box, x)
    squares = jax.tree.map(lambda leaf, around: _farthest(leaf, around, case.anywhere), x, boxes[key])
    if isinstance(case.problem, AggregativeGame):
        leaves = [np.reshape(leaf, (case.problem.agents, -1)).sum(axis=1) for leaf in jax.tree.leaves(squares)]
        return np.sqrt(np.sum(leaves, axis=0))
    blocks = squares if isinstance(case.problem, Game) else [squares]
    return np.sqrt([sum(float(np.sum(leaf)) for leaf in jax.tree.leaves(own)) for own in blocks])


class Box(NamedTuple):
    """Around a set: corners shaped like the block, and the diameter of each row's set."""

    lower: FloatArray
    upper: FloatArray
    diameter: FloatArray
    rank: int


def _box(part: Any, x: Any) -> "Around":
    """The smallest box around the part's domain."""
    rows = np.atleast_1d(np.asarray(x))
    if not isinstance(part, Set):
        return Around(Box(np.full(rows.shape, -np.inf), np.full(rows.shape, np.inf), np.array(np.inf), 1))
    lower, upper = np.empty(rows.shape), np.empty(rows.shape)
    for place in np.ndindex(*rows.shape[-part.rank :]):
        unit = np.zeros(rows.shape)
        unit[(..., *place)] = 1.0
        upper[(..., *place)], lower[(..., *place)] = part.support(unit), -np.asarray(part.support(-unit))
    try:
        diameter = np.asarray(part.diameter())
    except ValueError:  # the dimension is open
        diameter = np.array(np.inf)
    return Around(Box(lower, upper, diameter, part.rank))


class Around:
    """Holds a box where JAX would look into a tuple."""

    def __init__(self, box: Box) -> None:
        self.box = box


def _farthest(x: Any, around: Around, anywhere: bool) -> Any:
    """The square of the distance from x, or from any point, to the farthest of the box, or of the diameter; per row."""
    box = around.box
    rows = np.atleast_1d(np.asarray(x))
    apart = box.upper - box.lower if anywhere else np.maximum(box.upper - rows, rows - box.lower)
    squares = np.square(apart)
    total = np.sum(squares, axis=tuple(range(-box.rank, 0)))
    return np.minimum(total, np.square(np.broadcast_to(box.diameter, total.shape)))
