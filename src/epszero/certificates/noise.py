"""The size of the noise over the whole domain, with provenance: what stability arguments lean on.

R = sup ‖O(x, ξ) − O(x, ξ′)‖, σ² = sup_x E‖O(x, ξ) − B(x)‖², L_Δ = sup_ξ Lip(O(·, ξ) − B), M = sup ‖O(x, ξ)‖, over x in
the domain of A and ξ in the support. For additive noise Cφ(ξ) the first three follow from C and the support; else they
are declared (R, M by ez.declare) or verified over domain and support; R ≤ 2M, σ² ≤ R²/2, L_Δ ≤ 2κ, and
M ≤ ‖O(x, ξ₁)‖ + κ·diameter + R at any x and ξ₁.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import numpy as np

from epszero._points import norm, subtract
from epszero._types import PyTree
from epszero.certificates._base import Leaning, Refused, cannot
from epszero.certificates.case import Case, evaluated, over_support
from epszero.certificates.evidence import Evidence
from epszero.certificates.mean import EmpiricalBernstein, Region
from epszero.constants import Constant, Provenance, first_rows, largest, worst
from epszero.oracles import Oracle, PrimalDual
from epszero.problems._views import flat_of


@dataclass(frozen=True, eq=False)
class Noise:
    """Constants of the noise, each derived or declared; asking for one that is neither ends the examination."""

    case: Case

    @cached_property
    def _additive(self) -> tuple[Region, Provenance] | None:
        """The region of the features, where the noise is additive and has one."""
        evidence = Evidence(self.case, self.case.samples, None)
        if evidence.collapsed is None or len(evidence.rows) != 1 or not self.case.additive(evidence.collapsed):
            return None
        try:
            (region,), leanings = evidence.regions(EmpiricalBernstein())
        except Refused:
            return None
        return None if region is None else (region, worst(leaning.provenance for leaning in leanings))

    @property
    def additive(self) -> bool:
        """Whether O(x, ξ) = G(x) + Cφ(ξ), by proof."""
        collapsed = self.case.collapsed(self.case.samples)
        return collapsed is not None and self.case.additive(collapsed)

    @cached_property
    def R(self) -> Constant:
        """How far two samples can pull apart at one x."""
        declared, found = self.case.problem.declared, []
        if self._additive is not None:
            region, provenance = self._additive
            collapsed = self.case.collapsed(self.case.samples)
            assert collapsed is not None
            _, gram = self.case.noise_map(collapsed)
            value = largest(gram, np.array([region.diameter]))
            if region.lower is not None and region.upper is not None:
                value = min(value, largest(gram, region.upper - region.lower, np.arange(len(region.lower))))
            found.append(Constant(float(value), provenance, "from the support, as the noise is additive"))
        if declared.R is not None:
            found.append(self._seen_within("R", declared.R, self._apart, "two samples are {:.4g} apart at this x"))
        if declared.M is not None:
            found.append(Constant(2 * self.M.value, self.M.provenance, "2M"))
        if not found and (verified := self.case.knowledge.R()) is not None:
            found.append(over_support(verified))
        if not found:
            cannot("nothing is known of the size of the noise over the domain: give Samples a support where the noise "
                   "is additive, else ez.declare(R=…) or ez.declare(M=…)")  # fmt: skip
        return min(found, key=lambda constant: constant.value)

    def _seen_within(self, name: str, value: float, seen: float, witness: str) -> Constant:
        """A declared bound, unless a sample is beyond it."""
        if seen > value * (1 + 1e-9):
            what = Leaning(f"{name} = {value:.4g}", Provenance.VIOLATED, witness.format(seen))
            cannot(f"{name} = {value:.4g} is declared, but {what.evidence}", what)
        return Constant(value, Provenance.DECLARED, "ez.declare")

    @cached_property
    def _sizes(self) -> tuple[float, float]:
        """The largest ‖O(x, ξ_j)‖, and the largest ‖O(x, ξ_j) − O(x, ξ_1)‖, over the samples."""
        (samples,) = self.case.samples
        oracle, point = self.case.problem.oracle, self.case.point
        size, apart = _sizes(oracle, samples.values, first_rows(samples.values), point)
        return float(np.max(size)), float(np.max(apart))

    @property
    def _apart(self) -> float:
        return self._sizes[1]

    @cached_property
    def variance(self) -> Constant:
        """σ²."""
        R = self.R
        if self._additive is None:
            return Constant(R.value**2 / 2, R.provenance, "at most R²/2")
        region, provenance = self._additive
        collapsed = self.case.collapsed(self.case.samples)
        assert collapsed is not None
        _, gram = self.case.noise_map(collapsed)
        around = float(largest(gram, np.array([region.circumradius])) ** 2)
        if around < R.value**2 / 2:
            return Constant(around, provenance, "at most the squared circumradius of the noise")
        return Constant(R.value**2 / 2, R.provenance, "at most R²/2")

    @cached_property
    def slope(self) -> Constant:
        """L_Δ."""
        if self.additive:
            return Constant(0.0, Provenance.EXACT, "the noise is additive")
        kappa = self.case.kappa
        if kappa is None:
            cannot("the noise is not additive, and no Lipschitz constant of O(·, ξ) is known: ez.declare(kappa=…)")
        return Constant(2 * kappa.value, kappa.provenance, "at most 2κ")

    @cached_property
    def M(self) -> Constant:
        """The largest ‖O(x, ξ)‖."""
        declared = self.case.problem.declared.M
        if declared is not None:
            return self._seen_within("M", declared, self._sizes[0], "a sample has ‖O(x, ξ)‖ = {:.4g}")
        kappa, diameter = self.case.kappa, self.case.diameter
        verified = None if self.additive else self.case.knowledge.M()
        if verified is not None:
            return over_support(verified)
        if kappa is None or diameter is None:
            cannot("M ≥ ‖O(x, ξ)‖ on the domain is not known: ez.declare(M=…); it is derived where the domain is "
                   "bounded, κ is known and the noise has a bound")  # fmt: skip
        average = self.case.problem.oracle.average(self.case.data(self.case.samples), self.case.point)
        here = float(np.linalg.norm(flat_of(evaluated(average, self.case.point))))
        value = here + kappa.value * diameter.value + self.R.value
        return Constant(value, worst([kappa.provenance, self.R.provenance]), "from κ, the diameter and R")


@eqx.filter_jit
def _sizes(oracle: Oracle, data: PyTree, first: PyTree, point: PyTree) -> tuple[Any, Any]:
    def both(xi: PyTree) -> tuple[Any, Any]:
        here, there = oracle(point, xi), oracle(point, first)
        own = here.x if isinstance(here, PrimalDual) else here
        return norm(own), norm(subtract(here, there))

    return jax.lax.map(both, data, batch_size=64)
