"""What `epszero ev` says, in the words of those who run a fleet; the same on the screen, on the page and in files."""

import dataclasses
import math
import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import epszero as ez
from epszero.cli.ev_plan import FEWEST_DAYS, REPLICATIONS, Answer, Range, Setting

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEAR = 5e-3  # kWh: hours that differ by less are told together
PER_KWH = {"EUR/MWh": 1000.0, "EUR/kWh": 1.0, "ct/kWh": 100.0}
PYTHON = re.compile(r"ez\.|\w+=|\(\)|`")  # words of Python


class How(NamedTuple):
    """What certifies, as it was asked for."""

    draws: int | None
    mixing: str | None
    limits: str  # where every price lies, and on whose word


class Told(NamedTuple):
    """A name and what is said of it."""

    name: str
    says: str


def euro(value: float, digits: int = 2) -> str:
    """12.34, with a true minus."""
    text = f"{value:,.{digits}f}"
    return (text[1:] if float(text.replace(",", "")) == 0 and text.startswith("-") else text).replace("-", "−")


def digits_of(answer: Answer) -> int:
    """After the point: more where the fleet pays little."""
    most = max(abs(float(one.sum())) for one in (answer.cost, answer.evenly, answer.at_once))
    return 2 if most >= 10 else 3 if most >= 0.5 else 4


def price_factor(unit: str) -> float:
    """From €/kWh to the unit of the file."""
    return PER_KWH[unit]


def span_word(setting: Setting) -> str:
    """Day, or night."""
    return "night" if setting.span.overnight else "day"


def average(setting: Setting) -> str:
    """What the plan is not."""
    word = span_word(setting)
    return f"One plan for an average {word}, not tomorrow's plan: for given prices of one {word} use --tomorrow FILE."


def headline(answer: Answer) -> str:
    """The answer in a sentence."""
    digits, total, setting = digits_of(answer), float(answer.cost.sum()), answer.setting
    many, days, word = len(answer.cost), setting.days, span_word(setting)
    when = f"a {word}"
    if len(days.samples) == 1 and days.days:
        when = f"in the night that begins on {days.days[0]}" if setting.span.overnight else f"on {days.days[0]}"
    who = "1 vehicle charges" if many == 1 else f"{many:,} vehicles charge"
    even, once = (
        _against(other, total, digits, name)
        for other, name in ((answer.evenly, "charging evenly"), (answer.at_once, "charging at once"))
    )
    return f"{who} {answer.x.sum():,.4g} kWh {when} for {euro(total, digits)} €: {even}, {once}."


def _against(other: "NDArray[np.float64]", total: float, digits: int, name: str) -> str:
    paid = float(other.sum())
    saved = paid - total
    share = f" ({100 * abs(saved / paid):.1f} %)" if abs(paid) > 1e-9 else ""
    return f"{euro(abs(saved), digits)} €{share} {'less' if saved >= 0 else 'more'} than {name}"


def prices_used(setting: Setting, unit: str) -> list[str]:
    """Which prices, from where, what was mended."""
    text = str(dataclasses.replace(setting.days, unit=unit))
    first, *rest = text.splitlines()
    return [first.removesuffix(".") + f"; {setting.span.said}.", *rest]


def charges(row: "NDArray[np.float64]", setting: Setting) -> str:
    """When a vehicle charges: 02:00–05:00 3.7, 13:00–14:00 3.6."""
    hours, found, place = setting.span.hours, list[str](), 0
    while place < len(hours):
        end = place
        while (
            end + 1 < len(hours) and abs(row[end + 1] - row[place]) < NEAR and (hours[end + 1] - hours[end]) % 24 == 1
        ):
            end += 1
        if row[place] >= NEAR:
            last = (hours[end] + 1) % 24 or 24
            found.append(f"{hours[place]:02d}:00–{last:02d}:00 {row[place]:.4g}")
        place = end + 1
    return ", ".join(found) or "nothing"


def how_sure(answer: Answer, how: How, *, tomorrow: bool = False) -> list[Told]:
    """These days, likely, sure."""
    if tomorrow:
        return [Told("Exact", _tomorrow(answer))]
    told = [Told(f"For these {span_word(answer.setting)}s", _these_days(answer))]
    told.append(Told(f"Likely for {span_word(answer.setting)}s like these", _likely(answer)))
    told.append(Told("Sure", _sure(answer, how)))
    return told


def _tomorrow(answer: Answer) -> str:
    best = "and no schedules cost less"
    if not answer.setting.linear:
        best = f"and no vehicle could save by another schedule{_flat(answer.setting)}"
    return (
        f"The prices are given, so nothing is uncertain and no certificate is needed: the schedules cost exactly "
        f"{euro(float(answer.cost.sum()), digits_of(answer))} € at these prices, {best}."
    )


