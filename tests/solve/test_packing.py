"""A run on stacked blocks ends where a run on the blocks themselves ends."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.solve import packing

N = 18
RNG = np.random.default_rng(2)
D, Q = RNG.uniform(1, 3, N), RNG.normal(size=N)


def strategies(i):
    if i % 3 == 0:
        return ez.sets.Box(-0.3, 0.2, dim=1 + i % 2)
    return ez.sets.Ball(0.4, np.zeros(1 + i % 2)) if i % 3 == 1 else ez.functions.L1(0.1)


def cost(i):
    return lambda x: (
        0.5 * D[i] * x[i] @ x[i] + jnp.sum(x[i]) * (Q[i] + sum(jnp.sum(v) for v in x) / N) + jnp.sum(x[i] ** 4)
    )


METHODS = {
    "chosen": None,
    "constant": ez.ForwardBackward(step=0.1),
    "per agent": ez.ForwardBackward(step=[np.asarray(0.05 + 0.005 * i) for i in range(N)]),
    "searched": ez.ForwardBackward(),
    "relaxed": ez.ForwardBackward(step=0.1, relaxation=0.5),
    "extragradient": ez.Extragradient(),
    "forward-backward-forward": ez.ForwardBackwardForward(),
}


@pytest.mark.some(6)
@pytest.mark.parametrize("name", sorted(METHODS))
def test_stacked_or_not_the_answer_is_one(name, monkeypatch):
    game = ez.Game([cost(i) for i in range(N)], [strategies(i) for i in range(N)], declared=ez.declare(monotone=True))
    x0 = [np.full(1 + i % 2, 0.1) for i in range(N)]
    stacked = ez.solve(game, method=METHODS[name], x0=x0, iterations=60, trace=[1, 7, 60])
    monkeypatch.setattr(packing, "FEW", 1000)
    plain = ez.solve(game, method=METHODS[name], x0=x0, iterations=60, trace=[1, 7, 60])
    for tree in ("x", "element"):
        for one, other in zip(getattr(stacked, tree), getattr(plain, tree), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)
    np.testing.assert_allclose(stacked.trace.residual, plain.trace.residual, rtol=1e-7, atol=1e-12)
    assert stacked.iterations == plain.iterations


@pytest.mark.long
def test_with_shared_constraints(monkeypatch):
    def build():
        costs = [lambda x, i=i: 0.5 * D[i] * x[i] @ x[i] - x[i][0] for i in range(N)]
        return ez.Game(costs, [ez.sets.Box(0.0, 1.0, dim=1)] * N, [(np.ones((1, N)), 2.0), (np.eye(N)[:2], 0.05)])

    stacked = ez.solve(build(), tol=1e-10)
    monkeypatch.setattr(packing, "FEW", 1000)
    plain = ez.solve(build(), tol=1e-10)
    np.testing.assert_allclose(np.concatenate(stacked.x), np.concatenate(plain.x), atol=1e-8)
    np.testing.assert_allclose(stacked.point.multipliers, plain.point.multipliers, atol=1e-7)
