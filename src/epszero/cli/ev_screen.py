"""What `epszero ev` prints for people: the answer first, then how sure it is, then what was assumed."""

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from epszero.cli import ev_words
from epszero.cli.ev_files import cost_rows
from epszero.cli.ev_plan import Answer
from epszero.cli.ev_words import Told
from epszero.cli.output import show, table

if TYPE_CHECKING:
    from rich.console import Console

MOST_VEHICLES = 40  # that are shown; all are in the file
BAR = 24  # letters
WIDE = 100  # letters of a line


def printed(
    console: "Console",
    answer: Answer,
    told: list[Told],
    assumed: list[str],
    prices: list[str],
    *,
    unit: str,
    average: bool,
) -> None:
    """All of it."""
    width = min(console.width, WIDE)
    show(console, _filled(ev_words.headline(answer), width, ""))
    show(console, "")
    _vehicles(console, answer)
    _hours(console, answer, unit)
    _costs(console, answer)
    show(console, "\nPrices used")
    for line in prices:
        show(console, _filled(line, width, "  "))
    show(console, "\nHow sure")
    for one in told:
        show(console, _filled(f"{one.name}: {one.says}", width, "  ", "    "))
    show(console, "\nAssumed")
    for line in [*assumed, *([ev_words.average(answer.setting)] if average else [])]:
        show(console, _filled(line, width, "  ", "    "))
    show(console, "")


def _vehicles(console: "Console", answer: Answer) -> None:
    setting, digits = answer.setting, ev_words.digits_of(answer)
    cars = setting.cars
    word = ev_words.span_word(setting)
    shown = table(cars.label, "kWh", "charges (kWh an hour)", f"€ a {word}", "evenly", "at once")
    for column in shown.columns[1:2] + shown.columns[3:]:
        column.justify, column.no_wrap = "right", True
    rows = zip(cars.vehicles, answer.x, answer.cost, answer.evenly, answer.at_once, strict=True)
    for place, (name, row, *costs) in enumerate(rows):
        if place == MOST_VEHICLES:
            shown.add_row(f"… {len(cars.vehicles) - place} more", "", "in the file that is written", "", "", "")
            break
        money = [ev_words.euro(float(one), max(digits, 2)) for one in costs]
        shown.add_row(str(name), f"{row.sum():.4g}", ev_words.charges(row, setting), *money)
    console.print(shown)


def _hours(console: "Console", answer: Answer, unit: str) -> None:
    demand, factor = answer.x.sum(axis=0), ev_words.price_factor(unit)
    band = None if answer.likely is None else answer.likely.demand
    one_day = len(answer.setting.days.samples) == 1
    heads = ["hour", f"{'price' if one_day else 'mean price'} ({unit})", "all vehicles (kWh)", ""]
    shown = table(*heads, *([] if band is None else ["likely"]))
    for column in shown.columns[1:3]:
        column.justify = "right"
    scale = BAR / max(float(demand.max()), 1e-12)
    for place, (name, price, energy) in enumerate(zip(answer.setting.span.names, answer.price, demand, strict=True)):
        cells = [name, f"{factor * price:.2f}", f"{energy:.4g}", "█" * round(scale * float(energy))]
        if band is not None:
            low, high = float(band[0][place]), float(band[1][place])
            cells.append(f"{low:.4g}" if np.isclose(low, high) else f"{low:.4g} to {high:.4g}")
        shown.add_row(*cells)
    console.print(shown)


def _costs(console: "Console", answer: Answer) -> None:
    digits = ev_words.digits_of(answer)
    head, *rows = cost_rows(answer)
    shown = table(*head)
    for column in shown.columns[1:]:
        column.justify = "right"
    for name, cost, saved in rows:
        shown.add_row(name, ev_words.euro(cost, digits), "" if saved == "" else ev_words.euro(saved, digits))
    console.print(shown)


def _filled(text: str, width: int, first: str, rest: str | None = None) -> str:
    """In lines; a unit stays with its number."""
    tied = text.replace(" €", "\u00a0€").replace(" %", "\u00a0%")
    indent = first if rest is None else rest
    lines = textwrap.fill(tied, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)
    return lines.replace("\u00a0", " ")
