"""Every refusal is a sentence with the argument, the rule and the remedy in it."""

import numpy as np
import pytest

import epszero.functions as ez
from epszero import InputError
from epszero.sets import Box, Product

WEIGHTED = [ez.L1, ez.L2, ez.SquaredL2, ez.Hinge, ez.MaxEntry, ez.TotalVariation1D, ez.NuclearNorm]


@pytest.mark.parametrize("function", WEIGHTED)
def test_weights_are_not_negative(function):
    with pytest.raises(InputError, match=r"weight: must be nonnegative, but it is -1\. Pass a nonnegative number\."):
        function(weight=-1.0)
    with pytest.raises(InputError, match=r"weight: must be finite, but it is NaN\. Replace or drop that entry\."):
        function(weight=np.nan)


@pytest.mark.parametrize("function", [ez.NegativeEntropy, ez.LogBarrier])
def test_weights_of_barriers_are_positive(function):
    with pytest.raises(InputError, match=r"weight\[1\]: must be positive, but it is 0\. Pass a positive number\."):
        function([1.0, 0.0])


ONE = ez.L1()
REFUSED = [
    (lambda: ez.L1(wieght=1.0), r"wieght: L1 has no such argument\. Did you mean 'weight'\?"),
    (lambda: ez.Zero(weight=1.0), r"weight: Zero has no such argument\. Remove it\. It takes: nothing"),
    (lambda: ez.Indicator([0, 1]), r"set: must be a convex set, but it is a list\. Pass one from epszero\.sets\."),
    (lambda: ez.Indicator(Product([Box(0, 1)])), r"set: must be a set of arrays.*Write SeparableSum\(\[Indicator"),
    (
        lambda: ez.SquaredL2([1.0, 2.0], [1.0] * 3),
        r"weight, center: the shapes do not fit.*\(2,\) and center has shape",
    ),
    (lambda: ez.SquaredL2(1.0, np.inf), r"center: must be finite, but it is infinite"),
    (lambda: ez.ElasticNet(-1.0, 1.0), r"l1: must be nonnegative"),
    (lambda: ez.ElasticNet(1.0, -1.0), r"l2: must be nonnegative"),
    (lambda: ez.ElasticNet([1.0] * 2, [1.0] * 3), r"l1, l2: the shapes do not fit together"),
    (lambda: ez.Huber(0.0), r"threshold: must be positive, but it is 0"),
    (lambda: ez.Huber(1.0, -1.0), r"weight: must be nonnegative"),
    (lambda: ez.Huber([1.0] * 2, [1.0] * 3), r"threshold, weight: the shapes do not fit together"),
    (lambda: ez.Hinge([1.0] * 2, [1.0] * 3), r"weight, margin: the shapes do not fit together"),
    (lambda: ez.Hinge(1.0, "a"), r"margin: must be a number or a rectangular array"),
    (lambda: ez.Linear(np.nan), r"slope: must be finite, but it is NaN"),
    (lambda: ez.GroupL2([]), r"groups: must hold at least one group.*Zero\(\)"),
    (lambda: ez.GroupL2(3), r"groups: must be a list of lists of indices, but it is 3.*\[\[0, 1\], \[2, 3\]\]"),
    (lambda: ez.GroupL2([0, 1]), r"groups\[0\]: must be a list of indices, but it is 0"),
    (lambda: ez.GroupL2([[0], []]), r"groups\[1\]: must hold at least one index"),
    (lambda: ez.GroupL2([[0, 0]]), r"groups\[0\]: names entry 0 twice\. Name each entry once"),
    (lambda: ez.GroupL2([[0, 1], [2, 1]]), r"groups\[1\]: shares entry 1 with groups\[0\]\. Make the groups disjoint"),
    (lambda: ez.GroupL2([[0, -1]]), r"groups\[0\]\[1\]: must be at least 0, but it is -1"),
    (lambda: ez.GroupL2([[0.5]]), r"groups\[0\]\[0\]: must be a whole number"),
    (lambda: ez.GroupL2([[0], [1]], [1.0] * 3), r"weight: has 3 entries on its last axis, but there are 2 groups"),
    (lambda: ez.GroupL2([[0]], -1.0), r"weight: must be nonnegative"),
    (
        lambda: ez.GroupL2([[0], [5]])([1.0] * 3),
        r"x: has 3 entries, but groups names entry 5\. Pass vectors of length 6",
    ),
    (lambda: ez.Quadratic([1.0, 2.0]), r"P: must be a square matrix, but its shape is \(2,\)"),
    (lambda: ez.Quadratic([[1.0, 2.0], [0.0, 1.0]]), r"P\[0, 1\]: P must be symmetric.*by 2\. Pass \(P \+ Pᵀ\)/2"),
    (lambda: ez.Quadratic([[1.0, 2.0], [2.0, 1.0]]), r"P: must be positive semidefinite, .* the eigenvalue -1\."),
    (lambda: ez.Quadratic([np.eye(1), -np.eye(1)]), r"P\[1\]: must be positive semidefinite, .* the eigenvalue -1\."),
    (lambda: ez.Quadratic(np.eye(2), [1.0] * 3), r"q: has 3 entries, but P is 2 × 2"),
    (lambda: ez.Quadratic([np.eye(2)] * 3, np.ones((2, 2))), r"P, q: P is a batch of shape \(3,\) and q one of \(2,\)"),
    (lambda: ez.Scaled(Box(0, 1), 1.0), r"function: must be a convex function, but it is a Box\..*Indicator\(set\)"),
    (
        lambda: ez.Scaled(ez.SeparableSum([ONE]), 2.0),
        r"function: Scaled acts on arrays.*SeparableSum\(\[Scaled\(f, …\)",
    ),
    (lambda: ez.Scaled(ONE, 0.0), r"factor: must be positive, but it is 0"),
    (
        lambda: ez.Scaled(ez.L2([1.0, 2.0]), [1.0] * 3),
        r"factor: the shapes do not fit.*L2 takes vectors in a batch of shape",
    ),
    (lambda: ez.Precomposed(ONE, [1.0, 0.0]), r"factor\[1\]: must not be 0.*Zero\(\)"),
    (lambda: ez.Translated(ez.L1([1.0] * 4), [1.0] * 3), r"by: the shapes do not fit.*L1 takes points of shape \(4,\)"),
    (lambda: ez.Translated(ez.L1([1.0]), [1.0] * 3), r"by: the shapes do not fit"),
    (lambda: ez.Tilted(ez.NuclearNorm(), [1.0] * 3), r"slope: the shapes do not fit.*NuclearNorm takes matrices"),
    (lambda: ez.Conjugate(3.0), r"function: must be a convex function, but it is a float"),
    (lambda: ez.OnBlock(ez.NuclearNorm(), [0]), r"function: must be a function of vectors, but it is one of matrices"),
    (lambda: ez.OnBlock(ONE, 3), r"block: must be a list of indices, but it is 3"),
    (lambda: ez.OnBlock(ONE, []), r"block: must hold at least one index"),
    (lambda: ez.OnBlock(ONE, [1, 1]), r"block: names entry 1 twice"),
    (lambda: ez.OnBlock(ONE, slice(0, 1, 0)), r"block: is not a slice of entries .*Write it as slice\(2, 5\)"),
    (lambda: ez.OnBlock(ONE, slice("a")), r"block: is not a slice of entries"),
    (lambda: ez.OnBlock(ONE, [4])([1.0] * 3), r"x: has 3 entries, but block names entry 4"),
    (lambda: ez.OnBlock(ONE, slice(5, 9))([1.0] * 3), r"x: has 3 entries, none of which lies in the block"),
    (lambda: ez.OnBlock(ez.L1([1.0] * 3), slice(2))([1.0] * 5), r"x\[block\]: L1 has points of shape \(3,\)"),
    (lambda: ez.L2([1.0, 2.0]).member(2), r"index: is 2, but L2 is a batch of shape \(2,\)\. Pass a whole number"),
    (lambda: ez.SeparableSum([ez.L2([1.0, 2.0])]).member(0), r"index: is 0, but SeparableSum is not a batch\. Use it"),
    (lambda: ez.SeparableSum(ONE), r"functions: must be a list, tuple or dictionary.*Write SeparableSum\(\[f, g\]\)"),
    (lambda: ez.SeparableSum([]), r"functions: must be a list, tuple or dictionary with at least one function"),
    (lambda: ez.SeparableSum([ONE, 3.0]), r"functions\[1\]: must be a function, but it is a float"),
    (lambda: ez.SeparableSum([ONE])([[1.0]] * 2), r"x: must have the form of the functions.*Nest lists"),
    (lambda: ez.SeparableSum([ONE])(np.ones(3)), r"x: must have the form of the functions"),
    (lambda: ez.SeparableSum({"a": ONE})({"b": [1.0]}), r"x: must have the form of the functions"),
    (lambda: ez.SeparableSum({"a": ez.L1([1.0])})({"a": [1.0] * 2}), r"x\['a'\]: L1 has points of shape \(1,\)"),
    (lambda: ez.SeparableSum([ONE]).prox([[1.0]], [-1.0]), r"step\[0\]: must be positive, but it is -1"),
    (lambda: ez.SeparableSum([ONE]).prox([[1.0]], np.ones(2)), r"step: must have the form of the functions"),
    (
        lambda: ez.SeparableSum([ONE]).prox([[1.0]], [np.ones(2)]),
        r"v\[0\]: has leading axes \(\), .*shape \(2,\)\. Give",
    ),
    (lambda: ez.SeparableSum([ez.L2([1.0, 2.0])])([[1.0]]), r"x\[0\]: has leading axes \(\), .*one row per member"),
]


