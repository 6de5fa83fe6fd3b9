"""Witnesses against monotonicity: found where they are, and never made of rounding."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])
BOX = ez.sets.Box(-2.0, 2.0, dim=2)


def turned(x):
    """Monotone, but with a branch, so that it is not proved."""
    return TURN @ (x - 1.0) + jnp.where(x > 0.0, 1e-3, 0.0) * (x - 1.0) + 1e4 / 3 - 1e4 / 3


@pytest.mark.some(3)
@pytest.mark.parametrize("away", [0.7, 1e-6, 1e-9, 1e-12])
def test_rounding_is_no_witness(away):
    """From a start so near the end, ⟨ΔB, d⟩ is 0 up to rounding, which may be negative."""
    solution = ez.solve(ez.VariationalInequality(turned, BOX), x0=[1 + away, 1 - away])
    assert any("Nothing is proved" in note for note in solution.notes)
    assert solution.status is ez.Status.CONVERGED


@pytest.mark.some(3)
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_what_is_not_monotone_is_told_in_any_units(scale):
    solution = ez.solve(ez.VariationalInequality(lambda x: scale * (x**3 - x), BOX), x0=[0.1, 0.1])
    assert solution.status is ez.Status.STATIONARY
    assert "B is not monotone: ⟨B(u) − B(v), u − v⟩ = -" in solution.message
