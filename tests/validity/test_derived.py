"""What is derived, not declared, holds: features that were found with the box they lie in, and a verified μ.

O(x, ξ) = x³ + x/2 − (ξ² + e^ξ)/5 on [−1, 1] with ξ of two values, so the truth is known in closed form. Nothing is
declared but the support. A box of features, or a μ, that is wrong on purpose is convicted by the same count.
"""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.certificates import Hoeffding, MeanDeviation, case
from epszero.facts import Constant, Facts, Region

DELTA, TRIALS, SIZE, RARE = 0.3, 300, 12, 0.15
SUPPORT = ez.sets.Box(0.0, 1.0, dim=1)
MEAN = 0.2 * ((1 - RARE) * 1.0 + RARE * (1.0 + np.e))  # of the features, times 0.2
TRUTH = np.real(min(np.roots([1.0, 0.0, 0.5, -MEAN]), key=lambda root: abs(np.imag(root))))


def stated():
    return ez.VariationalInequality(
        lambda x, xi: x**3 + 0.5 * x - 0.2 * (xi**2 + jnp.exp(xi)), ez.sets.Box(-1, 1, dim=1)
    )


def misses():
    """How often the residual, and the distance, exceed what is certified."""
    problem = stated()  # of which nothing is remembered
    rng = np.random.default_rng(5)
    counts = np.zeros(2)
    for _ in range(TRIALS):
        draws = ez.Samples((rng.random((SIZE, 1)) < RARE).astype(float), support=SUPPORT)
        solution = ez.solve(problem, draws, ez.ForwardBackward(step=0.3), iterations=60)
        found = ez.certify(solution, DELTA, MeanDeviation(Hoeffding()))
        x = solution.x[0]
        residual = abs(solution.z[0] + x**3 + 0.5 * x - MEAN)
        counts += [residual > found.epsilon, abs(x - TRUTH) > found.distance]
    return counts


def too_many(count):
    """Beyond what chance explains at the claimed rate, four standard deviations."""
    return count > TRIALS * DELTA + 4 * np.sqrt(TRIALS * DELTA * (1 - DELTA))


@pytest.mark.long
def test_features_that_were_found_and_a_verified_mu_miss_no_more_often_than_delta():
    found = ez.certify(ez.solve(stated(), ez.Samples(np.zeros((SIZE, 1)), support=SUPPORT)))
    whose = {leaning.what.split(" =")[0]: str(leaning.provenance) for leaning in found.leans_on}
    assert whose["O(x, ξ)"] == "exact"
    assert whose["strong monotonicity μ"] == "verified"
    assert not any(too_many(count) for count in misses())


@pytest.mark.long
def test_a_box_of_features_that_is_too_small_is_convicted(monkeypatch):
    right = case.features_region

    def small(phi, row, support):
        box = right(phi, row, support)
        return Region.box(box.lower, box.lower + 0.05 * (box.upper - box.lower))

    monkeypatch.setattr(case, "features_region", small)
    assert too_many(misses()[0])


@pytest.mark.long
def test_a_mu_that_is_too_large_is_convicted(monkeypatch):
    right = Facts.mu
    monkeypatch.setattr(Facts, "mu", property(lambda self: _times(right.compute(self), 40.0)))
    assert too_many(misses()[1])


def _times(constant: Constant, factor: float) -> Constant:
    return replace(constant, value=factor * constant.value)