@pytest.mark.parametrize(("attempt", "sentence"), REFUSED, ids=[sentence[:40] for _, sentence in REFUSED])
def test_refused_in_a_sentence(attempt, sentence):
    with pytest.raises(InputError, match=sentence) as refusal:
        attempt()
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize("step", [0.0, -0.5])
def test_steps_are_positive(step):
    with pytest.raises(InputError, match=rf"step: must be positive, but it is {step:g}\. Pass a positive number\."):
        ONE.prox([1.0], step)


def test_steps_fit_the_batch():
    with pytest.raises(InputError, match=r"step: has shape \(3,\), but the batch has shape \(2,\)\. Pass a number"):
        ONE.prox(np.ones((2, 4)), np.ones(3))
    with pytest.raises(InputError, match=r"step\[1\]: must be positive, but it is 0"):
        ONE.prox(np.ones((2, 4)), [1.0, 0.0])


def test_points_fit_the_parameters():
    with pytest.raises(InputError, match=r"v: L1 takes vectors, but the shape is \(\)\. Wrap a scalar"):
        ONE.prox(1.0)
    with pytest.raises(InputError, match=r"x: NuclearNorm takes matrices, but the shape is \(3,\)\. Pass a matrix"):
        ez.NuclearNorm()([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=r"y: L1 has points of shape \(2,\), but the last axis is \(3,\)"):
        ez.L1([1.0, 2.0]).conjugate([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=r"x: L2 is a batch of shape \(2,\), but the point's leading axes are \(3,\)"):
        ez.L2([1.0, 2.0])(np.ones((3, 4)))


def test_a_function_does_not_change():
    name = "weight"
    with pytest.raises(AttributeError, match="L1 is immutable"):
        setattr(ez.L1(1.0), name, 2.0)
    with pytest.raises(ValueError, match="read-only"):
        ez.L1([1.0]).weight[0] = 2.0
