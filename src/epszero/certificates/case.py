"""`Case`: a solution as certificates see it: x, z, the samples, what is known of the problem; never the method's word.

Points are flat here: the entries of x, leaf after leaf, then the multipliers of shared constraints.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._double import to_numpy
from epszero._points import add, inner, stack
from epszero._types import FloatArray, PyTree
from epszero.certificates._base import Leaning, cannot
from epszero.certificates.mean import MeanSet
from epszero.certificates.residuals import Gram
from epszero.constants import (
    Constant,
    Linear,
    Provenance,
    affine_in_features,
    collapsed_by_proof,
    first_rows,
    linear_part,
    noise_is_additive,
    worst,
)
from epszero.functions import Function
from epszero.oracles import Average, Collapsed, OwnData
from epszero.problems import Problem
from epszero.problems._views import flat_of
from epszero.problems.backward import is_part
from epszero.samples import Samples
from epszero.sets import Set
from epszero.solve import Solution

FEATURES = 2000  # of all data sets together, whose effect on x is worked out
WRITTEN = 4_000_000  # entries of C that are written down
MEMBERSHIP = 1e-7  # how far z may be from A(x), relative to ‖x‖‖z‖
TINY = 1e-2  # of that, where it cannot be taken into account

_maps: "WeakKeyDictionary[Problem, dict[Any, Any]]" = WeakKeyDictionary()


class Case:
    """Everything that an examination starts from. To be used inside `jax.enable_x64`."""

    def __init__(self, solution: Solution) -> None:
        self.solution = solution
        self.problem = solution.problem
        self.point = solution.point
        self.x = solution.x
        self.anywhere = False  # x stands for any point of the domain, as when planning
        self._collapsed: dict[Any, Any] = {}
        self.sets: dict[Any, MeanSet] = {}  # confidence sets that were computed together with those of other cases

    @property
    def samples(self) -> list[Samples]:
        """The data that the solution has seen, one entry or one per agent."""
        given = self.solution.samples
        return [] if given is None else list(given) if isinstance(given, list) else [given]

    def data(self, samples: list[Samples]) -> PyTree:
        """As oracles take them."""
        if not samples:
            return None
        own = isinstance(self.solution.samples, list)
        return OwnData(one.values for one in samples) if own else samples[0].values

    @cached_property
    def z(self) -> FloatArray:
        """The element of A(x), flat."""
        return flat_of(self.solution.element)

    def residual(self, average: Average) -> FloatArray:
        """z + B(x) for this B."""
        return self.z + flat_of(to_numpy(evaluated(average, self.point)))

    @cached_property
    def empirical(self) -> FloatArray:
        """ê = z + B̂(x), recomputed."""
        return self.residual(self.problem.oracle.average(self.data(self.samples), self.point))

    @cached_property
    def membership(self) -> tuple[bool, float]:
        """Whether x ∈ dom A, and how far z is from A(x)."""
        A = self.problem.A
        return A.in_domain(self.point), A.gap(self.point, self.solution.element)

    @property
    def fenchel(self) -> bool:
        """Whether the gap is a Fenchel gap, which what follows from ε can take into account."""
        return all(isinstance(part, Set | Function) for part in jax.tree.leaves(self.problem.A.parts, is_leaf=is_part))

    @property
    def inexactness(self) -> float:
        """η with ⟨z, x − y⟩ ≥ g(x) − g(y) − η for all y: 0 but for rounding, as z ∈ A(x)."""
        return max(self.membership[1], 0.0) if self.fenchel else 0.0

    def check_membership(self) -> None:
        """Nothing can be certified unless x ∈ dom A and z ∈ A(x), up to rounding."""
        if not all(np.isfinite(flat_of(tree)).all() for tree in (self.point, self.solution.element)):
            cannot("x or z is not finite")
        inside, gap = self.membership
        if not inside:
            cannot("x is not in the domain of A: solve again, or mend the point")
        room = MEMBERSHIP * (1 + float(np.linalg.norm(flat_of(self.point))) * float(np.linalg.norm(self.z)))
        if not abs(gap) <= room or (gap > TINY * room and not self.fenchel):
            cannot(f"z is not in A(x): the two differ by {gap:.3g} in the Fenchel gap")

    # -- structure -----------------------------------------------------------------------------------------------------

    @cached_property
    def linear(self) -> Linear | None:
        """The Jacobian of B, where it is proved to be constant."""
        return linear_part(self.problem, self.data(self.samples), self.x)

    def collapsed(self, samples: list[Samples]) -> Collapsed | None:
        """The oracle through its features: as declared, or the samples themselves where it is proved affine in them."""
        place = tuple(map(id, samples))
        if place not in self._collapsed:
            self._collapsed[place] = samples, self._through_features(samples)  # the samples live as long as their place
        return self._collapsed[place][1]

    def _through_features(self, samples: list[Samples]) -> Collapsed | None:
        data, oracle = self.data(samples), self.problem.oracle
        found = oracle.collapsed(data)
        if found is not None or data is None:
            return found
        key = "proof", shape_of(first_rows(data)), shape_of(self.point)
        known = _maps.setdefault(self.problem, {})
        if known.get(key, True):
            found = collapsed_by_proof(oracle, data, self.point)
            known[key] = found is not None
        return found

    def additive(self, collapsed: Collapsed) -> bool:
        """Whether the noise is proved to be additive."""
        return self._proved("additive", noise_is_additive, collapsed)

    def affine(self, collapsed: Collapsed) -> bool:
        """Whether the oracle is proved to be affine in its features."""
        return self._proved("affine", affine_in_features, collapsed)

    def _proved(self, name: str, proof: Callable[..., bool], collapsed: Collapsed) -> bool:
        key = name, tuple(rows.shape[1] for rows in collapsed.features), shape_of(self.point)
        known = _maps.setdefault(self.problem, {})
        if key not in known:
            known[key] = proof(collapsed, self.point)
        return known[key]

    def noise_map(self, collapsed: Collapsed) -> tuple[FloatArray | None, Gram]:
        """C at x, where it can be written down, and CᵀC; remembered where C does not depend on x."""
        sizes = tuple(rows.shape[1] for rows in collapsed.features)
        constant = self.additive(collapsed)
        key = "map", sizes, shape_of(self.point)
        known = _maps.setdefault(self.problem, {})
        if constant and key in known:
            return known[key]
        if sum(sizes) > FEATURES:
            cannot(
                f"the noise has {sum(sizes)} features in all, too many to bound its effect on x (at most {FEATURES})"
            )
        average, tangents = _tangents(collapsed, sizes)
        small = sum(sizes) * len(self.z) <= WRITTEN
        if not small and not self.affine(collapsed):
            cannot("the oracle is declared affine in features, which was not proved, and x is too large to do without")
        if small:
            columns = to_numpy(_columns(average, tangents, self.point) if self.affine(collapsed) else
                               _differences(average, tangents, self.point))  # fmt: skip
            C = np.concatenate([np.reshape(leaf, (len(leaf), -1)) for leaf in jax.tree.leaves(columns)], axis=1).T
            found = C, Gram(C.T @ C)
        else:
            found = None, Gram(np.asarray(_gram(average, tangents, self.point)))
        if constant:
            known[key] = found
        return found

    def seen_through(self, C: FloatArray) -> Gram:
        """Cᵀ(νH − I)⁻¹C for the S-lemma's ν; those of the last C are remembered."""
        assert self.linear is not None
        return remembered(self.problem, "S-lemma", C, self.linear.seen_through)

    # -- constants ----------------------------------------------------------------------------------------------------

    @cached_property
    def mu(self) -> Constant | None:
        """Strong monotonicity of B: exact where B is affine, else as declared."""
        declared = self.problem.declared.mu
        if self.linear is None:
            return self._declared("mu")
        exact = self.linear.mu
        if declared is not None and declared > exact * (1 + 1e-6) + 1e-12:
            return Constant(declared, Provenance.VIOLATED, f"the Jacobian's least eigenvalue is {exact:.4g}")
        return Constant(exact, Provenance.EXACT, "B is affine") if exact > 0 else None

    @cached_property
    def kappa(self) -> Constant | None:
        """The Lipschitz constant of every O(·, ξ): exact where B is affine with additive noise, else as declared."""
        if self.linear is not None:
            return Constant(self.linear.kappa, Provenance.EXACT, "B is affine")
        return self._declared("kappa")

    @cached_property
    def theta(self) -> Constant | None:
        """Cocoercivity of every O(·, ξ): as declared, or 1/κ for a gradient."""
        declared = self._declared("theta")
        if declared is not None and self.linear is not None and not self.linear.cocoercive(declared.value):
            return Constant(declared.value, Provenance.VIOLATED, "the Jacobian is not so cocoercive")
        if declared is not None:
            return declared
        exact = self.linear is not None and self.linear.symmetric and self.linear.monotone
        if self.kappa is not None and (exact or self.problem.is_gradient or self.problem.declared.gradient):
            how = Provenance.EXACT if exact else Provenance.DECLARED
            return Constant(1 / self.kappa.value, worst([how, self.kappa.provenance]), "1/κ, as B is a gradient")
        return None

    @property
    def only_sets(self) -> bool:
        """Whether A is the normal cone of a set."""
        return all(isinstance(part, Set) for part in jax.tree.leaves(self.problem.strategies.parts, is_leaf=is_part))

    @cached_property
    def diameter(self) -> Constant | None:
        """Of the domain of A."""
        found = [np.sum(np.square(part)) for part in jax.tree.leaves(self.problem.strategies.each(_width, self.x))]
        value = float(np.sqrt(np.sum(found)))
        return Constant(value, Provenance.EXACT, "of the strategy sets") if np.isfinite(value) else None

    def _declared(self, name: str) -> Constant | None:
        value = getattr(self.problem.declared, name)
        return None if value is None else Constant(value, Provenance.DECLARED, "ez.declare")


