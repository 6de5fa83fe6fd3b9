"""`Case`: what certificates start from: a problem, x, z, the samples, what is known; never the method's word.

Points are flat here: the entries of x, leaf after leaf, then the multipliers of shared constraints.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from epszero._double import to_numpy
from epszero._memory import key_of, remembered, shape_of
from epszero._points import flat_of
from epszero._types import FloatArray, PyTree
from epszero.certificates._base import Leaning, cannot
from epszero.certificates.mean import MeanSet
from epszero.facts import (
    Constant,
    ConstantJacobian,
    Facts,
    Gram,
    Observed,
    Provenance,
    Region,
    TooLarge,
    Unknown,
    affine_in_features,
    base_oracle,
    features_region,
    first_rows,
    noise_is_additive,
    noise_map,
)
from epszero.functions import Function
from epszero.methods import Method
from epszero.oracles import Average, Blocks, Collapsed, Oracle, OwnData, strategies
from epszero.problems import Problem
from epszero.problems.backward import is_part
from epszero.problems.graph import Graph, graph_near
from epszero.problems.refuted import contradicted, roughness
from epszero.problems.seen import NotConvex
from epszero.samples import Samples
from epszero.sets import Set
from epszero.solve import Solution
from epszero.solve.setup import examined, facts_at

MEMBERSHIP = 1e-7  # how far x may be from the graph of A, relative to ‖x‖, and in the Fenchel gap, to ‖x‖‖z‖
SAME = 1e-12  # relative to 1 + ‖x‖: points that rounding alone keeps apart
ROUGH = 1e-11  # relative: what a user's resolvent may be off by and count as exact
MONOTONE = "A monotone"


class HowFound(NamedTuple):
    """What stability arguments need of the run that found x."""

    method: Method  # settled
    iterations: int
    fixed: bool  # so many iterations were asked for, whatever the data


class Case:
    """Everything that an examination starts from. To be used inside `jax.enable_x64`."""

    def __init__(
        self,
        problem: Problem,
        point: PyTree,
        element: PyTree,
        samples: Samples | list[Samples] | None,
        *,
        kept_aside: Samples | None = None,
        run: "HowFound | Callable[[], HowFound] | None" = None,
        anywhere: bool = False,
    ) -> None:
        self.problem = problem
        self.found = point, element  # by the run
        self.given = samples  # as the run took them: one data set, or one per agent
        self.kept_aside = kept_aside
        self._run = run
        self.anywhere = anywhere  # x stands for any point of the domain
        self._collapsed: dict[Any, Any] = {}
        self._means: dict[Any, list[FloatArray]] = {}
        self.sets: dict[Any, MeanSet] = {}  # confidence sets that were computed together with those of other cases

    @staticmethod
    def of(solution: Solution) -> "Case":
        """A solution as certificates see it."""
        run = HowFound(solution.method, solution.iterations, solution.fixed_iterations)
        return Case(
            solution.problem,
            solution.point,
            solution.element,
            solution.samples,
            kept_aside=solution.holdout,
            run=run,
        )

    @cached_property
    def graph(self) -> Graph:
        """The pair of the graph of A that stands for the run's: the same, but for what a solver leaves."""
        point, element = self.found
        if self.anywhere or not all(np.isfinite(flat_of(tree)).all() for tree in self.found):
            return Graph(point, element, 0.0, 0.0, "")
        return graph_near(self.problem.A, point, element)

    @property
    def point(self) -> PyTree:
        """The point that is certified: strategies, with multipliers where constraints are shared."""
        return self.graph.x

    @property
    def element(self) -> PyTree:
        """The element of A there."""
        return self.graph.z

    @property
    def x(self) -> PyTree:
        """The strategies."""
        return strategies(self.point)

    @cached_property
    def run(self) -> HowFound | None:
        """How x was found; None where nothing ran, as when planning. Worked out where somebody leans on it."""
        return self._run() if callable(self._run) else self._run

    @property
    def own_data(self) -> bool:
        """Whether each agent has a data set of its own."""
        return isinstance(self.given, list)

    @cached_property
    def samples(self) -> list[Samples]:
        """The data that the solution has seen, one entry or one per agent."""
        return [] if self.given is None else list(self.given) if isinstance(self.given, list) else [self.given]

    def data(self, samples: list[Samples]) -> PyTree:
        """As oracles take them."""
        if not samples:
            return None
        return OwnData(one.values for one in samples) if self.own_data else samples[0].values

    @cached_property
    def z(self) -> FloatArray:
        """The element of A(x), flat."""
        return flat_of(self.element)

    def residual(self, average: Average) -> FloatArray:
        """z + B(x) for this B."""
        return self.z + flat_of(to_numpy(evaluated(average, self.point)))

    @cached_property
    def oracle(self) -> Oracle:
        """O at points like x and samples like these."""
        return self.problem.oracle.traced(self.point, first_rows(self.data(self.samples)))

    @cached_property
    def average(self) -> Average:
        """B̂."""
        return self.problem.oracle.average(self.data(self.samples), self.point)

    @cached_property
    def empirical(self) -> FloatArray:
        """ê = z + B̂(x), recomputed."""
        return self.residual(self.average)

    @property
    def inexactness(self) -> float:
        """η with ⟨z, x − y⟩ ≥ g(x) − g(y) − η for all y: 0 where z ∈ A(x) to rounding, more where a solver projects."""
        return self.graph.eta

    @property
    def moved(self) -> float:
        """How far the point that is certified is from the run's: 0 where the pair is of the graph to rounding."""
        return self.graph.moved

    @property
    def elsewhere(self) -> bool:
        """Whether that is more than rounding, so that costs at the one point say little of costs at the other."""
        return self.moved > SAME * (1 + float(np.linalg.norm(flat_of(self.found[0]))))

    def check_membership(self) -> None:
        """Nothing can be certified unless x ∈ dom A and z ∈ A(x), nearly, of a monotone A; how nearly is in `graph`."""
        if not all(np.isfinite(flat_of(tree)).all() for tree in self.found):
            cannot("x or z is not finite")
        point, element, eta, moved, _ = self.graph
        if not all(np.isfinite(flat_of(tree)).all() for tree in (point, element)):
            cannot("A's resolvent is not finite at x + z")
        size, length = float(np.linalg.norm(flat_of(self.found[0]))), float(np.linalg.norm(flat_of(self.found[1])))
        if not moved <= MEMBERSHIP * (1 + size):
            cannot(
                f"z is not in A(x), or x is not in the domain of A: A's resolvent at x + z is {moved:.3g} away from x. "
                "Solve again, or mend the point"
            )
        if not eta <= MEMBERSHIP * (1 + size * length):
            cannot(f"z is not in A(x): the two differ by {eta:.3g} in the Fenchel gap")
        if self.contradicted:
            said = f"A is not monotone, or not what it says: {self.contradicted}"
            cannot(said, Leaning(MONOTONE, Provenance.VIOLATED, self.contradicted))

    @cached_property
    def contradicted(self) -> str:
        """What shows that A is not what the user gives it for; empty where nothing does, or the library vouches."""
        return contradicted(self.problem, *self.found)

    @property
    def known_side(self) -> tuple[Leaning, ...]:
        """What leaning on A means: on nobody, or on whoever wrote it, or on the accuracy of a solver."""
        found: list[Leaning] = []
        if self.problem.A.unvouched:
            found.append(Leaning(MONOTONE, Provenance.DECLARED, "the user's own, and no two points contradict it"))
            rough = roughness(self.problem, *self.found)
            if rough > ROUGH:
                said = f"it seems to be good to {rough:.1g} only"
                found.append(Leaning("the resolvent of A accurate", Provenance.ESTIMATED, said))
        parts = jax.tree.leaves(self.problem.A.parts, is_leaf=is_part)
        if "run" in self.__dict__ and not all(part.exact for part in parts if isinstance(part, Set | Function)):
            said = "a solver projects, or nobody says that nothing but rounding is lost"
            found.append(Leaning("every step of the run exact", Provenance.ESTIMATED, said))
        if self.graph.doubt:
            found.append(Leaning("x ∈ dom A and z ∈ A(x)", Provenance.ESTIMATED, self.graph.doubt))
        return tuple(found)

    # -- structure -----------------------------------------------------------------------------------------------------

    @cached_property
    def facts(self) -> Facts:
        """What is derived from the problem's functions."""
        return facts_at(self.problem, self.given, self.x)

    @cached_property
    def observed(self) -> Observed:
        """What the samples show, where something is declared."""
        return Observed(self.facts, self.data(self.samples), self.samples)

    @cached_property
    def bent(self) -> tuple[NotConvex, ...]:
        """Costs and constraints that a closer look, near x and near the problem's own start, shows not to be convex."""
        return examined(self.facts, self.given, self.facts.x).bent or examined(self.facts, self.given, self.x).bent

    @property
    def jacobian(self) -> ConstantJacobian | None:
        """Of B, where it is proved to be constant."""
        return self.facts.jacobian

    def collapsed(self, samples: list[Samples]) -> Collapsed | None:
        """The oracle through its features: as declared, or the samples themselves where it is proved affine in them."""
        place = tuple(map(id, samples))
        if place not in self._collapsed:
            self._collapsed[place] = samples, self._through_features(samples)  # the samples live as long as their place
        return self._collapsed[place][1]

    def means(self, samples: list[Samples]) -> list[FloatArray]:
        """Of the features of each data set, where the oracle is seen through them."""
        place, collapsed = tuple(map(id, samples)), self.collapsed(samples)
        assert collapsed is not None
        if place not in self._means:
            self._means[place] = [np.mean(rows, axis=0) for rows in collapsed.features]
        return self._means[place]

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
        row = first_rows(own.values)
        key = "features", place, shape_of(row), key_of(support)
        return remembered(self.problem, key, lambda: features_region(phi, row, support))

    def additive(self, collapsed: Collapsed) -> bool:
        """Whether the noise is proved to be additive."""
        return self._proved("additive", noise_is_additive, collapsed)

    def affine(self, collapsed: Collapsed) -> bool:
        """Whether the oracle is proved to be affine in its features."""
        return self._proved("affine", affine_in_features, collapsed)

    def _proved(self, name: str, proof: Callable[..., bool], collapsed: Collapsed) -> bool:
        key = name, tuple(rows.shape[1] for rows in collapsed.features), shape_of(self.point)
        return remembered(self.problem, key, lambda: proof(collapsed, self.point))

    def noise_map(self, collapsed: Collapsed) -> tuple[FloatArray | None, Gram]:
        """C at x, where it can be written down, and CᵀC; remembered where C does not depend on x."""

        def found() -> tuple[FloatArray | None, Gram]:
            return noise_map(collapsed, self.point, affine=self.affine(collapsed))

        key = "map", tuple(rows.shape[1] for rows in collapsed.features), shape_of(self.point)
        try:
            return remembered(self.problem, key, found) if self.additive(collapsed) else found()
        except TooLarge as error:
            cannot(str(error))

    # -- constants ----------------------------------------------------------------------------------------------------

    @cached_property
    def mu(self) -> Constant | Unknown:
        """Strong monotonicity of B."""
        return self._leaning_on_support(self.observed.mu)

    @cached_property
    def kappa(self) -> Constant | Unknown:
        """The Lipschitz constant of every O(·, ξ)."""
        return self._leaning_on_support(self.observed.kappa)

    @cached_property
    def theta(self) -> Constant | Unknown:
        """Cocoercivity of every O(·, ξ)."""
        return self._leaning_on_support(self.observed.theta)

    def _leaning_on_support(self, found: Constant | Unknown) -> Constant | Unknown:
        """A constant of Jacobians that depend on ξ leans on whoever gave its support."""
        mixed = isinstance(found, Constant) and self.facts.structure.degree.mixed
        return over_support(found) if isinstance(found, Constant) and mixed else found

    @property
    def only_sets(self) -> bool:
        """Whether A is the normal cone of a set."""
        return all(isinstance(part, Set) for part in jax.tree.leaves(self.problem.strategies.parts, is_leaf=is_part))


def lean(name: str, constant: Constant) -> Leaning:
    """On a constant; a violated one ends the examination."""
    leaning = Leaning.on(name, constant)
    if constant.provenance is Provenance.VIOLATED:
        cannot(f"{name} = {constant.value:.4g} is declared, but {constant.evidence}: correct the declaration", leaning)
    return leaning


def over_support(found: Constant) -> Constant:
    """A constant that was derived over the support of ξ leans on whoever gave that."""
    if found.provenance not in (Provenance.EXACT, Provenance.VERIFIED):
        return found
    return Constant(found.value, Provenance.DECLARED, f"{found.provenance} over the declared support")


@jax.jit
def evaluated(average: Average, point: PyTree) -> PyTree:
    """B(x), compiled once per kind of problem."""
    return average(point)
