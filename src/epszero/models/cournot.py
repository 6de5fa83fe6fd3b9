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
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

import epszero as ez
from epszero.models._inputs import FloatArray, count, each, each_or_drawn, generator
from epszero.models._pictures import sample_rows, strategies_of
from epszero.report import COLOURS, GREY, SPREAD, beside, figure, tidy, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PerFirm = ArrayLike  # a number, one per firm, or an interval (lo, hi) to draw from
MOST_NAMED = 6  # markets that a legend has room for


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
) -> ez.AggregativeGame:
    """Firms that sell quantities q_i in markets with inverse demand p = ξ − slope · Σ_j q_j.

    Firm i pays marginal_i 1ᵀq_i + ½ quadratic_i ‖q_i‖² − pᵀq_i, with 0 ≤ q_i ≤ capacity_i in each market (no limit
    where it is None). `marginal`, `quadratic`, `capacity`: a number, a list with one per firm, or a tuple (lo, hi) from
    which they are drawn uniformly with `seed`. `slope`: one number, or one per market.

    `intercept=None`: ξ is uncertain, and a sample is the vector of intercepts, one per market. Given, one number or
    one per market, it is known, and the game is solved without samples. `shared_cap`: the most that all firms together
    may sell in a market, one number or one per market, a constraint that they share.

    A potential game, strongly monotone with μ ≥ min (quadratic + slope): one equilibrium. `game.plot(solution)` shows
    quantities and prices.
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
        picture=functools.partial(_draw, shape=(N, M), slope=slopes, intercept=known),
    )


@functools.lru_cache(maxsize=128)
def _cost(firms: int) -> Callable[..., jax.Array | FloatArray]:
    """The cost of a firm among so many. One function per count: all such games share compiled programs."""

    def cost(own: jax.Array, average: jax.Array, intercept: jax.Array, firm: Firms) -> jax.Array | FloatArray:
        price = intercept - firm.slope * firms * average
        return firm.marginal * jnp.sum(own) + 0.5 * firm.quadratic * own @ own - price @ own

    return cost


@functools.lru_cache(maxsize=128)
def _known(firms: int) -> Callable[..., jax.Array | FloatArray]:
    return lambda own, average, firm: _cost(firms)(own, average, firm.intercept, firm)


def _total(q: jax.Array) -> jax.Array:
    return jnp.sum(q, axis=0)


def _draw(
    solution: ez.Solution, *, shape: tuple[int, int], slope: FloatArray, intercept: FloatArray | None
) -> "Figure":
    q = strategies_of(solution, shape)
    N, M = shape
    xi = sample_rows(solution, M) if intercept is None else intercept[None]
    prices = xi - slope * q.sum(axis=0)
    sheet = figure(9.0, 3.6)
    left, right = sheet.subplots(1, 2, width_ratios=(max(2.0, min(N, 30) / 6), max(1.0, min(M, 30) / 6)))
    _quantities(left, q)
    low, high = np.percentile(prices, SPREAD, axis=0)
    place, mean = np.arange(M), prices.mean(axis=0)
    if intercept is None:
        right.vlines(place, low, high, color=COLOURS[0], alpha=0.35, linewidth=8, label=f"{SPREAD[0]}–{SPREAD[1]} %")
    right.plot(place, mean, "o", color=COLOURS[0], markersize=7, label="mean" if intercept is None else "price")
    if solution.multipliers is not None:
        right.plot(
            place,
            mean - solution.multipliers,
            "_",
            color=GREY,
            markersize=18,
            markeredgewidth=2.5,
            label="less the multiplier\nof the shared cap",
        )
    right.margins(y=0.1)
    right.set_xlim(-0.6, M - 0.4)
    right.set_ylim(bottom=min(0.0, float(low.min()) * 1.1))
    right.set_xticks(place if M <= 12 else np.arange(0, M, -(-M // 12)))
    right.set_xlabel("market")
    right.set_ylabel("price per unit")
    if intercept is None or solution.multipliers is not None:
        beside(right)
    tidy(left, right)
    return sheet


def _quantities(ax: "Axes", q: FloatArray) -> None:
    """A bar per firm, stacked by market."""
    N, M = q.shape
    bottom = np.zeros(N)
    for market in range(M):
        shade = COLOURS[market % len(COLOURS)]
        ax.bar(np.arange(N), q[:, market], bottom=bottom, color=shade, label=f"market {market}")
        bottom += q[:, market]
    whole(ax)
    ax.set_xlabel("firm")
    ax.set_ylabel("quantity")
    ax.set_title(f"{q.sum():.4g} in all", loc="left", fontsize=11)
    if 1 < M <= MOST_NAMED:
        beside(ax)
