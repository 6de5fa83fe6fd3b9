"""Cournot competition: firms that choose quantities, prices that fall with the total.

Firm i sells q_i ∈ R^M (one quantity per market) to minimise
    marginal_i 1ᵀq_i + ½ quadratic_i ‖q_i‖² − pᵀq_i   over   0 ≤ q_i ≤ capacity_i,   p_m = ξ_m − slope_m Σ_j q_jm,
where ξ is the intercept of demand, known or uncertain. With N firms alike but for numbers, Σ_j q_j = N q̄.

A potential game: the pseudogradient has the constant symmetric Jacobian, for every market, diag(quadratic) + slope
(I + 11ᵀ); it is strongly monotone with μ ≥ min (quadratic + slope) > 0, so there is one equilibrium. Where no bound is
active it solves (quadratic_i + slope) q_i + slope Σ_j q_j = E[ξ] − marginal_i. ξ enters as an additive term.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

import epszero as ez
from epszero.models._inputs import Factory, FloatArray, count, each, each_or_drawn, generator
from epszero.models._pictures import bars, note, sample_rows, strategies_of, with_bands
from epszero.problems import Declared
from epszero.report import COLOURS, GREY, SPREAD, beside, figure, tidy, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PerFirm = ArrayLike  # a number, one per firm, or an interval (lo, hi) to draw from
MOST_NAMED = 6  # markets that a legend has room for
MOST_BARS = 300  # error bars of single quantities


class Firms(NamedTuple):
    """One row per firm; what the markets are like is the same in each row."""

    marginal: FloatArray
    quadratic: FloatArray
    slope: FloatArray  # firms × markets
    intercept: FloatArray | None  # firms × markets; None where it is uncertain


def cournot(  # noqa: PLR0913  (a firm, a market, and what limits them)
    firms: int = 5,
    markets: int = 1,
    seed: int | np.random.Generator = 0,
    *,
    intercept: ArrayLike | None = None,
    slope: ArrayLike = 1.0,
    marginal: PerFirm = (1.0, 3.0),
    quadratic: PerFirm = 0.5,
    capacity: PerFirm | None = None,
    shared_cap: ArrayLike | None = None,
    declared: Declared | None = None,
) -> ez.AggregativeGame:
    """Firms that sell quantities q_i in markets with inverse demand p = ξ − slope · Σ_j q_j.

    Firm i pays marginal_i 1ᵀq_i + ½ quadratic_i ‖q_i‖² − pᵀq_i, with 0 ≤ q_i ≤ capacity_i in each market (no limit
    where it is None). `marginal`, `quadratic`, `capacity`: a number, a list with one per firm, or a tuple (lo, hi) from
    which they are drawn uniformly with `seed`. `slope`: one number, or one per market.

    `intercept=None`: ξ is uncertain, and a sample is the vector of intercepts, one per market. Given, one number or
    one per market, it is known, and the game is solved without samples. `shared_cap`: the most that all firms together
    may sell in a market, one number or one per market, a constraint that they share. `declared`: see `ez.declare`.

    A potential game, strongly monotone with μ ≥ min (quadratic + slope): one equilibrium. `game.plot(solution)` shows
    quantities and prices, with error bars where `certificate=…` has them.
    """
    N, M = count("firms", firms), count("markets", markets)
    known = None if intercept is None else each("intercept", intercept, M, "market")
    slopes = each("slope", slope, M, "market", above=0.0)
    limit = None if shared_cap is None else each("shared_cap", shared_cap, M, "market", least=0.0)
    draws = generator(seed).random((3, N))
    parameters = Firms(
        each_or_drawn("marginal", marginal, draws[0], "firm", least=0.0),
        each_or_drawn("quadratic", quadratic, draws[1], "firm", least=0.0),
        np.tile(slopes, (N, 1)),
        None if known is None else np.tile(known, (N, 1)),
    )
    most = np.inf if capacity is None else each_or_drawn("capacity", capacity, draws[2], "firm", least=0.0)[:, None]
    cost = ez.oracles.Affine(_cost(N)) if known is None else _known(N)
    return ez.AggregativeGame(
        cost,
        parameters,
        ez.sets.Box(0.0, most, dim=M),
        None if limit is None else ez.AffineConstraint(_total, limit),
        declared=declared,
        picture=functools.partial(_draw, shape=(N, M), slope=slopes, intercept=known),
    )


@Factory
def _cost(firms: int) -> Callable[..., jax.Array | FloatArray]:
    """The cost of a firm among so many. One function per count: all such games share compiled programs."""

    def cost(own: jax.Array, average: jax.Array, intercept: jax.Array, firm: Firms) -> jax.Array | FloatArray:
        price = intercept - firm.slope * firms * average
        return firm.marginal * jnp.sum(own) + 0.5 * firm.quadratic * own @ own - price @ own

    return cost


@Factory
def _known(firms: int) -> Callable[..., jax.Array | FloatArray]:
    return lambda own, average, firm: _cost(firms)(own, average, firm.intercept, firm)


def _total(q: jax.Array) -> jax.Array:
    return jnp.sum(q, axis=0)


def _draw(
    solution: ez.Solution,
    *,
    certificate: ez.Certificate | None = None,
    shape: tuple[int, int],
    slope: FloatArray,
    intercept: FloatArray | None,
) -> "Figure":
    q = strategies_of(solution, shape)
    N, M = shape
    sure = with_bands(certificate, solution)
    sheet = figure(9.0 if sure is None else 11.0, 3.6 if certificate is None else 3.9)
    market = max(1.0, min(M, 30) / 6)
    ratios = (max(2.0, min(N, 30) / 6), *(() if sure is None else (market,)), market)
    axes: list[Axes] = list(sheet.subplots(1, len(ratios), width_ratios=ratios))
    _quantities(axes[0], q, sure)
    if sure is not None:
        _totals(axes[1], q.sum(axis=0), sure.aggregate)
    xi = sample_rows(solution, M) if intercept is None else intercept[None]
    _prices(axes[-1], xi - slope * q.sum(axis=0), intercept is not None, solution.multipliers, sure)
    for ax in axes[1:]:
        ax.set_xlim(-0.6, M - 0.4)
        ax.set_xticks(np.arange(M) if M <= 12 else np.arange(0, M, -(-M // 12)))
        ax.set_xlabel("market")
    tidy(*axes)
    note(sheet, certificate)
    return sheet


def _prices(
    ax: "Axes", prices: FloatArray, known: bool, multipliers: FloatArray | None, sure: "ez.Certificate | None"
) -> None:
    """Mean and spread, and what is left of them where a cap is shared."""
    low, high = np.percentile(prices, SPREAD, axis=0)
    place, mean = np.arange(prices.shape[1]), prices.mean(axis=0)
    if not known:
        ax.vlines(place, low, high, color=COLOURS[0], alpha=0.35, linewidth=8, label=f"{SPREAD[0]}–{SPREAD[1]} %")
    ax.plot(place, mean, "o", color=COLOURS[0], markersize=7, label="price" if known else "mean")
    if multipliers is not None:
        label = "less the multiplier\nof the shared cap"
        ax.plot(place, mean - multipliers, "_", color=GREY, markersize=18, markeredgewidth=2.5, label=label)
        if sure is not None:
            band = sure.multipliers
            bars(ax, place, mean - band.upper, mean - band.lower, "certified multiplier")
    ax.margins(y=0.1)
    ax.set_ylim(bottom=min(0.0, float(low.min()) * 1.1))
    ax.set_ylabel("price per unit")
    if not known or multipliers is not None:
        beside(ax)


def _totals(ax: "Axes", total: FloatArray, band: Any) -> None:
    """What all firms sell in each market."""
    place = np.arange(len(total))
    ax.bar(place, total, width=0.6, color=[COLOURS[k % len(COLOURS)] for k in place])
    bars(ax, place, band.lower, band.upper)
    ax.set_ylabel("sold in all")


def _quantities(ax: "Axes", q: FloatArray, sure: "ez.Certificate | None") -> None:
    """A bar per firm, stacked by market; error bars of each part beside one another, at its upper end."""
    N, M = q.shape
    bottom = np.zeros(N)
    band = None if sure is None or N * M > MOST_BARS else sure.intervals
    for market in range(M):
        shade = COLOURS[market % len(COLOURS)]
        ax.bar(np.arange(N), q[:, market], bottom=bottom, color=shade, label=f"market {market}")
        if band is not None:
            aside = 0.6 * ((market + 0.5) / M - 0.5)
            bars(ax, np.arange(N) + aside, bottom + band.lower[:, market], bottom + band.upper[:, market])
        bottom += q[:, market]
    whole(ax)
    ax.set_xlabel("firm")
    ax.set_ylabel("quantity")
    ax.set_title(f"{q.sum():.4g} in all", loc="left", fontsize=11)
    if 1 < M <= MOST_NAMED:
        beside(ax)
