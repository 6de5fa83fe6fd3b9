"""What `epszero ev` finds: schedules, what they cost against two others, what is likely and what is sure. Numbers only.

Money is price·energy + fee·energy + wear·energy², in € a day; what leaving the reference costs is no money.
- These days: the mean over all days of the file, no sampling at all.
- Likely: the days drawn again in blocks of neighbours; what the same schedules cost on each such set, and where the
  best schedules of each lie. A guess.
- Sure: the certificate says ‖z + B(x)‖ ≤ ε on its event, and the run ‖z + B̂(x)‖ ≤ ρ. All N vehicles pay the same
  prices, so √N‖m − m̂‖ ≤ ε + ρ for the mean prices m of the law (or of what the past promised) and m̂ of the days. Hence
  a fleet that draws X in all pays m̂ᵀX ± r‖X‖ for it, r = (ε + ρ)/√N, and two fleets differ by m̂ᵀ(X − Y) ± r‖X − Y‖.
"""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

import epszero as ez
from epszero.cli.fleet import FleetFile
from epszero.cli.run import solved
from epszero.cli.windows import Span, Stay

if TYPE_CHECKING:
    from epszero.certificates import Kind

FloatArray = NDArray[np.float64]
REPLICATIONS = 200
FEWEST_DAYS = 10  # for what is likely
MOST_PLANNED = 200_000_000  # vehicles × hours × days that are planned one by one
AT_ONCE = 2_000_000  # of them
MOST_RESOLVED = 20_000  # entries of schedules that are found again for every drawn data set
DEARER = 10  # times the work, where a capacity makes one programme of all vehicles


@dataclass(frozen=True, eq=False)
class Setting:
    """What is asked: vehicles, hours and prices, and how costs are made."""

    cars: FleetFile
    span: Span
    stays: list[Stay]
    present: FloatArray  # part of each hour that each vehicle is there
    cap: FloatArray  # kWh in an hour, of each vehicle
    wear: FloatArray
    fee: FloatArray
    weight: float
    reference: float  # kWh an hour that the average vehicle should draw; counts where weight > 0
    capacity: float | None
    days: "ez.datasets.Prices"

    @property
    def need(self) -> FloatArray:
        """kWh of each vehicle."""
        return self.cars.columns["need"]

    @property
    def caps(self) -> FloatArray:
        """kWh of each vehicle in each hour."""
        return self.cap[:, None] * self.present

    @property
    def linear(self) -> bool:
        """Whether only prices and fees count: then the cheapest hours are taken, and answers need not be unique."""
        return not self.wear.any() and self.weight == 0

    def game(self) -> "ez.AggregativeGame":
        """The charging game."""
        fleet = {"need": self.need, "cap": self.cap, "wear": self.wear, "fee": self.fee}
        return ez.models.ev_charging(
            fleet=fleet,
            hours=len(self.span.hours),
            weight=self.weight,
            reference=self.reference,
            capacity=self.capacity,
            present=self.present,
            exactly=True,
        )

    def money(self, x: FloatArray, price: FloatArray) -> FloatArray:
        """What each vehicle pays, €; `price`: one per hour."""
        return x @ price + self.fee * x.sum(axis=1) + self.wear * (x**2).sum(axis=1)


class Range(NamedTuple):
    """From, to."""

    low: float
    high: float


class Likely(NamedTuple):
    """For days like these, as a guess, each line by itself."""

    confidence: float
    block: int  # days on end that were drawn together
    cost: Range  # of the fleet, € a day
    saves_evenly: Range
    saves_at_once: Range
    dearer: float | None  # € a day, than the schedules that would be best; None where it is not found out
    schedules: tuple[FloatArray, FloatArray] | None  # from, to: best schedules of the data sets, vehicles × hours
    demand: tuple[FloatArray, FloatArray] | None  # the same of the whole fleet


class Sure(NamedTuple):
    """On one event of probability 1 − δ, all lines together."""

    certificate: "ez.Certificate"
    cost: Range
    saves_evenly: Range
    saves_at_once: Range
    dearer: float | None  # € a day of the fleet; what all vehicles could save, each by itself, in sum
    one: float | None  # the most that one vehicle could save
    schedules: tuple[FloatArray, FloatArray] | None  # error bars, where the answer is unique


@dataclass(frozen=True, eq=False)
class Answer:
    """All that is said."""

    setting: Setting
    x: FloatArray  # kWh, vehicles × hours
    price: FloatArray  # mean over the days, €/kWh
    cost: FloatArray  # € a day, of each vehicle
    evenly: FloatArray
    at_once: FloatArray
    open_energy: FloatArray  # kWh of each vehicle that other hours of the same price would take as well
    several: bool  # whether another answer was found that costs the same
    day_by_day: float | None  # € a day, if every day were planned by its own prices
    solution: "ez.Solution"
    likely: Likely | None = None
    sure: Sure | None = None
    certificate: "ez.Certificate | None" = None  # refused ones too

    @property
    def saves_evenly(self) -> float:
        """€ a day, of the fleet."""
        return float((self.evenly - self.cost).sum())

    @property
    def saves_at_once(self) -> float:
        """€ a day, of the fleet."""
        return float((self.at_once - self.cost).sum())


