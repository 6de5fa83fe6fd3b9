"""What can be said of every O(·, ξ), ξ in the support, on the domain of A: derived from the user's functions alone.

*Exact* where O is affine in x: the eigenvalues of its Jacobian, dense, or through the structure of an aggregative game;
over the corners of the support where the Jacobian is affine in ξ (λ_min is concave in it, the norm convex). *Verified*
where it is nonlinear (verified.py). *Declared* is the user's word, *violated* where what is derived contradicts it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._types import PyTree
from epszero.constants.aggregates import Aggregate, aggregate
from epszero.constants.branching import Supremum
from epszero.constants.domains import Box, domain_box, support_box
from epszero.constants.linear import DENSE, Linear, base_oracle, jacobians, linear_part
from epszero.constants.provenance import Constant, Provenance, worst
from epszero.constants.search import between
from epszero.constants.sizes import additive_R, affine_M
from epszero.constants.structure import ADDITIVE, AFFINE, Structure, structure_of
from epszero.constants.verified import LARGEST, UNENCLOSED, Operator
from epszero.oracles import Agents
from epszero.problems import Problem

CORNERS = 12  # entries of ξ that move the Jacobian, up to which every corner of their box is tried
WRITTEN = 4_000_000  # entries of the Jacobian's derivatives in ξ
WORK = 2e9  # multiplications for the eigenvalues at all corners
BUDGET = 2.0  # seconds for a verified constant, where nobody says otherwise
ALMOST = 1e-10  # of κ: an eigenvalue this little below 0 is rounding
ROUGH = 0.1  # of its budget is what a rough bound counts for
ROOM = 1e-6  # a declared constant may exceed the exact one by this much, relatively


def knowledge(problem: Problem, supports: list[Any], row: PyTree, x: PyTree) -> "Knowledge":
    """Of a problem, for points like x and samples like `row`; what has been derived is remembered."""
    leaves, structure = jax.tree.flatten((x, row))
    about = tuple(_mark(support) for support in supports)
    key = structure, tuple(np.shape(leaf) for leaf in leaves), about
    if key not in problem.derived:
        problem.derived[key] = Knowledge(problem, supports, row, x)
    return problem.derived[key]


def _mark(support: Any) -> Any:
    leaves, structure = jax.tree.flatten(support)
    return structure, tuple(np.asarray(leaf).tobytes() for leaf in leaves)


@dataclass(eq=False)
class Knowledge:
    """Constants and how they were found; None where nothing can be said, and then `why` says what is missing."""

    problem: Problem
    supports: list[Any]  # of each data set; None where it is not known
    row: PyTree  # a sample; None where nothing is uncertain
    x: PyTree  # strategies, for their shape
    refined: dict[str, tuple[float, Supremum]] = field(default_factory=dict[str, tuple[float, Supremum]])

    @cached_property
    def structure(self) -> Structure:
        """How O depends on x and ξ."""
        return structure_of(self.problem, self.row, self.x)

    @cached_property
    def linear(self) -> Linear | None:
        """The Jacobian, where it is constant and small enough to be written down."""
        if not self.structure.constant_jacobian:
            return None
        return linear_part(self.problem, self.row, self.x)

    @cached_property
    def aggregate(self) -> Aggregate | None:
        """The blocks of the Jacobian of a large aggregative game, where they are constant."""
        oracle = base_oracle(self.problem)
        if not isinstance(oracle, Agents) or not self.structure.constant_jacobian or self.structure.entries <= DENSE:
            return None
        return aggregate(oracle, self.x, self.row)

    @cached_property
    def over_corners(self) -> tuple[Constant, Constant] | None:
        """μ and κ where O is affine in x and its Jacobian is affine in ξ, over the support: at its corners."""
        structure = self.structure
        if not structure.affine or structure.constant_jacobian or structure.in_xi != AFFINE or structure.declared:
            return None
        if structure.entries**2 * len(self.support.lower) > WRITTEN:
            return None
        moves = np.flatnonzero(self._moves())
        lower, upper = self.support.lower[moves], self.support.upper[moves]
        bounded = np.isfinite(lower).all() and np.isfinite(upper).all()
        if not bounded or len(moves) > CORNERS or 2 ** len(moves) * structure.entries**3 > WORK:
            return None
        bits = np.arange(2 ** len(moves))[:, None] >> np.arange(len(moves)) & 1
        corners = np.repeat(np.asarray(ravel_pytree(self.row)[0])[None], len(bits), axis=0)
        corners[:, moves] = np.where(bits, upper, lower)
        samples = jax.vmap(ravel_pytree(self.row)[1])(jnp.asarray(corners))
        each = [Linear(J) for J in np.asarray(jacobians(base_oracle(self.problem), self.x, samples))]
        if not all(np.isfinite(linear.jacobian).all() for linear in each):
            return None
        exact = Provenance.EXACT if self._support_is_box else Provenance.VERIFIED
        around = "" if self._support_is_box else "a box around "
        said = f"eigenvalues at the {len(corners)} corners of {around}the support"
        return (Constant(min(linear.mu for linear in each), exact, said),
                Constant(max(linear.kappa for linear in each), exact, said))  # fmt: skip

    def _moves(self) -> Any:
        """Which entries of ξ move the Jacobian, which is affine in them."""
        flat, start = np.asarray(ravel_pytree(self.row)[0]), np.zeros(self.structure.entries)
        slopes = jax.jit(jax.jacfwd(lambda xi: jax.jacfwd(self.operator)(start, xi)))(flat)
        return np.abs(np.asarray(slopes)).max(axis=(0, 1)) > 0

    # -- boxes --------------------------------------------------------------------------------------------------------

    @cached_property
    def domain(self) -> Box:
        """Around the domain of A."""
        return domain_box(self.problem.strategies, self.x)

    @cached_property
    def _support(self) -> tuple[Box, bool]:
        return (Box(np.zeros(0), np.zeros(0)), True) if self.row is None else support_box(self.supports, self.row)

    @property
    def support(self) -> Box:
        """Around the support of ξ."""
        return self._support[0]

    @property
    def _support_is_box(self) -> bool:
        return self._support[1]

    @cached_property
    def operator(self) -> Operator:
        """O as a function of flat arguments; ξ stands still where it does not touch the Jacobian."""
        row = np.zeros(0) if self.row is None else self.row
        return Operator(base_oracle(self.problem), self.problem.strategies, self.x, row, self.domain, self.support)

    @cached_property
    def at_one_sample(self) -> Operator:
        """The same with ξ held still: enough for derivatives in x that do not depend on it."""
        if self.structure.degree.mixed or self.row is None:
            return self.operator
        here = np.asarray(ravel_pytree(self.row)[0])
        still = Box(here, here)
        return Operator(base_oracle(self.problem), self.problem.strategies, self.x, self.row, self.domain, still)

    # -- constants ----------------------------------------------------------------------------------------------------

    def slope(self, budget: float = BUDGET, enough: float = np.inf) -> Constant | None:
        """The largest number that is proved to be at most inf ⟨O(x, ξ) − O(y, ξ), x − y⟩/‖x − y‖²: μ, or below 0.

        Where it is at least `enough`, a verified one is not refined further.
        """
        if self.linear is not None:
            return Constant(self.linear.mu, Provenance.EXACT, "least eigenvalue of the symmetric part of the Jacobian")
        if self.aggregate is not None:
            return Constant(self.aggregate.mu_kappa[0], Provenance.EXACT, BY_STRUCTURE)
        if self.over_corners is not None:
            return self.over_corners[0]
        size = self.refined["kappa"][1].at_most if "kappa" in self.refined else 0.0
        found = self._verified(
            "mu",
            lambda budget: self.at_one_sample.least_slope(budget, 1e-3 * size, -enough),
            budget,
            np.isfinite(enough),
        )
        return None if found is None else Constant(-found.at_most, Provenance.VERIFIED, _boxes(found))

    def mu(self, budget: float = BUDGET) -> Constant | None:
        """Strong monotonicity; declared where that says more, violated where it says what is disproved."""
        declared = self._declared("mu")
        if declared is not None and not self._exact and budget <= BUDGET:
            return declared
        derived = self.slope(budget)
        if declared is not None and (derived is None or derived.value < declared.value * (1 - ROOM)):
            if derived is None or derived.provenance is not Provenance.EXACT:
                return declared
            return self._refuted(declared, derived)
        return derived if derived is not None and derived.value > 0 else None

    def _refuted(self, declared: Constant, derived: Constant) -> Constant:
        """Violated, unless it may hold between points of the domain, which may be flat, if not everywhere."""
        if self.linear is not None:
            seen = between(self.problem, self.x, self.linear.spectrum[1][:, :5].T, self.row, None)
            if seen is None or seen.value >= declared.value:
                return declared
            return Constant(declared.value, Provenance.VIOLATED, f"the slope is {seen}")
        return Constant(declared.value, Provenance.VIOLATED, f"it is {derived.value:.4g}: {derived.evidence}")

    def kappa(self, budget: float = BUDGET) -> Constant | None:
        """The Lipschitz constant."""
        declared, derived = self._declared("kappa"), None
        if declared is None or self._exact or budget > BUDGET:
            derived = self._kappa(budget)
        if derived is None or declared is None:
            return derived or declared
        if derived.provenance is Provenance.EXACT and self.structure.constant_jacobian:
            return derived
        return derived if derived.value <= declared.value else declared

    def _kappa(self, budget: float) -> Constant | None:
        if self.linear is not None:
            return Constant(self.linear.kappa, Provenance.EXACT, "norm of the Jacobian")
        if self.aggregate is not None:
            return Constant(self.aggregate.mu_kappa[1], Provenance.EXACT, BY_STRUCTURE)
        if self.over_corners is not None:
            return self.over_corners[1]
        found = self._verified("kappa", self.at_one_sample.largest_slope, budget)
        finite = found is not None and math.isfinite(found.at_most)
        return Constant(found.at_most, Provenance.VERIFIED, _boxes(found)) if found is not None and finite else None

    def theta(self, budget: float = BUDGET) -> Constant | None:
        """Cocoercivity."""
        declared = self._declared("theta")
        if self.linear is not None and declared is not None and not self.linear.cocoercive(declared.value):
            return Constant(declared.value, Provenance.VIOLATED, "the Jacobian is not so cocoercive")
        if self.linear is not None and self.linear.theta is not None:
            return Constant(self.linear.theta, Provenance.EXACT, "1/‖J S^(-½)‖², S the symmetric part of the Jacobian")
        return declared or self._theta(budget)

    def _theta(self, budget: float) -> Constant | None:
        """From κ and μ."""
        kappa, gradient = self.kappa(budget), self.gradient
        if kappa is None or kappa.value == 0:
            return None
        if gradient is Provenance.DECLARED and self.problem.is_gradient:  # of a convex function, where slopes are ≥ 0
            slope = self.slope(budget)
            gradient = slope.provenance if slope is not None and slope.value >= 0 else gradient
        if gradient is not None:
            return Constant(1 / kappa.value, worst([gradient, kappa.provenance]), "1/κ, as B is a gradient")
        mu = self.mu(budget)
        if mu is None or mu.provenance is Provenance.VIOLATED:
            return None
        return Constant(mu.value / kappa.value**2, worst([mu.provenance, kappa.provenance]), "μ/κ²")

    @property
    def gradient(self) -> Provenance | None:
        """Whether B is known to be the gradient of a convex function, and on whose word."""
        if self.linear is not None:
            return Provenance.EXACT if self.linear.symmetric and self.linear.monotone else None
        if self.aggregate is not None:
            convex = self.aggregate.symmetric and self.aggregate.mu_kappa[0] >= -ALMOST * self.aggregate.mu_kappa[1]
            return Provenance.EXACT if convex else None
        return Provenance.DECLARED if self.problem.is_gradient or self.problem.declared.gradient else None

    def R(self, budget: float = BUDGET) -> Constant | None:
        """‖O(x, ξ) − O(x, ξ′)‖ at most, over domain and support."""
        if self.row is None:
            return Constant(0.0, Provenance.EXACT, "nothing is uncertain")
        exact = additive_R(self) if self.structure.in_xi == ADDITIVE else None
        if exact is not None:
            return exact
        found = self._verified("R", self.operator.largest_difference, budget) if self.support.bounded else None
        if found is None or not math.isfinite(found.at_most):
            return None
        return Constant(found.at_most, Provenance.VERIFIED, _boxes(found))

    def M(self, budget: float = BUDGET) -> Constant | None:
        """‖O(x, ξ)‖ at most, over domain and support."""
        exact = affine_M(self)
        if exact is not None:
            return exact
        found = self._verified("M", self.operator.largest_value, budget)
        if found is None or not math.isfinite(found.at_most):
            return None
        return Constant(found.at_most, Provenance.VERIFIED, _boxes(found))

    @cached_property
    def why(self) -> str:
        """What stands in the way of a verified constant; empty where nothing does."""
        if self.structure.entries > LARGEST:
            return f"x has {self.structure.entries} entries; enclosures of Jacobians are made up to {LARGEST}"
        if self.operator.jumps:
            return f"O has no enclosure over the domain: {self.operator.jumps}"
        if not self.support.bounded and self.structure.degree.mixed:
            return "the Jacobian depends on ξ, whose support is not known: Samples(values, support=…)"
        return "" if self.domain.bounded else "the domain is unbounded; a bounded one gives more"

    @property
    def _exact(self) -> bool:
        return self.linear is not None or self.aggregate is not None or self.over_corners is not None

    def _verified(
        self, name: str, how: Callable[[float], Supremum], budget: float, roughly: bool = False
    ) -> Supremum | None:
        """The supremum by enclosures, refined again where there is more time than there was, or it was a rough one."""
        if self.structure.entries > LARGEST or self.operator.jumps:
            return None
        spent, found = self.refined.get(name, (0.0, None))
        if found is None or budget > 1.5 * spent:
            try:
                new = how(budget)
            except UNENCLOSED:
                return None
            found = new if found is None or new.at_most <= found.at_most else found
            self.refined[name] = ROUGH * budget if roughly else budget, found
        return found

    def _declared(self, name: str) -> Constant | None:
        value = getattr(self.problem.declared, name)
        return None if value is None else Constant(value, Provenance.DECLARED, "ez.declare")


BY_STRUCTURE = "eigenvalues through the structure: blocks of the agents and a coupling of low rank"


def _boxes(found: Supremum) -> str:
    return f"enclosed over {found.boxes} box{'es' * (found.boxes > 1)}"
