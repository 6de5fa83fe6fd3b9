"""Outside a support is outside, wherever the support lies and however small it is; what rounding does is forgiven."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import epszero as ez
from epszero import sets as S
from epszero.samples import Samples, inside_support

OFFSETS = st.sampled_from([0.0, 1.0, -300.0, 1e6, -1e9])
WIDTHS = st.sampled_from([1e-12, 1e-6, 1e-3, 0.1, 1.0, 1e4])
ULP = np.finfo(np.float64).eps
TURN = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)


def _sets(at: float, width: float) -> dict[str, S.Set]:
    """Sets of that width around (at, at), in the plane."""
    half, middle = width / 2, np.full(2, at)
    square = S.Polyhedron(np.concatenate([TURN, -TURN]), half + np.concatenate([TURN @ middle, -TURN @ middle]))
    return {
        "box": S.Box(middle - half, middle + half),
        "numbers": S.Box(at - half, at + half),
        "ball": S.Ball(half, middle),
        "diamond": S.Ball(half, middle, norm=1),
        "polyhedron": square,
        "moved box": S.Translated(S.Box(-half, half, dim=2), at),
        "moved ball": S.Translated(S.Scaled(S.Ball(1.0, dim=2), half), middle),
        "ellipse": S.Ellipsoid(np.diag([1.0, 4.0]) / half**2, middle),
        "both": S.Intersection(S.Box(middle - half, middle + half), S.Box(at - 2 * half, at + half, dim=2)),
        "product": S.Product((S.Box(np.full(1, at - half), np.full(1, at + half)), S.Ball(half, np.full(1, at)))),
    }


def _inside(support: S.Set, rows: np.ndarray) -> np.ndarray:
    values = (rows[:, :1], rows[:, 1:]) if isinstance(support, S.Product) else rows
    return inside_support(support, values)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(OFFSETS, WIDTHS, st.sampled_from(list(_sets(0.0, 1.0))), st.integers(0, 1000), st.floats(0.01, 20.0))
def test_the_width_is_the_measure(at, width, name, seed, excess):
    assume(width > 1e3 * ULP * abs(at))
    support = _sets(at, width)[name]
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, 20)
    around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert _inside(support, at + 0.24 * width * around).all()
    around[:2] = [[1.0, 1.0], [-1.0, 1.0]]  # corners
    assert not _inside(support, at + (0.75 + excess) * width * around).any()


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(OFFSETS, WIDTHS, st.sampled_from(list(_sets(0.0, 1.0))), st.integers(0, 1000))
def test_points_of_the_boundary_are_inside(at, width, name, seed):
    assume(width > 1e5 * ULP * abs(at))
    support = _sets(at, width)[name]
    far = at + width * np.random.default_rng(seed).normal(size=(20, 2))
    if isinstance(support, S.Product):
        rows = np.stack([np.concatenate(support.project(tuple(row.reshape(2, 1)))) for row in far])
    else:
        rows = support.project(far)
    assert _inside(support, rows).all()


@pytest.mark.parametrize("at", [0.0, 0.1, -3e9, 1e15, 7e-30])
def test_a_side_without_width_holds_its_own_value(at):
    for support in (S.Box([at, 0.0], [at, 1.0]), S.Singleton([at, 0.5]), S.Translated(S.Box([0, 0], [0, 1]), [at, 0])):
        rows = np.array([[at, 0.5], [np.nextafter(at, 9e99), 0.5], [at + 1e-6 * abs(at) + 1e-12, 0.5]])
        assert inside_support(support, rows).tolist() == [True, True, False]
    wide = Samples([[0.1 + 0.2]], support=S.Box(0.3, 0.3))  # 0.30000000000000004
    assert len(wide) == 1


def test_every_side_has_its_own_width():
    uneven = {
        "box": S.Box([1e9, 0.0], [1e9 + 0.1, 1e12]),
        "polyhedron": S.Polyhedron(np.concatenate([np.eye(2), -np.eye(2)]), np.array([0.1, 1e6, 0.0, 0.0])),
    }
    rows = np.array([[1e9 + 0.05, 5.0], [1e9 + 0.9, 5.0], [1e9 + 0.9, 1e12 + 99]])
    assert inside_support(uneven["box"], rows).tolist() == [True, False, False]
    rows = np.array([[0.05, 5.0], [0.1 + 1e-5, 5.0], [0.1 + 1e-5, 1e6 + 1e-4]])
    assert inside_support(uneven["polyhedron"], rows).tolist() == [True, False, False]


@pytest.mark.long
def test_a_simplex_forgives_what_rounding_does_to_sums():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(50), size=200)
    assert inside_support(S.Simplex(1.0, dim=50), shares).all()
    assert inside_support(S.Simplex(1.0), np.round(shares, 12)).all()
    assert not inside_support(S.Simplex(1.0, dim=50), shares * (1 + 1e-6)).any()
    assert not inside_support(S.Simplex(1e-9, dim=50), 1e-9 * shares * (1 + 1e-3)).any()


@pytest.mark.parametrize(
    ("support", "outside"),
    [
        (S.NonNegative(), [1e9, -0.4]),
        (S.HalfSpace(np.array([1.0, 1.0]), 1e9), [1e9, 0.4]),
        (S.Box([1e9, 0.0], np.inf), [1e9 - 0.4, 1.0]),
    ],
)
def test_a_set_without_end_is_measured_by_1(support, outside):
    inside = support.project(np.random.default_rng(0).normal(size=(9, 2)))
    assert inside_support(support, inside).all()
    assert not inside_support(support, np.array([outside])).any()


def test_samples_far_from_zero_are_refused_by_everyone():
    """Found: 1e9 + 0.9 was inside [1e9, 1e9 + 0.1]."""
    far, support = np.array([[1e9 + 0.05], [1e9 + 0.9]]), S.Box([1e9], [1e9 + 0.1])
    with pytest.raises(ez.InputError, match="row 1 lies outside the support"):
        Samples(far, support=support)
    data = Samples(np.concatenate([np.full((50, 1), 1e9 + 0.05), far[1:]]))
    line = ez.VariationalInequality(lambda x, xi: x - xi, over=S.Box(0.0, 2e9, dim=1))
    found = ez.certify(ez.solve(line, data, iterations=5), using=ez.certificates.MeanDeviation(support=support))
    assert found.verdict == "refused"
    assert "sample 50 has ξ outside the support" in found.reason
    known = ez.VariationalInequality(
        lambda x, xi: x - xi, over=S.Box(0.0, 2e9, dim=1), declared=ez.declare(support=support)
    )
    assert ez.certify(ez.solve(known, data, iterations=5)).verdict == "refused"


@pytest.mark.long
def test_a_product_may_be_declared():
    """The parts of a sample are asked, not one long row."""
    parts = S.Product({"a": S.Box(0.0, 1.0, dim=1), "b": S.Box(0.0, 1.0, dim=2)})
    rng = np.random.default_rng(0)
    values = {"a": rng.uniform(size=(60, 1)), "b": rng.uniform(size=(60, 2))}
    problem = ez.VariationalInequality(
        lambda x, xi: x - xi["a"] - xi["b"][:1], over=S.Box(0.0, 2.0, dim=1), declared=ez.declare(support=parts)
    )
    assert ez.certify(ez.solve(problem, Samples.from_arrays(values))).verdict == "conditional"