def planned(setting: Setting, samples: "ez.Samples") -> Answer:
    """Schedules for the mean of these prices; exactly the cheapest where only prices count. Costs are of all days."""
    mean, price = (np.asarray(one.values).mean(axis=0) for one in (samples, setting.days.samples))
    caps, game = setting.caps, setting.game()
    cheapest = ez.models.cheapest_charging(mean, caps, setting.need, setting.capacity) if setting.linear else None
    if cheapest is not None and setting.capacity is None:
        solution = ez.solve(game, samples, x0=cheapest)
        if solution.status is ez.Status.INTERRUPTED:
            raise KeyboardInterrupt
        x = cheapest
    else:
        solution = solved(game, samples)
        x = np.clip(solution.x, 0.0, caps)
    alone = cheapest is not None and setting.capacity is None
    return Answer(
        setting,
        x,
        price,
        setting.money(x, price),
        setting.money(ez.models.even_charging(caps, setting.need), price),
        setting.money(ez.models.charging_at_once(caps, setting.need), price),
        ez.models.equally_cheap(mean, caps, setting.need) if alone else np.zeros(len(x)),
        cheapest is not None and bool(np.abs(cheapest - x).max(initial=0.0) > 1e-6),
        _day_by_day(setting),
        solution,
    )


def _day_by_day(setting: Setting) -> float | None:
    """What the fleet would pay on average if every day were planned by its own prices."""
    rows = np.asarray(setting.days.samples.values)
    work = len(rows) * setting.caps.size * (1 if setting.capacity is None else DEARER**2)
    if not setting.linear or len(rows) < 2 or work > MOST_PLANNED:
        return None
    energy, step = 0.0, max(1, AT_ONCE // setting.caps.size)
    for first in range(0, len(rows), step):
        some = rows[first : first + step]
        x = ez.models.cheapest_charging(some, setting.caps, setting.need, setting.capacity)
        energy += float(np.einsum("dnt,dt->", x, some))
    return energy / len(rows) + float(setting.fee @ setting.need)


def with_likely(answer: Answer, delta: float, seed: int) -> Answer:
    """What days like these would bring, by days drawn again in blocks."""
    samples = answer.setting.days.samples
    if len(samples) < FEWEST_DAYS:
        return answer
    setting, kind = answer.setting, ez.certificates.Bootstrap(replications=REPLICATIONS, seed=seed)
    drawn = kind.drawn(samples)
    means = np.stack([np.asarray(one.values).mean(axis=0) for one in drawn])
    others = _solved_again(answer, drawn, means)
    caps, need = setting.caps, setting.need
    plans = {
        "plan": answer.x,
        "even": ez.models.even_charging(caps, need),
        "once": ez.models.charging_at_once(caps, need),
    }
    costs = {name: _costs(setting, x, means) for name, x in plans.items()}
    dearer = None
    if others is not None and setting.linear:
        best = np.einsum("bnt,bt->b", others, means) + setting.fee @ need
        dearer = max(float(np.quantile(costs["plan"] - best, 1 - delta)), 0.0)
    found = Likely(
        1 - delta,
        kind.block_of(samples),
        _middle(costs["plan"], delta),
        _middle(costs["even"] - costs["plan"], delta),
        _middle(costs["once"] - costs["plan"], delta),
        dearer,
        None if others is None else _band(others, delta),
        None if others is None else _band(others.sum(axis=1), delta),
    )
    return dataclasses.replace(answer, likely=found)


def _solved_again(answer: Answer, drawn: "list[ez.Samples]", means: FloatArray) -> FloatArray | None:
    """The best schedules for each of the drawn data sets; None where that is too much work."""
    setting = answer.setting
    if setting.caps.size * (1 if setting.capacity is None else DEARER) > MOST_RESOLVED:
        return None
    if setting.linear:
        return ez.models.cheapest_charging(means, setting.caps, setting.need, setting.capacity)
    found = ez.solve_many(setting.game(), drawn)
    return np.stack([np.clip(one.x, 0.0, setting.caps) for one in found])


def _costs(setting: Setting, x: FloatArray, means: FloatArray) -> FloatArray:
    """What the fleet pays, for each row of prices."""
    own = setting.money(x, np.zeros(means.shape[1])).sum()
    return means @ x.sum(axis=0) + own


def _middle(values: FloatArray, delta: float) -> Range:
    low, high = np.quantile(values, [delta / 2, 1 - delta / 2])
    return Range(float(low), float(high))


def _band(values: FloatArray, delta: float) -> tuple[FloatArray, FloatArray]:
    low, high = np.quantile(values, [delta / 2, 1 - delta / 2], axis=0)
    return low, high


def with_sure(answer: Answer, delta: float, kind: "Kind | None") -> Answer:
    """The certificate, and what it means in €."""
    certificate = ez.certify(answer.solution, delta, kind)
    if certificate.verdict == "refused":
        return dataclasses.replace(answer, certificate=certificate)
    setting, x = answer.setting, answer.x
    seen = answer.solution.samples
    assert isinstance(seen, ez.Samples)
    mean = np.asarray(seen.values).mean(axis=0)
    radius = (certificate.epsilon + answer.solution.residual) / np.sqrt(len(x)) * (1 + 1e-9)
    even = ez.models.even_charging(setting.caps, setting.need)
    once = ez.models.charging_at_once(setting.caps, setting.need)

    def around(dearer: FloatArray | None, than: FloatArray) -> Range:
        """What one fleet pays more than another, on the event."""
        other = np.zeros_like(than) if dearer is None else dearer
        first, last = (setting.money(one, mean).sum() for one in (than, other))
        value, energy = (first, than) if dearer is None else (last - first, other - than)
        away = radius * float(np.linalg.norm(energy.sum(axis=0)))
        return Range(float(value) - away, float(value) + away)

    saving = certificate.exploitability
    bars = None
    if not certificate.without_intervals:
        band = certificate.intervals
        bars = np.asarray(band.lower), np.asarray(band.upper)
    found = Sure(
        certificate,
        around(None, x),
        around(even, x),
        around(once, x),
        certificate.total_exploitability,
        None if saving is None else float(np.max(saving)),
        bars,
    )
    return dataclasses.replace(answer, sure=found, certificate=certificate)
