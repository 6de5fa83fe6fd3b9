"""Preconditioned forward-backward: against a loop in NumPy, in its metric, and its choice of steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.facts import declared_only

pytestmark = pytest.mark.some(2)

RNG = np.random.default_rng(11)
AGENTS, HOURS = 3, 4
WEAR = RNG.uniform(0.5, 1.5, AGENTS)
SAMPLES = ez.Samples(RNG.uniform(-1.0, 0.5, (20, HOURS)))
LIMIT = np.full(HOURS, 0.3)
TOTAL = np.kron(np.ones(AGENTS), np.eye(HOURS))  # Σ_i x_i
SET = ez.sets.Box(0.0, np.ones((AGENTS, HOURS)))


def cost(own, average, price, wear):
    return wear * own @ own + price @ own + 0.5 * jnp.sum(average**2)


def game(shared=(TOTAL, LIMIT), **declared):
    return ez.AggregativeGame(cost, WEAR, SET, shared, declared=ez.declare(**declared))


def F(x):
    return 2 * WEAR[:, None] * x + SAMPLES.values.mean(axis=0) + x.mean(axis=0) / AGENTS


CONSTANTS = {"mu": 2 * WEAR.min(), "kappa": 2 * WEAR.max() + 1 / AGENTS, "gradient": True}


def plain_loop(alpha, beta, K):
    x, y = SET.project(np.zeros((AGENTS, HOURS))), np.zeros(HOURS)
    gamma = np.broadcast_to(alpha, AGENTS)[:, None]
    for _ in range(K + 1):
        new = SET.project(x - gamma * (F(x) + y))
        z = (x - new) / gamma - F(x) - y
        raised = y + beta * ((2 * new - x).sum(axis=0) - LIMIT)
        x, y = new, np.maximum(raised, 0)
    return x, z, y


@pytest.mark.some(4)
@pytest.mark.parametrize("K", [0, 1, 12])
@pytest.mark.parametrize("alpha", [0.1, np.array([0.05, 0.1, 0.2])], ids=["one", "per agent"])
def test_iterates_are_those_of_a_plain_loop(alpha, K):
    method = ez.PreconditionedForwardBackward(step=alpha, dual_step=0.3)
    solution = ez.solve(game(), SAMPLES, method, x0=np.zeros((AGENTS, HOURS)), iterations=K)
    x, z, y = plain_loop(alpha, 0.3, K)
    np.testing.assert_allclose(solution.x, x, atol=1e-13)
    np.testing.assert_allclose(solution.z, z, atol=1e-12)
    np.testing.assert_allclose(solution.multipliers, y, atol=1e-13)


def test_it_is_forward_backward_in_the_metric_and_nonexpansive_there():
    """Two runs never move apart in the norm of Φ = [[1/α, −Gᵀ], [−G, 1/β]] when θλ_min(S) ≥ ½."""
    alpha, beta = 0.15, 0.4
    phi = np.block([[np.eye(12) / alpha, -TOTAL.T], [-TOTAL, np.eye(4) / beta]])
    assert np.linalg.eigvalsh(np.eye(12) / alpha - beta * TOTAL.T @ TOTAL)[0] >= CONSTANTS["kappa"] / 2
    stated, method = game(), ez.PreconditionedForwardBackward(step=alpha, dual_step=beta)
    starts = [SET.project(RNG.normal(size=(AGENTS, HOURS))) for _ in range(2)]
    gaps = []
    for K in (0, 1, 2, 5):
        ends = [ez.solve(stated, SAMPLES, method, x0=x0, iterations=K) for x0 in starts]
        apart = np.concatenate([np.ravel(ends[0].x - ends[1].x), ends[0].multipliers - ends[1].multipliers])
        gaps.append(float(np.sqrt(apart @ phi @ apart)))
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.long
def test_the_steps_come_from_what_is_declared():
    known = declared_only(game(**CONSTANTS))
    with jax.enable_x64(True):
        point = game().lifted(game().start)
        settled = ez.PreconditionedForwardBackward().prepared(game(), point, known)
        searched = ez.PreconditionedForwardBackward().prepared(game(), point)
    best = 2 / (CONSTANTS["mu"] + CONSTANTS["kappa"])
    assert settled.primal == pytest.approx(best / 2)
    assert "from declared mu =" in settled.description
    assert "backtracking" in searched.description
    solution = ez.solve(game(), SAMPLES)
    assert "from the exact constants" in solution.method.description
    assert solution.multipliers.max() > 0.1


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_scale_of_a_constraint_does_not_matter(scale):
    rows = np.array([1.0, scale, 1.0, scale])
    plain = ez.solve(game(), SAMPLES, iterations=30)
    scaled = ez.solve(game((rows[:, None] * TOTAL, rows * LIMIT)), SAMPLES, iterations=30)
    np.testing.assert_allclose(scaled.x, plain.x, atol=1e-10)
    np.testing.assert_allclose(scaled.multipliers * rows, plain.multipliers, atol=1e-9)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (lambda: ez.PreconditionedForwardBackward(step=-1.0), "^step: must be positive"),
        (lambda: ez.PreconditionedForwardBackward(dual_step=0.0), "^dual_step: must be positive"),
        (lambda: ez.PreconditionedForwardBackward(step=lambda k: 0.1), "^step: cannot change with k"),
        (
            lambda: ez.PreconditionedForwardBackward(step=1.0, dual_step=1.0),
            r"^step, dual_step: .*must exceed 0",
        ),
        (lambda: ez.PreconditionedForwardBackward(dual_step=np.ones(3)), "^dual_step: .*one per constraint, 4 of them"),
        (ez.ForwardBackward, "^method: forward-backward does not converge on shared constraints"),
    ],
)
def test_what_cannot_work_is_refused(method, words):
    with pytest.raises(ez.InputError, match=words):
        ez.solve(game(), SAMPLES, method())


def test_it_is_refused_where_it_has_no_place():
    with pytest.raises(ez.InputError, match=r"^method: .*has none.*ez.ForwardBackward\(\)"):
        ez.solve(game(None), SAMPLES, ez.PreconditionedForwardBackward())
    with pytest.raises(ez.InputError, match=r"^method: .*has convex ones.*ez.ForwardBackwardForward\(\)"):
        ez.solve(game(lambda x: jnp.sum(x**2) - 1.0), SAMPLES, ez.PreconditionedForwardBackward())
    with pytest.raises(ez.InputError, match="^step, dual_step: .*declared"):
        ez.solve(game(**CONSTANTS), SAMPLES, ez.PreconditionedForwardBackward(step=2.0))
