"""Every set refuses what it cannot be, naming the argument, the rule, the numbers that clash and the remedy."""

import re
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import epszero.sets as ez
from epszero import InputError

INF, NAN = np.inf, np.nan
X = cp.Variable(2)


class Handmade(ez.NonNegative):
    """A set that writes its shape itself."""

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return (2,)


REFUSALS: list[tuple[Callable[[], Any], str]] = [
    (lambda: ez.WholeSpace(0), "dim: must be at least 1, but it is 0. Pass an integer ≥ 1."),
    (lambda: ez.WholeSpace(dims=3), "dims: WholeSpace has no such argument. Did you mean 'dim'?"),
    (lambda: ez.NonNegative(2.0), "dim: must be a whole number, but it is 2.0."),
    (lambda: ez.Singleton([1.0, NAN]), "at[1]: must be finite, but it is NaN."),
    (lambda: ez.Box(1.0, 0.0), "Box is empty: lower = 1 and upper = 0 leave nothing between them"),
    (lambda: ez.Box([0.0, 0.0], 1.0, dim=3), "dim: is 3, but the bounds have 2 entries."),
    (lambda: ez.BoxBudget(0, 1, at_least=4, dim=3), "at_least: is 4, but the box reaches at most 3."),
    (lambda: ez.BoxBudget(0, 1, 2.0, 1.0), "the budget is empty: no number is at least 2 and at most 1."),
    (lambda: ez.BoxBudget(0, 1, at_least=4).project([0.0, 0.0]), "at_least: is 4, but the box reaches at most 2."),
    (lambda: ez.HalfSpace([0.0, 0.0], 1.0), "normal: must not be the zero vector"),
    (lambda: ez.HalfSpace([[1.0, 0.0], [0.0, 0.0]], 1.0), "normal[1]: must not be the zero vector"),
    (lambda: ez.HalfSpace(1.0, 1.0), "normal: must be a vector, but it is the number 1."),
    (lambda: ez.HalfSpace([1.0], INF), "offset: must be finite, but it is infinite."),
    (lambda: ez.HalfSpace(np.ones((3, 2)), np.ones(2)), "normal, offset: must agree in their leading axes"),
    (lambda: ez.Slab([1.0, 1.0], 2.0, 1.0), "Slab is empty: lower = 2 and upper = 1 leave nothing between them."),
    (lambda: ez.Hyperplane([0.0], 1.0), "normal: must not be the zero vector"),
    (lambda: ez.AffineSubspace([1.0, 2.0], 1.0), "A: must be a matrix, but its shape is (2,)."),
    (lambda: ez.AffineSubspace([[1.0, 2.0]], [1.0, 2.0]), "A, b: A has 1 rows, but b has 2 entries."),
    (lambda: ez.AffineSubspace([[1, 1], [2, 2]], [1, 3]), "no x solves A x = b: the rows contradict each other"),
    (lambda: ez.AffineSubspace([[0.0, 0.0]], [1.0]), "gives (A x)[0] = 0 where b[0] = 1."),
    (lambda: ez.Ball(-1.0), "radius: must be nonnegative, but it is -1."),
    (lambda: ez.Ball(norm=3), "norm: must be one of 2, 1, inf, 'inf', but it is 3."),
    (lambda: ez.Ball(center=[0.0, 0.0], dim=3), "dim: is 3, but center has 2 entries."),
    (lambda: ez.Ball([1.0, 2.0], np.zeros((3, 2))), "radius, center: must agree in their leading axes"),
    (lambda: ez.Ball(norm="inf").diameter(), "dim: Ball fits vectors of any length"),
    (lambda: ez.Simplex([1.0, -2.0]), "total[1]: Simplex is empty: nonnegative entries cannot sum to -2."),
    (lambda: ez.CappedSimplex(3.0, 0.5, dim=4), "total: is 3, but the 4 caps sum to 2 only."),
    (lambda: ez.CappedSimplex(3.0, 0.5).project(np.zeros(4)), "total: is 3, but the 4 caps sum to 2 only."),
    (lambda: ez.CappedSimplex(1.0, [1.0, -0.5]), "cap[1]: must be nonnegative, but it is -0.5."),
    (lambda: ez.Ellipsoid([[1.0, 0.0]]), "matrix: must be square, but its shape is (1, 2)."),
    (lambda: ez.Ellipsoid([[1.0, 0.5], [0.0, 1.0]]), "matrix[0, 1]: must be symmetric, but this entry and its mirror"),
    (lambda: ez.Ellipsoid(np.diag([1.0, -2.0])), "must be positive definite, but its eigenvalues run from -2 to 1."),
    (lambda: ez.Ellipsoid(np.eye(2), radius=0.0), "radius: must be positive, but it is 0."),
    (lambda: ez.SecondOrderCone(0), "dim: must be at least 1"),
    (lambda: ez.PositiveSemidefinite(0), "n: must be at least 1"),
    (
        lambda: ez.PositiveSemidefinite(2).project([1.0]),
        "v: PositiveSemidefinite takes matrices, but the shape is (1,)",
    ),
    (lambda: ez.Polyhedron(np.eye(2), [1.0]), "G, h: G has 2 rows, but h has shape (1,)."),
    (lambda: ez.Polyhedron(np.eye(2), [1.0, -INF]), "h[1]: is −∞, which no x can meet."),
    (lambda: ez.Polyhedron([[1.0, NAN]], [1.0]), "G[0, 1]: must be finite, but it is NaN."),
    (lambda: ez.Polyhedron(np.eye(2), [1, 1], A=[[1, 1]]), "A, b: go together, but only one of them is given."),
    (lambda: ez.Polyhedron(np.eye(2), [1, 1], [[1, 1, 1]], [1]), "G, A: have 2 and 3 columns."),
    (
        lambda: ez.Polyhedron([[1, 0], [0, 1], [-1, 0]], [1, 5, -2]),
        "no x meets all rows: G[0], G[2] contradict each other",
    ),
    (lambda: ez.Polyhedron([[1, 0], [-1, 0]], [1, 0], [[2, 0]], [6]), "G[0], A[0] contradict each other"),
    (lambda: ez.Product([]), "sets: holds no set."),
    (lambda: ez.Product({"a": 1.0}), "sets['a']: must be a set, but it is float."),
    (lambda: ez.Product([ez.Ball()]).project([[1.0], [2.0]]), "v: must be nested as the sets are"),
    (lambda: ez.Product({"a": ez.Ball()}).project({"a": np.ones((2, 3))}), "v['a']: has shape (2, 3)"),
    (ez.Intersection, "sets: an Intersection of no sets has no meaning."),
    (lambda: ez.Intersection(ez.Ball(), 3), "sets[1]: must be a set, but it is int."),
    (lambda: ez.Intersection(ez.Ball(dim=2), ez.Ball(dim=3)), "sets[0], sets[1]: have points of shape (2,) and (3,)."),
    (
        lambda: ez.Intersection(ez.Ball(), ez.PositiveSemidefinite(2)),
        "sets: mix sets of vectors with sets of matrices.",
    ),
    (lambda: ez.Intersection(ez.Ball(np.ones(2)), ez.Ball(np.ones(3))), "sets[0] has (2,) and sets[1] has (3,)"),
    (
        lambda: ez.Intersection(ez.Box(0, 1, dim=2), ez.WholeSpace(2), ez.HalfSpace([1.0, 1.0], -1.0)),
        "sets[0], sets[2]: have no point in common: Box(lower=[0.0, 0.0], upper=[1.0, 1.0]) and HalfSpace(",
    ),
    (
        lambda: ez.Intersection(*(ez.HalfSpace(a, -0.1) for a in ([1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]))),
        "sets[0], sets[1], sets[2]: have no point in common",
    ),
    (
        lambda: ez.Intersection(ez.Ball([1.0, 1.0], dim=2), ez.Ball(1.0, [[0.0, 1.0], [3.0, 0.0]])),
        "sets[0][1], sets[1][1]: no common point was found: the nearest points of the members stay 1 apart",
    ),
    (
        lambda: ez.Intersection(ez.Ball(), ez.NonNegative()).support([1.0]),
        "the support of an Intersection needs single sets",
    ),
    (lambda: ez.Translated(3, 1.0), "set: must be a set, but it is int."),
    (lambda: ez.Translated(ez.Product([ez.Ball()]), 1.0), "set: must not be a Product"),
    (lambda: ez.Translated(ez.Ball(dim=2), [1.0, 2.0, 3.0]), "by: has shape (3,), but Ball has points of shape (2,)."),
    (lambda: ez.Scaled(ez.Ball(), 0.0), "factor: must not be 0"),
    (lambda: ez.Scaled(ez.Ball(), [1.0, 2.0]), "factor: must be one number, but its shape is (2,)."),
    (lambda: ez.from_cvxpy([X >= 1, X <= 0], X), "constraints: no value of the variable meets them"),
    (lambda: ez.from_cvxpy([cp.norm(X) >= 1], X), "constraints: CVXPY cannot prove them convex"),
    (lambda: ez.from_cvxpy([], cp.Variable((2, 2))), "variable: must be a vector cvxpy.Variable, but it is (2, 2)."),
    (
        lambda: ez.from_cvxpy([], cp.Variable(2, boolean=True)),
        "variable: is integer or boolean, so the set is not convex.",
    ),
    (lambda: ez.from_cvxpy([cp.Parameter(2, name="cap") >= X], X), "constraints: the parameters cap have no value."),
    (lambda: ez.Ball([1.0, 2.0], dim=2).conic(2), "Ball: is a batch of shape (2,), not a single set."),
    (
        lambda: ez.Ball([1.0, 2.0]).member(2),
        "index: is 2, but Ball is a batch of shape (2,). Pass a whole number ≥ 0 for each axis of the batch",
    ),
    (lambda: ez.Ball([1.0, 2.0]).member(-1), "index: is -1, but Ball is a batch of shape (2,)."),
    (lambda: ez.Ball([1.0, 2.0]).member(True), "index: is True, but Ball is a batch of shape (2,)."),
    (lambda: ez.Ball([1.0, 2.0]).member((0, 0)), "index: is (0, 0), but Ball is a batch of shape (2,)."),
    (lambda: ez.Ball([1.0, 2.0]).member(()), "index: is (), but Ball is a batch of shape (2,)."),
    (lambda: ez.Ball().member(0), "index: is 0, but Ball is not a batch. Use it as it is."),
    (lambda: ez.Product([ez.Ball([1.0, 2.0])]).member(1), "index: is 1, but Product is not a batch. Use it as it is."),
    (lambda: Handmade().member(0), "Handmade: does not say which parameters hold its batch. Name them in per_entry"),
    (lambda: ez.Ball(dim=2).conic(3), "n: is 3, but Ball has points of shape (2,)."),
    (lambda: ez.Product([ez.Ball()]).conic(3), "Product: has no conic form in R^3."),
    (lambda: ez.Ball(dim=2).project([1.0, 2.0, 3.0]), "v: Ball has points of shape (2,), but the last axis is (3,)."),
]


@pytest.mark.parametrize(("build", "sentence"), REFUSALS, ids=[sentence[:50] for _, sentence in REFUSALS])
def test_refusal(build: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        build()
