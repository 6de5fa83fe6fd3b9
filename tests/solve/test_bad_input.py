"""Every wrong input gets a sentence that names the argument, the rule and the remedy, before any iteration runs."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

BOX = ez.sets.Box(0.0, 1.0, dim=2)
SAMPLES = ez.Samples([[0.1, 0.2], [0.3, 0.4]])


def noisy(x, xi):
    return x - xi


NOISY = ez.VariationalInequality(noisy, over=BOX)
KNOWN = ez.VariationalInequality(lambda x: x - 0.5, over=BOX)

CASES = {
    "no samples": (lambda: ez.solve(NOISY), r"^samples: are needed.*Pass ez.Samples"),
    "samples for nothing": (lambda: ez.solve(KNOWN, SAMPLES), r"^samples: .*takes x alone.*f\(x, xi\)"),
    "empty samples": (lambda: ez.solve(NOISY, np.empty((0, 2))), "empty|at least one"),
    "ragged samples": (lambda: ez.Samples([[1.0, 2.0], [3.0]]), "rectangular|ragged|row"),
    "NaN in the samples": (lambda: ez.Samples([[1.0, np.nan]]), "NaN"),
    "sample of the wrong length": (
        lambda: ez.solve(NOISY, ez.Samples(np.ones((5, 3)))),
        r"^F: .*x of shape \(2,\) and a sample of shape \(3,\)",
    ),
    "oracle of the wrong shape": (
        lambda: ez.solve(ez.VariationalInequality(lambda x: x[:1], over=BOX)),
        r"^F: must return a value shaped like x, \(2,\), .*returns \(1,\)",
    ),
    "oracle that returns a number": (
        lambda: ez.solve(ez.Inclusion(BOX, lambda x: x @ x)),
        r"^B: must return a value shaped",
    ),
    "oracle of integers": (
        lambda: ez.solve(ez.Inclusion(BOX, lambda x: jnp.array([1, 2]))),
        "^B: must return real numbers",
    ),
    "oracle that cannot be traced": (
        lambda: ez.solve(ez.Inclusion(BOX, lambda x: x if x[0] > 0 else -x)),
        "^B: cannot be evaluated.*jax.numpy",
    ),
    "loss that returns a vector": (lambda: ez.solve(ez.Minimization(lambda x: x, BOX)), "^loss: .*scalar"),
    "matrix of the wrong size": (
        lambda: ez.solve(ez.Minimization(lambda x: x @ np.eye(3) @ x, BOX)),
        r"^loss: cannot be evaluated at x of shape \(2,\)",
    ),
    "x0 of the wrong length": (lambda: ez.solve(KNOWN, x0=[0.0, 0.0, 0.0]), r"^x0: Box has points of shape \(2,\)"),
    "x0 with a NaN": (lambda: ez.solve(KNOWN, x0=[0.0, np.nan]), r"^x0\[1\]: must be finite"),
    "x0 that is complex": (lambda: ez.solve(KNOWN, x0=np.zeros(2, complex)), "^x0: must be real, but it is complex"),
    "x0 that is text": (lambda: ez.solve(KNOWN, x0="zero"), "^x0: must be a number"),
    "x0 nested unlike A": (lambda: ez.solve(KNOWN, x0={"a": [0.0, 0.0, 1.0]}), "^x0: Box has points of shape"),
    "no dimension anywhere": (
        lambda: ez.solve(ez.Inclusion(ez.sets.Box(0, 1), lambda x: x)),
        r"^x0: .*dimension.*dim=",
    ),
    "negative iterations": (lambda: ez.solve(KNOWN, iterations=-1), "^iterations: must be at least 0, but it is -1"),
    "iterations of 1.5": (lambda: ez.solve(KNOWN, iterations=1.5), "^iterations: must be a whole number"),
    "iterations of True": (lambda: ez.solve(KNOWN, iterations=True), "^iterations: must be a whole number"),
    "negative tol": (lambda: ez.solve(KNOWN, tol=-1e-3), "^tol: must be nonnegative"),
    "tol of NaN": (lambda: ez.solve(KNOWN, tol=np.nan), "^tol: must be finite"),
    "unknown keyword": (
        lambda: ez.solve(KNOWN, iteration=3),
        "^iteration: solve has no such argument. Did you mean 'iterations'",
    ),
    "unknown keyword of a problem": (lambda: ez.Inclusion(A=BOX, C=noisy), "^C: Inclusion has no such argument"),
    "a method that is a string": (
        lambda: ez.solve(KNOWN, method="fb"),
        "^method: must be a method such as ez.ForwardBackward",
    ),
    "a problem that is a function": (lambda: ez.solve(noisy), "^problem: must be a problem such as ez.Inclusion"),
    "A that is a list of numbers": (
        lambda: ez.Inclusion([1.0], noisy),
        "^A: must be a set, a function or an object with",
    ),
    "A that is empty": (lambda: ez.Inclusion([], noisy), "^A: has no set or function"),
    "A that is an array": (lambda: ez.Inclusion(np.ones(3), noisy), "^A: must be a set, a function"),
    "B that is a number": (lambda: ez.Inclusion(BOX, 3.0), "^B: must be a function of x"),
    "a list of losses": (lambda: ez.Minimization([noisy, noisy], BOX), "^loss: must be one function"),
    "declared that is a dict": (
        lambda: ez.Inclusion(BOX, noisy, declared={"mu": 1}),
        "^declared: must come from ez.declare",
    ),
    "declared mu of zero": (lambda: ez.declare(mu=0.0), "^mu: must be positive"),
    "mu above kappa": (lambda: ez.declare(mu=2.0, kappa=1.0), "^mu, kappa: .*mu = 2 > kappa = 1"),
    "mu times theta above one": (lambda: ez.declare(mu=2.0, theta=1.0), "^mu, theta: "),
    "unknown constant": (lambda: ez.declare(lipschitz=2.0), "^lipschitz: declare has no such argument"),
    "holdout of 2": (lambda: ez.solve(NOISY, SAMPLES, holdout=2.0), "^holdout: is the fraction"),
    "holdout without samples": (lambda: ez.solve(KNOWN, holdout=0.5), "^holdout: needs one data set"),
    "progress of 3": (lambda: ez.solve(KNOWN, progress=3), "^progress: must be True, False or a function"),
    "trace of 0": (lambda: ez.solve(KNOWN, trace=0), "^trace: must be at least 1"),
    "trace of text": (lambda: ez.solve(KNOWN, trace=["ten"]), "^trace: must be a whole number"),
    "data sets for no blocks": (lambda: ez.solve(NOISY, [SAMPLES, SAMPLES]), "^samples: one data set per agent needs"),
    "a product that is not linear in the features": (
        lambda: ez.solve(
            ez.VariationalInequality(ez.oracles.AffineInFeatures(lambda x: x, lambda x, f: x * f**2), over=BOX),
            SAMPLES,
            x0=[0.0, 0.0],  # where the product vanishes by chance
        ),
        "^F: is declared affine in features, but halfway",
    ),
    "too few data sets": (
        lambda: ez.solve(ez.Inclusion([BOX, BOX], [lambda x, xi: x[0] - xi] * 2), [SAMPLES]),
        "^samples: 1 data sets for 2 agents",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case):
    call, words = CASES[case]
    with pytest.raises(ez.InputError) as caught:
        call()
    sentence = str(caught.value)
    assert re.search(words, sentence), sentence
    assert sentence.endswith(".")


def test_an_unknown_keyword_is_a_type_error_too():
    with pytest.raises(TypeError):
        ez.solve(KNOWN, iteration=3)
