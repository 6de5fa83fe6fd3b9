"""A member of a batch is the set or function that its own parameters would have built, however the batch broadcasts."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import epszero.functions as fs
import epszero.sets as ez
from epszero._shaped import Shaped

RNG = np.random.default_rng(9)
LOW, HIGH = np.array([[[0.0, 0.2, -0.5]], [[-1.0, 0.0, 0.1]]]), np.array([[2.0, 3.0, 4.0], [3.0, 2.0, 5.0]])
A, B = RNG.normal(size=(2, 1, 2, 3)), RNG.normal(size=(2, 2))
ROOT = RNG.normal(size=(2, 1, 3, 3))
P = ROOT @ ROOT.swapaxes(-1, -2) + np.eye(3)
ROW, COLUMN = np.array([1.0, 2.0]), np.array([[0.5], [0.7]])
ROWS, POINTS = RNG.uniform(1, 2, size=(2, 3)), RNG.uniform(1, 2, size=(2, 1, 3))
GROUPS = [[0, 2], [1]]

# A batch of shape (2, 2) whose parameters differ in their leading axes, and its member at (i, j), built by itself.
BATCHES: list[tuple[Any, Callable[[int, int], Any]]] = [
    (ez.Singleton(ROWS * COLUMN[..., None]), lambda i, j: ez.Singleton(ROWS[j] * COLUMN[i])),
    (ez.Box(LOW, HIGH), lambda i, j: ez.Box(LOW[i, 0], HIGH[j])),
    (
        ez.BoxBudget(LOW, HIGH, COLUMN, [3.0, 4.0], POINTS),
        lambda i, j: ez.BoxBudget(LOW[i, 0], HIGH[j], COLUMN[i, 0], [3.0, 4.0][j], POINTS[i, 0]),
    ),
    (ez.BoxBudget(0, 2.5, COLUMN, ROW, dim=3), lambda i, j: ez.BoxBudget(0, 2.5, COLUMN[i, 0], ROW[j], dim=3)),
    (ez.HalfSpace(ROWS, COLUMN), lambda i, j: ez.HalfSpace(ROWS[j], COLUMN[i, 0])),
    (ez.Slab(POINTS, COLUMN, ROW), lambda i, j: ez.Slab(POINTS[i, 0], COLUMN[i, 0], ROW[j])),
    (ez.Hyperplane(ROWS, COLUMN), lambda i, j: ez.Hyperplane(ROWS[j], COLUMN[i, 0])),
    (ez.AffineSubspace(A, B), lambda i, j: ez.AffineSubspace(A[i, 0], B[j])),
    (ez.Ball(COLUMN, ROWS, norm=1), lambda i, j: ez.Ball(COLUMN[i, 0], ROWS[j], norm=1)),
    (ez.Simplex(COLUMN * ROW, dim=3), lambda i, j: ez.Simplex(COLUMN[i, 0] * ROW[j], dim=3)),
    (ez.CappedSimplex(ROW, POINTS), lambda i, j: ez.CappedSimplex(ROW[j], POINTS[i, 0])),
    (ez.Ellipsoid(P, ROWS, COLUMN), lambda i, j: ez.Ellipsoid(P[i, 0], ROWS[j], COLUMN[i, 0])),
    (ez.Translated(ez.Ball(ROW), POINTS), lambda i, j: ez.Translated(ez.Ball(ROW[j]), POINTS[i, 0])),
    (
        ez.Translated(ez.PositiveSemidefinite(3), P * ROW[:, None, None]),
        lambda i, j: ez.Translated(ez.PositiveSemidefinite(3), P[i, 0] * ROW[j]),
    ),
    (ez.Scaled(ez.HalfSpace(ROWS, COLUMN), -2), lambda i, j: ez.Scaled(ez.HalfSpace(ROWS[j], COLUMN[i, 0]), -2)),
    (
        ez.Intersection(ez.Ball(ROW), ez.NonNegative(), ez.Scaled(ez.Simplex(COLUMN), 0.5)),
        lambda i, j: ez.Intersection(ez.Ball(ROW[j]), ez.NonNegative(), ez.Scaled(ez.Simplex(COLUMN[i, 0]), 0.5)),
    ),
    (fs.Indicator(ez.Box(LOW, HIGH)), lambda i, j: fs.Indicator(ez.Box(LOW[i, 0], HIGH[j]))),
    (fs.L1(ROWS * COLUMN[..., None]), lambda i, j: fs.L1(ROWS[j] * COLUMN[i])),
    (fs.L2(COLUMN * ROW), lambda i, j: fs.L2(COLUMN[i, 0] * ROW[j])),
    (fs.SquaredL2(ROWS, POINTS), lambda i, j: fs.SquaredL2(ROWS[j], POINTS[i, 0])),
    (fs.ElasticNet(ROWS, POINTS), lambda i, j: fs.ElasticNet(ROWS[j], POINTS[i, 0])),
    (fs.GroupL2(GROUPS, B**2 * COLUMN[..., None]), lambda i, j: fs.GroupL2(GROUPS, B[j] ** 2 * COLUMN[i])),
    (fs.Huber(ROWS, POINTS), lambda i, j: fs.Huber(ROWS[j], POINTS[i, 0])),
    (fs.Hinge(ROWS, POINTS), lambda i, j: fs.Hinge(ROWS[j], POINTS[i, 0])),
    (fs.Linear(ROWS * COLUMN[..., None]), lambda i, j: fs.Linear(ROWS[j] * COLUMN[i])),
    (fs.Quadratic(P, ROWS), lambda i, j: fs.Quadratic(P[i, 0], ROWS[j])),
    (fs.MaxEntry(COLUMN * ROW), lambda i, j: fs.MaxEntry(COLUMN[i, 0] * ROW[j])),
    (fs.TotalVariation1D(COLUMN * ROW), lambda i, j: fs.TotalVariation1D(COLUMN[i, 0] * ROW[j])),
    (fs.NegativeEntropy(ROWS * COLUMN[..., None]), lambda i, j: fs.NegativeEntropy(ROWS[j] * COLUMN[i])),
    (fs.LogBarrier(ROWS * COLUMN[..., None]), lambda i, j: fs.LogBarrier(ROWS[j] * COLUMN[i])),
    (fs.NuclearNorm(COLUMN * ROW), lambda i, j: fs.NuclearNorm(COLUMN[i, 0] * ROW[j])),
    (fs.Scaled(fs.L2(ROW), COLUMN), lambda i, j: fs.Scaled(fs.L2(ROW[j]), COLUMN[i, 0])),
    (fs.Precomposed(fs.L2(ROW), COLUMN), lambda i, j: fs.Precomposed(fs.L2(ROW[j]), COLUMN[i, 0])),
    (fs.Translated(fs.NuclearNorm(ROW), P), lambda i, j: fs.Translated(fs.NuclearNorm(ROW[j]), P[i, 0])),
    (fs.Tilted(fs.L1(ROWS), POINTS), lambda i, j: fs.Tilted(fs.L1(ROWS[j]), POINTS[i, 0])),
    (
        fs.Conjugate(fs.Indicator(ez.Ball(COLUMN, ROWS))),
        lambda i, j: fs.Conjugate(fs.Indicator(ez.Ball(COLUMN[i, 0], ROWS[j]))),
    ),
    (
        fs.OnBlock(fs.Tilted(fs.L2(ROW), POINTS), slice(0, 3)),
        lambda i, j: fs.OnBlock(fs.Tilted(fs.L2(ROW[j]), POINTS[i, 0]), slice(0, 3)),
    ),
]
SINGLE = {  # these take no batch of parameters
    *(ez.WholeSpace, ez.NonNegative, ez.SecondOrderCone, ez.PositiveSemidefinite, ez.Polyhedron, ez.CvxpySet),
    *(ez.Product, fs.Zero, fs.SeparableSum),
}


def test_every_class_with_batches_is_here() -> None:
    public = {c for room in (ez, fs) for _, c in inspect.getmembers(room, inspect.isclass) if issubclass(c, Shaped)}
    assert {type(batch) for batch, _ in BATCHES} == public - SINGLE - {ez.Set, fs.Function}


@pytest.mark.parametrize(("batch", "built"), BATCHES, ids=[type(batch).__name__ for batch, _ in BATCHES])
def test_a_member_has_the_parameters_of_its_place(batch: Any, built: Callable[[int, int], Any]) -> None:
    assert batch.batch_shape == (2, 2)
    for i, j in np.ndindex(2, 2):
        member, alone = batch.member((i, np.int64(j))), built(i, j)
        assert type(member) is type(alone)
        assert (member.batch_shape, member.point_shape) == ((), alone.point_shape)
        assert jax.tree.structure(member) == jax.tree.structure(alone)
        for ours, theirs in zip(jax.tree.leaves(member), jax.tree.leaves(alone), strict=True):
            assert isinstance(ours, np.ndarray)
            assert not ours.flags.writeable
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
