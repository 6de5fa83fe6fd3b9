"""What float64 can show of a residual, at the end of a run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero._points import length, norm
from epszero.methods import State
from epszero.solve.rounding import rounding_floor, too_fine
from epszero.solve.setup import averaged


def floor_of(F, x):
    problem = ez.VariationalInequality(F, over=ez.sets.Box(-1, 1, dim=2))
    method = ez.ForwardBackward(step=0.5).prepared(problem, x)
    state = State(np.asarray(1), x, x, None, x, np.asarray(0.0), np.asarray(False), None)
    return rounding_floor(method, averaged(problem, None, x), state, 1.0)


def test_the_floor_is_that_of_what_is_added_up():
    assert floor_of(lambda x: x - 0.2, np.array([0.3, -0.4])) < 1e-13
    assert floor_of(lambda x: 1e6 * (x - 0.2), np.array([0.3, -0.4])) < 1e-7


def test_terms_inside_the_operator_that_cancel_raise_it():
    assert floor_of(lambda x: jnp.sin(1e9 * x) * 1e-3 + x, np.array([0.3, -0.4])) > 1e-10


def test_the_note_names_a_tolerance_that_can_be_reached():
    assert "tol=3e-09 or more" in too_fine(3.2e-9)


@pytest.mark.parametrize("by", [2.0**-990, 2.0**-600, 1.0, 2.0**600, 2.0**1000])
def test_norms_scale_with_their_units(by):
    v = np.array([3.0, 4.0, 0.0])
    assert length(by * v) == 5 * by
    with jax.enable_x64(True):
        assert float(norm({"a": by * v[:1], "b": by * v[1:]})) == 5 * by
    np.testing.assert_array_equal(length(by * np.stack([v, 0 * v]), axis=1), [5 * by, 0])


def test_a_jump_is_not_taken_for_rounding():
    for x in (0.3, np.nextafter(0.3, 1.0), 0.3 * (1 + 7 * 2.0**-52), 0.3 * (1 - 21 * 2.0**-52)):
        assert floor_of(lambda x: jnp.where(x > 0.3, 1.0, -1.0) + x, np.full(2, x)) < 1e-12
