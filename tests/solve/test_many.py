"""Many trials in one run give what one run each would give, and a bad one spoils nothing."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

pytestmark = pytest.mark.some(2)

RNG = np.random.default_rng(5)
POOL = ez.Samples(RNG.uniform(size=(400, 3)))
BOX = ez.sets.Box(0.0, 0.6, dim=3)
GENERAL = ez.VariationalInequality(lambda x, xi: jnp.tanh(x - xi) + 0.1 * x, over=BOX)
ADDITIVE = ez.VariationalInequality(ez.oracles.Additive(lambda x: 2 * x, lambda xi: -xi), over=BOX)


@pytest.mark.some(10)
@pytest.mark.parametrize("problem", [GENERAL, ADDITIVE], ids=["general", "additive"])
@pytest.mark.parametrize("method", [None, ez.ForwardBackward(0.3), ez.ForwardBackward(0.3, relaxation=0.5)])
@pytest.mark.parametrize("until", [{"iterations": 7}, {"tol": 1e-8}])
def test_same_as_one_by_one(problem, method, until):
    data = [POOL.take(n, seed=n) for n in (50, 50, 80, 50)]  # of different sizes, too
    together = ez.solve_many(problem, data, method, **until)
    for samples, solution in zip(data, together, strict=True):
        alone = ez.solve(problem, samples, method, **until)
        np.testing.assert_allclose(solution.x, alone.x, atol=1e-13)
        np.testing.assert_allclose(solution.z, alone.z, atol=1e-12)
        assert solution.iterations == alone.iterations
        assert solution.status is alone.status
        assert solution.samples is samples
        assert solution.trace.iterations.tolist() == alone.trace.iterations.tolist()
        np.testing.assert_allclose(solution.trace.residual, alone.trace.residual, rtol=1e-6, atol=1e-13)
        assert solution.check().residual == pytest.approx(solution.residual, abs=1e-12)


@pytest.mark.long
def test_one_bad_trial_does_not_spoil_the_others():
    problem = ez.VariationalInequality(lambda x, xi: x - jnp.where(xi > 5, jnp.nan, xi), over=BOX)
    bad = ez.Samples(np.vstack([POOL.values[:49], [[9.0, 9.0, 9.0]]]))
    good = [POOL.take(50, seed=i) for i in range(3)]
    solutions = ez.solve_many(problem, [good[0], bad, *good[1:]], tol=1e-9)
    assert [s.status for s in solutions] == [
        ez.Status.CONVERGED, ez.Status.NOT_FINITE, ez.Status.CONVERGED, ez.Status.CONVERGED
    ]  # fmt: skip
    for samples, solution in zip(good, [solutions[0], *solutions[2:]], strict=True):
        np.testing.assert_allclose(solution.x, ez.solve(problem, samples, tol=1e-9).x, atol=1e-12)


def test_refusals():
    with pytest.raises(ez.InputError, match="^many_samples: must be a list"):
        ez.solve_many(GENERAL, [])
    with pytest.raises(ez.InputError, match="^many_samples: must be a list"):
        ez.solve_many(GENERAL, POOL)
    with pytest.raises(ez.InputError, match="nothing in the problem depends on them"):
        ez.solve_many(ez.VariationalInequality(lambda x: x, over=BOX), [POOL])
    with pytest.raises(ez.InputError, match="Did you mean 'iterations'"):
        ez.solve_many(GENERAL, [POOL], iteration=3)


@pytest.mark.long
def test_all_trials_may_be_bad():
    problem = ez.VariationalInequality(lambda x, xi: x + jnp.nan * xi, over=BOX)
    solutions = ez.solve_many(problem, [POOL[:50], POOL[50:100]])
    assert [s.status for s in solutions] == [ez.Status.NOT_FINITE] * 2
