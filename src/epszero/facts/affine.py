"""What is exact where the operator is affine in x: its Jacobian, and with it μ, κ and the directions behind them.

An operator is taken for affine only where following its traced operations (_trace/degrees.py) proves that it is the sum
of a function that is affine in x and one of the sample alone (then the noise is additive). What cannot be proved so is
left alone. Dense linear algebra, so for points of at most `DENSE` entries; asked for once per problem (facts.py).
It is done in a power of two as the unit, such that the largest entry of J lies in [1, 2): nothing is rounded by that,
no square overflows or vanishes, and what is found scales with J.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._memory import remembered, shape_of
from epszero._points import entries
from epszero._trace.degrees import Degree, degrees
from epszero._trace.programs import forwards
from epszero._types import FloatArray, PyTree
from epszero.facts.gram import power_near
from epszero.oracles import Collapsed, Coupled, Oracle, OwnData
from epszero.oracles.alike import Of
from epszero.oracles.alike import jacobian as jacobian_of
from epszero.problems import Problem

DENSE = 1500  # entries of a point up to which its Jacobian is written down
ROUNDING = 32 * float(np.finfo(np.float64).eps)  # times n and the norm: what eigenvalues are moved to the safe side by


@dataclass(frozen=True, eq=False)
class ConstantJacobian:
    """The constant Jacobian J of B on the strategies."""

    jacobian: FloatArray
    noise: float = 0.0  # what J itself may be off by, in norm

    @cached_property
    def _unit(self) -> float:
        """A power of two near the largest entry."""
        return power_near(self.jacobian)

    @cached_property
    def _J(self) -> FloatArray:
        """J in that unit."""
        return self.jacobian / self._unit

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        values, vectors = np.linalg.eigh((self._J + self._J.T) / 2)
        return values - self._room, vectors

    @cached_property
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues of the symmetric part of J, in increasing order, and its eigenvectors as columns."""
        return self._spectrum[0] * self._unit, self._spectrum[1]

    @property
    def _rounding(self) -> float:
        return ROUNDING * max(len(self.jacobian), 4)

    @cached_property
    def _room(self) -> float:
        """What eigenvalues of the symmetric part may be off by, in the unit."""
        return self._rounding * float(np.linalg.norm(self._J)) + self.noise / self._unit

    @cached_property
    def multipliers(self) -> tuple[FloatArray, FloatArray]:
        """Some ν > 1/μ, and for each the eigenvalues of (νH − I)⁻¹: what the S-lemma is tried with."""
        values = self._spectrum[0]
        nu = (1 + np.exp(np.linspace(-8.0, 8.0, 81))) / values[0]
        return nu / self._unit, 1 / (nu[:, None] * values - 1)

    def weighted(self, C: FloatArray) -> FloatArray:
        """Cᵀ(νH − I)⁻¹C for each ν, C's rows for strategies only."""
        rotated = self._spectrum[1].T @ C[: len(self.jacobian)]
        return np.einsum("nd,vn,ne->vde", rotated, self.multipliers[1], rotated, optimize=True)

    @property
    def mu(self) -> float:
        """The least eigenvalue of the symmetric part, rounded down; where it is not positive, B is not strongly so."""
        return float(self.spectrum[0][0]) if len(self.jacobian) else math.inf

    @property
    def monotone(self) -> bool:
        """Whether no eigenvalue of the symmetric part is negative, beyond rounding."""
        return not len(self.jacobian) or float(self._spectrum[0][0]) >= -2 * self._room

    def cocoercive(self, theta: float) -> bool:
        """Whether ⟨Jv, v⟩ ≥ θ‖Jv‖² for all v, beyond rounding."""
        J, theta = self._J, theta * self._unit
        if not math.isfinite(theta):
            return not J.any()
        least = np.linalg.eigvalsh((J + J.T) / 2 / max(1.0, theta) - theta / max(1.0, theta) * (J.T @ J))[0]
        return bool(least * max(1.0, theta) >= -1e-9 * max(self._kappa, theta * self._kappa**2))

    @cached_property
    def _kappa(self) -> float:
        return float(np.linalg.norm(self._J, 2)) * (1 + self._rounding) if len(self.jacobian) else 0.0

    @property
    def kappa(self) -> float:
        """‖J‖, rounded up."""
        return self._kappa * self._unit

    @cached_property
    def theta(self) -> float | None:
        """The largest θ with ⟨Jv, v⟩ ≥ θ‖Jv‖² for all v, rounded down; None where there is none.

        With S the symmetric part, 1/θ = sup ‖Jv‖²/⟨Sv, v⟩ = ‖JS^(-½)‖² on the range of S, beyond which J must vanish.
        """
        if not self.monotone or self.kappa == 0:
            return None
        if self.symmetric:
            return 1 / self.kappa
        values, vectors = self._spectrum  # values are below the truth by as much as they may be above it
        inside = values > 0
        if np.linalg.norm(self._J @ vectors[:, ~inside]) > 4 * self._room:
            return None
        scaled = self._J @ (vectors[:, inside] / np.sqrt(values[inside]))
        theta = (1 - 1e-9) / float(np.linalg.norm(scaled, 2)) ** 2 / self._unit
        return theta if self.cocoercive(theta) else None

    @cached_property
    def contraction(self) -> tuple[float, float] | None:
        """(γ, q): the step for which x ↦ x − γJx contracts most, and by how much: q = ‖I − γJ‖. None where μ ≤ 0."""
        if self.mu <= 0:
            return None
        mu, kappa = float(self._spectrum[0][0]), self._kappa
        if self.symmetric:
            return 2 / (mu + kappa) / self._unit, (kappa - mu) / (kappa + mu)
        from scipy.linalg import eigh  # noqa: PLC0415  (needed here only, and slow to import)
        from scipy.optimize import minimize_scalar  # noqa: PLC0415  (the same)

        J, n = self._J, len(self.jacobian)
        S, square = (J + J.T) / 2, J.T @ J

        def rate(step: float) -> float:
            return float(
                eigh(np.eye(n) - 2 * step * S + step**2 * square, eigvals_only=True, subset_by_index=[n - 1, n - 1])[0]
            )

        optimum: Any = minimize_scalar(
            rate,
            bounds=(mu / kappa**2, 2 / kappa),
            method="bounded",
            options={"xatol": 1e-3 * mu / kappa**2},
        )
        q = math.sqrt(max(rate(float(optimum.x)), 0.0)) * (1 + self._rounding)
        return (float(optimum.x) / self._unit, q) if q < 1 else None

    @cached_property
    def symmetric(self) -> bool:
        """Whether B is a gradient."""
        return bool(np.allclose(self._J, self._J.T, rtol=1e-12, atol=1e-12 * np.abs(self._J).max(initial=0.0)))


