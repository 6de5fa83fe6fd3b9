"""Functions made from functions: identities that hold whatever the inside is, and special cases that meet."""

import jax
import numpy as np
import pytest

import epszero.functions as ez
from epszero.sets import Ball, Box, Simplex

V = np.array([[1.5, -2.0, 0.3, 4.0], [0.0, 0.0, 0.1, -0.2], [3.0, 3.0, -3.0, 3.0]])
W = np.array([0.5, 1.0, 2.0, 0.1])
STEPS = np.array([0.1, 1.0, 4.0])

SAME = [
    ("scaling a norm", ez.Scaled(ez.L1(W), 3.0), ez.L1(3.0 * W)),
    ("scaling twice", ez.Scaled(ez.Scaled(ez.Hinge(), 2.0), 3.0), ez.Scaled(ez.Hinge(), 6.0)),
    ("a norm takes factors out", ez.Precomposed(ez.L2(2.0), -3.0), ez.L2(6.0)),
    ("mirrors cancel", ez.Precomposed(ez.Precomposed(ez.MaxEntry(), -1.0), -1.0), ez.MaxEntry()),
    ("moving a square", ez.Translated(ez.SquaredL2(W), V[0]), ez.SquaredL2(W, V[0])),
    ("moving there and back", ez.Translated(ez.Translated(ez.Huber(), W), -W), ez.Huber()),
    ("moving what does not notice", ez.Translated(ez.TotalVariation1D(), 7.0), ez.TotalVariation1D()),
    ("tilting nothing", ez.Tilted(ez.Zero(), W), ez.Linear(W)),
    ("tilting a quadratic", ez.Tilted(ez.Quadratic(np.diag(W)), V[0]), ez.Quadratic(np.diag(W), V[0])),
    ("a diagonal quadratic", ez.Quadratic(np.diag(W)), ez.SquaredL2(W)),
    ("conjugating twice", ez.Conjugate(ez.Conjugate(ez.LogBarrier(W))), ez.LogBarrier(W)),
    ("the conjugate of half a square", ez.Conjugate(ez.SquaredL2(4.0)), ez.SquaredL2(0.25)),
    ("the conjugate of a norm", ez.Conjugate(ez.L2(2.0)), ez.Indicator(Ball(2.0))),
    ("the conjugate of the ℓ1 norm", ez.Conjugate(ez.L1(W)), ez.Indicator(Box(-W, W))),
    ("the conjugate of the largest entry", ez.Conjugate(ez.MaxEntry(2.0)), ez.Indicator(Simplex(2.0))),
    ("the conjugate of a hinge", ez.Conjugate(ez.Hinge(2.0, 3.0)), ez.Tilted(ez.Indicator(Box(-2.0, 0.0)), 3.0)),
    ("a block that is all", ez.OnBlock(ez.L2(), slice(None)), ez.L2()),
    ("a block of each entry", ez.OnBlock(ez.TotalVariation1D(), [0, 1, 2, 3]), ez.TotalVariation1D()),
    ("one group", ez.GroupL2([[2, 0, 1, 3]], 3.0), ez.L2(3.0)),
    ("groups of one", ez.GroupL2([[0], [1], [2], [3]], W), ez.L1(W)),
    ("no curvature", ez.ElasticNet(W, 0.0), ez.L1(W)),
    ("only curvature", ez.ElasticNet(0.0, W), ez.SquaredL2(W)),
    ("a distant threshold", ez.Huber(1e9, W), ez.SquaredL2(W)),
]


@pytest.mark.some(4)
@pytest.mark.parametrize(("made", "plain"), [case[1:] for case in SAME], ids=[case[0] for case in SAME])
def test_two_ways_to_say_the_same(made, plain):
    np.testing.assert_allclose(made.prox(V, STEPS), plain.prox(V, STEPS), atol=1e-12)
    inside = plain.prox(V, STEPS)
    slope = (V - inside) / STEPS[:, None]
    np.testing.assert_allclose(made(inside), plain(inside), atol=1e-12)
    np.testing.assert_allclose(made.conjugate(slope), plain.conjugate(slope), atol=1e-10)