def _flat(setting: Setting) -> str:
    return " (its part in the flattening counted)" if setting.weight > 0 else ""


def _these_days(answer: Answer) -> str:
    digits, setting = digits_of(answer), answer.setting
    many, what = len(setting.days.samples), span_word(setting)
    first = (
        f"exact, no sampling at all. Over the {many:,} {what}s of the file the schedules cost "
        f"{euro(float(answer.cost.sum()), digits)} € a {what} on average"
    )
    drawn = answer.solution.samples is not setting.days.samples
    if drawn:
        best = "; they are the best for the draws, not for these days themselves"
    elif setting.linear:
        within = "" if setting.capacity is None else " within the capacity"
        best = f", and no schedules that are the same every {what} cost less{within}"
    else:
        best = f", and no vehicle could save on average by another schedule of its own{_flat(setting)}"
    text = f"{first}{best}."
    if answer.day_by_day is not None:
        text += (
            f" Planned anew for every {what}, by prices that are known the day before, the same energy would cost "
            f"{euro(answer.day_by_day, digits)} €: that is what --tomorrow does."
        )
    return text


def _likely(answer: Answer) -> str:
    likely, digits, word = answer.likely, digits_of(answer), span_word(answer.setting)
    if likely is None:
        return f"nothing is said: the file has too few {word}s to see how they vary. Pass at least {FEWEST_DAYS}."
    even, once = (_saves(one, digits) for one in (likely.saves_evenly, likely.saves_at_once))
    cost = f"{_between(likely.cost, digits)} € a {word}"
    text = f"with about {_percent(likely.confidence)} {cost}, {even} evenly, {once} at once"
    if likely.dearer is not None:
        most = euro(_up(likely.dearer, digits), digits)
        text += f"; the best schedules for such {word}s would be at most {most} € a {word} cheaper"
    blocks = "one by one" if likely.block == 1 else f"in blocks of {likely.block} {word}s on end"
    return (
        f"{text}. A guess, not a promise: these {word}s were drawn again {REPLICATIONS} times, {blocks}, which knows "
        "nothing of what they do not show."
    )


def _sure(answer: Answer, how: How) -> str:
    sure, digits, word = answer.sure, digits_of(answer), span_word(answer.setting)
    if sure is None:
        return refused(answer, how)
    cost, even, once = (_outward(one, digits) for one in (sure.cost, sure.saves_evenly, sure.saves_at_once))
    text = (
        f"{_sense(answer, how)} the schedules cost {_between(cost, digits)} € a {word}, {_saves(even, digits)} evenly, "
        f"{_saves(once, digits)} at once"
    )
    if sure.dearer is not None and sure.one is not None:
        most, one = (euro(_up(value, digits), digits) for value in (sure.dearer, sure.one))
        within = "" if answer.setting.capacity is None else " within the capacity"
        if answer.setting.weight == 0:
            text += f"; no other schedules{within} are more than {most} € a {word} cheaper, for one vehicle {one} €"
        else:
            text += f"; no vehicle can save more than {one} € a {word} by another schedule, all together {most} €"
            text += _flat(answer.setting)
    text += ". All of this holds together."
    if how.draws is None and how.mixing is None:
        text += f" It says nothing of {word}s to come."
    if sure.saves_evenly.low < 0 < answer.saves_evenly:
        text += (
            f" The width is that large because so few {word}s cannot rule out one at the limits: narrower limits that "
            f"you can vouch for (--limits=LO,HI), or more {word}s, make it smaller."
        )
    return text


def _sense(answer: Answer, how: How) -> str:
    sure = answer.sure
    assert sure is not None
    share = _percent(1 - sure.certificate.delta)
    if how.draws is not None:
        return (
            f"with {share}, of a day of this file picked at random, which is all that --draws {how.draws:,} speaks of "
            f"(the paper's experiment: drawing the same days again tells nothing of other days), for {how.limits}:"
        )
    if how.mixing is not None:
        c, r = how.mixing.split(",")
        return (
            f"with {share}, if days that are a days apart depend on each other by at most {c.strip()}·{r.strip()}^a, "
            f"which is your word (--mixing), and days stay as they are, for {how.limits}:"
        )
    word = span_word(answer.setting)
    return (
        f"with {share}, and nothing assumed but {how.limits}, measured by what the {word}s before promised of each "
        f"{word} and averaged over these {len(answer.setting.days.samples):,} {word}s:"
    )


