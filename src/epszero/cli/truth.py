"""The law of the demo is known: its days are drawn from a pool, so certificates can be held against the truth.

The law is that of a day picked at random, B is affine in the prices, so x* is the equilibrium at the mean over all days
of the pool. How often the certified distance is too small is counted over many data sets; the true probability is at
most the exact binomial limit (Clopper & Pearson), with 95 %.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv

import epszero as ez
from epszero.report import BLUE, GREY, ORANGE, RED, beside, bound, figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

SURE = 0.95  # of the binomial limit
FIRST_SEED = 1000  # of the draws that are counted


@dataclass(frozen=True)
class Truth:
    """What is true of one answer, beside what was likely and what was certified."""

    distance: float  # ‖x − x*‖
    size: float  # ‖x*‖
    saving: float  # the most that one vehicle would save, under the law
    certificate: ez.Certificate

    def __str__(self) -> str:
        sure, rows = self.certificate, list[str]()
        away = [self.distance, sure.likely, sure.distance]
        rows.append("  distance to x*     " + self._row(away, self.size))
        most = None if sure.exploitability is None else float(np.max(sure.exploitability))
        rows.append("  largest saving, €  " + self._row([self.saving, None, most], None))
        return "\n".join(["                     true              likely            certified", *rows])

    def _row(self, values: list[float | None], size: float | None) -> str:
        words = ["—" if one is None else _said(one, size, sure=at == 2) for at, one in enumerate(values)]
        return "".join(f"{one:<18}" for one in words).rstrip()


@dataclass(frozen=True, eq=False)
class Count:
    """Over many data sets: true distances, likely and certified ones."""

    true: "NDArray[Any]"
    likely: "NDArray[Any]"  # NaN where nothing is said
    certified: "NDArray[Any]"  # ∞ where nothing is certified
    delta: float
    size: int  # days in a data set

    @property
    def misses(self) -> int:
        """How often the certified distance was too small."""
        return int((self.true > self.certified).sum())

    @property
    def surprises(self) -> int:
        """How often the likely distance was."""
        return int((self.true > self.likely).sum())

    def __str__(self) -> str:
        many = len(self.true)
        return (
            f"{many} data sets, each drawn, solved and certified: the certified distance was too small {self.misses} "
            f"times, so it is in at most {100 * limit(self.misses, many):.2g} % of all cases (exact binomial limit, "
            f"{100 * SURE:.0f} % sure); {100 * self.delta:.2g} % are allowed. The likely one, a guess, was too small "
            f"{self.surprises} times."
        )


def _said(value: float, size: float | None, *, sure: bool) -> str:
    """A number, and its share of the size; what is certified is rounded up."""
    one, share = (bound(each, 3) if sure else f"{each:.3g}" for each in (value, 100 * value / (size or 1.0)))
    return one if size is None else f"{one} ({share} %)"


def limit(misses: int, trials: int) -> float:
    """The largest probability with which so few misses are seen in 5 % of all cases at least (Clopper & Pearson)."""
    return 1.0 if misses >= trials else float(betaincinv(misses + 1, trials - misses, SURE))


def truth_of(certificate: ez.Certificate, pool: ez.Samples) -> Truth:
    """What is true of the answer under the law of one row of the pool."""
    solution = certificate.solution
    assert solution is not None
    true = ez.solve(solution.problem, pool).x
    saving = replace(solution, samples=pool).check_equilibrium().largest
    return Truth(float(np.linalg.norm(solution.x - true)), float(np.linalg.norm(true)), max(saving, 0.0), certificate)


def counted(game: "ez.AggregativeGame", pool: ez.Samples, size: int, trials: int, delta: float) -> Count:
    """Draw, solve and certify `trials` times."""
    true = ez.solve(game, pool).x
    solutions = ez.solve_many(game, [pool.take(size, seed=FIRST_SEED + trial) for trial in range(trials)])
    found = solutions.certify(delta)
    likely = [np.nan if one.likely is None else one.likely for one in found]
    certified = [np.inf if one.distance is None else one.distance for one in found]
    away = np.linalg.norm((solutions.x - true).reshape(trials, -1), axis=1)
    return Count(away, np.array(likely), np.array(certified), delta, size)


def draw(truth: Truth, count: Count) -> "Figure":
    """True, likely and certified: of this answer, and of many data sets, ordered by the true distance."""
    sheet = figure(9.0, 6.4)
    axes: dict[str, Axes] = sheet.subplot_mosaic([["away", "saving"], ["many", "many"]], height_ratios=(1.0, 2.2))
    sure = truth.certificate
    most = None if sure.exploitability is None else float(np.max(sure.exploitability))
    _three(axes["away"], [truth.distance, sure.likely, sure.distance], truth.size)
    axes["away"].set_xlabel("distance from the true equilibrium (kWh)")
    axes["away"].set_title("The answer of this demo, and the truth", loc="left", fontsize=11)
    _three(axes["saving"], [truth.saving, None, most], None)
    axes["saving"].set_xlabel("most that one vehicle could save alone (€ a day)")
    _many(axes["many"], count)
    days = f"{count.size:,} days in each data set"
    sheet.supxlabel(days, fontsize=8, color=GREY, x=0.01, ha="left")
    return sheet


def _three(ax: "Axes", values: list[float | None], size: float | None) -> None:
    """True, likely and certified, one below the other; what is not known is left out."""
    named = zip(("true", "likely", "certified"), values, (BLUE, ORANGE, "black"), strict=True)
    known = [(name, value, colour) for name, value, colour in named if value is not None]
    for place, (name, value, colour) in enumerate(known):
        ax.barh(-place, value, color=colour, height=0.6)
        ax.text(value, -place, f" {name} {_said(value, size, sure=name == 'certified')}", va="center", fontsize=9)
    ax.set_xlim(0, 1.8 * max(value for _, value, _ in known))
    ax.set_yticks([])
    ax.spines[["top", "right", "left"]].set_visible(False)


def _many(ax: "Axes", count: Count) -> None:
    order, many = np.argsort(count.true), len(count.true)
    ranks, missed = np.arange(many), (count.true > count.certified)[order]
    sign = f"certified\n({100 * (1 - count.delta):.3g} %)"
    ax.plot(ranks, count.certified[order], "_", color="black", markersize=4, label=sign)
    ax.plot(ranks, count.likely[order], ".", color=ORANGE, markersize=3, label="likely\n(a guess)")
    ax.plot(ranks, count.true[order], ".", color=BLUE, markersize=4, label="true")
    label = "missed" if missed.any() else "_nolegend_"
    ax.plot(ranks[missed], count.true[order][missed], "x", color=RED, markersize=7, label=label)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "25" else "")
    ax.set_xlabel("data sets, ordered by their true distance")
    ax.set_ylabel("distance (kWh)")
    rate = f"at most {100 * limit(count.misses, many):.2g} % of all would be, exact binomial limit"
    ax.set_title(f"{many} data sets: {count.misses} certificates too small ({rate})", loc="left", fontsize=11)
    ax.set_xlim(-1, many)
    beside(ax)
    tidy(ax)
