"""What is exact where the operator is affine in x: its Jacobian, and with it μ, κ and the directions behind them.

An operator is taken for affine only where following its traced operations (_degrees.py) proves that it is the sum of a
function that is affine in x and one of the sample alone (then the noise is additive). What cannot be proved so is left
alone. Dense linear algebra, so for points of at most `DENSE` entries; done once per problem.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

from epszero._degrees import Degree, degrees
from epszero._types import FloatArray, PyTree
from epszero.oracles import Collapsed, Coupled, Oracle, OwnData
from epszero.problems import Problem

DENSE = 1500  # entries of a point up to which its Jacobian is written down
ROUNDING = 32 * float(np.finfo(np.float64).eps)  # times n and the norm: what eigenvalues are moved to the safe side by


@dataclass(frozen=True, eq=False)
class Linear:
    """The constant Jacobian J of B on the strategies."""

    jacobian: FloatArray
    noise: float = 0.0  # what J itself may be off by, in norm

    @cached_property
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues of the symmetric part of J, in increasing order, and its eigenvectors as columns."""
        values, vectors = np.linalg.eigh((self.jacobian + self.jacobian.T) / 2)
        return values - self._room, vectors

    @property
    def _rounding(self) -> float:
        return ROUNDING * max(len(self.jacobian), 4)

    @cached_property
    def _room(self) -> float:
        """What eigenvalues of the symmetric part may be off by."""
        return self._rounding * float(np.linalg.norm(self.jacobian)) + self.noise

    @cached_property
    def multipliers(self) -> tuple[FloatArray, FloatArray]:
        """Some ν > 1/μ, and for each the eigenvalues of (νH − I)⁻¹: what the S-lemma is tried with."""
        values = self.spectrum[0]
        nu = (1 + np.exp(np.linspace(-8.0, 8.0, 81))) / values[0]
        return nu, 1 / (nu[:, None] * values - 1)

    def seen_through(self, C: FloatArray) -> FloatArray:
        """Cᵀ(νH − I)⁻¹C for each ν, C's rows for strategies only."""
        rotated = self.spectrum[1].T @ C[: len(self.jacobian)]
        return np.einsum("nd,vn,ne->vde", rotated, self.multipliers[1], rotated, optimize=True)

    @property
    def mu(self) -> float:
        """The least eigenvalue of the symmetric part, rounded down; where it is not positive, B is not strongly so."""
        return float(self.spectrum[0][0]) if len(self.jacobian) else math.inf

    @property
    def monotone(self) -> bool:
        """Whether no eigenvalue of the symmetric part is negative, beyond rounding."""
        return self.mu >= -2 * self._room

    def cocoercive(self, theta: float) -> bool:
        """Whether ⟨Jv, v⟩ ≥ θ‖Jv‖² for all v, beyond rounding."""
        square = self.jacobian.T @ self.jacobian
        least = np.linalg.eigvalsh((self.jacobian + self.jacobian.T) / 2 - theta * square)[0]
        return bool(least >= -1e-9 * max(self.kappa, theta * self.kappa**2))

    @cached_property
    def kappa(self) -> float:
        """‖J‖, rounded up."""
        return float(np.linalg.norm(self.jacobian, 2)) * (1 + self._rounding) if len(self.jacobian) else 0.0

    @cached_property
    def theta(self) -> float | None:
        """The largest θ with ⟨Jv, v⟩ ≥ θ‖Jv‖² for all v, rounded down; None where there is none.

        With S the symmetric part, 1/θ = sup ‖Jv‖²/⟨Sv, v⟩ = ‖JS^(-½)‖² on the range of S, beyond which J must vanish.
        """
        if not self.monotone or self.kappa == 0:
            return None
        if self.symmetric:
            return 1 / self.kappa
        values, vectors = self.spectrum  # values are below the truth by as much as they may be above it
        inside = values > 0
        if np.linalg.norm(self.jacobian @ vectors[:, ~inside]) > 4 * self._room:
            return None
        scaled = self.jacobian @ (vectors[:, inside] / np.sqrt(values[inside]))
        theta = (1 - 1e-9) / float(np.linalg.norm(scaled, 2)) ** 2
        return theta if self.cocoercive(theta) else None

    @cached_property
    def contraction(self) -> tuple[float, float] | None:
        """(γ, q): the step for which x ↦ x − γJx contracts most, and by how much: q = ‖I − γJ‖. None where μ ≤ 0."""
        if self.mu <= 0:
            return None
        if self.symmetric:
            return 2 / (self.mu + self.kappa), (self.kappa - self.mu) / (self.kappa + self.mu)
        J, n = self.jacobian, len(self.jacobian)
        S, square = (J + J.T) / 2, J.T @ J

        def rate(step: float) -> float:
            return float(eigh(np.eye(n) - 2 * step * S + step**2 * square, eigvals_only=True,
                              subset_by_index=[n - 1, n - 1])[0])  # fmt: skip

        found: Any = minimize_scalar(
            rate, bounds=(self.mu / self.kappa**2, 2 / self.kappa), method="bounded",
            options={"xatol": 1e-3 * self.mu / self.kappa**2},
        )  # fmt: skip
        q = math.sqrt(max(rate(float(found.x)), 0.0)) * (1 + self._rounding)
        return (float(found.x), q) if q < 1 else None

    @cached_property
    def symmetric(self) -> bool:
        """Whether B is a gradient."""
        return bool(np.allclose(self.jacobian, self.jacobian.T, rtol=1e-12, atol=1e-12 * np.abs(self.jacobian).max()))


