"""What the contract does not reach: failures of iterations, far points, optional CVXPY, big polyhedra."""

import sys
from typing import Any

import cvxpy as cp
import jax
import numpy as np
import pytest
import scipy.sparse as sp

import epszero.sets as ez
from epszero.sets.conic import minimise


def touching() -> Any:
    """Two discs that touch in one point, of unknown dimension at construction: Dykstra converges too slowly."""
    return ez.Intersection(ez.Ball(), ez.Translated(ez.Ball(), 2 / np.sqrt(2)))


@pytest.mark.long
def test_dykstra_says_when_it_did_not_converge() -> None:
    with pytest.raises(ez.NotConvergedError, match=r"after 20000 cycles .* still .* apart.*Enlarge one of them"):
        touching().project([5.0, -3.0])
    apart = ez.Intersection(ez.Ball(), ez.Translated(ez.Ball(), 3.0))
    with pytest.raises(ez.NotConvergedError, match="do not meet or barely touch"):
        apart.project([0.0, 0.0])


@pytest.mark.long
def test_failures_reach_through_other_sets() -> None:
    with pytest.raises(ez.NotConvergedError):
        ez.Scaled(touching(), 2.0).project([5.0, -3.0])
    with pytest.raises(ez.NotConvergedError):
        ez.Product([touching()]).project([np.array([5.0, -3.0])])


def test_under_a_trace_the_failure_is_nan() -> None:
    with jax.enable_x64(True):
        answer = jax.jit(touching().project)(np.array([[5.0, -3.0], [np.sqrt(0.5), np.sqrt(0.5)]]))
    assert np.isnan(answer[0]).all()
    np.testing.assert_allclose(answer[1], np.sqrt(0.5))


@pytest.mark.some(2)
@pytest.mark.parametrize("distance", [1.0, 1e3, 1e6, 1e9])
def test_dykstra_from_afar(distance: float) -> None:
    joined = ez.Intersection(
        ez.Box(0, 1, dim=3), ez.Hyperplane([1.0, 2.0, 3.0], 2.0), ez.HalfSpace([-1.0, -1.0, 0.5], -1)
    )
    G = np.vstack([np.eye(3), -np.eye(3), [-1, -1, 0.5]])
    once = ez.Polyhedron(G, [1, 1, 1, 0, 0, 0, -1], [[1, 2, 3]], [2])
    v = np.random.default_rng(0).normal(size=(10, 3)) * distance
    np.testing.assert_allclose(joined.project(v), once.project(v), atol=1e-9 + 1e-13 * distance)
    assert joined.contains(joined.project(v)).all()


@pytest.mark.long
def test_intersections_of_batches() -> None:
    joined = ez.Intersection(ez.Ball(dim=2), ez.HalfSpace([[1.0, 0.0], [0.0, 1.0]], [0.0, -0.5]))
    assert joined.batch_shape == (2,)
    v = np.array([[2.0, 2.0], [0.0, 3.0]])
    np.testing.assert_allclose(joined.project(v), [[0.0, 1.0], [0.0, -0.5]], atol=1e-9)
    np.testing.assert_allclose(joined.diameter(), [2.0, 2.0])
    assert joined.contains(joined.point()).all()


def test_a_member_of_an_intersection_is_one_for_conic_solvers() -> None:
    joined = ez.Intersection(ez.Ball(dim=2), ez.HalfSpace([[1.0, 0.0], [0.0, 1.0]], [0.0, -0.5]))
    single = joined.member(1)
    assert (single.batch_shape, single.sets[0]) == ((), joined.sets[0])
    np.testing.assert_allclose(single.project([0.0, 3.0]), [0.0, -0.5], atol=1e-9)
    np.testing.assert_allclose(single.support([[0.0, 1.0], [1.0, 0.0]]), [-0.5, np.sqrt(0.75)], atol=1e-8)
    np.testing.assert_allclose(minimise(single.conic(2), np.array([0.0, -3.0]), 1.0).x, [0.0, -0.5], atol=1e-6)


def optimal(rows: Any, h: Any, v: Any, p: Any) -> None:
    """KKT: feasible, and v − p a nonnegative combination of the rows active at p."""
    from scipy.optimize import nnls  # noqa: PLC0415

    assert (rows @ p - h).max() <= 1e-9
    active = rows[rows @ p - h > -1e-8]
    assert nnls(active.T, v - p)[1] <= 1e-8 * (1 + np.linalg.norm(v))


@pytest.mark.parametrize("seed", range(6))
def test_polyhedra_at_scale(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 30
    rows = rng.normal(size=(120, n)) * (rng.random((120, n)) < 0.3)
    rows = np.vstack([rows, rows[:20], np.eye(n)])  # repeated rows: degenerate vertices
    h = np.concatenate([rng.uniform(0, 1, 120), np.zeros(n + 20)])
    h[120:140] = h[:20]
    poly = ez.Polyhedron(sp.csr_matrix(rows), h)
    for scale in (1.0, 1e3):
        v = rng.normal(size=n) * scale
        optimal(rows, h, v, poly.project(v))


def test_an_open_polyhedron_knows_its_unbounded_directions() -> None:
    wedge = ez.Polyhedron([[-1.0, 0.0], [0.0, -1.0]], [0.0, 0.0])
    np.testing.assert_array_equal(
        wedge.support([[1.0, -1.0], [-1.0, -2.0], [0.0, 0.0]]) == np.inf, [True, False, False]
    )
    assert wedge.diameter() == np.inf
    assert (wedge.point() >= 0).all()


@pytest.mark.long
def test_cvxpy_sets_take_attributes_and_other_variables() -> None:
    x, t = cp.Variable(3, nonpos=True), cp.Variable()
    shell = ez.from_cvxpy([cp.norm1(x) <= t, t <= 2], x)
    ball = ez.Intersection(ez.Ball(2.0, norm=1), ez.Scaled(ez.NonNegative(3), -1.0))
    v = np.random.default_rng(1).normal(size=(4, 3)) * 3
    np.testing.assert_allclose(shell.project(v), ball.project(v), atol=1e-5)
    np.testing.assert_allclose(shell.support(v), ball.support(v), atol=1e-7)
    joined = ez.Intersection(shell, ez.HalfSpace([1.0, 1.0, 1.0], -1.0))
    assert (joined.project(v).sum(axis=-1) <= -1 + 1e-6).all()


def test_cvxpy_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r'pip install "epszero\[cvxpy\]"'):
        ez.from_cvxpy([], None)


def test_parameters_broadcast_against_points() -> None:
    balls = ez.Ball([1.0, 2.0, 3.0])
    assert balls.project(np.ones((5, 1, 4))).shape == (5, 3, 4)
    assert balls.support(np.ones(4)).shape == (3,)
    assert ez.HalfSpace(np.eye(3), [0.0, 1.0, 2.0]).project([3.0, 3.0, 3.0]).shape == (3, 3)


def test_sets_are_pytrees() -> None:
    for kind in (ez.Simplex([1.0, 2.0], dim=3), ez.Ball(norm=1, dim=3), ez.Polyhedron(np.eye(3), np.ones(3))):
        leaves, structure = jax.tree.flatten(kind)
        again = structure.unflatten(leaves)
        np.testing.assert_array_equal(again.project([3.0, 1.0, 2.0]), kind.project([3.0, 1.0, 2.0]))
