"""Agents in batches get the derivatives of their own costs, whoever they are in a batch with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import epszero as ez
from epszero.oracles import Opaque
from epszero.oracles.alike import Of, jacobian, together

N = 9
RNG = np.random.default_rng(3)
D, Q = RNG.uniform(1, 3, N), RNG.normal(size=N)
H = RNG.normal(size=(N, N)) / N


def dense(i):
    return lambda x: 0.5 * D[i] * x[i][0] ** 2 + x[i][0] * sum(float(H[i, j]) * x[j][0] for j in range(N) if j != i)


def total(i):
    return lambda x: jnp.sum(0.5 * D[i] * x[i] ** 2 + Q[i] * x[i] + x[i] * sum(x) / N)


def flat(i):
    return lambda x: D[i] * jnp.concatenate(x)[i] ** 4 + H[i] @ jnp.concatenate(x) * jnp.exp(x[i][0])


def ring(i):
    return lambda x: D[i] * x[i] @ x[i] + jnp.log(2 + x[i] @ x[(i + 1) % N] + x[i - 1] @ x[i - 1] ** 3)


def nested(i):
    return lambda x: D[i] * x[i]["a"] @ x[i]["a"] + x[i]["b"][0] * x[(i + 2) % N]["a"][0] + jnp.sum(x[i]["b"] ** 4)


def mixed(i):
    return (dense, flat, total)[i % 3](i)


def by_python(i):
    @jax.custom_jvp
    def square(v):
        return v**2

    square.defjvps(lambda t, ans, v: 2 * v * t)
    return (lambda x: D[i] * square(x[i][0]) + x[i][0] * x[0][0]) if i % 2 else dense(i)


ONE = [RNG.normal(size=1) for _ in range(N)]
KINDS = {
    "dense": (dense, ONE),
    "total": (total, ONE),
    "flat": (flat, ONE),
    "ring": (ring, [RNG.normal(size=3) for _ in range(N)]),
    "nested": (nested, [{"a": RNG.normal(size=2), "b": RNG.normal(size=1 + i % 2)} for i in range(N)]),
    "mixed": (mixed, ONE),
    "mixed shapes": (lambda i: lambda x: D[i] * x[i] @ x[i] + jnp.sum(x[i]) * jnp.sum(x[i - 1]),
                     [RNG.normal(size=1 + i % 3) for i in range(N)]),
    "by python": (by_python, ONE),
    "one for all": (lambda i: lambda x: jnp.sum(sum(x) ** 2), ONE),
}  # fmt: skip


def own(costs, i, x, y):
    return lambda v: costs[i]([*x[:i], v, *x[i + 1 :]])


@pytest.mark.some(6)
@pytest.mark.parametrize("name", sorted(KINDS))
def test_values_gradients_and_jacobians_are_those_of_each_cost_alone(name):
    make, x = KINDS[name]
    costs = [make(i) for i in range(N)]
    y = jax.tree.map(lambda leaf: leaf + 0.3, x)
    with jax.enable_x64(True):
        every = together([Opaque(cost) for cost in costs], x)
        slopes, values = every.gradients(x), every.values(x, y)
        for i in range(N):
            alone = own(costs, i, x, y)
            np.testing.assert_allclose(values[i], alone(y[i]), rtol=1e-12, atol=1e-12)
            for made, wanted in zip(*map(jax.tree.leaves, (slopes[i], jax.grad(alone)(x[i]))), strict=True):
                np.testing.assert_allclose(made, wanted, rtol=1e-12, atol=1e-12)
        found = jacobian(Of(every, "gradients"), x)
        if found is not None:
            point, nest = ravel_pytree(x)
            whole = jax.jacfwd(lambda v: ravel_pytree(every.gradients(nest(v)))[0])(point)
            np.testing.assert_allclose(found, whole, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "many"), [("dense", 1), ("total", 1), ("flat", 1), ("ring", 1), ("mixed", 3), ("nested", 2)]
)
def test_costs_of_one_form_are_one_batch(name, many):
    make, x = KINDS[name]
    assert len(together([Opaque(make(i)) for i in range(N)], x).batches) == many


def test_who_does_not_care_is_found():
    costs = [lambda x, i=i: jnp.sum(x[i if i != 4 else 5] ** 2) for i in range(N)]
    every = together([Opaque(cost) for cost in costs], ONE)
    assert sorted(agent for batch in every.batches for agent in batch.indifferent()) == [4]


@pytest.mark.long
def test_what_is_never_the_own_strategy_may_be_anything():
    """x_j³ of others does not make the own gradient nonlinear, though it is one place of one program."""
    costs = [lambda x, i=i: D[i] * x[i][0] ** 2 + sum(x[j][0] ** 3 for j in range(N) if j != i) for i in range(N)]
    solution = ez.solve(ez.Game(costs, [ez.sets.Box(-1, 1, dim=1)] * N))
    np.testing.assert_allclose(np.concatenate(solution.x), 0.0, atol=1e-9)
    assert "constant own Hessians" in str(ez.certify(solution))


@pytest.mark.long
def test_a_game_of_sixty_is_the_solution_of_its_linear_system():
    many = 60
    rng = np.random.default_rng(0)
    d, q, M = rng.uniform(2, 3, many), rng.normal(size=many), rng.normal(size=(many, many)) / many
    np.fill_diagonal(M, 0)

    def cost(i):
        if i % 3 == 0:
            return lambda x: 0.5 * d[i] * x[i][0] ** 2 + q[i] * x[i][0] + x[i][0] * (M[i] @ jnp.concatenate(x))
        return lambda x: 0.5 * d[i] * x[i] @ x[i] + x[i][0] * (q[i] + sum(M[i, j] * x[j][0] for j in range(many)))

    solution = ez.solve(ez.Game([cost(i) for i in range(many)], [ez.sets.WholeSpace(dim=1)] * many), tol=1e-11)
    np.testing.assert_allclose(np.concatenate(solution.x), np.linalg.solve(np.diag(d) + M, -q), atol=1e-9)
    certificate = ez.certify(solution)
    assert certificate.verdict == "guaranteed"


@pytest.mark.some(6)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("noise", ["additive", "coefficients"])
def test_with_samples_many_agents_find_what_few_would(noise, shared):
    many, rng = 20, np.random.default_rng(1)
    d, M, xi = rng.uniform(2, 3, many), rng.normal(size=(many, many)) / many, rng.uniform(0.5, 1.5, size=(30, many))

    def cost(i):
        if noise == "additive":
            return lambda x, xi: 0.5 * d[i] * x[i][0] ** 2 + x[i][0] * (M[i] @ jnp.concatenate(x)) - xi[i] * x[i][0]
        return lambda x, xi: 0.5 * d[i] * xi[i] * x[i][0] ** 2 + x[i][0] * (M[i] @ jnp.concatenate(x)) - x[i][0]

    game = ez.Game(
        [cost(i) for i in range(many)],
        [ez.sets.Box(-5, 5, dim=1)] * many,
        (np.ones((1, many)), 1.0) if shared else None,
    )
    solution = ez.solve(game, ez.Samples(xi), tol=1e-10)
    mean = xi.mean(axis=0)
    J = np.diag(d * (mean if noise == "coefficients" else 1)) + M + np.diag(np.diag(M))
    x, b = np.concatenate(solution.x), (mean if noise == "additive" else np.ones(many))
    multiplier = solution.point.multipliers[0] if shared else 0.0
    np.testing.assert_allclose(J @ x - b + multiplier, 0.0, atol=1e-8)
    assert not shared or (abs(x.sum() - 1.0) < 1e-8 and multiplier > 0)
    together_many = ez.solve_many(game, [ez.Samples(xi[:10]), ez.Samples(xi[10:20])], tol=1e-10)
    alone = ez.solve(game, ez.Samples(xi[10:20]), tol=1e-10)
    np.testing.assert_allclose(np.concatenate(together_many[1].x), np.concatenate(alone.x), atol=1e-8)