_found: "WeakKeyDictionary[Problem, dict[Any, Linear | None]]" = WeakKeyDictionary()


def linear_part(problem: Problem, row: PyTree, x: PyTree) -> Linear | None:
    """J where it is proved to be constant, and small enough to be written down."""
    leaves, structure = jax.tree.flatten((x, row))
    key = structure, tuple(np.shape(leaf) for leaf in leaves)
    known = _found.setdefault(problem, {})
    if key not in known:
        known[key] = _linear(base_oracle(problem), row, x)
    return known[key]


def base_oracle(problem: Problem) -> Oracle:
    """The oracle of the strategies alone, where constraints are shared."""
    return problem.oracle.base if isinstance(problem.oracle, Coupled) else problem.oracle


def first_rows(data: PyTree) -> PyTree:
    """The first sample, of each data set where agents have their own."""
    if isinstance(data, OwnData):
        return OwnData(first_rows(own) for own in data)
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[0]), data)  # users index it with traced numbers


def as_data(row: PyTree) -> PyTree:
    """A data set of this one sample; None where nothing is uncertain."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], row)


@jax.jit
def jacobians(oracle: Oracle, x: PyTree, rows: PyTree) -> Any:
    """∂O/∂x at x, for each of several samples."""
    flat, unravel = ravel_pytree(x)
    return jax.lax.map(
        lambda row: jax.jacfwd(lambda v: ravel_pytree(oracle(unravel(v), row))[0])(flat), rows, batch_size=64
    )


def _linear(oracle: Oracle, row: PyTree, x: PyTree) -> Linear | None:
    flat, unravel = ravel_pytree(x)
    if len(flat) > DENSE:
        return None

    degree = degrees(oracle, x, () if row is None else row)
    if degree.u > 1 or degree.mixed:
        return None
    jacobian = jax.jit(jax.jacfwd(lambda v: ravel_pytree(oracle(unravel(v), row))[0]))(flat)
    jacobian = np.asarray(jacobian)
    return Linear(jacobian) if np.isfinite(jacobian).all() else None


def affine_in_features(collapsed: Collapsed, x: PyTree) -> bool:
    """Whether O(x, ξ) is proved to be affine in the features."""
    return _degree(collapsed, x).v <= 1


def noise_is_additive(collapsed: Collapsed, x: PyTree) -> bool:
    """Whether C(x) is proved not to depend on x: then O(x, ξ) = G(x) + Cφ(ξ)."""
    degree = _degree(collapsed, x)
    return degree.v <= 1 and not degree.mixed


def _degree(collapsed: Collapsed, x: PyTree) -> Degree:
    means = [np.mean(rows, axis=0) for rows in collapsed.features]
    return degrees(lambda x, means: collapsed.at(means)(x), x, means)
