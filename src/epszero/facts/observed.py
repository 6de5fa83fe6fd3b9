"""What the samples at hand show of O: evidence, which can refute what is declared and proves nothing.

Where each O(·, ξ_j) is affine with a Jacobian of its own, the eigenvalues of every one of them; else a search for pairs
of points (search.py). A function of the facts, the data and a seed, so that whoever asks sees the same.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from epszero._memory import by
from epszero._types import FloatArray, PyTree
from epszero.facts.affine import jacobians
from epszero.facts.facts import Facts
from epszero.facts.provenance import Constant, Provenance, Unknown
from epszero.facts.search import Extremes, Witness, between, extremes, sizes
from epszero.oracles import OwnData
from epszero.problems import Problem
from epszero.samples import Samples

MOST_WORK = 2e10  # multiplications for the eigenvalues of all samples' Jacobians; beyond it, some are looked at
ROUNDING = 64 * float(np.finfo(float).eps)  # times n and the norm: an eigenvalue this little below 0 is rounding
STRAY = 1e-6  # relative: by which a declared constant must be missed to be called violated
NUMBERS = 4_000_000  # of Jacobians at once


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
class Observed:
    """Slopes and sizes of O at the samples; declared constants held against them."""

    facts: Facts
    data: PyTree
    samples: Sequence[Samples]  # the same, with their digests
    seed: int = 0

    @property
    def problem(self) -> Problem:
        """Whose memory is used."""
        return self.facts.problem

    @property
    def key(self) -> Hashable:
        """All that a look depends on besides the problem."""
        return self.facts.shapes, tuple(one.digest() for one in self.samples), self.seed

    @by("key")
    def spectra(self) -> Spectra | None:
        """Where O is affine in x with a Jacobian that depends on ξ; None where it is not."""
        structure = self.facts.structure
        if not structure.affine or structure.constant_jacobian or isinstance(self.data, OwnData):
            return None
        n = structure.entries
        total = len(jax.tree.leaves(self.data)[0])
        many = int(min(total, max(16, MOST_WORK / (10 * n**3 + 1))))
        places = np.unique(np.linspace(0, total - 1, many).round().astype(int))
        rows = jax.tree.map(lambda leaf: np.asarray(leaf)[places], self.data)
        least, largest, directions = [], [], []
        step = max(1, NUMBERS // (n * n))
        for start in range(0, len(places), step):
            some = jax.tree.map(lambda leaf, a=start: leaf[a : a + step], rows)
            J = np.asarray(jacobians(self.facts.oracle, self.facts.x, some))
            values, vectors = np.linalg.eigh((J + J.swapaxes(1, 2)) / 2)
            least.append(values[:, 0])
            directions.append(vectors[:, :, 0])
            largest.append(np.linalg.norm(J, 2, axis=(1, 2)))
        return Spectra(places, np.concatenate(least), np.concatenate(largest), np.concatenate(directions), total)

    @by("key")
    def searched(self) -> Extremes:
        """The worst that a search finds."""
        return extremes(self.problem, self.data, self.facts.x, self.seed)

    @by("key")
    def sizes(self) -> tuple[Witness, Witness]:
        """The largest ‖O(x, ξ)‖ and ‖O(x, ξ) − O(x, ξ′)‖ at random points."""
        return sizes(self.problem, self.data, self.facts.x, self.seed)

    def below(self, place: int) -> Witness | None:
        """The least slope between points on both sides of x, for one of the samples of the spectra."""
        assert self.spectra is not None
        sample = int(self.spectra.samples[place])
        row = jax.tree.map(lambda leaf: np.asarray(leaf)[sample], self.data)
        return between(self.problem, self.facts.x, self.spectra.directions[place], row, sample)

    @by("key")
    def least_seen(self) -> Witness | None:
        """The least slope that is attained between two points, for some sample; None where the Jacobian is constant."""
        if self.spectra is not None:
            return self.below(int(np.argmin(self.spectra.least)))
        return None if self.facts.jacobian is not None else self.searched.slope

    @property
    def steepest(self) -> Witness:
        """The steepest that was seen."""
        if self.spectra is None:
            return self.searched.steepness
        place = int(np.argmax(self.spectra.largest))
        value, at = float(self.spectra.largest[place]), self.facts.x
        return Witness(at, at, int(self.spectra.samples[place]), value)

    # -- what is declared, held against it ----------------------------------------------------------------------------

    @property
    def mu(self) -> Constant | Unknown:
        """Strong monotonicity."""
        mu = self.facts.mu
        seen = self.least_seen if _is_word(mu) else None
        if not isinstance(mu, Constant) or seen is None or not seen.value < mu.value * (1 - STRAY):
            return mu
        return Constant(mu.value, Provenance.VIOLATED, f"the slope is {seen}")

    @property
    def kappa(self) -> Constant | Unknown:
        """The Lipschitz constant."""
        kappa = self.facts.kappa
        if not isinstance(kappa, Constant) or not _is_word(kappa) or self.facts.aggregate is not None:
            return kappa
        seen = self.steepest
        beyond = np.isfinite(seen.value) and seen.value > kappa.value * (1 + STRAY)
        return Constant(kappa.value, Provenance.VIOLATED, f"it is {seen}") if beyond else kappa

    @property
    def theta(self) -> Constant | Unknown:
        """Cocoercivity."""
        theta = self.facts.theta
        if not isinstance(theta, Constant) or not _is_word(theta) or self.facts.jacobian is not None:
            return theta
        seen = self.searched.cocoercivity
        missed = seen.value < theta.value * (1 - STRAY)
        return Constant(theta.value, Provenance.VIOLATED, f"it is {seen}") if missed else theta

    @property
    def R(self) -> Constant | Unknown:
        """How far samples pull apart."""
        declared = self.problem.declared
        for word, seen, of in ((declared.R, 1, "R"), (declared.M, 0, "M")):
            if word is not None and self.sizes[seen].value > word * (1 + 1e-9):
                shown = f"it is {self.sizes[seen]}" if of == "R" else f"‖O(x, ξ)‖ is {self.sizes[seen]}"
                value = word if of == "R" else 2 * word
                return Constant(value, Provenance.VIOLATED, shown)
        return self.facts.R

    @property
    def M(self) -> Constant | Unknown:
        """How large O is."""
        word = self.problem.declared.M
        if word is not None and self.sizes[0].value > word * (1 + 1e-9):
            return Constant(word, Provenance.VIOLATED, f"it is {self.sizes[0]}")
        return self.facts.M


def _is_word(constant: Constant | Unknown) -> bool:
    return isinstance(constant, Constant) and constant.provenance is Provenance.DECLARED
