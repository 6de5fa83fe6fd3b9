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
from epszero.certificates._base import Leaning, Obstacle, Refused, cannot
from epszero.certificates.case import Case, over_support
from epszero.certificates.evidence import Evidence
from epszero.certificates.mean import EmpiricalBernstein, Region
from epszero.facts import Constant, Provenance, Unknown, first_rows, largest, worst
from epszero.oracles import Oracle, PrimalDual


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
        R = self.case.observed.R
        if isinstance(R, Unknown):
            cannot(
                "nothing is known of the size of the noise over the domain: give Samples a support where the noise "
                "is additive, else ez.declare(R=…) or ez.declare(M=…)",
                obstacle=Obstacle.NO_SUPPORT,
            )
        if R.provenance is Provenance.VIOLATED:
            cannot(f"R = {R.value:.4g} is declared, but {R.evidence}", Leaning.on("R", R))
        declared = self.case.problem.declared
        if declared.R is not None:
            self._check_seen("R", declared.R, self._sizes[1], "two samples are {:.4g} apart at this x")
        if declared.M is not None:
            self._check_seen("M", declared.M, self._sizes[0], "a sample has ‖O(x, ξ)‖ = {:.4g}")
        return over_support(R)

    def _check_seen(self, name: str, value: float, seen: float, witness: str) -> None:
        """End the examination where a sample is beyond a declared bound."""
        if seen > value * (1 + 1e-9):
            what = Leaning(f"{name} = {value:.4g}", Provenance.VIOLATED, witness.format(seen))
            cannot(f"{name} = {value:.4g} is declared, but {what.evidence}", what)

    @cached_property
    def _sizes(self) -> tuple[float, float]:
        """The largest ‖O(x, ξ_j)‖, and the largest ‖O(x, ξ_j) − O(x, ξ_1)‖, over the samples."""
        (samples,) = self.case.samples
        oracle, point = self.case.oracle, self.case.point
        size, apart = _sizes(oracle, samples.values, first_rows(samples.values), point)
        return float(np.max(size)), float(np.max(apart))

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
        if isinstance(kappa, Unknown):
            cannot("the noise is not additive, and no Lipschitz constant of O(·, ξ) is known: ez.declare(kappa=…)")
        return Constant(2 * kappa.value, kappa.provenance, "at most 2κ")

    @cached_property
    def M(self) -> Constant:
        """The largest ‖O(x, ξ)‖; whoever leans on it sees that it is violated where it is."""
        M = self.case.observed.M
        if isinstance(M, Unknown):
            cannot(
                "M ≥ ‖O(x, ξ)‖ on the domain is not known: ez.declare(M=…); it is derived where the domain is "
                "bounded, κ is known and the noise has a bound"
            )
        declared = self.case.problem.declared.M
        if declared is not None:
            self._check_seen("M", declared, self._sizes[0], "a sample has ‖O(x, ξ)‖ = {:.4g}")
        return over_support(M)


@eqx.filter_jit
def _sizes(oracle: Oracle, data: PyTree, first: PyTree, point: PyTree) -> tuple[Any, Any]:
    def both(xi: PyTree) -> tuple[Any, Any]:
        here, there = oracle(point, xi), oracle(point, first)
        own = here.x if isinstance(here, PrimalDual) else here
        return norm(own), norm(subtract(here, there))

    return jax.lax.map(both, data, batch_size=64)
