"""`ez.methods.recommend` names the method that `ez.solve` takes, and says why."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])
BOX = ez.sets.Box(-1.0, 1.0, dim=2)
DATA = ez.Samples(np.random.default_rng(0).uniform(0.5, 1.5, size=(60, 2)))
BILINEAR = [lambda x: x[0] @ x[1], lambda x: -x[0] @ x[1]]
SQUARES = [lambda x: x[0] @ x[0] + x[0] @ x[1], lambda x: x[1] @ x[1]]
CASES = {  # problem, samples, what is said, and another method that is named
    "strongly monotone": (ez.VariationalInequality(lambda x: 2 * x - 1, BOX), None, "strongly monotone", "Anderson"),
    "turning": (ez.VariationalInequality(lambda x: TURN @ x + 0.05 * x, BOX), None, "gains more", "GoldenRatio"),
    "merely monotone": (ez.VariationalInequality(lambda x: TURN @ x, BOX), None, "Lipschitz", "ForwardReflected"),
    "by its average": (ez.VariationalInequality(lambda x, xi: xi * x - 1, BOX), DATA, "strongly monotone", "Fast"),
    "nonlinear": (ez.VariationalInequality(lambda x: x**3 + x + TURN @ x - 1, BOX), None, "needs none", None),
    "shared": (ez.Game(SQUARES, [BOX, BOX], shared=(np.ones((1, 4)), 0.5)), None, "affine constraints", None),
    "turning, shared": (
        ez.Game(BILINEAR, [BOX, BOX], shared=(np.ones((1, 4)), 0.5)),
        None,
        "Lipschitz",
        "ExtraAnch",
    ),
    "minimisation": (ez.Minimization(lambda x: x @ x, BOX), None, "strongly monotone", "FastForwardBackward"),
}


@pytest.mark.some(3)
@pytest.mark.parametrize("name", CASES)
def test_it_is_what_solve_takes_and_it_says_why(name):
    problem, samples, why, other = CASES[name]
    found = ez.methods.recommend(problem, samples)
    taken = ez.solve(problem, samples, tol=1e-6).method
    assert type(found.method) is type(taken)
    assert why in found.why
    assert f"ez.{type(found.method).__name__}()" in str(found)
    assert len(found.leans_on) > 3
    assert other is None or any(one.startswith(other) for one in found.others)


@pytest.mark.some(3)
@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][3]])
def test_what_else_is_named_can_be_run(name):
    problem, samples, _, _ = CASES[name]
    for other in ez.methods.recommend(problem, samples).others:
        method = eval(f"ez.{other}", {"ez": ez})
        answer = ez.solve(problem, samples, method, tol=1e-3)
        assert answer.status is ez.Status.CONVERGED


def problem_of_tanh(x, xi):
    return xi * jnp.tanh(x)


def test_without_samples_what_is_declared_decides():
    problem = ez.VariationalInequality(problem_of_tanh, BOX)
    assert isinstance(ez.methods.recommend(problem).method, ez.AdaptiveGoldenRatio)
    told = ez.VariationalInequality(problem_of_tanh, BOX, declared=ez.declare(mu=0.1, kappa=2.0))
    assert not isinstance(ez.methods.recommend(told).method, ez.AdaptiveGoldenRatio)
    assert "declared" in ez.methods.recommend(told).leans_on


def test_bad_arguments_are_refused():
    with pytest.raises(ez.InputError, match=r"^problem: must be a problem"):
        ez.methods.recommend(3)
    with pytest.raises(ez.InputError, match=r"^samples: must be ez.Samples"):
        ez.methods.recommend(CASES["by its average"][0], [1.0])
    with pytest.raises(ez.InputError, match=r"^x0: A does not fix the shape"):
        ez.methods.recommend(ez.Minimization(lambda x: x @ x, ez.functions.L1(0.1)))
