"""Does the order in which samples came contradict that they are independent samples of one law?

Two tests, since neither sees everything. Ljung and Box (1978) add up squared autocorrelations: they see neighbours that
are alike, or unlike. A conformal test martingale (Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World,
2005 and 2022; Vovk, Testing randomness online, 2021) bets that the rank of each sample among those before it can be
foretold: it sees drift, changes of the law, and series that wander. Neither assumes anything of the law.

Where rows are too many, some are looked at. Which ones does not depend on their values, so what holds under
independence holds for them as well.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from epszero._types import FloatArray

Places = NDArray[np.int64]
Flags = NDArray[np.bool_]

LEVEL = 1e-4  # a false alarm in ten thousand audits
IN_ORDER = (
    "Take ez.certificates.Prequential(), for the average over these days of what the past promised; or "
    "ez.certificates.Dependent(beta=…), if you can declare how fast they forget; or independent draws, "
    "samples.take(n, seed), if the law that is meant is that of a row picked at random"
)
FEWEST = 10  # samples below which order tells nothing
COLUMNS = 50  # looked at, at most, evenly spread
ROWS = 20_000  # looked at, at most
RUN = 1_000  # neighbours that are kept together where rows are left out
WORK = 500_000  # ranks that the martingale may look at: fewer columns where rows are many
LAGS = 10  # of the ranks: a week of days is among them
QUICK_LAGS = 5
FLAT = 1.8  # the kurtosis of ranks without ties
ENOUGH = 1e300  # a martingale that has come so far is stopped
JUMPS = np.array([1e-3, 1e-2, 1e-1])  # how often a bet is changed
BETS = np.array([-1.9, -1.0, -0.5, 0.0, 0.5, 1.0, 1.9])  # ε: capital grows by 1 + ε(p − 1/2), never below zero


@dataclass(frozen=True)
class Order:
    """What the order of samples says about their independence.

    `lag_one` is the autocorrelation of neighbours, of the `column` where it is largest. `ljung_box` is a p-value, over
    all columns and `lags`; `e_value` is the largest capital of the martingale, exceeding 1/α with probability α at most
    where samples are exchangeable (Ville). `change` is where its growth began, if it grew enough to be believed.
    `effective` is how many independent samples would give means as good as these (the worst column's).
    """

    samples: int
    lag_one: float
    column: int
    ljung_box: float
    lags: int
    e_value: float
    change: int | None
    effective: float

    @property
    def p_value(self) -> float:
        """Of both tests together."""
        return min(1.0, 2 * min(self.ljung_box, 1 / max(1.0, self.e_value)))

    def contradicts(self, level: float = LEVEL) -> bool:
        """Whether independent samples of one law would come in such an order with probability `level` at most."""
        return self.p_value <= level


def examine_order(rows: FloatArray, seed: int = 0) -> Order:
    """Looks at rows, in the order in which they came. Values are finite; constant columns say nothing."""
    values = np.asarray(rows, dtype=np.float64)
    samples = len(values)
    spread = _spread(values.shape[1], COLUMNS)
    together = values[np.ix_(_runs(samples), spread)]
    varies = (together != together[:1]).any(axis=0) & (samples >= FEWEST)
    spread, together = spread[varies], together[:, varies]
    if not spread.size:
        return Order(samples, 0.0, 0, 1.0, 0, 1.0, None, float(samples))

    near = _unit(together)
    kept = _spread(samples, ROWS)
    lag_one = np.einsum("sj,sj->j", near[1:], near[:-1]) / np.einsum("sj,sj->j", near, near)
    most = int(np.abs(lag_one).argmax())
    lags = min(LAGS, samples // 5)
    scores = _with_summaries(_mid_ranks(together))
    columns = spread[_spread(len(spread), max(1, WORK // len(kept) // 2 - 2))]
    apart = _with_summaries(_mid_ranks(values[np.ix_(kept, columns)]))
    e_value, change = _martingale(apart, np.random.default_rng(seed))
    return Order(
        samples=samples,
        lag_one=float(lag_one[most]),
        column=int(spread[most]),
        ljung_box=float(_portmanteau(np.ascontiguousarray(scores.T), lags)),
        lags=lags,
        e_value=e_value,
        change=None if change is None else int(kept[change]),
        effective=_effective(values, spread),
    )


def quick(rows: FloatArray) -> float:
    """A p-value in well under a millisecond: Ljung and Box's of values that are cut off, instead of ranks."""
    return float(quick_each(np.asarray(rows, dtype=np.float64)))


def quick_each(trials: FloatArray) -> FloatArray:
    """`quick` for each of several data sets of one shape, (..., s, d) → (...).

    Values are cut off at the 5 and 95 % quantiles of about a hundred of the rows: all quantiles take longer than all
    the rest. Where these quantiles are equal, as with rare events, nothing is cut off.
    """
    samples, width = trials.shape[-2:]
    if samples < FEWEST or not width:
        return np.ones(trials.shape[:-2])
    if width > COLUMNS:
        trials = trials[..., _spread(width, COLUMNS)]
    if samples > ROWS:
        trials = trials[..., _runs(samples), :]
    series = np.ascontiguousarray(np.swapaxes(trials, -1, -2))
    some = np.sort(series[..., :: max(1, samples // 100)], axis=-1)
    tail = some.shape[-1] // 20
    low, high = some[..., tail, None], some[..., -1 - tail, None]
    if (low == high).any():
        cut = low < high
        low = np.where(cut, low, series.min(axis=-1, keepdims=True))
        high = np.where(cut, high, series.max(axis=-1, keepdims=True))
    half = high / 2 - low / 2
    clipped = np.clip(series, low, high)
    clipped -= high / 2 + low / 2
    clipped /= np.where(half > 0, half, 1.0)
    return _portmanteau(clipped, min(QUICK_LAGS, samples // 5), half[..., 0] > 0)


def _portmanteau(scores: FloatArray, lags: int, varies: Flags | bool = True) -> FloatArray:
    """Ljung and Box's p-value of series of scores between −1 and 1, (..., d, s) → (...), Bonferroni over series.

    Autocorrelations are taken about their mean over all orders, −(s − k)/(s(s − 1)). Far out, their squares are larger
    than chi-square's: with rare events the law of an autocorrelation is like Poisson's, and with few samples one large
    autocorrelation brings others along. Hence Bernstein's correction of the exponent, with the kurtosis of the scores
    in the place of their largest square, and at least that of ranks. That this is enough is not proved but measured,
    for 10 to 3000 samples of continuous, heavy-tailed, 0/1 and real laws: p < 10⁻³ and p < 10⁻⁴ came no more often
    than they may, beyond chance (tests/audit/test_order.py has a shorter run).
    """
    width, samples = scores.shape[-2:]
    centred = scores - scores.mean(axis=-1, keepdims=True)
    square = centred * centred
    power = np.where(varies, square.sum(axis=-1), 0.0)
    usable = power > 1e-9
    power = np.where(usable, power, 1.0)
    kurtosis = samples * np.vecdot(square, square) / power**2
    total = np.zeros_like(power)
    for lag in range(1, lags + 1):
        found = np.vecdot(centred[..., lag:], centred[..., :-lag]) / power
        total += (found + (samples - lag) / (samples * (samples - 1))) ** 2 / (samples - lag)
    total *= samples * (samples + 2)
    total /= 1 + np.maximum(kurtosis, FLAT) / 3 * np.sqrt(total / samples)
    p = np.where(usable, chdtrc(lags, total), 1.0)
    return np.minimum(1.0, width * p.min(axis=-1))


def _martingale(scores: FloatArray, generator: np.random.Generator) -> tuple[float, int | None]:
    """The largest capital, and where growth began if that is above 1/LEVEL.

    One bettor for each score and for its distance from the median, average capital. Scores may depend on all rows, as
    long as they do not depend on their order: given the rows, only the order is random.
    """
    both = np.concatenate([scores, np.abs(scores)], axis=1).T
    paths = _capital(_sequential(both, generator))
    top = int(paths.argmax())
    largest = max(1.0, float(paths[top]))
    if largest < 1 / LEVEL:
        return largest, None
    return largest, min(int(paths[: top + 1].argmin()), len(scores) - 1)


def _sequential(scores: FloatArray, generator: np.random.Generator) -> FloatArray:
    """The rank of each entry among those up to it, as a number in [0, 1], for each row of scores; ties at random.

    Under exchangeability they are independent and uniform, which is all that the bets rely on.
    """
    count, length = scores.shape
    ties = generator.random((count, length))
    place = np.empty((count, length), dtype=np.int64)
    np.put_along_axis(place, np.lexsort((ties, scores), axis=-1), np.arange(length)[None], axis=-1)
    below = np.stack([_earlier_below(one) for one in place])
    return (below + generator.random((count, length))) / np.arange(1, length + 1)


def _earlier_below(place: Places) -> FloatArray:
    """For each entry of a permutation, how many earlier ones are below it."""
    length = len(place)
    below = np.empty(length)
    seen = np.zeros(length + 1, dtype=np.int32)
    step = max(16, int(math.sqrt(length)))
    for start in range(0, length, step):
        part = place[start : start + step]
        inside = np.tril(part[None, :] < part[:, None], -1).sum(axis=1)
        below[start : start + step] = np.cumsum(seen, dtype=np.int32)[part] + inside
        seen[part + 1] = 1
    return below


def _capital(p: FloatArray) -> FloatArray:
    """The average capital of the bettors after 0, 1, 2, … of the numbers p (count, length): Vovk's Simple Jumper.

    Each has spread its capital over the bets, and keeps moving some of it from each bet to all of them.
    """
    count, length = p.shape
    gains = p.T - 0.5
    held = np.full((count, len(JUMPS), len(BETS)), 1 / (count * len(JUMPS) * len(BETS)))
    keep, move = (1 - JUMPS)[:, None], JUMPS[:, None] / len(BETS)
    path = np.ones(length + 1)
    for i, gain in enumerate(gains):
        held = held * keep + held.sum(axis=2, keepdims=True) * move
        held *= 1 + gain[:, None, None] * BETS
        path[i + 1] = held.sum()
        if path[i + 1] > ENOUGH:
            return path[: i + 2]
    return path


def _effective(values: FloatArray, columns: Places) -> float:
    """The effective sample size of the mean, of the worst column.

    Where rows are too many, correlations within the first of them, and those of evenly spread ones if these are still
    correlated, stand for all.
    """
    samples = len(values)
    time = _correlation_time(values[:ROWS][:, columns])
    if samples > ROWS:
        coarse = _correlation_time(values[np.ix_(_spread(samples, ROWS), columns)])
        time = max(time, coarse * samples / ROWS if coarse > 2 else 1.0)
    return float(min(max(samples / time, 1.0), samples))


def _correlation_time(values: FloatArray) -> float:
    """1 + 2 Σ ρ_k, largest over columns, summed while ρ_2m + ρ_2m+1 is positive (Geyer, Practical MCMC, 1992)."""
    from scipy.fft import irfft, next_fast_len, rfft  # noqa: PLC0415  (needed here only, and slow to import)

    unit = _unit(values).T
    samples = unit.shape[1]
    size = next_fast_len(2 * samples, real=True)
    power = np.abs(np.asarray(rfft(unit, size, axis=1))) ** 2
    covariance: FloatArray = np.asarray(irfft(power, size, axis=1))[:, : samples // 2 * 2]
    pairs = covariance.reshape(len(unit), -1, 2).sum(axis=2)
    pairs = np.where(np.logical_and.accumulate(pairs > 0, axis=1), pairs, 0.0).sum(axis=1)
    variance = covariance[:, 0]
    return float(np.max(2 * pairs / np.where(variance > 0, variance, 1.0) - 1, initial=1.0, where=variance > 0))


def _with_summaries(scores: FloatArray) -> FloatArray:
    """The columns, their mean, and their first principal component.

    Both are added up column by column: equal rows then have equal sums to the last digit, whatever their place.
    """
    width = scores.shape[1]
    if width == 1:
        return scores
    weights = np.stack([np.full(width, 1 / width), np.linalg.eigh(scores.T @ scores)[1][:, -1]])
    sums = [
        sum((w * column for w, column in zip(own, scores.T, strict=True)), np.zeros(len(scores))) for own in weights
    ]
    return np.concatenate([scores, _mid_ranks(np.stack(sums, axis=1))], axis=1)


def _mid_ranks(values: FloatArray) -> FloatArray:
    """Average ranks of each column, between −1 and 1."""
    return (2 * _ranks(values) - 1) / len(values) - 1


def _ranks(values: FloatArray) -> FloatArray:
    """The rank of each entry in its column, from 1; equal entries share the average of theirs."""
    order = np.argsort(values, axis=0, kind="stable")
    ordered, place = np.take_along_axis(values, order, axis=0), np.arange(len(values))[:, None]
    differs = ordered[1:] != ordered[:-1]
    edge = np.ones((1, values.shape[1]), dtype=bool)
    first = np.maximum.accumulate(np.where(np.concatenate([edge, differs]), place, 0), axis=0)
    ends = np.where(np.concatenate([differs, edge]), place, len(values))
    last = np.minimum.accumulate(ends[::-1], axis=0)[::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=0)
    return ranks


def _unit(values: FloatArray) -> FloatArray:
    """The columns about their means, at most one in size, so that no square overflows."""
    scaled = values / np.maximum(np.abs(values).max(axis=0), np.finfo(np.float64).tiny)
    scaled -= scaled.mean(axis=0)
    largest = np.abs(scaled).max(axis=0)
    return scaled / np.where(largest > 0, largest, 1.0)


def _spread(length: int, most: int) -> Places:
    """At most so many places, evenly spread."""
    count = min(length, most)
    return np.arange(count, dtype=np.int64) * length // max(1, count)


def _runs(length: int) -> Places:
    """At most ROWS places, evenly spread runs of neighbours."""
    if length <= ROWS:
        return np.arange(length, dtype=np.int64)
    starts = np.linspace(0, length - RUN, ROWS // RUN).astype(np.int64)
    return np.unique(starts[:, None] + np.arange(RUN, dtype=np.int64))