def base_oracle(problem: Problem) -> Oracle:
    """The oracle of the strategies alone, where constraints are shared."""
    return problem.oracle.base if isinstance(problem.oracle, Coupled) else problem.oracle


def oracle_at(problem: Problem, x: PyTree, row: PyTree) -> Oracle:
    """The same for points like x and samples like `row`, ready for compiled programs (oracles/traced.py)."""
    key = "oracle", shape_of((x, row))
    return remembered(problem, key, lambda: base_oracle(problem).traced(x, row))


def first_rows(data: PyTree) -> PyTree:
    """The first sample, of each data set where agents have their own."""
    if isinstance(data, OwnData):
        return OwnData(first_rows(own) for own in data)
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[0]), data)  # users index it with traced numbers


@jax.jit
def jacobians(oracle: Oracle, x: PyTree, rows: PyTree) -> Any:
    """∂O/∂x at x, for each of several samples."""
    flat, unravel = ravel_pytree(x)
    return jax.lax.map(
        lambda row: jax.jacfwd(forwards(lambda v: ravel_pytree(oracle(unravel(v), row))[0]))(flat), rows, batch_size=64
    )


def by_agents(function: Any, x: PyTree, row: PyTree) -> FloatArray | None:
    """The Jacobian of agents' own gradients, where they are evaluated in batches; None elsewhere."""
    return jacobian_of(function, x, *(() if row is None else (row,))) if isinstance(function, Of) else None


@jax.jit
def _jacobian(oracle: Oracle, x: PyTree, row: PyTree) -> Any:
    flat, unravel = ravel_pytree(x)
    return jax.jacfwd(forwards(lambda v: ravel_pytree(oracle(unravel(v), row))[0]))(flat)


def constant_jacobian(problem: Problem, row: PyTree, x: PyTree) -> ConstantJacobian | None:
    """J where it is proved to be constant, and small enough to be written down."""
    oracle = oracle_at(problem, x, row)
    if entries(x) > DENSE:
        return None
    degree = degrees(oracle, x, () if row is None else row)
    if degree.u > 1 or degree.mixed:
        return None
    found = by_agents(getattr(oracle, "function", None), x, row)
    jacobian = np.asarray(_jacobian(oracle, x, row)) if found is None else found
    return ConstantJacobian(jacobian) if np.isfinite(jacobian).all() else None


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
