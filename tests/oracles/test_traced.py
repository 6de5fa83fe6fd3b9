"""Problems built anew with other numbers run the programs that were compiled before, and leave nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring

import epszero as ez

COMPILED: list[str] = []
monitoring.register_event_duration_secs_listener(
    lambda name, _, **__: COMPILED.append(name) if "backend_compile" in name else None
)
BOX = ez.sets.Box(-1.0, 1.0, dim=3)


def inequality(rng):
    M, q = np.diag(rng.uniform(1, 2, 3)), rng.normal(size=3)
    return ez.VariationalInequality(lambda x: M @ x + q, BOX), None


def nonlinear(rng):
    a, q = float(rng.uniform(1, 2)), rng.normal(size=3)
    return ez.VariationalInequality(lambda x: a * x + 0.1 * x**3 + q, BOX, ez.declare(mu=0.5)), None


def loss(rng):
    A, b = rng.normal(size=(5, 3)), float(rng.uniform(1, 2))
    return ez.Minimization(lambda x, xi: jnp.sum((A @ x) ** 2) + b * x @ x + xi @ x, BOX), rng.normal(size=(20, 3))


def game(rng):
    d, H = rng.uniform(1, 2, 4), rng.normal(size=(4, 4)) / 8

    def cost(i):
        return lambda x: 0.5 * d[i] * x[i] @ x[i] + x[i][0] * (1 - sum(H[i, j] * x[j][0] for j in range(4)))

    return ez.Game([cost(i) for i in range(4)], [ez.sets.Box(-1.0, 1.0, dim=1)] * 4), None


def many_agents(rng):
    d = rng.uniform(1, 2, 20)
    costs = [lambda x, xi, i=i: 0.5 * d[i] * x[i] @ x[i] + x[i] @ sum(x) / 50 - xi[i] * x[i][0] for i in range(20)]
    return ez.Game(costs, [ez.sets.Box(-1.0, 1.0, dim=1)] * 20), rng.normal(size=(15, 20))


def aggregative(rng):
    a = float(rng.uniform(1, 2))
    played = ez.AggregativeGame(
        lambda own, mean, xi, p: 0.5 * p * own @ own + a * own @ mean - xi @ own,
        rng.uniform(1, 2, 5),
        ez.sets.Box(0.0, 3.0, dim=2),
    )
    return played, rng.normal(2, 1, size=(12, 2))


def shared(rng):
    c, d = float(rng.uniform(1, 2)), rng.uniform(1, 2, 3)
    costs = [lambda x, i=i: d[i] * x[i] @ x[i] - x[i][0] for i in range(3)]
    return ez.Game(costs, [ez.sets.Box(0.0, 1.0, dim=1)] * 3, lambda x: c * sum(v[0] for v in x) - 0.5), None


@pytest.mark.some(6)
@pytest.mark.parametrize("make", [inequality, nonlinear, loss, game, many_agents, aggregative, shared])
def test_nothing_is_compiled_for_new_numbers(make):
    answers = []
    for seed in range(3):
        problem, data = make(np.random.default_rng(seed))
        samples = None if data is None else ez.Samples(data, support=ez.sets.Box(-9.0, 9.0, dim=data.shape[1]))
        if seed == 2:
            COMPILED.clear()
        solution = ez.solve(problem, samples)
        certificate = ez.certify(solution)
        answers.append(str(solution.x))
        assert str(certificate)
        assert solution.check().residual <= 1e-6
    assert COMPILED == []
    assert len(set(answers)) == 3  # they are other problems


@pytest.mark.long
def test_a_hundred_rebuilds_leave_nothing_behind():
    """The memory of a process that builds and solves one kind of problem again and again."""
    script = f"""
import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]
import gc, resource
import numpy as np
import epszero as ez
from test_traced import game, loss

def used():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1e6

def turn(seed):
    for make in (game, loss):
        problem, data = make(np.random.default_rng(seed))
        ez.solve(problem, None if data is None else ez.Samples(data))

for seed in range(10):
    turn(seed)
before = used()
for seed in range(10, 110):
    turn(seed)
print(used() - before)
"""
    if not Path("/proc/self/statm").exists():
        pytest.skip("memory is read from /proc")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=True)
    assert float(done.stdout) < 50
