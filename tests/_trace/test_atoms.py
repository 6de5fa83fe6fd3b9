"""Ranges of atoms (_trace/rules) against dense grids: nothing outside, and little room inside."""

import numpy as np
import pytest

from epszero._trace.intervals import Interval, NoEnclosure
from epszero._trace.rules import bends, powers
from epszero._trace.rules.expressions import PLAIN

POSITIVE = ("log", "sqrt", "rsqrt", "xlogx", "reciprocal")
FAMILIES = {
    "power 5": powers.whole_power(5),
    "power -3": powers.whole_power(-3),
    "power 2.5": powers.real_power(np.array([2.5])),
    "power 1.2": powers.real_power(np.array([1.2])),
    "root": powers.smooth_root(np.array([0.7])),
    "huber": bends.huber(np.array([0.8])),
}
ATOMS = {**PLAIN, **FAMILIES}


def ends(name):
    """Intervals where the atom is defined."""
    rng = np.random.default_rng(3)
    low = 0.01 if name in POSITIVE or name.startswith("power ") else -0.9 if name == "log1p" else -4.0
    pairs = np.sort(rng.uniform(low, 4.0, size=(200, 2)), axis=1)
    pairs[:50, 1] = pairs[:50, 0] + 0.01
    return pairs


def at(over, t):
    """The function itself: its range over a single number."""
    found = over(Interval(t, t))
    return (found.lower + found.upper) / 2


@pytest.mark.some(4)
@pytest.mark.parametrize("name", ATOMS)
@pytest.mark.parametrize("order", ["value", "first", "second"])
def test_ranges_hold_and_are_tight(name, order):
    atom = ATOMS[name]
    over = getattr(atom, order)
    for low, high in ends(name):
        grid = np.linspace(low, high, 401)
        values = at(over, grid)
        if atom.kink is not None and np.any((low <= atom.kink) & (np.asarray(atom.kink) <= high)):
            continue
        found = over(Interval(np.array([low]), np.array([high])))
        size = 1 + np.abs(values).max()
        assert found.lower[0] <= values.min() + 1e-13 * size
        assert found.upper[0] >= values.max() - 1e-13 * size
        if name not in ("sin", "cos") and not (name in ("huber", "hinge") and order == "second"):
            width = max(values.max() - values.min(), 0.02 * size)
            assert found.upper[0] - found.lower[0] <= 1.2 * width


@pytest.mark.parametrize("name", ATOMS)
def test_derivatives_are_those_of_the_values(name):
    atom, step = ATOMS[name], 1e-5
    t = ends(name).mean(axis=1)
    t = t[np.abs(np.abs(t) - 0.8) > 1e-3]  # where huber's second derivative jumps
    t = t[np.abs(t) > 1e-3]
    for below, above in (("value", "first"), ("first", "second")):
        slope = (at(getattr(atom, below), t + step) - at(getattr(atom, below), t - step)) / (2 * step)
        right = at(getattr(atom, above), t)
        assert np.allclose(slope, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in ATOMS if name not in (*POSITIVE, "log1p") and "power" not in name])
def test_limits_are_no_numbers_out_of_nowhere(name):
    atom = ATOMS[name]
    with np.errstate(all="ignore"):
        for over in (atom.value, atom.first, atom.second):
            found = over(Interval(np.array([-np.inf]), np.array([np.inf])))
            assert not np.isnan(found.lower).any()
            assert not np.isnan(found.upper).any()


@pytest.mark.parametrize("name", POSITIVE)
def test_what_is_undefined_is_refused(name):
    with pytest.raises(NoEnclosure):
        ATOMS[name].value(Interval(np.array([-0.5]), np.array([1.0])))


def test_the_logistic_loss_bends_by_a_quarter_at_most():
    whole = Interval(np.array([-np.inf]), np.array([np.inf]))
    found = PLAIN["softplus"].second(whole)
    assert found.lower[0] == 0.0
    assert found.upper[0] == 0.25
