"""`Case`: a solution as certificates see it: x, z, the samples, what is known of the problem; never the method's word.

Points are flat here: the entries of x, leaf after leaf, then the multipliers of shared constraints.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from epszero._double import to_numpy
from epszero._types import FloatArray, PyTree
from epszero.certificates._base import Leaning, cannot
from epszero.certificates.mean import MeanSet
from epszero.constants import (
    Constant,
    Extremes,
    Gram,
    Knowledge,
    Linear,
    Provenance,
    Region,
    TooLarge,
    affine_in_features,
    base_oracle,
    domain_diameter,
    extremes,
    features_region,
    first_rows,
    knowledge,
    noise_is_additive,
    noise_map,
)
from epszero.functions import Function
from epszero.oracles import Average, Blocks, Collapsed, OwnData
from epszero.problems import Problem
from epszero.problems._views import flat_of
from epszero.problems.backward import is_part
from epszero.samples import Samples
from epszero.sets import Set
from epszero.solve import Solution
from epszero.solve.setup import supports_of

MEMBERSHIP = 1e-7  # how far z may be from A(x), relative to ‖x‖‖z‖
STRAY = 1e-6  # relative: by which a declared constant must be missed to be called violated
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
    def knowledge(self) -> Knowledge:
        """What is derived from the problem's functions."""
        data = self.data(self.samples)
        supports = supports_of(self.problem, self.solution.samples)
        return knowledge(self.problem, supports, None if data is None else first_rows(data), self.x)

    @property
    def linear(self) -> Linear | None:
        """The Jacobian of B, where it is proved to be constant."""
        return self.knowledge.linear

    def collapsed(self, samples: list[Samples]) -> Collapsed | None:
        """The oracle through its features: as declared, or the samples themselves where it is proved affine in them."""
        place = tuple(map(id, samples))
        if place not in self._collapsed:
            self._collapsed[place] = samples, self._through_features(samples)  # the samples live as long as their place
        return self._collapsed[place][1]

    def _through_features(self, samples: list[Samples]) -> Collapsed | None:
        """Features that were found, not declared, count where the support of ξ says how far they reach."""
        found = self.problem.oracle.collapsed(self.data(samples), self.point)
        if found is None or found.own or self._features_are_declared:
            return found
        bounded = [self.feature_region(found, place, samples) is not None for place in range(len(found.phi))]
        return found if all(bounded) else None

    @property
    def _features_are_declared(self) -> bool:
        oracle = base_oracle(self.problem)
        parts = oracle.leaves if isinstance(oracle, Blocks) else [oracle]
        return all(part.structure in ("additive", "affine in features", "known") for part in parts)

    def feature_region(self, collapsed: Collapsed, place: int, samples: list[Samples]) -> Region | None:
        """Where the features of one data set can lie, as the support of ξ says; None where it does not."""
        own, phi = samples[collapsed.sets[place]], collapsed.phi[place]
        support = self.problem.declared.support if own.support is None else own.support
        if support is None:
            return None
        if phi is None:
            return Region.of(support, collapsed.features[place].shape[1])
        key = "features", place, shape_of(first_rows(own.values)), shape_of(support), _bytes(support)
        known = _maps.setdefault(self.problem, {})
        if key not in known:
            known[key] = features_region(phi, first_rows(own.values), support)
        return known[key]

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
        try:
            found = noise_map(collapsed, self.point, affine=self.affine(collapsed))
        except TooLarge as error:
            cannot(str(error))
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
        """Strong monotonicity of B."""
        found = self.knowledge.mu()
        return self._held_against(found, "slope", lambda seen, word: seen < word * (1 - STRAY))

    @cached_property
    def kappa(self) -> Constant | None:
        """The Lipschitz constant of every O(·, ξ)."""
        found = self.knowledge.kappa()
        return self._held_against(found, "steepness", lambda seen, word: seen > word * (1 + STRAY))

    @cached_property
    def theta(self) -> Constant | None:
        """Cocoercivity of every O(·, ξ)."""
        found = self.knowledge.theta()
        return self._held_against(found, "cocoercivity", lambda seen, word: seen < word * (1 - STRAY))

    def _held_against(self, found: Constant | None, of: str, worse: Callable[[float, float], bool]) -> Constant | None:
        """A declared constant is violated where random pairs of points, at some of the samples, say so."""
        if found is None or found.provenance is not Provenance.DECLARED:
            mixed = found is not None and self.knowledge.structure.degree.mixed
            return over_support(found) if found is not None and mixed else found
        seen = getattr(self._pairs, of)
        if not np.isfinite(seen.value) or not worse(seen.value, found.value):
            return found
        return Constant(found.value, Provenance.VIOLATED, f"it is {seen}")

    @cached_property
    def _pairs(self) -> Extremes:
        """What random pairs of points show; of the last data, remembered."""
        known = _maps.setdefault(self.problem, {})
        mark = shape_of(self.x), tuple(one.digest() for one in self.samples)
        if known.get("pairs", (None,))[0] != mark:
            known["pairs"] = mark, extremes(self.problem, self.data(self.samples), self.x, steps=1)
        return known["pairs"][1]

    @property
    def only_sets(self) -> bool:
        """Whether A is the normal cone of a set."""
        return all(isinstance(part, Set) for part in jax.tree.leaves(self.problem.strategies.parts, is_leaf=is_part))

    @cached_property
    def diameter(self) -> Constant | None:
        """Of the domain of A."""
        value = domain_diameter(self.problem.strategies, self.x)
        return Constant(value, Provenance.EXACT, "of the strategy sets") if np.isfinite(value) else None


def lean(name: str, constant: Constant) -> Leaning:
    """On a constant; a violated one ends the examination."""
    leaning = Leaning.on(name, constant)
    if constant.provenance is Provenance.VIOLATED:
        cannot(f"{name} = {constant.value:.4g} is declared, but {constant.evidence}: correct the declaration", leaning)
    return leaning


def over_support(found: Constant) -> Constant:
    """A constant that was derived over the support of ξ leans on whoever gave that."""
    if found.provenance is Provenance.VIOLATED:
        return found
    return Constant(found.value, Provenance.DECLARED, f"{found.provenance} over the declared support")


def remembered(problem: Problem, name: str, C: FloatArray, gram: Callable[[FloatArray], FloatArray]) -> Gram:
    """The Gram matrices that belong to C, computed again only for another C."""
    known = _maps.setdefault(problem, {})
    last = known.get(name)
    if last is None or last[0] is not C:
        known[name] = last = C, Gram(gram(C))
    return last[1]


def _bytes(tree: PyTree) -> Any:
    return tuple(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree))


@jax.jit
def evaluated(average: Average, point: PyTree) -> PyTree:
    """B(x), compiled once per kind of problem."""
    return average(point)


def shape_of(tree: PyTree) -> Any:
    """A key for points alike."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(np.shape(leaf) for leaf in leaves)
