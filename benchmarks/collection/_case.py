"""What a problem of the collection is, and how a point is judged: by NumPy alone, from x alone.

The natural residual of 0 ∈ A(x) + F(x) is ‖x − J(x − F(x))‖₂ with J the projection on the set, or the prox of the
function, at step 1; with shared constraints the projection is on all of them together, so that a small residual means a
variational equilibrium, and no multipliers are asked for. `scale` is about the length of a solution, at least 1: a
point is a solution when its residual is at most 1e-8 · scale. F is written in NumPy, apart from what the solvers get.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import epszero as ez

Array = NDArray[np.float64]
Operator = Callable[[Array], Array]
FREE = np.inf


@dataclass(frozen=True, eq=False)
class Region:
    """{x : lower ≤ x ≤ upper, low ≤ Gx ≤ high}: what solvers of quadratic programmes take."""

    lower: Array
    upper: Array
    G: Array
    low: Array
    high: Array

    @staticmethod
    def box(lower: Any, upper: Any, n: int) -> "Region":
        none = np.zeros(0)
        return Region(np.broadcast_to(lower, n).astype(float), np.broadcast_to(upper, n).astype(float),
                      np.zeros((0, n)), none, none)  # fmt: skip

    def cut(self, G: Any, low: Any, high: Any) -> "Region":
        """With more rows."""
        rows = np.atleast_2d(np.asarray(G, dtype=float))
        low, high = (np.broadcast_to(side, len(rows)) for side in (low, high))
        return replace(self, G=np.vstack([self.G, rows]), low=np.append(self.low, low), high=np.append(self.high, high))

    @staticmethod
    def product(parts: Sequence["Region"]) -> "Region":
        from scipy.linalg import block_diag  # noqa: PLC0415

        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in
                  ("lower", "upper", "low", "high")}  # fmt: skip
        return Region(G=block_diag(*(part.G for part in parts)), **joined)

    @property
    def size(self) -> int:
        return len(self.lower)

    def project(self, v: Array) -> Array:
        """The nearest point: by clipping, or by the dual active-set solver DAQP, exact to rounding."""
        if not len(self.G):
            return np.clip(v, self.lower, self.upper)
        from daqp import solve  # noqa: PLC0415

        upper, lower = np.append(self.upper, self.high), np.append(self.lower, self.low)
        sense = np.where(upper == lower, 5, 0).astype(np.int32)
        upper, lower = np.clip(upper, -1e30, 1e30), np.clip(lower, -1e30, 1e30)
        x, _, flag, _ = solve(np.eye(len(v)), -v, self.G, upper, lower, sense, primal_tol=1e-12, iter_limit=100_000)
        if flag < 1:
            raise RuntimeError(f"DAQP ended with {flag}")
        return x


@dataclass(frozen=True, eq=False)
class Affine:
    """F(x) = Mx + q over a region: an affine variational inequality, a quadratic programme where M is symmetric."""

    M: Array
    q: Array
    region: Region


@dataclass(frozen=True, eq=False)
class Costs:
    """A game as NashOpt takes it: costs of the whole vector, in jax.numpy, sizes, bounds, and g(x) ≤ 0 for all."""

    costs: list[Callable[[Any], Any]]
    sizes: list[int]
    region: Region


@dataclass(frozen=True, eq=False)
class Payoffs:
    """The matrix of a zero-sum game: player 0 pays xᵀAy."""

    A: Array


@dataclass(frozen=True, eq=False)
class Regression:
    """Rows, answers, and what scikit-learn calls it: its class, its arguments, and whether it has a twin there."""

    rows: Array
    answers: Array
    model: str
    settings: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Pieces:
    """½xᵀPx + qᵀx + Σ_j (up_j (r_j)₊ + down_j (−r_j)₊), r = Rx − c, over a region: piecewise linear or quadratic.

    The residual is the distance of 0 from ∂f(x) + N(x), where r_j counts as 0, and a bound as met, within `near`: a
    bounded least-squares problem in the multipliers of kinks and bounds. What x violates is added.
    """

    P: Array
    q: Array
    R: Array
    c: Array
    up: Array
    down: Array
    region: Region

    def residual(self, x: Array, near: float) -> float:
        from scipy.optimize import lsq_linear  # noqa: PLC0415

        r = self.R @ x - self.c
        kink = np.abs(r) <= near * (1 + np.linalg.norm(self.R, axis=1))
        theta = np.where(kink, 0.0, np.where(r > 0, self.up, -self.down))
        slope = self.P @ x + self.q + self.R.T @ theta
        sides = [(np.eye(len(x)), x, self.region.lower, self.region.upper)]
        sides.append((self.region.G, self.region.G @ x, self.region.low, self.region.high))
        columns, least, most, violated = [self.R[kink].T], [-self.down[kink]], [self.up[kink]], 0.0
        for rows, at, low, high in sides:
            met = (at <= low + near) | (at >= high - near)
            columns.append(rows[met].T)
            least.append(np.where(at <= low + near, -FREE, 0.0)[met])
            most.append(np.where(at >= high - near, FREE, 0.0)[met])
            violated = max(violated, np.max(low - at, initial=0.0), np.max(at - high, initial=0.0))
        matrix = np.hstack(columns)
        if not matrix.shape[1]:
            return float(np.linalg.norm(slope) + violated)
        bounds = np.concatenate(least), np.maximum(np.concatenate(most), np.concatenate(least) + 1e-300)
        fit = lsq_linear(matrix, -slope, bounds, method="bvls" if min(matrix.shape) < 100 else "trf", tol=1e-14)
        return float(np.sqrt(2 * fit.cost) + violated)


Form = Affine | Costs | Payoffs | Regression | Pieces


@dataclass(frozen=True, eq=False)
class Posed:
    """A problem, built."""

    problem: Any
    residual: Callable[[Array], float]  # of a flat point, by NumPy
    samples: ez.Samples | None = None
    planted: Array | None = None  # a solution that is known
    forms: tuple[Form, ...] = ()  # what peers take
    scale: float = 1.0
    F: Operator | None = None  # for the check of monotonicity
    entries: int | None = None  # of x, where neither a planted solution nor a form tells

    @property
    def size(self) -> int:
        """How many numbers are sought."""
        if self.entries is not None:
            return self.entries
        if self.planted is not None:
            return self.planted.size
        sized = [one for one in self.forms if isinstance(one, Affine | Pieces | Costs)]
        return sized[0].region.size

    def form(self, kind: type) -> Any:
        """The form of this kind, or None."""
        return next((one for one in self.forms if isinstance(one, kind)), None)


@dataclass(frozen=True)
class Case:
    """A problem by name, not built yet."""

    name: str
    family: str
    build: Callable[[], Posed] = field(repr=False)
    monotone: bool = True
    kinked: bool = False


def natural(F: Operator, back: Operator) -> Callable[[Array], float]:
    """x ↦ ‖x − J(x − F(x))‖₂."""
    return lambda x: float(np.linalg.norm(x - back(x - F(x))))


def length(x: Array) -> float:
    """The scale of a problem whose solution is about x."""
    return max(1.0, float(np.linalg.norm(x)))


def flat(x: Any) -> Array:
    """A point of any nesting as one vector, in the order of its entries."""
    if isinstance(x, dict):
        x = [x[key] for key in sorted(x)]
    if isinstance(x, list | tuple):
        return np.concatenate([flat(one) for one in x])
    return np.ravel(np.asarray(x, dtype=np.float64))


def in_blocks(sizes: Sequence[int]) -> Callable[[Any], list[Any]]:
    """A vector cut into strategies."""
    ends = np.cumsum(sizes)
    return lambda x: [x[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def soft(threshold: Any, shrink: float = 1.0) -> Operator:
    """The prox of threshold·|x|, and of what shrinks by a factor besides."""
    return lambda v: np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0) / shrink
