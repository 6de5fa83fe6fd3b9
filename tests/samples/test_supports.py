"""Every call of the table of supports in docs/samples.md: it holds the samples, and serves a certificate."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

PAGE = (Path(__file__).parents[2] / "docs" / "samples.md").read_text()
RNG = np.random.default_rng(5)
PLAIN = RNG.uniform(0.0, 1.0, size=(300, 3))
SHARES = RNG.dirichlet(np.ones(3), size=300)
ROUND = PLAIN / np.linalg.norm(PLAIN, axis=1, keepdims=True) * RNG.uniform(0, 1, size=(300, 1))
MIXED = np.c_[RNG.choice([-1.0, 1.0], size=300), ROUND[:, :2]]

FACES = np.r_[np.eye(3), -np.eye(3)]

SUPPORTS = {
    "ez.sets.Box(-0.5, 4.0)": (PLAIN, ez.sets.Box(-0.5, 4.0)),
    "ez.sets.Box([0, -1], [5, 1])": (PLAIN, ez.sets.Box([0, -1, 0], [5, 1, 1])),
    "`[0, 1]`": (np.c_[PLAIN[:, :2], RNG.integers(0, 2, size=300)], ez.sets.Box([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])),
    "ez.sets.Ball(rho, center=c, dim=d)": (ROUND, ez.sets.Ball(1.0, center=np.zeros(3), dim=3)),
    "ez.sets.Ball(rho, norm=1)": (SHARES, ez.sets.Ball(1.0, norm=1, dim=3)),
    'norm="inf"': (PLAIN, ez.sets.Ball(1.0, norm="inf", dim=3)),
    "ez.sets.Ellipsoid(M, c, rho)": (ROUND, ez.sets.Ellipsoid(np.diag([1.0, 0.5, 0.5]), np.zeros(3), 1.0)),
    "ez.sets.Simplex(dim=d)": (SHARES, ez.sets.Simplex(dim=3)),
    "ez.sets.CappedSimplex": (SHARES, ez.sets.CappedSimplex(1.0, 1.0, dim=3)),
    "ez.sets.BoxBudget": (SHARES, ez.sets.BoxBudget(0.0, 1.0, at_least=0.5, dim=3)),
    "ez.sets.Polyhedron(A, b)": (SHARES, ez.sets.Polyhedron(FACES, np.r_[np.ones(3), np.zeros(3)])),
}  # fmt: skip


def loss(x, xi):
    """Additive noise."""
    return 0.5 * jnp.sum(x**2) - xi @ x


@pytest.mark.some(4)
@pytest.mark.parametrize("call", SUPPORTS)
def test_every_support_of_the_table_serves(call):
    rows, support = SUPPORTS[call]
    assert call in PAGE
    samples = ez.Samples(rows, support=support)
    found = ez.certify(ez.solve(ez.Minimization(loss, ez.sets.Box(-2.0, 2.0, dim=3)), samples))
    assert found.verdict == "conditional", found.reason
    assert found.distance is not None
    mean = rows.mean(axis=0)
    assert 0 < found.distance < 3.0
    assert np.linalg.norm(ez.solve(ez.Minimization(loss, ez.sets.Box(-2.0, 2.0, dim=3)), samples).x - mean) < 1e-6
    outside = rows.copy()
    outside[7] = 50.0
    with pytest.raises(ez.InputError, match="7"):
        ez.Samples(outside, support=support)


@pytest.mark.long
def test_a_label_in_a_range_and_the_rest_in_a_ball():
    support = ez.sets.Product([ez.sets.Box(-1, 1, dim=1), ez.sets.Ball(1.0, dim=2)])
    assert "ez.Samples.from_arrays([labels, others], support=…)" in PAGE
    samples = ez.Samples.from_arrays([MIXED[:, :1], MIXED[:, 1:]], support=support)
    problem = ez.Minimization(lambda x, xi: loss(x, jnp.concatenate(xi)), ez.sets.Box(-2.0, 2.0, dim=3))
    found = ez.certify(ez.solve(problem, samples))
    assert found.verdict == "conditional", found.reason
    assert found.distance is not None
    assert found.distance < 1.0
