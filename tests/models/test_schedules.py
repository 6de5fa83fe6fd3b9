"""The cheapest schedules against a linear programme, the two others by hand, and what is refused."""

import numpy as np
import pytest
from scipy.optimize import linprog

import epszero as ez

RNG = np.random.default_rng(3)


def programme(price, caps, need, capacity=None):
    """min Σ priceᵀx_i, written out."""
    n, t = caps.shape
    every = np.tile(np.eye(t), n)
    room = {} if capacity is None else {"A_ub": every, "b_ub": np.broadcast_to(capacity, t)}
    own = np.kron(np.eye(n), np.ones(t))
    bounds = [(0, cap) for cap in caps.ravel()]
    found = linprog(np.tile(price, n), A_eq=own, b_eq=need, bounds=bounds, **room)
    assert found.success
    return found.fun


@pytest.mark.parametrize("trial", range(20))
def test_as_cheap_as_a_linear_programme(trial):
    rng = np.random.default_rng(trial)
    caps = rng.uniform(0, 3, (4, 6)) * (rng.random((4, 6)) < 0.7)
    need, price = caps.sum(axis=1) * rng.random(4), rng.normal(0.05, 0.1, 6)
    x = ez.models.cheapest_charging(price, caps, need)
    assert (x @ price).sum() == pytest.approx(programme(price, caps, need), abs=1e-9)
    assert x.sum(axis=1) == pytest.approx(need)
    assert ((x >= 0) & (x <= caps + 1e-12)).all()
    capacity = x.sum(axis=0).max() * 1.01
    tight = np.maximum(caps.sum(axis=0) * need.sum() / max(caps.sum(), 1e-9) * 1.5, 0.2)
    for limit in (capacity, tight):
        if ez.models.most_together(caps, need, limit) < need.sum() - 1e-9:
            continue
        y = ez.models.cheapest_charging(price, caps, need, limit)
        assert (y @ price).sum() == pytest.approx(programme(price, caps, need, limit), abs=1e-8)
        assert (y.sum(axis=0) <= limit + 1e-8).all()


def test_several_days_at_once():
    caps, need, days = np.full((2, 5), 2.0), [3.0, 7.0], RNG.normal(size=(7, 5))
    together = ez.models.cheapest_charging(days, caps, need)
    assert together.shape == (7, 2, 5)
    for one, day in zip(together, days, strict=True):
        assert np.array_equal(one, ez.models.cheapest_charging(day, caps, need))
    limited = ez.models.cheapest_charging(days, caps, need, 3.0)
    assert limited.sum(axis=1).max() <= 3.0 + 1e-9


def test_hours_of_one_price_are_taken_from_the_earliest_on_and_are_told():
    caps, need = np.array([[2.0, 2.0, 2.0]]), [3.0]
    assert ez.models.cheapest_charging([0.1, 0.1, 0.1], caps, need).tolist() == [[2.0, 1.0, 0.0]]
    assert ez.models.equally_cheap([0.1, 0.1, 0.1], caps, need).tolist() == [3.0]
    assert ez.models.equally_cheap([0.1, 0.2, 0.2], caps, need).tolist() == [1.0]
    assert ez.models.equally_cheap([0.1, 0.2, 0.3], caps, need).tolist() == [0.0]
    assert ez.models.equally_cheap([0.1, 0.1, 0.3], caps, [4.0]).tolist() == [0.0]  # both are full
    assert ez.models.equally_cheap([0.1, 0.1, 0.1], [[2.0, 0.0, 0.0]], [1.0]).tolist() == [0.0]  # there in one only


def test_evenly_and_at_once():
    caps = np.array([[0.0, 2.0, 2.0, 2.0], [1.0, 4.0, 4.0, 0.0]])
    assert ez.models.even_charging(caps, [3.0, 4.5]) == pytest.approx(np.array([[0, 1, 1, 1], [0.5, 2, 2, 0]]))
    assert ez.models.charging_at_once(caps, [3.0, 4.5]).tolist() == [[0, 2, 1, 0], [1, 3.5, 0, 0]]
    assert ez.models.even_charging([[0.0, 0.0]], [0.0]).tolist() == [[0.0, 0.0]]
    assert ez.models.most_together(caps, [3.0, 4.5], 1.0) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ez.models.cheapest_charging([1.0, 2.0], [[1.0, 1.0]], [3.0]), r"need\[0\]: vehicle 0 needs 3 kWh"),
        (lambda: ez.models.cheapest_charging([1.0], [[1.0, 1.0]], [1.0]), "price: must have 2 hours"),
        (lambda: ez.models.cheapest_charging([1.0, 2.0], [1.0, 1.0], [1.0]), "caps: must be vehicles × hours"),
        (lambda: ez.models.cheapest_charging([1.0, 2.0], [[-1.0, 1.0]], [1.0]), r"caps\[0, 0\]: must be at least 0"),
        (lambda: ez.models.cheapest_charging([1.0, 2.0], [[1.0, 1.0]], [2.0], 0.5), "capacity: is too little"),
        (lambda: ez.models.even_charging([[1.0, 1.0]], [1.0, 2.0]), "need: must be one number, or one per vehicle"),
        (lambda: ez.models.charging_at_once([[1.0, np.nan]], [1.0]), "caps.*must be finite"),
    ],
)
def test_what_cannot_be(call, said):
    with pytest.raises(ez.InputError, match=said):
        call()
