"""`Facts`: what can be said of every O(·, ξ), ξ in the support, on the domain of A: from the user's functions alone.

One immutable value that everybody reads: a function of the problem, the supports of its data sets, the shapes of points
and samples, and the effort that proofs are worth. Nothing else enters, neither the values of samples nor a starting
point, so the same question has the same answer whenever and by whomever it is asked. Fields are worked out when they
are asked for, and remembered (_memory.py), failures too.

*Exact* where O is affine in x: the eigenvalues of its Jacobian, dense, or through the structure of an aggregative game;
over the corners of the support where the Jacobian is affine in ξ (λ_min is concave in it, the norm convex). *Verified*
where it is nonlinear: by rules of convexity (ruled.py), then by enclosures (enclosed.py). *Declared* is the user's
word, *violated* where what is derived contradicts it.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._memory import by, key_of, remembered, shape_of
from epszero._types import FloatArray, PyTree, Support
from epszero.facts.affine import DENSE, ConstantJacobian, constant_jacobian, oracle_at
from epszero.facts.aggregates import Aggregate, aggregate
from epszero.facts.bounded import bounded, larger, less, negated
from epszero.facts.branching import Supremum
from epszero.facts.constraints import convex_constraints
from epszero.facts.convex import OwnHessians, convex_costs, own_hessians
from epszero.facts.corners import over_corners
from epszero.facts.costs import Costs, costs_of, derivative_of, has_costs
from epszero.facts.domains import Bounds, domain_box, domain_diameter, point_of, support_box, support_centre, tangent
from epszero.facts.enclosed import LARGEST, UNENCLOSED, Operator
from epszero.facts.provenance import Constant, Known, Provenance, Unknown, worst
from epszero.facts.ruled import NO_RULES, Ruled, ruled
from epszero.facts.search import between
from epszero.facts.sizes import additive_R, affine_M
from epszero.facts.structure import ADDITIVE, Structure, structure_of
from epszero.oracles import Agents, Oracle
from epszero.problems import Problem

ALMOST = 1e-10  # of κ: an eigenvalue this little below 0 is rounding
SMALL = 4  # entries of x and ξ up to which enclosures are refined although rules have an answer
ROOM = 1e-6  # a declared constant may exceed the exact one by this much, relatively
BY_EIGENVALUE = "least eigenvalue of the symmetric part of the Jacobian"
BY_STRUCTURE = "eigenvalues through the structure: blocks of the agents and a coupling of low rank"


def facts_of(
    problem: Problem, supports: Sequence[Support | None], row: PyTree, x: PyTree, effort: float = 1.0
) -> "Facts":
    """Of a problem, for points like x and samples like `row` (None where nothing is uncertain), of which only the
    shapes count. `effort`: how much work proofs are worth, 1 for what solving and certifying spend."""
    shapes = shape_of((x, row))
    about = shapes, key_of(list(supports))
    point = remembered(problem, ("point", shapes), lambda: point_of(problem, x))
    sample = None if row is None else remembered(problem, ("sample", about), lambda: support_centre(supports, row))
    return Facts(problem, tuple(supports), sample, point, effort, shapes, (*about, effort))


@dataclass(frozen=True, eq=False)
class Facts:
    """Constants and how they were found; `Unknown` with the reason where nothing can be said."""

    problem: Problem
    supports: tuple[Support | None, ...]  # of each data set; None where it is not known
    row: PyTree  # a sample of the support; None where nothing is uncertain
    x: PyTree  # strategies, a point of the domain
    effort: float  # of proofs
    shapes: Hashable  # of points and samples
    key: Hashable  # all that a fact depends on besides the problem

    @property
    def oracle(self) -> Oracle:
        """Of the strategies alone, for points and samples like these."""
        return oracle_at(self.problem, self.x, self.row)

    # -- structure ----------------------------------------------------------------------------------------------------

    @by("shapes")
    def structure(self) -> Structure:
        """How O depends on x and ξ."""
        return structure_of(self.problem, self.row, self.x)

    @by("shapes")
    def jacobian(self) -> ConstantJacobian | None:
        """Where it is constant and small enough to be written down; None where it is not."""
        if not self.structure.constant_jacobian:
            return None
        return constant_jacobian(self.problem, self.row, self.x)

    @by("shapes")
    def aggregate(self) -> Aggregate | None:
        """The blocks of the Jacobian of a large aggregative game, where they are constant."""
        small = not self.structure.constant_jacobian or self.structure.entries <= DENSE
        return None if small or not isinstance(self.oracle, Agents) else aggregate(self.oracle, self.x, self.row)

    @by("shapes")
    def own_hessians(self) -> OwnHessians | Unknown:
        """Of every agent's cost in its own strategy (of the loss of a minimisation), where they are constant."""
        return own_hessians(self.problem, self.row, self.x, self.jacobian)

    @by("key")
    def costs(self) -> Costs | None:
        """Whether their values can be trusted to be what B is the derivative of; None where there are none."""
        if not has_costs(self.problem):
            return None
        return costs_of(self.problem, self.row, self.x, lambda: self.domain, self.support)

    @by("key")
    def derivative(self) -> Known | Unknown:
        """On whose word B is the derivative of the costs."""
        return derivative_of(self)

    @by("key")
    def convex(self) -> Known | Unknown:
        """On whose word every cost is convex in the own strategy."""
        return convex_costs(self)

    @by("key")
    def constraints(self) -> Known | Unknown:
        """On whose word the shared constraints are convex."""
        return convex_constraints(self)

    @by("shapes")
    def directions(self) -> FloatArray | None:
        """Between points of the domain, as an orthonormal basis in columns; None where they are all."""
        return tangent(self.problem.strategies, self.x)

    @by("key")
    def over_corners(self) -> tuple[Constant, Constant] | None:
        """μ and κ where O is affine in x and its Jacobian is affine in ξ, over the support: at its corners."""
        return over_corners(self)

    @property
    def affine_everywhere(self) -> bool:
        """Whether constants are eigenvalues: then what is declared can be compared with them."""
        return self.jacobian is not None or self.aggregate is not None or self.over_corners is not None

    # -- where points and samples live --------------------------------------------------------------------------------

    @cached_property
    def domain(self) -> Bounds:
        """Around the domain of A."""
        return domain_box(self.problem.strategies, self.x)

    @cached_property
    def _support(self) -> tuple[Bounds, bool]:
        nothing = Bounds(np.zeros(0), np.zeros(0))
        return (nothing, True) if self.row is None else support_box(self.supports, self.row)

    @property
    def support(self) -> Bounds:
        """Around the support of ξ."""
        return self._support[0]

    @property
    def support_is_box(self) -> bool:
        """Whether that box is the support itself."""
        return self._support[1]

    @by("shapes")
    def diameter(self) -> Constant | Unknown:
        """Of the domain of A."""
        value = domain_diameter(self.problem.strategies, self.x)
        if not math.isfinite(value):
            return Unknown("the domain of A is unbounded")
        return Constant(value, Provenance.EXACT, "of the domain of A")

    @cached_property
    def operator(self) -> Operator:
        """O as a function of flat arguments, over domain and support."""
        sample = np.zeros(0) if self.row is None else self.row
        return Operator(self.oracle, self.problem.strategies, self.x, sample, self.domain, self.support)

    @cached_property
    def at_one_sample(self) -> Operator:
        """The same with ξ held still: enough for derivatives in x that do not depend on it."""
        if self.structure.degree.mixed or self.row is None:
            return self.operator
        here = np.asarray(ravel_pytree(self.row)[0])
        return replace(self.operator, support=Bounds(here, here))

    @by("key")
    def ruled(self) -> Ruled:
        """What rules of convexity say of O, where it is not affine with a constant Jacobian."""
        return NO_RULES if self.structure.constant_jacobian else ruled(self)

    @property
    def _small(self) -> bool:
        """Whether a search may say more than rules do, for little."""
        return self.structure.entries + len(self.support.lower) <= SMALL or self.effort > 1

    # -- constants ----------------------------------------------------------------------------------------------------

    @by("key")
    def slope(self) -> Constant | Unknown:
        """The largest number that is proved to be at most inf ⟨O(x, ξ) − O(y, ξ), x − y⟩/‖x − y‖²: μ, or below 0."""
        return self._slope(np.inf, self.effort, by_rules=not self._small)

    @by("key")
    def nonnegative_slope(self) -> Constant | Unknown:
        """The same, refined only until it is seen not to be negative: enough to know that O is monotone."""
        return self._slope(0.0, self.effort / 2, by_rules=True)

    def _slope(self, enough: float, effort: float, by_rules: bool) -> Constant | Unknown:
        """Exact, or by rules where they find O monotone and `by_rules` lets that do, or else by a search."""
        rules = self.ruled.slope if self._exact_slope is None else self._exact_slope
        if rules is not None and (self._exact_slope is not None or (by_rules and self.ruled.monotone)):
            return rules
        return larger(
            rules, negated(self._enclosed(lambda: self.at_one_sample.least_slope(effort, enough), self.jumps_in_x))
        )

    def _upper(self, rules: Constant | None, search: Callable[[], Supremum], in_xi: bool) -> Constant | Unknown:
        """By rules, and by a search where there are none, or where it may say more."""
        if rules is not None and not self._small:
            return rules
        return less(rules, bounded(self._enclosed(search, self._jumps if in_xi else self.jumps_in_x)))

    @property
    def _exact_slope(self) -> Constant | None:
        if self.jacobian is not None:
            return Constant(self.jacobian.mu, Provenance.EXACT, BY_EIGENVALUE)
        if self.aggregate is not None:
            return Constant(self.aggregate.mu_kappa[0], Provenance.EXACT, BY_STRUCTURE)
        return None if self.over_corners is None else self.over_corners[0]

    @by("key")
    def mu(self) -> Constant | Unknown:
        """Strong monotonicity; declared where that says more, violated where it says what is disproved."""
        declared = self._declared("mu")
        if declared is not None and not self.affine_everywhere and self.effort <= 1:
            return declared
        derived = self.slope
        if declared is not None and (isinstance(derived, Unknown) or derived.value < declared.value * (1 - ROOM)):
            if isinstance(derived, Unknown) or derived.provenance is not Provenance.EXACT:
                return declared
            return self._refuted(declared, derived)
        if isinstance(derived, Unknown) or derived.value > 0:
            return derived
        return Unknown(f"no μ > 0 is proved: {derived.value:.4g}, {derived.evidence}")

    def _refuted(self, declared: Constant, derived: Constant) -> Constant:
        """Violated, unless it may hold between points of the domain, which may be flat, if not everywhere."""
        if self.jacobian is not None:
            seen = between(self.problem, self.x, self.jacobian.spectrum[1][:, :5].T, self.row, None)
            if seen is None or seen.value >= declared.value:
                return declared
            return Constant(declared.value, Provenance.VIOLATED, f"the slope is {seen}")
        return Constant(declared.value, Provenance.VIOLATED, f"it is {derived.value:.4g}: {derived.evidence}")

    @by("key")
    def kappa(self) -> Constant | Unknown:
        """The Lipschitz constant."""
        declared = self._declared("kappa")
        if declared is not None and not self.affine_everywhere and self.effort <= 1:
            return declared
        derived = self._kappa
        if isinstance(derived, Unknown) or declared is None:
            return declared if declared is not None else derived
        if derived.provenance is Provenance.EXACT and self.structure.constant_jacobian:
            return derived
        return derived if derived.value <= declared.value else declared

    @property
    def _kappa(self) -> Constant | Unknown:
        if self.jacobian is not None:
            return Constant(self.jacobian.kappa, Provenance.EXACT, "norm of the Jacobian")
        if self.aggregate is not None:
            return Constant(self.aggregate.mu_kappa[1], Provenance.EXACT, BY_STRUCTURE)
        if self.over_corners is not None:
            return self.over_corners[1]
        return self._upper(self.ruled.kappa, lambda: self.at_one_sample.largest_slope(self.effort), in_xi=False)

    @by("key")
    def theta(self) -> Constant | Unknown:
        """Cocoercivity."""
        declared, J = self._declared("theta"), self.jacobian
        if J is not None and declared is not None and not J.cocoercive(declared.value):
            return Constant(declared.value, Provenance.VIOLATED, "the Jacobian is not so cocoercive")
        if J is not None and J.theta is not None:
            return Constant(J.theta, Provenance.EXACT, "1/‖J S^(-½)‖², S the symmetric part of the Jacobian")
        return self._theta if declared is None else declared

    @property
    def _theta(self) -> Constant | Unknown:
        """From κ and μ."""
        kappa, gradient = self.kappa, self.gradient
        if isinstance(kappa, Unknown) or kappa.value == 0:
            return kappa if isinstance(kappa, Unknown) else Unknown("B is constant")
        derivative = self.derivative
        if gradient is Provenance.DECLARED and self.problem.is_gradient and isinstance(derivative, Known):
            slope = self.slope  # of a convex function, where slopes are ≥ 0
            if isinstance(slope, Constant) and slope.value >= 0:
                gradient = worst([slope.provenance, derivative.provenance])
        if gradient is not None:
            return Constant(1 / kappa.value, worst([gradient, kappa.provenance]), "1/κ, as B is a gradient")
        mu = self.mu
        if isinstance(mu, Unknown) or mu.provenance is Provenance.VIOLATED:
            return Unknown("B is neither known to be a gradient nor strongly monotone")
        return Constant(mu.value / kappa.value**2, worst([mu.provenance, kappa.provenance]), "μ/κ²")

    @property
    def gradient(self) -> Provenance | None:
        """On whose word B is the gradient of a convex function; None where nobody says so."""
        if self.jacobian is not None:
            return Provenance.EXACT if self.jacobian.symmetric and self.jacobian.monotone else None
        if self.aggregate is not None:
            convex = self.aggregate.symmetric and self.aggregate.mu_kappa[0] >= -ALMOST * self.aggregate.mu_kappa[1]
            return Provenance.EXACT if convex else None
        known = self.problem.is_gradient and isinstance(self.derivative, Known)
        return Provenance.DECLARED if known or self.problem.declared.gradient else None

    @by("key")
    def R(self) -> Constant | Unknown:
        """‖O(x, ξ) − O(x, ξ′)‖ at most, over domain and support: the least of what is derived and declared."""
        if self.row is None:
            return Constant(0.0, Provenance.EXACT, "nothing is uncertain")
        declared = self.problem.declared
        words = [self._declared("R")] if declared.R is not None else []
        if declared.M is not None:
            words.append(Constant(2 * declared.M, Provenance.DECLARED, "2M"))
        derived = additive_R(self) if self.structure.in_xi == ADDITIVE else None
        if derived is None and (not words or self.effort > 1):
            derived = self._verified_R
        found = [one for one in (derived, *words) if isinstance(one, Constant)]
        if not found:
            return derived if isinstance(derived, Unknown) else Unknown("nothing bounds the noise")
        return min(found, key=lambda constant: constant.value)

    @property
    def _verified_R(self) -> Constant | Unknown:
        if not self.support.bounded:
            return Unknown("the support of ξ is not known, or unbounded: Samples(values, support=…)")
        return self._upper(self.ruled.R, lambda: self.operator.largest_difference(self.effort / 2), in_xi=True)

    @by("key")
    def M(self) -> Constant | Unknown:
        """‖O(x, ξ)‖ at most, over domain and support: the least of what is derived and declared."""
        declared = self._declared("M")
        derived = affine_M(self)
        if derived is None and (declared is None or self.effort > 1):
            derived = self.ruled.M
            if derived is None or self._small:
                enclosed = bounded(self._enclosed(lambda: self.operator.largest_value(self.effort / 2), self._jumps))
                derived = less(derived, self._around(enclosed.reason) if isinstance(enclosed, Unknown) else enclosed)
        found = [one for one in (derived, declared) if isinstance(one, Constant)]
        if not found:
            return derived if isinstance(derived, Unknown) else Unknown("nothing bounds O")
        return min(found, key=lambda constant: constant.value)

    def _around(self, why: str) -> Constant | Unknown:
        """‖O(x, ξ)‖ ≤ ‖O(x₁, ξ₁)‖ + κ·diameter + R at any x₁ of the domain and any ξ₁ of a support that is known."""
        if not self.support.bounded:
            return Unknown(why)
        kappa, diameter, R = self.kappa, self.diameter, self.R
        if isinstance(kappa, Unknown) or isinstance(diameter, Unknown) or isinstance(R, Unknown):
            return Unknown(why)
        values = jax.tree.leaves(self.oracle(self.x, self.row))
        here = float(np.linalg.norm(np.concatenate([np.ravel(leaf) for leaf in values])))
        largest = here + kappa.value * diameter.value + R.value
        if not math.isfinite(largest):
            return Unknown(why)
        return Constant(largest, worst([kappa.provenance, R.provenance]), "from κ, the diameter and R")

    @cached_property
    def unenclosed(self) -> str:
        """What stands in the way of a verified constant; empty where nothing does."""
        if self.structure.entries > LARGEST:
            return f"x has {self.structure.entries} entries; enclosures of Jacobians are made up to {LARGEST}"
        if self.jumps_in_x:
            return f"O has no enclosure over the domain: {self.jumps_in_x}"
        if not self.support.bounded and self.structure.degree.mixed:
            return "the Jacobian depends on ξ, whose support is not known: Samples(values, support=…)"
        return "" if self.domain.bounded else "the domain is unbounded; a bounded one gives more"

    @by("key")
    def jumps_in_x(self) -> str:
        """Why O is not known to be defined and continuous in x; empty where it is."""
        return "" if self.ruled.smooth else self.operator.jumps((0,))

    @by("key")
    def _jumps(self) -> str:
        return self.jumps_in_x or self.operator.jumps((0, 1))

    def _enclosed(self, search: Callable[[], Supremum], jumps: str) -> Supremum | Unknown:
        """The supremum that a search by enclosures finds, where nothing jumps."""
        if self.structure.entries > LARGEST or jumps:
            return Unknown(self.unenclosed or f"O has no enclosure over the support: {jumps}")
        try:
            return search()
        except UNENCLOSED as error:
            return Unknown(str(error).splitlines()[0] if str(error) else type(error).__name__)

    def _declared(self, name: str) -> Constant | None:
        value = getattr(self.problem.declared, name)
        return None if value is None else Constant(value, Provenance.DECLARED, "ez.declare")
