"""Monotonicity, strong monotonicity, cocoercivity and Lipschitz continuity of every sample's oracle O(·, ξ_j).

Proved where constants are exact or verified; where each O(·, ξ_j) is affine with a Jacobian of its own, by the
eigenvalues of every one of them; else looked for by a search, which can refute and never prove.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from epszero._types import FloatArray, PyTree
from epszero.audit.findings import BY_PROVENANCE, Assumption, Standing
from epszero.constants import Constant, Extremes, Knowledge, Linear, Provenance, Witness, base_oracle, between, extremes
from epszero.constants.known import ALMOST, SUBNORMAL, directions, restricted
from epszero.constants.linear import as_data, jacobians
from epszero.constants.search import in_few_words
from epszero.oracles import OwnData

MOST_WORK = 2e10  # multiplications for the eigenvalues of all samples' Jacobians; beyond it, some are looked at
ROUNDING = 64 * float(np.finfo(float).eps)  # times n and the norm: an eigenvalue this little below 0 is rounding
SEARCHED = 1e-9  # relative to the steepest slope: one this little below 0, of a search, is rounding
FLAT = "exact, between points of the domain, which is flat"
STRAY = 1e-6  # relative: by which a declared constant must be missed to be called violated


@dataclass(frozen=True, eq=False)
class Spectra:
    """Of the Jacobians of the samples that were looked at."""

    samples: Any  # their places
    least: FloatArray  # eigenvalues of the symmetric parts
    largest: FloatArray  # norms
    directions: FloatArray  # belonging to the least eigenvalues
    total: int  # how many samples there are

    @property
    def bent(self) -> Any:
        """Which are not positive semidefinite."""
        return self.least < -ROUNDING * self.directions.shape[1] * self.largest


@dataclass(frozen=True, eq=False)
class Slopes:
    """The four assumptions."""

    facts: Knowledge
    data: PyTree
    budget: float
    seed: int

    @cached_property
    def spectra(self) -> Spectra | None:
        """Where O is affine in x with a Jacobian that depends on ξ."""
        structure = self.facts.structure
        if not structure.affine or structure.constant_jacobian or isinstance(self.data, OwnData):
            return None
        n = structure.entries
        total = len(jax.tree.leaves(self.data)[0])
        many = int(min(total, max(16, MOST_WORK / (10 * n**3 + 1))))
        places = np.unique(np.linspace(0, total - 1, many).round().astype(int))
        rows = jax.tree.map(lambda leaf: np.asarray(leaf)[places], self.data)
        least, largest, directions = [], [], []
        step = max(1, 4_000_000 // (n * n))
        for start in range(0, len(places), step):
            J = np.asarray(jacobians(base_oracle(self.facts.problem), self.facts.x,
                                      jax.tree.map(lambda leaf, a=start: leaf[a : a + step], rows)))  # fmt: skip
            values, vectors = np.linalg.eigh((J + J.swapaxes(1, 2)) / 2)
            least.append(values[:, 0])
            directions.append(vectors[:, :, 0])
            largest.append(np.linalg.norm(J, 2, axis=(1, 2)))
        return Spectra(places, np.concatenate(least), np.concatenate(largest), np.concatenate(directions), total)

    @cached_property
    def searched(self) -> Extremes:
        """The worst that a search finds."""
        return extremes(self.facts.problem, self.data, self.facts.x, self.seed)

    @cached_property
    def proved(self) -> Constant | None:
        """A lower bound of the slope, exact or verified."""
        return self.facts.slope(self.budget)

    @property
    def _tolerance(self) -> float:
        kappa, entries = self.facts.kappa(self.budget), self.facts.structure.entries
        share = ALMOST if self.facts.aggregate is not None else ROUNDING * entries
        return SUBNORMAL + share * (abs(kappa.value) if kappa is not None else 0.0)

    @cached_property
    def refuted(self) -> Witness | None:
        """Where a sample's oracle is seen not to be monotone."""
        facts = self.facts
        if facts.linear is not None:
            monotone = facts.linear.monotone or (self.on_domain is not None and self.on_domain.monotone)
            lowest = facts.linear.spectrum[1][:, :5].T
            return None if monotone else _negative(between(facts.problem, facts.x, lowest, facts.row, None))
        if self.spectra is not None:
            return self._of_a_sample(self.spectra)
        if self.proved is not None and self.proved.value >= -self._tolerance:
            return None
        seen = self.searched.slope
        return seen if seen.value < -SEARCHED * max(self.searched.steepness.value, 1e-300) else None

    def _of_a_sample(self, spectra: Spectra) -> Witness | None:
        for place in np.argsort(spectra.least)[:5]:
            if spectra.bent[place]:
                row = jax.tree.map(lambda leaf, j=int(spectra.samples[place]): np.asarray(leaf)[j], self.data)
                sample = int(spectra.samples[place])
                found = _negative(between(self.facts.problem, self.facts.x, spectra.directions[place], row, sample))
                if found is not None:
                    return found
        return None

    @property
    def _count(self) -> str:
        """How many samples' matrices are not positive semidefinite."""
        spectra = self.spectra
        if spectra is None:
            return ""
        bent, looked = int(spectra.bent.sum()), len(spectra.samples)
        share = f"{bent} of {looked} samples' Jacobians are not positive semidefinite ({100 * bent / looked:.3g} %); "
        return share + (f"{spectra.total} samples in all; " if looked < spectra.total else "")

    @cached_property
    def on_domain(self) -> Linear | None:
        """A constant Jacobian between points of the domain, where that is flat."""
        if self.facts.linear is None or self.facts.linear.mu > 0:
            return None
        basis = directions(self.facts.problem, self.facts.x)
        return None if basis is None else restricted(self.facts.linear, basis)

    def monotone(self) -> Assumption:
        """⟨O(x, ξ) − O(y, ξ), x − y⟩ ≥ 0."""
        if self.refuted is not None:
            return Assumption(Standing.VIOLATED, f"{self._count}the slope is {self.refuted}", self.refuted)
        if self.proved is not None and self.proved.value >= -self._tolerance:
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
        mu = self.facts.mu(self.budget)
        if mu is not None:
            return self._strong(mu)
        if self.on_domain is not None and self.on_domain.mu > 0:
            return Assumption(Standing.HOLDS, f"μ = {self.on_domain.mu:.4g}: {FLAT}")
        if self.refuted is not None:
            return Assumption(Standing.VIOLATED, "not even monotone", self.refuted)
        if self.proved is not None and self.proved.provenance is Provenance.EXACT and self.facts.linear is not None:
            return Assumption(Standing.VIOLATED, "the least eigenvalue of the Jacobian's symmetric part is 0")
        return Assumption(Standing.UNREFUTED, f"no μ > 0 is proved{self._missing}{self._seen}")

    def _strong(self, mu: Constant) -> Assumption:
        said = f"μ = {mu.value:.4g}"
        if mu.provenance is Provenance.VIOLATED:
            return Assumption(Standing.VIOLATED, f"{said} is declared, but {mu.evidence}", self.refuted)
        if mu.provenance is Provenance.DECLARED:
            seen = self.least_seen
            if seen is not None and seen.value < mu.value * (1 - STRAY):
                return Assumption(Standing.VIOLATED, f"{said} is declared, but the slope is {seen}", seen)
            return Assumption(Standing.DECLARED, f"{said}; no contradiction found{self._seen}")
        return Assumption(BY_PROVENANCE[mu.provenance], f"{said}: {mu.evidence}")

    def cocoercive(self) -> Assumption:
        """⟨O(x, ξ) − O(y, ξ), x − y⟩ ≥ θ‖O(x, ξ) − O(y, ξ)‖², θ > 0."""
        linear = self.on_domain or self.facts.linear
        if linear is not None and linear.kappa == 0:
            return Assumption(Standing.HOLDS, "B is constant")
        if self.on_domain is not None and self.on_domain.theta is not None:
            return Assumption(Standing.HOLDS, f"θ = {self.on_domain.theta:.4g}: {FLAT}")
        if self.refuted is not None:
            return Assumption(Standing.VIOLATED, "not even monotone", self.refuted)
        return self._cocoercive(self.facts.theta(self.budget))

    def _cocoercive(self, theta: Constant | None) -> Assumption:
        if theta is not None and theta.provenance is Provenance.DECLARED and self.facts.linear is None:
            seen = self.searched.cocoercivity
            if seen.value < theta.value * (1 - STRAY):
                return Assumption(Standing.VIOLATED, f"θ = {theta.value:.4g} is declared, but it is {seen}", seen)
        if theta is not None:
            return Assumption(BY_PROVENANCE[theta.provenance], f"θ = {theta.value:.4g}: {theta.evidence}")
        if self.facts.linear is not None:
            return Assumption(Standing.VIOLATED, "where the Jacobian's symmetric part vanishes, the Jacobian does not")
        return Assumption(Standing.UNREFUTED, f"no θ > 0 is proved{self._missing}")

    def lipschitz(self) -> Assumption:
        """‖O(x, ξ) − O(y, ξ)‖ ≤ κ‖x − y‖."""
        kappa = self.facts.kappa(self.budget)
        if kappa is None:
            return Assumption(Standing.UNREFUTED, f"no κ is proved{self._missing}; {self.steepest.value:.4g} was seen")
        if kappa.provenance is Provenance.DECLARED:
            seen = self.steepest
            if seen.value > kappa.value * (1 + STRAY):
                return Assumption(Standing.VIOLATED, f"κ = {kappa.value:.4g} is declared, but it is {seen}", seen)
        return Assumption(BY_PROVENANCE[kappa.provenance], f"κ = {kappa.value:.4g}: {kappa.evidence}")

    def gradient(self) -> Assumption:
        """Whether B is the gradient of a function, as is declared: its Jacobian is symmetric."""
        row = np.zeros(1) if self.facts.row is None else as_data(self.facts.row)
        J = np.asarray(jacobians(base_oracle(self.facts.problem), self.facts.x, row)[0])
        apart = float(np.abs(J - J.T).max(initial=0.0))
        if apart > 1e-7 * np.abs(J).max(initial=1e-300):
            where = in_few_words(self.facts.x)
            said = f"two entries of the Jacobian that should be equal differ by {apart:.4g} at {where}"
            return Assumption(Standing.VIOLATED, said)
        if self.facts.linear is not None:
            return Assumption(Standing.HOLDS, "the Jacobian is constant and symmetric")
        return Assumption(Standing.DECLARED, "the Jacobian is symmetric where it was looked at")

    @property
    def least_seen(self) -> Witness | None:
        """The least slope that is attained between two points, for some sample."""
        if self.spectra is not None:
            place = int(np.argmin(self.spectra.least))
            sample = int(self.spectra.samples[place])
            row = jax.tree.map(lambda leaf: np.asarray(leaf)[sample], self.data)
            return between(self.facts.problem, self.facts.x, self.spectra.directions[place], row, sample)
        return None if self.facts.linear is not None else self.searched.slope

    @property
    def steepest(self) -> Witness:
        """The steepest that was seen."""
        if self.spectra is None:
            return self.searched.steepness
        place = int(np.argmax(self.spectra.largest))
        value, at = float(self.spectra.largest[place]), self.facts.x
        return Witness(at, at, int(self.spectra.samples[place]), value)

    @property
    def _how(self) -> str:
        return "" if self.proved is None else f"{self.proved.provenance}, {self.proved.evidence}"

    @property
    def _seen(self) -> str:
        if self.facts.linear is not None or self.facts.aggregate is not None:
            return ""
        if self.spectra is not None:
            return f"; least eigenvalue over {len(self.spectra.samples)} samples {float(self.spectra.least.min()):.4g}"
        return f"; the least slope that a search found is {self.searched.slope.value:.4g}"

    @property
    def _missing(self) -> str:
        if self.proved is not None and np.isfinite(self.proved.value):
            return f" (at least {self.proved.value:.4g}, {self.proved.evidence}; a larger budget may prove more)"
        return f" ({self.facts.why})" if self.facts.why else ""


def _negative(found: Witness | None) -> Witness | None:
    return found if found is not None and found.value < 0 else None