def lean(name: str, constant: Constant) -> Leaning:
    """On a constant; a violated one ends the examination."""
    leaning = Leaning.on(name, constant)
    if constant.provenance is Provenance.VIOLATED:
        cannot(f"{name} = {constant.value:.4g} is declared, but {constant.evidence}: correct the declaration", leaning)
    return leaning


def remembered(problem: Problem, name: str, C: FloatArray, gram: Callable[[FloatArray], FloatArray]) -> Gram:
    """The Gram matrices that belong to C, computed again only for another C."""
    known = _maps.setdefault(problem, {})
    last = known.get(name)
    if last is None or last[0] is not C:
        known[name] = last = C, Gram(gram(C))
    return last[1]


@jax.jit
def evaluated(average: Average, point: PyTree) -> PyTree:
    """B(x), compiled once per kind of problem."""
    return average(point)


def shape_of(tree: PyTree) -> Any:
    """A key for points alike."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(np.shape(leaf) for leaf in leaves)


def _width(part: Any, x: Any) -> Any:
    """The diameter of the part's domain, one for each row that it acts on."""
    diameter = getattr(part, "diameter", None)
    if diameter is None:
        return np.inf
    rank = part.rank
    rows = np.shape(np.atleast_1d(x))[:-rank]
    try:
        return np.broadcast_to(np.asarray(diameter()), rows)
    except ValueError:  # its dimension is open: a box around it
        return np.inf


