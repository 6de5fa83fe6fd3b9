"""Sets of every kind, each with the constraints it stands for written a second time, in CVXPY."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import cvxpy as cp
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import epszero.sets as ez

INF = np.inf
Constraints = Callable[[Any], list[Any]]


class Reference:
    """Slow and obviously right: projection and support by CVXPY over constraints that know nothing of the library."""

    def __init__(self, constraints: Constraints, n: int, curved: bool) -> None:
        x, self.v, self.d = cp.Variable(n), cp.Parameter(n), cp.Parameter(n)
        self.x, rows = x, constraints(x)
        self.curved = curved  # where Clarabel's minimisers are good to 1e-5 only, and SCS's to 1e-9
        self.nearest = cp.Problem(cp.Minimize(cp.norm(x - self.v) if curved else cp.sum_squares(x - self.v)), rows)
        self.furthest = cp.Problem(cp.Minimize(-self.d @ x), rows)

    def project(self, v: Any) -> Any:
        self.v.value = np.ravel(v)
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            if self.curved:
                self.nearest.solve(solver=cp.SCS, eps=1e-11, max_iters=20_000)
            else:
                self.nearest.solve(solver=cp.CLARABEL, **tight)
        return self.x.value.reshape(np.shape(v))

    def support(self, direction: Any) -> float:
        self.d.value = np.ravel(direction)
        linear = self.furthest.is_qp()
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            self.furthest.solve(solver=cp.HIGHS if linear else cp.CLARABEL)
        solved = self.furthest.status in ("optimal", "optimal_inaccurate")
        return -self.furthest.value if solved else INF  # no set is empty, so what is not solved is unbounded


@dataclass
class Case:
    """A set, what it should be (one constraint writer per batch entry), and whether its diameter is exact."""

    name: str
    set: Any
    n: int  # entries of one point
    members: list[Constraints]
    exact: bool = True
    shape: tuple[int, ...] = field(init=False)  # of a point, batch included
    curved: bool = False
    far: float = 1e12  # how far from the set a point may be
    tight: float = 1e-8  # how accurate the set is; the reference is to 1e-6

    def __post_init__(self) -> None:
        single = self.set.point_shape or (self.n,)
        self.shape = self.set.batch_shape + (single if np.prod(single) == self.n else (self.n,))

    @cached_property
    def references(self) -> list[Reference]:
        return [Reference(constraints, self.n, self.curved) for constraints in self.members]

    # The methods of the set on plain arrays (B, n): a Product's nests are packed and unpacked.

    def point(self, flat: Any) -> Any:
        return self.unpack(flat) if isinstance(self.set, ez.Product) else flat.reshape(self.shape)

    def flat(self, point: Any) -> Any:
        leaves = jax.tree.leaves(point)
        return np.concatenate([np.ravel(leaf) for leaf in leaves]).reshape(len(self.members), self.n)

    def unpack(self, flat: Any) -> Any:
        with jax.enable_x64(True):
            nest = jax.flatten_util.ravel_pytree(self.set.point())[1](jnp.asarray(flat).ravel())
        return jax.tree.map(np.asarray, nest)

    def project(self, flat: Any) -> Any:
        return self.flat(self.set.project(self.point(flat)))

    def contains(self, flat: Any) -> Any:
        return np.ravel(self.set.contains(self.point(flat), self.tight))

    def support(self, flat: Any) -> Any:
        return np.ravel(self.set.support(self.point(flat)))


def box(lower: Any, upper: Any) -> Constraints:
    def write(x: Any) -> list[Any]:
        low, high = np.broadcast_to(lower, x.shape), np.broadcast_to(upper, x.shape)
        below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
        return [x[i] >= low[i] for i in below] + [x[i] <= high[i] for i in above]

    return write


def budget(lower: Any, upper: Any, w: Any, least: float, most: float) -> Constraints:
    rows = [lambda x: np.broadcast_to(w, x.shape) @ x >= least, lambda x: np.broadcast_to(w, x.shape) @ x <= most]
    kept = [row for row, bound in zip(rows, (least, most), strict=True) if np.isfinite(bound)]
    return lambda x: box(lower, upper)(x) + [row(x) for row in kept]


def level(a: Any, lower: float, upper: float) -> Constraints:
    return budget(-INF, INF, a, lower, upper)


def ball(radius: float, center: Any, order: Any) -> Constraints:
    return lambda x: [cp.norm(x - center, order) <= radius]


def capped(total: float, cap: Any) -> Constraints:
    return lambda x: [x >= 0, cp.sum(x) == total] + ([x <= cap] if np.all(np.isfinite(cap)) else [])


def ellipsoid(P: Any, c: Any, r: float) -> Constraints:
    root = np.linalg.cholesky(P).T
    return lambda x: [cp.norm(root @ (x - c)) <= r]


def semidefinite(n: int, at_least: float = 0.0) -> Constraints:
    def write(x: Any) -> list[Any]:
        X = cp.reshape(x, (n, n), order="C")
        return [X == X.T, (X + X.T) / 2 - at_least * np.eye(n) >> 0]

    return write


RNG = np.random.default_rng(7)
G, POINT = RNG.normal(size=(9, 4)), RNG.normal(size=4)
H = G @ POINT + RNG.uniform(0.1, 1.0, 9)
SQUARE = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [2, 2]])  # with a corner where three rows meet
SQUARE_H = np.array([1.0, 1, 1, 1, 2, 4])
WIDE = RNG.normal(size=(2, 5))
ROOT = RNG.normal(size=(3, 4, 4))
P = ROOT @ ROOT.swapaxes(-1, -2) + 0.1 * np.eye(4)
LONG = np.diag([1e-6, 1.0, 1e6])
NORMALS = RNG.normal(size=(3, 4))
CAPS = np.array([0.5, 1.0, 0.0, 2.0])


def cvxpy_set(n: int, constraints: Constraints, **attributes: Any) -> Any:
    x = cp.Variable(n, **attributes)
    return ez.from_cvxpy(constraints(x), x)


CASES = [
    Case("WholeSpace", ez.WholeSpace(3), 3, [lambda x: []]),
    Case("NonNegative", ez.NonNegative(4), 4, [box(0, INF)]),
    Case("Singleton", ez.Singleton([1.0, -2.0]), 2, [box([1, -2], [1, -2])]),
    Case("Singleton batch", ez.Singleton([[1.0, -2.0], [0.0, 3.0]]), 2, [box([1, -2], [1, -2]), box([0, 3], [0, 3])]),
    Case("Box", ez.Box([-1.0, 0.0, -INF, -INF], [1.0, 0.0, 2.0, INF]), 4, [box([-1, 0, -INF, -INF], [1, 0, 2, INF])]),
    Case("Box batch", ez.Box([[0.0], [-1.0]], [[1.0, 2.0], [3.0, 0.5]]), 2, [box(0, [1, 2]), box(-1, [3, 0.5])]),
    Case("BoxBudget", ez.BoxBudget(0, 2.5, at_least=4.0, dim=5), 5, [budget(0, 2.5, 1, 4, INF)], exact=False),
    Case(
        "BoxBudget open",
        ez.BoxBudget([0, -INF, -INF], INF, -1.0, 1.0, weights=[0.3, 0.7, -1.1]),
        3,
        [budget([0, -INF, -INF], INF, [0.3, 0.7, -1.1], -1, 1)],
        exact=False,
    ),
    Case(
        "BoxBudget batch",
        ez.BoxBudget(0, 1, at_least=[0.0, 1.5, 3.0], at_most=[1.0, 1.5, 4.0], dim=3),
        3,
        [budget(0, 1, 1, 0, 1), budget(0, 1, 1, 1.5, 1.5), budget(0, 1, 1, 3, 4)],
        exact=False,
    ),
    Case("HalfSpace", ez.HalfSpace([1.0, -2.0, 0.0], 0.5), 3, [level([1, -2, 0], -INF, 0.5)]),
    Case("HalfSpace line", ez.HalfSpace([-3.0], 0.5), 1, [level([-3], -INF, 0.5)]),
    Case(
        "HalfSpace batch",
        ez.HalfSpace(NORMALS, [0.0, 1.0, -1.0]),
        4,
        [level(NORMALS[0], -INF, 0), level(NORMALS[1], -INF, 1), level(NORMALS[2], -INF, -1)],
    ),
    Case("Slab", ez.Slab([1.0, 2.0], -1.0, 0.5), 2, [level([1, 2], -1, 0.5)]),
    Case("Slab line", ez.Slab([2.0], [-1.0, -INF], [0.5, 1.0]), 1, [level([2], -1, 0.5), level([2], -INF, 1)]),
    Case("Hyperplane", ez.Hyperplane(NORMALS[0], 0.7), 4, [level(NORMALS[0], 0.7, 0.7)]),
    Case("Hyperplane line", ez.Hyperplane([2.0], [1.0, 3.0]), 1, [level([2], 1, 1), level([2], 3, 3)]),
    Case("AffineSubspace", ez.AffineSubspace(WIDE, [1.0, -1.0]), 5, [lambda x: [WIDE @ x == [1, -1]]]),
    Case(
        "AffineSubspace batch",
        ez.AffineSubspace([[[1, 2], [2, 4]], [[1, 0], [0, 1]], [[0, 0], [1e-4, 0]]], [[1, 2], [3, 4], [0, 1e-4]]),
        2,
        [lambda x: [x[0] + 2 * x[1] == 1], lambda x: [x == [3, 4]], lambda x: [x[0] == 1]],
    ),
    Case("Ball", ez.Ball(dim=3), 3, [ball(1, 0, 2)]),
    Case("Ball batch", ez.Ball([1.0, 0.0], [1.0, -1.0]), 2, [ball(1, [1, -1], 2), ball(0, [1, -1], 2)]),
    Case("Ball 1", ez.Ball(1.5, [1.0, 0.0, -2.0, 0.0], norm=1), 4, [ball(1.5, [1, 0, -2, 0], 1)]),
    Case("Ball 1 batch", ez.Ball([0.5, 2.0], norm=1, dim=3), 3, [ball(0.5, 0, 1), ball(2, 0, 1)]),
    Case(
        "Ball inf", ez.Ball([0.5, 2.0], [1.0, 0.0, 0.0], norm="inf"), 3, [ball(r, [1, 0, 0], "inf") for r in (0.5, 2)]
    ),
    Case("Simplex", ez.Simplex(dim=6), 6, [capped(1, INF)]),
    Case("Simplex batch", ez.Simplex([2.0, 0.0, 0.1], dim=3), 3, [capped(2, INF), capped(0, INF), capped(0.1, INF)]),
    Case("Simplex point", ez.Simplex(2.0, dim=1), 1, [capped(2, INF)]),
    Case("CappedSimplex", ez.CappedSimplex(2.0, 1.0, dim=5), 5, [capped(2, 1)]),
    Case("CappedSimplex open", ez.CappedSimplex(2.0, INF, dim=3), 3, [capped(2, INF)]),
    Case(
        "CappedSimplex batch",
        ez.CappedSimplex([1.0, 3.5, 0.0], CAPS),
        4,
        [capped(1, CAPS), capped(3.5, CAPS), capped(0, CAPS)],
        exact=False,
    ),
    Case("Ellipsoid", ez.Ellipsoid(LONG, [0.0, 1.0, 0.0]), 3, [ellipsoid(LONG, [0, 1, 0], 1)], curved=True),
    Case(
        "Ellipsoid batch",
        ez.Ellipsoid(P, 0.5, [1.0, 0.1, 3.0]),
        4,
        [ellipsoid(P[i], 0.5, r) for i, r in enumerate((1, 0.1, 3))],
        curved=True,
    ),
    Case("SecondOrderCone", ez.SecondOrderCone(4), 4, [lambda x: [cp.norm(x[:3]) <= x[3]]]),
    Case("SecondOrderCone line", ez.SecondOrderCone(1), 1, [lambda x: [x >= 0]]),
    Case("PositiveSemidefinite", ez.PositiveSemidefinite(2), 4, [semidefinite(2)]),
    Case("Polyhedron", ez.Polyhedron(G, H), 4, [lambda x: [G @ x <= H]], exact=False),
    Case(
        "Polyhedron degenerate",
        ez.Polyhedron(sp.csr_matrix(SQUARE), SQUARE_H),
        2,
        [lambda x: [x <= 1, x >= -1]],
        exact=False,
    ),
    Case(
        "Polyhedron open",
        ez.Polyhedron(-np.eye(3), [0, 0, INF], [[1, 1, 1]], [1]),
        3,
        [lambda x: [x[:2] >= 0, cp.sum(x) == 1]],
        exact=False,
    ),
    Case(
        "Product",
        ez.Product({"a": ez.Box([0.0, 0.0], 1.0), "b": [ez.Ball(dim=2), ez.Product((ez.Simplex([1.0, 2.0], dim=2),))]}),
        8,
        [
            lambda x: (
                [x[:2] >= 0, x[:2] <= 1, cp.norm(x[2:4]) <= 1, x[4:] >= 0, cp.sum(x[4:6]) == 1, cp.sum(x[6:]) == 2]
            )
        ],
    ),
    Case(
        "Intersection",
        ez.Intersection(ez.Ball(2.0), ez.NonNegative(3), ez.HalfSpace([-1.0, -1.0, 0.5], -1.0)),
        3,
        [lambda x: [cp.norm(x) <= 2, x >= 0, x[0] + x[1] - 0.5 * x[2] >= 1]],
        exact=False,
        curved=True,
        far=30.0,
    ),
    Case(
        "Intersection matrices",
        ez.Intersection(
            ez.PositiveSemidefinite(2), ez.Translated(ez.Scaled(ez.PositiveSemidefinite(2), -1.0), np.eye(2))
        ),
        4,
        [lambda x: [*semidefinite(2)(x), np.eye(2) - cp.reshape(x, (2, 2), order="C") >> 0]],
        exact=False,
    ),
    Case(
        "Translated",
        ez.Translated(ez.Ball(norm=1), [[1.0, 2.0], [0.0, -1.0]]),
        2,
        [ball(1, [1, 2], 1), ball(1, [0, -1], 1)],
    ),
    Case("Translated matrices", ez.Translated(ez.PositiveSemidefinite(2), 0.5 * np.eye(2)), 4, [semidefinite(2, 0.5)]),
    Case("Scaled", ez.Scaled(ez.Simplex(dim=3), -2.0), 3, [lambda x: [x <= 0, cp.sum(x) == -2]]),
    Case("Scaled batch", ez.Scaled(ez.Box([[0.0, 0.0], [1.0, 1.0]], 2.0), 0.5), 2, [box(0, 1), box(0.5, 1)]),
    Case(
        "CvxpySet",
        cvxpy_set(3, lambda x: [cp.norm(x) <= 1, cp.sum_squares(x) + cp.exp(x[0]) <= 2]),
        3,
        [lambda x: [cp.norm(x) <= 1, cp.sum_squares(x) + cp.exp(x[0]) <= 2]],
        exact=False,
        curved=True,
        far=30.0,
        tight=5e-5,
    ),
    Case(
        "CvxpySet linear",
        cvxpy_set(3, lambda x: [cp.sum(x) <= 1], nonneg=True),
        3,
        [budget(0, INF, 1, -INF, 1)],
        exact=False,
    ),
]
