"""Monotonicity, strong monotonicity, cocoercivity and Lipschitz continuity of every sample's oracle O(·, ξ_j).

Proved where constants are exact or verified; where each O(·, ξ_j) is affine with a Jacobian of its own, by the
eigenvalues of every one of them; else looked for by a search, which can refute and never prove (facts/observed.py).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from epszero._points import as_data
from epszero.audit.findings import BY_PROVENANCE, Assumption, Standing
from epszero.facts import (
    Constant,
    ConstantJacobian,
    Facts,
    Observed,
    Provenance,
    Spectra,
    Unknown,
    Witness,
    between,
    jacobians,
    restricted,
)
from epszero.facts.average import ALMOST, SUBNORMAL
from epszero.facts.search import in_few_words

ROUNDING = 64 * float(np.finfo(float).eps)  # times n and the norm: an eigenvalue this little below 0 is rounding
SEARCHED = 1e-9  # relative to the steepest slope: one this little below 0, of a search, is rounding
FLAT = "exact, between points of the domain, which is flat"


@dataclass(frozen=True, eq=False)
class Slopes:
    """The four assumptions."""

    facts: Facts
    observed: Observed

    @property
    def proved(self) -> Constant | Unknown:
        """A lower bound of the slope, exact or verified."""
        return self.facts.slope

    @property
    def _is_monotone(self) -> bool:
        return isinstance(self.proved, Constant) and self.proved.value >= -self._tolerance

    @property
    def _tolerance(self) -> float:
        kappa, entries = self.facts.kappa, self.facts.structure.entries
        share = ALMOST if self.facts.aggregate is not None else ROUNDING * entries
        return SUBNORMAL + share * (abs(kappa.value) if isinstance(kappa, Constant) else 0.0)

    @cached_property
    def refuted(self) -> Witness | None:
        """Where a sample's oracle is seen not to be monotone."""
        facts, J = self.facts, self.facts.jacobian
        if J is not None:
            monotone = J.monotone or (self.on_domain is not None and self.on_domain.monotone)
            lowest = J.spectrum[1][:, :5].T
            return None if monotone else _negative(between(facts.problem, facts.x, lowest, facts.row, None))
        if self.observed.spectra is not None:
            return self._of_a_sample(self.observed.spectra)
        if self._is_monotone:
            return None
        searched = self.observed.searched
        return searched.slope if searched.slope.value < -SEARCHED * max(searched.steepness.value, 1e-300) else None

    def _of_a_sample(self, spectra: Spectra) -> Witness | None:
        for place in np.argsort(spectra.least)[:5]:
            if spectra.bent[place]:
                witness = _negative(self.observed.below(int(place)))
                if witness is not None:
                    return witness
        return None

    @property
    def _count(self) -> str:
        """How many samples' matrices are not positive semidefinite."""
        spectra = self.observed.spectra
        if spectra is None:
            return ""
        bent, looked = int(spectra.bent.sum()), len(spectra.samples)
        share = f"{bent} of {looked} samples' Jacobians are not positive semidefinite ({100 * bent / looked:.3g} %); "
        return share + (f"{spectra.total} samples in all; " if looked < spectra.total else "")

    @cached_property
    def on_domain(self) -> ConstantJacobian | None:
        """A constant Jacobian between points of the domain, where that is flat."""
        J = self.facts.jacobian
        if J is None or J.mu > 0:
            return None
        basis = self.facts.directions
        return None if basis is None else restricted(J, basis)

    def monotone(self) -> Assumption:
        """⟨O(x, ξ) − O(y, ξ), x − y⟩ ≥ 0."""
        if self.refuted is not None:
            return Assumption(Standing.VIOLATED, f"{self._count}the slope is {self.refuted}", self.refuted)
        if isinstance(self.proved, Constant) and self._is_monotone:
            zero = "" if self.proved.value >= 0 else ", 0 within rounding"
            return Assumption(Standing.HOLDS, f"slope at least {self.proved.value:.4g}{zero}: {self._how}")
        if self.on_domain is not None and self.on_domain.monotone:
            return Assumption(Standing.HOLDS, FLAT)
        declared = self.facts.problem.declared
        if self.facts.gradient is not None or declared.monotone or declared.mu or declared.theta:
            word = "a convex loss" if self.facts.problem.is_gradient else "ez.declare"
            return Assumption(Standing.DECLARED, f"{word}; no contradiction found{self._seen}")
        return Assumption(Standing.UNREFUTED, f"not proved{self._missing}{self._seen}")

    def strongly_monotone(self) -> Assumption:
        """⟨O(x, ξ) − O(y, ξ), x − y⟩ ≥ μ‖x − y‖², μ > 0."""
        mu = self.observed.mu
        if isinstance(mu, Constant):
            return self._strong(mu)
        if self.on_domain is not None and self.on_domain.mu > 0:
            return Assumption(Standing.HOLDS, f"μ = {self.on_domain.mu:.4g}: {FLAT}")
        if self.refuted is not None:
            return Assumption(Standing.VIOLATED, "not even monotone", self.refuted)
        if self.facts.jacobian is not None:
            return Assumption(Standing.VIOLATED, "the least eigenvalue of the Jacobian's symmetric part is 0")
        return Assumption(Standing.UNREFUTED, f"no μ > 0 is proved{self._missing}{self._seen}")

    def _strong(self, mu: Constant) -> Assumption:
        said = f"μ = {mu.value:.4g}"
        if mu.provenance is Provenance.VIOLATED:
            witness = self.observed.least_seen or self.refuted
            return Assumption(Standing.VIOLATED, f"{said} is declared, but {mu.evidence}", witness)
        if mu.provenance is Provenance.DECLARED:
            return Assumption(Standing.DECLARED, f"{said}; no contradiction found{self._seen}")
        return Assumption(BY_PROVENANCE[mu.provenance], f"{said}: {mu.evidence}")

    def cocoercive(self) -> Assumption:
        """⟨O(x, ξ) − O(y, ξ), x − y⟩ ≥ θ‖O(x, ξ) − O(y, ξ)‖², θ > 0."""
        J = self.on_domain or self.facts.jacobian
        if J is not None and J.kappa == 0:
            return Assumption(Standing.HOLDS, "B is constant")
        if self.on_domain is not None and self.on_domain.theta is not None:
            return Assumption(Standing.HOLDS, f"θ = {self.on_domain.theta:.4g}: {FLAT}")
        if self.refuted is not None:
            return Assumption(Standing.VIOLATED, "not even monotone", self.refuted)
        return self._cocoercive(self.observed.theta)

    def _cocoercive(self, theta: Constant | Unknown) -> Assumption:
        if isinstance(theta, Constant):
            said = f"θ = {theta.value:.4g}"
            if theta.provenance is Provenance.VIOLATED and self.facts.jacobian is None:
                witness = self.observed.searched.cocoercivity
                return Assumption(Standing.VIOLATED, f"{said} is declared, but {theta.evidence}", witness)
            return Assumption(BY_PROVENANCE[theta.provenance], f"{said}: {theta.evidence}")
        if self.facts.jacobian is not None:
            return Assumption(Standing.VIOLATED, "where the Jacobian's symmetric part vanishes, the Jacobian does not")
        return Assumption(Standing.UNREFUTED, f"no θ > 0 is proved{self._missing}")

    def lipschitz(self) -> Assumption:
        """‖O(x, ξ) − O(y, ξ)‖ ≤ κ‖x − y‖."""
        kappa = self.observed.kappa
        if isinstance(kappa, Unknown):
            seen = self.observed.steepest.value
            return Assumption(Standing.UNREFUTED, f"no κ is proved{self._missing}; {_seen(seen)}")
        said = f"κ = {kappa.value:.4g}"
        if kappa.provenance is Provenance.VIOLATED:
            return Assumption(Standing.VIOLATED, f"{said} is declared, but {kappa.evidence}", self.observed.steepest)
        return Assumption(BY_PROVENANCE[kappa.provenance], f"{said}: {kappa.evidence}")

    def gradient(self) -> Assumption:
        """Whether B is the gradient of a function, as is declared: its Jacobian is symmetric."""
        row = np.zeros(1) if self.facts.row is None else as_data(self.facts.row)
        J = np.asarray(jacobians(self.facts.oracle, self.facts.x, row)[0])
        apart = float(np.abs(J - J.T).max(initial=0.0))
        if apart > 1e-7 * np.abs(J).max(initial=1e-300):
            where = in_few_words(self.facts.x)
            said = f"two entries of the Jacobian that should be equal differ by {apart:.4g} at {where}"
            return Assumption(Standing.VIOLATED, said)
        if self.facts.jacobian is not None:
            return Assumption(Standing.HOLDS, "the Jacobian is constant and symmetric")
        return Assumption(Standing.DECLARED, "the Jacobian is symmetric where it was looked at")

    @property
    def _how(self) -> str:
        return "" if isinstance(self.proved, Unknown) else f"{self.proved.provenance}, {self.proved.evidence}"

    @property
    def _seen(self) -> str:
        if self.facts.jacobian is not None or self.facts.aggregate is not None:
            return ""
        spectra = self.observed.spectra
        if spectra is not None:
            return f"; least eigenvalue over {len(spectra.samples)} samples {float(spectra.least.min()):.4g}"
        value = self.observed.searched.slope.value
        return f"; the least slope that a search found is {value:.4g}" if math.isfinite(value) else ""

    @property
    def _missing(self) -> str:
        if isinstance(self.proved, Constant) and np.isfinite(self.proved.value):
            return f" (at least {self.proved.value:.4g}, {self.proved.evidence}; a larger budget may prove more)"
        return f" ({self.facts.unenclosed})" if self.facts.unenclosed else ""


def _negative(witness: Witness | None) -> Witness | None:
    return witness if witness is not None and witness.value < 0 else None


def _seen(value: float) -> str:
    return f"{value:.4g} was seen" if math.isfinite(value) else "what was seen is more than float64 can hold"
