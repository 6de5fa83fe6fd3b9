"""The order of samples: independent ones raise no alarm, whatever their law; what is not independent does."""

import time
from pathlib import Path

import numpy as np
import pytest
from scipy.special import chdtrc
from scipy.stats import binom, rankdata

from epszero.samples import independence as order
from epszero.samples.independence import Order, examine_order, quick, quick_each

DAYS = np.genfromtxt(
    Path(__file__).parents[2] / "examples" / "prices_nl_2024.csv", delimiter=",", skip_header=1, usecols=range(1, 15)
)
LAWS = {
    "uniform": lambda g, shape: g.random((*shape, 3)),
    "normal": lambda g, shape: g.normal(size=(*shape, 3)),
    "lognormal": lambda g, shape: g.lognormal(size=(*shape, 3)),
    "Cauchy": lambda g, shape: g.standard_cauchy((*shape, 3)),
    "rare": lambda g, shape: (g.random((*shape, 3)) < 0.01).astype(float),
    "coin": lambda g, shape: (g.random((*shape, 3)) < 0.5).astype(float),
    "days": lambda g, shape: DAYS[g.integers(0, len(DAYS), shape)],
}
SIZES = {20: 3000, 100: 800, 500: 150, 3000: 30}


def generator(*seed):
    return np.random.default_rng(seed)


def most(trials, level):
    """So many alarms at most, if they come with probability `level`."""
    return binom.isf(1e-4, trials, level)


def autoregressive(g, samples, rho, width=1):
    x = g.normal(size=(samples, width))
    for t in range(1, samples):
        x[t] = rho * x[t - 1] + np.sqrt(1 - rho**2) * x[t]
    return x