def refused(answer: Answer, how: How) -> str:
    """Why nothing is sure, and what to do, without words of Python."""
    certificate = answer.certificate
    if certificate is None:
        return "nothing was asked."
    obstacles = ez.certificates.Obstacle
    if how.mixing is not None:
        return (
            f"nothing can be said: with the rate {how.mixing} days depend on each other too long for "
            f"{len(answer.setting.days.samples):,} days. Leave --mixing out, which assumes nothing of the kind, or "
            "pass prices of more days."
        )
    if certificate.obstacle is obstacles.NOT_INDEPENDENT:
        return (
            "nothing can be said: the same days occur more than once, or depend on each other. Pass every day once, "
            "and leave --draws out."
        )
    why = plain(certificate.reason)
    said = f"nothing can be said: {why}" if why else "nothing can be said of prices beyond these days"
    return f"{said}. Pass prices of more days, or limits that hold all of them (--limits=LO,HI). The schedules stand."


def plain(text: str) -> str:
    """Without the parts that speak Python."""
    parts = re.split(r"(?<=[;.:]) ", text)
    kept = [part for part in parts if not PYTHON.search(part)]
    return " ".join(kept).strip().rstrip(";:.,")


def assumed(answer: Answer, how: How, *, told_reference: bool, tomorrow: bool = False) -> list[str]:
    """What was not in the files, and what was made of it."""
    setting = answer.setting
    columns = setting.cars.columns
    said = [*setting.cars.notes, "Every vehicle charges exactly what it needs, at negative prices too."]
    lacking = [name for name in ("wear", "fee") if name not in columns]
    if lacking:
        said.append(f"The fleet file says nothing of {' and '.join(lacking)}: 0.")
    if "cap" not in columns:
        said.append(f"The fleet file says nothing of cap: {setting.cap[0]:g} kWh an hour for all (--cap).")
    if not setting.cars.times:
        said.append(f"The fleet file says nothing of arrive and depart: all are there {setting.span.said}.")
    elif ((setting.present > 0) & (setting.present < 1)).any():
        said.append("In an hour that a vehicle is there in part it charges at most that part of its cap.")
    if setting.weight > 0:
        why = "" if told_reference else ", an even load for their needs"
        said.append(
            f"Average demand is drawn towards {setting.reference:.4g} kWh an hour{why}, with weight {setting.weight:g} "
            "(--reference, --weight); what leaving it costs is no money, and in no figure above."
        )
    else:
        said.append("Demand is not flattened (--weight 0): only prices, fees and wear count.")
    if setting.capacity is not None:
        said.append(
            f"All vehicles together draw at most {setting.capacity:g} kWh an hour; charging evenly and at once do not "
            "heed it."
        )
    if not tomorrow:
        said.append(f"Sure: {how.limits}.")
    said += _ties(answer)
    return said


def _ties(answer: Answer) -> list[str]:
    open_ = np.flatnonzero(answer.open_energy > NEAR)
    if len(open_):
        names = [answer.setting.cars.vehicles[int(i)] for i in open_[:5]]
        more = f" and {len(open_) - 5} more" if len(open_) > 5 else ""
        return [
            f"Hours of one price: {answer.open_energy.sum():.4g} kWh ({', '.join(names)}{more}) could be charged in "
            "other hours for the same money; the earlier hours are taken."
        ]
    if answer.several:
        return ["Other schedules cost the same: within the capacity it does not matter which vehicle takes which hour."]
    if not answer.setting.linear and answer.sure is not None and answer.sure.certificate.distance is None:
        return ["Without wear on every vehicle other schedules may cost the same; these are one of them."]
    return []


def limits_said(given: str | None) -> str:
    """Where every price lies, and on whose word."""
    if given is None:
        return "prices between −500 and 4000 EUR/MWh, the limits of the market"
    low, high = (f"{float(part):g}".replace("-", "−") for part in given.split(","))
    return f"prices between {low} and {high} EUR/MWh, which is your word (--limits)"


def _between(one: Range, digits: int) -> str:
    return f"{euro(one.low, digits)} to {euro(one.high, digits)}"


def _saves(one: Range, digits: int) -> str:
    if one.low >= 0:
        return f"{_between(one, digits)} € less than"
    if one.high <= 0:
        return f"{_between(Range(-one.high, -one.low), digits)} € more than"
    return f"between {euro(-one.low, digits)} € more and {euro(one.high, digits)} € less than"


def _up(value: float, digits: int) -> float:
    return math.ceil(value * 10**digits) / 10**digits


def _outward(one: Range, digits: int) -> Range:
    return Range(-_up(-one.low, digits), _up(one.high, digits))


def _percent(share: float) -> str:
    return f"{100 * share:.6g} %"
