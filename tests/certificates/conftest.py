"""Solved problems that several files certify: each is compiled once."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from certified_data import H, rows

import epszero as ez


@pytest.fixture(scope="session")
def additive() -> Any:
    """O(x, ξ) = Hx + ξ on a box."""
    return ez.Inclusion(ez.sets.Box(-0.2, 0.4, dim=3), ez.oracles.Additive(lambda x: H @ x))


@pytest.fixture(scope="session")
def line() -> Any:
    """O(x, ξ) = Hx − ξ, not declared to be anything."""
    return ez.Inclusion(ez.sets.Box(-0.2, 0.4, dim=3), lambda x, xi: H @ x - xi)


@pytest.fixture(scope="session")
def run(line: Any) -> ez.Solution:
    """Forty samples, twelve iterations: ê is small but not zero."""
    return ez.solve(line, rows(40, 1), ez.ForwardBackward(step=0.3), iterations=12)


@pytest.fixture(scope="session")
def bent() -> Any:
    """x + tanh(x − ξ): no structure; all constants declared."""
    return ez.VariationalInequality(
        lambda x, xi: x + jnp.tanh(x - xi),
        ez.sets.Box(-1.0, 1.0, dim=3),
        declared=ez.declare(mu=1.0, kappa=2.0, R=float(np.sqrt(3))),
    )


@pytest.fixture(scope="session")
def bent_run(bent: Any) -> ez.Solution:
    return ez.solve(bent, rows(40, 2), ez.ForwardBackward(step=0.3), iterations=15)


@pytest.fixture(scope="session")
def held(bent: Any) -> ez.Solution:
    """The same with samples kept aside."""
    return ez.solve(bent, rows(60, 3), ez.ForwardBackward(step=0.3), iterations=15, holdout=0.4)


@pytest.fixture(scope="session")
def exact() -> ez.Solution:
    """Nothing is uncertain."""
    return ez.solve(ez.Inclusion(ez.sets.Box(-0.2, 0.4, dim=3), lambda x: H @ x - 0.3), iterations=3)


@pytest.fixture(scope="session")
def game() -> Any:
    """Four vehicles, three hours."""
    return ez.models.ev_charging(vehicles=4, hours=3, wear=(0.3, 0.6), need=(1.0, 3.0), seed=0)


@pytest.fixture(scope="session")
def played(game: Any) -> ez.Solution:
    return ez.solve(game, rows(40, 4), ez.ForwardBackward(step=0.3), iterations=30)