@pytest.mark.some(3)
@pytest.mark.parametrize("law", LAWS)
def test_independent_samples_raise_no_alarm(law):
    for samples, trials in SIZES.items():
        rows = LAWS[law](generator(samples, 1), (trials, samples))
        ranks = (2 * rankdata(rows, axis=1) - 1) / samples - 1
        for p in (quick_each(rows), order._portmanteau(np.swapaxes(ranks, 1, 2), min(order.LAGS, samples // 5))):
            assert p.shape == (trials,)
            assert np.all((p >= 0) & (p <= 1))
            assert np.count_nonzero(p < 1e-3) <= most(trials, 1e-3)
            assert p.min() > 1e-5
        for one in rows[: 1 + 1500 // samples]:
            found = examine_order(one)
            assert not found.contradicts()
            assert found.change is None


def test_plain_chi_square_would_raise_alarms():
    """The same check fails without the correction: for rare events, and for ranks where samples are few."""
    for rows, lags in (
        (LAWS["rare"](generator(1), (2000, 1000))[..., :1], 5),
        (rankdata(generator(2).random((3000, 50, 1)), axis=1), 10),
    ):
        trials, samples = rows.shape[:2]
        centred = (rows - rows.mean(axis=1, keepdims=True))[..., 0]
        total = np.zeros(trials)
        for lag in range(1, lags + 1):
            found = (centred[:, lag:] * centred[:, :-lag]).sum(axis=1) / np.maximum((centred**2).sum(axis=1), 0.5)
            total += samples * (samples + 2) * found**2 / (samples - lag)
        assert np.count_nonzero(chdtrc(lags, total) < 1e-3) > most(trials, 1e-3)


def test_days_in_order_are_not_independent_and_shuffled_ones_may_be():
    found = examine_order(DAYS)
    assert found.contradicts()
    assert found.ljung_box < 1e-20
    assert found.e_value > 1e10
    assert 0.5 < found.lag_one < 1
    assert found.effective < 100
    assert quick(DAYS) < 1e-20
    g = generator(3)
    for rows in (g.permutation(DAYS), DAYS[g.integers(0, len(DAYS), 364)], DAYS[g.integers(0, len(DAYS), 3000)]):
        assert not examine_order(rows).contradicts()
        assert quick(rows) > 1e-3


SHIFT = (np.arange(600) >= 300)[:, None]
NOISE = generator(4).normal(size=(600, 3))


@pytest.mark.parametrize(
    ("rows", "by", "fast"),
    [
        (autoregressive(generator(5), 300, 0.93), "both", True),
        (autoregressive(generator(6), 300, 0.93, 14), "both", True),
        (autoregressive(generator(7), 3000, 0.2), "ljung_box", True),
        (NOISE + SHIFT, "both", True),
        (np.c_[NOISE[:, :1] + SHIFT, generator(8).normal(size=(600, 13))], "both", True),
        (NOISE * (1 + SHIFT), "e_value", False),
        (np.sort(NOISE[:100], axis=0), "both", True),
        (NOISE[:100, :1] * 0.1 + np.arange(100)[:, None] % 2, "ljung_box", True),
        (np.arange(60.0)[:, None] % 2, "ljung_box", True),
        ((np.arange(3000)[:, None] // 30 == 50).astype(float), "both", True),
    ],
    ids=["AR", "AR of 14", "weak AR", "shift", "one shifts", "variance", "sorted", "alternating", "0101", "cluster"],
)
def test_what_is_not_independent_is_found(rows, by, fast):
    found = examine_order(rows)
    assert found.contradicts()
    assert (quick(rows) < order.LEVEL) == fast
    seen = {"ljung_box": found.ljung_box < order.LEVEL / 2, "e_value": found.e_value > 2 / order.LEVEL}
    assert seen[by] if by != "both" else all(seen.values())


@pytest.mark.parametrize("rows", [NOISE + 2 * SHIFT, NOISE * (1 + 2 * SHIFT)], ids=["shift", "variance"])
def test_the_change_is_where_it_is(rows):
    assert abs(examine_order(rows).change - 300) < 30


def paths(law, how, runs=400, length=120):
    """The capital, over several independent runs."""
    g = generator(9)
    scores = [order._mid_ranks(law(g, (length,))) for _ in range(runs)]
    return np.array([order._capital(how(one.T, g)) for one in scores])


def trustworthy(found):
    """Whether capital exceeds 20 in 5 % of runs at most, and is 1 at most on average, as far as can be seen."""
    early = found[:, 20]
    fair = early.mean() <= 1 + 4 * early.std() / np.sqrt(len(found))
    return fair and np.mean(found.max(axis=1) >= 20) <= 0.05


@pytest.mark.some(3)
@pytest.mark.parametrize("law", ["normal", "rare", "coin", "days"])
def test_the_martingale_is_fair(law):
    assert trustworthy(paths(LAWS[law], order._sequential))


def ties_count_in_full(scores, g):
    upto = np.tril(np.ones((scores.shape[1],) * 2, dtype=bool))
    return np.mean(scores[:, None, :] <= scores[:, :, None], axis=2, where=upto)


def looks_ahead(scores, g):
    p = order._sequential(scores, g)
    return np.maximum(p, 1 - p)


@pytest.mark.parametrize(("law", "broken"), [("coin", ties_count_in_full), ("normal", looks_ahead)])
def test_broken_martingales_are_found_out(law, broken):
    assert not trustworthy(paths(LAWS[law], broken, runs=60))


def test_sequential_ranks_are_what_they_say():
    scores = generator(10).integers(0, 5, (3, 200)).astype(float)
    p = order._sequential(scores, generator(11))
    for i in range(200):
        below = np.count_nonzero(scores[:, : i + 1] < scores[:, i : i + 1], axis=1)
        upto = np.count_nonzero(scores[:, : i + 1] <= scores[:, i : i + 1], axis=1)
        assert np.all((below <= p[:, i] * (i + 1)) & (p[:, i] * (i + 1) <= upto))
    place = generator(12).permutation(1000)
    assert [int(n) for n in order._earlier_below(place)] == [int((place[:i] < place[i]).sum()) for i in range(1000)]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_the_effective_size_of_an_autoregression(rho):
    found = examine_order(autoregressive(generator(13), 6000, rho)).effective
    assert 1 / 1.5 < found / (6000 * (1 - rho) / (1 + rho)) < 1.5


def test_the_effective_size_is_between_one_and_all():
    assert examine_order(np.arange(50.0)[:, None]).effective >= 1
    assert examine_order(np.arange(50.0)[:, None] % 2).effective == 50
    assert examine_order(generator(14).random((3000, 1))).effective > 2500


@pytest.mark.parametrize("rows", [np.arange(9.0)[:, None], np.full((50, 3), 0.1), np.ones((50, 0)), np.ones((0, 2))])
def test_where_nothing_can_be_tested_nothing_is_said(rows):
    found = examine_order(rows)
    assert found == Order(len(rows), 0.0, 0, 1.0, 0, 1.0, None, len(rows))
    assert found.p_value == quick(rows) == 1


def test_constant_columns_say_nothing():
    rows = autoregressive(generator(15), 200, 0.9, 2)
    found = examine_order(np.c_[np.full(200, 0.1), rows])
    alone = examine_order(rows)
    assert (found.column - 1, found.lag_one, found.ljung_box) == (alone.column, alone.lag_one, alone.ljung_box)


@pytest.mark.parametrize("scale", [1e-310, 1e-9, 1e307])
def test_units_do_not_matter(scale):
    rows = np.clip(autoregressive(generator(16), 200, 0.5, 2), -9, 9)
    found, scaled = examine_order(rows), examine_order(rows * scale)
    assert scaled.p_value == pytest.approx(found.p_value, rel=1e-6)
    assert scaled.lag_one == pytest.approx(found.lag_one, rel=1e-6)
    assert quick(rows * scale) == pytest.approx(quick(rows), rel=1e-6)


def test_the_p_value_is_of_both_tests():
    def p(ljung_box, e_value):
        return Order(100, 0.0, 0, ljung_box, 10, e_value, None, 100.0).p_value

    assert p(1e-6, 1.0) == 2e-6
    assert p(0.3, 1e5) == pytest.approx(2e-5)
    assert p(0.9, 1.1) == 1
    assert Order(100, 0.0, 0, 4e-5, 10, 1.0, None, 100.0).contradicts()
    assert not Order(100, 0.0, 0, 4e-5, 10, 1.0, None, 100.0).contradicts(1e-5)


@pytest.mark.long
def test_many_rows_and_columns_are_looked_at_in_part():
    g = generator(17)
    rows = g.normal(size=(300_000, 4))
    start = time.perf_counter()
    found = examine_order(rows)
    assert time.perf_counter() - start < 10  # about one second
    assert not found.contradicts()
    assert found.effective > 200_000
    assert quick(rows) > 1e-3
    rows[200_000:] += 0.5
    found = examine_order(rows)
    assert found.contradicts()
    assert abs(found.change - 200_000) < 5_000
    assert found.effective < 20_000
    wide = g.normal(size=(200, 120))
    assert not examine_order(wide).contradicts()
    assert quick(wide) > 1e-3
    assert quick(np.cumsum(wide, axis=0)) < 1e-10


def test_the_same_seed_gives_the_same_answer():
    assert examine_order(NOISE, seed=3) == examine_order(NOISE, seed=3)
    assert examine_order(NOISE, seed=3).e_value != examine_order(NOISE, seed=4).e_value
    assert quick_each(np.stack([NOISE, NOISE[::-1]])[None]).shape == (1, 2)


@pytest.mark.parametrize("shape", [(1, 2), (10, 1), (300, 7)])
def test_ranks_are_scipys(shape):
    g = generator(5)
    for values in (g.normal(size=shape), g.integers(0, 4, shape).astype(float), np.zeros(shape)):
        np.testing.assert_array_equal(order._ranks(values), rankdata(values, axis=0))
