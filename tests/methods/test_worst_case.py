"""Proved factors against tight ones: closed forms where they are known, PEPit's numbers where they are not.

In the plane, B = a + ib as a complex number is a-strongly monotone, |B|-Lipschitz and a/|B|²-cocoercive, and every
rotation is the reflected resolvent of a monotone operator: what such a pair attains no valid factor can be below.
The numbers of PEPit are those of `python -m benchmarks worst-case` (PEPit 0.5.1, SCS), to four digits.
"""

import math

import numpy as np
import pytest
from benchmarks import worst_case

import epszero as ez
from epszero.methods.stability import MeasuredSteps, Premises

TIGHT = {  # PEPit: over all A and B with μ/κ = 1/5, three steps where it is the distance to the zero
    "forward-backward, μ and κ: pair": 0.9798,
    "forward-backward, μ and θ: pair": 0.8944,
    "relaxed by ½, μ and θ: pair": 0.9307,
    "Douglas–Rachford: pair": 0.9083,
    "forward-backward-forward: zero": 0.803,
    "extragradient: zero": 0.765,
    "past extragradient: zero": 0.846,
    "forward-reflected-backward: zero": 0.876,
    "golden ratio: zero": 0.854,
}
CASES = {case.name: case for case in worst_case.cases()}
EXACT = ["forward-backward, μ and κ: pair", "forward-backward, μ and θ: pair", "Douglas–Rachford: pair"]


@pytest.mark.parametrize("name", TIGHT)
def test_what_is_seen_is_below_what_is_tight_and_that_below_what_is_proved(name):
    case = CASES[name]
    assert worst_case.observed(case, 181) <= TIGHT[name] * (1 + 1e-3)
    assert TIGHT[name] * (1 - 1e-3) <= case.proved()


def test_every_case_has_its_number():
    assert set(CASES) == set(TIGHT)


@pytest.mark.parametrize("name", EXACT)
def test_factors_that_are_attained(name):
    case = CASES[name]
    assert worst_case.observed(case) == pytest.approx(case.proved(), rel=1e-4)


@pytest.mark.parametrize("gamma", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("mu", [0.0, 0.1, 0.7])
def test_closed_forms_for_all_steps(mu, gamma):
    """√(1 − 2γμ + γ²κ²), √(1 − γμ(2 − γ/θ)), √(1 − 4γμ/(1 + 2γμ + γ²κ²)) and 1/(1 + γμ), each attained by a number."""
    kappa = 1.3
    B = complex(mu, math.sqrt(kappa**2 - mu**2))
    lipschitz = MeasuredSteps(ez.ForwardBackward(gamma).steps, Premises(1.0, mu, kappa), 3)
    assert lipschitz.forward()[0].max() == pytest.approx(abs(1 - gamma * B), rel=1e-12)
    q, inverse, _ = lipschitz.reflected(None)
    assert q == pytest.approx(abs((1 - gamma * B) / (1 + gamma * B)), rel=1e-12)
    assert inverse == pytest.approx(1 / (1 + gamma * mu), rel=1e-12)
    assert inverse >= abs(1 / (1 + gamma * B)) - 1e-12
    if mu > 0:
        theta = mu / kappa**2
        cocoercive = MeasuredSteps(ez.ForwardBackward(gamma).steps, Premises(1.0, mu, None, theta), 3)
        if gamma <= 2 * theta:
            assert cocoercive.forward()[0].max() == pytest.approx(abs(1 - gamma * B), rel=1e-12)


@pytest.mark.long
def test_the_steps_by_hand_are_those_of_the_methods():
    """On a rotation that shrinks, over a box: iterate for iterate, so that the numbers above are of these methods."""
    turn = np.array([[0.2, -0.9], [0.9, 0.2]])
    box = ez.sets.Box(-0.4, 0.8, dim=2)
    shift, start = np.array([0.3, -0.5]), np.array([0.7, -0.2])
    problem = ez.VariationalInequality(lambda x: turn @ x - shift, box)
    for name, case in CASES.items():
        if case.gamma > 0.5 or name.startswith("Douglas"):
            continue  # beyond what this B allows, or with a resolvent of B
        found = ez.solve(problem, method=case.method, x0=start, iterations=worst_case.STEPS - 1).x
        by_hand = case.run(
            start, case.gamma, lambda v: np.clip(v, -0.4, 0.8), lambda x: turn @ x - shift, worst_case.STEPS
        )
        np.testing.assert_allclose(found, by_hand, rtol=1e-12, atol=1e-14, err_msg=name)


def test_a_misspelt_argument_names_the_method_and_not_its_base():
    with pytest.raises(ez.InputError, match="PastExtragradient has no such argument"):
        ez.PastExtragradient(stepp=0.1)  # pyright: ignore[reportCallIssue]