def _tangents(collapsed: Collapsed, sizes: tuple[int, ...]) -> tuple[Average, Average]:
    """B at zero features, and for each feature the direction in which it moves B, stacked."""
    zero = [np.zeros(size) for size in sizes]
    base = collapsed.at(zero)
    ends = np.cumsum(sizes)[:-1]
    units = [collapsed.at(np.split(row, ends)) for row in np.eye(sum(sizes))]
    return base, stack([jax.tree.map(jnp.subtract, unit, base) for unit in units])


@eqx.filter_jit
def _columns(average: Average, tangents: Average, point: PyTree) -> PyTree:
    return jax.vmap(lambda tangent: jax.jvp(lambda B: B(point), (average,), (tangent,))[1])(tangents)


@eqx.filter_jit
def _differences(average: Average, tangents: Average, point: PyTree) -> PyTree:
    """The same by evaluation, which no derivative of the user's making can deceive."""
    base = average(point)
    return jax.vmap(lambda tangent: jax.tree.map(jnp.subtract, add(average, tangent)(point), base))(tangents)


@eqx.filter_jit
def _gram(average: Average, tangents: Average, point: PyTree) -> Any:
    _, pull = jax.vjp(lambda B: B(point), average)

    def row(tangent: PyTree) -> Any:
        image = pull(jax.jvp(lambda B: B(point), (average,), (tangent,))[1])[0]
        return jax.vmap(lambda other: inner(other, image))(tangents)

    return jax.lax.map(row, tangents)