def test_a_conjugate_swaps_value_and_conjugate():
    f = ez.NegativeEntropy(W)
    assert (ez.Conjugate(f)(V) == f.conjugate(V)).all()
    assert (ez.Conjugate(f).conjugate(V) == f(V)).all()


def test_wrappers_take_rank_and_shapes_from_inside():
    for wrap in (
        lambda f: ez.Scaled(f, 2.0),
        lambda f: ez.Precomposed(f, 2.0),
        lambda f: ez.Translated(f, 1.0),
        lambda f: ez.Tilted(f, 1.0),
        ez.Conjugate,
    ):
        assert wrap(ez.NuclearNorm([1.0, 2.0])).rank == 2
        assert wrap(ez.NuclearNorm([1.0, 2.0])).batch_shape == (2,)
        assert wrap(ez.L1(W)).point_shape == (4,)
    assert ez.Translated(ez.L1(), W).point_shape == (4,)
    assert ez.Scaled(ez.L1(), [1.0, 2.0]).batch_shape == (2,)


# -- SeparableSum ---------------------------------------------------------------------------------------------------


NEST = {"a": V[0], "b": [np.ones((2, 3)), (V[1],)]}
SUM = ez.SeparableSum({"a": ez.L1(W), "b": [ez.NuclearNorm(), (ez.L2(),)]})


def test_a_sum_goes_leaf_by_leaf():
    p = SUM.prox(NEST, 0.5)
    assert jax.tree.structure(p) == jax.tree.structure(NEST)
    np.testing.assert_array_equal(p["a"], ez.L1(W).prox(V[0], 0.5))
    np.testing.assert_array_equal(p["b"][1][0], ez.L2().prox(V[1], 0.5))
    total = ez.L1(W)(V[0]) + ez.NuclearNorm()(np.ones((2, 3))) + ez.L2()(V[1])
    np.testing.assert_allclose(SUM(NEST), total)
    assert np.shape(SUM(NEST)) == ()


def test_a_sum_takes_a_pytree_of_steps():
    p = SUM.prox(NEST, {"a": 0.1, "b": [1.0, (3.0,)]})
    np.testing.assert_array_equal(p["a"], ez.L1(W).prox(V[0], 0.1))
    np.testing.assert_array_equal(p["b"][0], ez.NuclearNorm().prox(np.ones((2, 3)), 1.0))
    np.testing.assert_array_equal(p["b"][1][0], ez.L2().prox(V[1], 3.0))
    rows = ez.SeparableSum([ez.L2([1.0, 2.0, 3.0])]).prox([V], [STEPS])[0]  # one step per row of a leaf
    np.testing.assert_array_equal(rows, ez.L2([1.0, 2.0, 3.0]).prox(V, STEPS))


def test_a_sum_adds_up_the_rows_of_a_leaf():
    np.testing.assert_allclose(ez.SeparableSum([ez.L2()])([V]), ez.L2()(V).sum())


def test_sums_nest():
    nested = ez.SeparableSum([ez.SeparableSum((ez.L1(), ez.Zero())), ez.L2()])
    point = [(V[0], V[1]), V[2]]
    np.testing.assert_allclose(nested(point), ez.L1()(V[0]) + ez.L2()(V[2]))
    np.testing.assert_array_equal(nested.prox(point, 2.0)[0][0], ez.L1().prox(V[0], 2.0))
    np.testing.assert_array_equal(nested.prox(point, [2.0, 1.0])[0][0], ez.L1().prox(V[0], 2.0))


def test_a_sum_runs_inside_jit():
    with jax.enable_x64(True):
        inside = jax.jit(lambda f, v: (f.prox(v, 0.5), f(v)))(SUM, NEST)
    for traced, eager in zip(jax.tree.leaves(inside), jax.tree.leaves((SUM.prox(NEST, 0.5), SUM(NEST))), strict=True):
        np.testing.assert_allclose(traced, eager, atol=1e-12)


def test_a_later_change_of_the_list_changes_nothing():
    parts = [ez.L1()]
    sum_ = ez.SeparableSum(parts)
    parts.append(ez.L2())
    assert len(sum_.functions) == 1
