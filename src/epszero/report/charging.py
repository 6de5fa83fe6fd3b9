"""`charging_page`: schedules of a fleet as one page for those who run it: the answer, how sure, what was assumed.

It takes plain numbers and sentences in the words of the fleet, draws them, and adds what the certificate leans on.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epszero._types import FloatArray
from epszero.audit import Audit
from epszero.certificates import Certificate
from epszero.report import facts, words
from epszero.report.charts import Chart, Ends, Profile, profile, stairs
from epszero.report.report import Page, assets, record_of, rendered
from epszero.report.style import SPREAD
from epszero.solve import Solution

MOST_ROWS = 300  # vehicles in the table
MOST_CHARTS = 24  # vehicles that are drawn one by one
DEEPEST = 38  # per cent of colour behind the largest number

Band = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Charging:
    """What the page tells. Schedules are vehicles × hours, in kWh."""

    title: str
    headline: str
    average: str  # a sentence below it, or nothing
    word: str  # day or night
    label: str  # what the column of names is called
    names: list[str]
    hours: list[str]
    x: FloatArray
    costs: list[tuple[str, str, str]]  # of the fleet: name, cost, what the plan saves against it
    vehicle_costs: list[list[str]]
    likely: Band | None  # from, to
    likely_demand: Band | None
    bars: Band | None  # error bars that are certified
    days: FloatArray  # prices, days × hours
    unit: str
    prices: list[str]
    told: list[tuple[str, str]]
    assumed: list[str]
    refused: bool
    asked: list[tuple[str, str]]  # command, seed


def charging_page(
    story: Charging, certificate: Certificate | None, solution: Solution, audit: Audit | None, plain: Any
) -> Page:
    """The page; `plain` takes words of Python out of a sentence."""
    told = None if certificate is None else certificate.to_json()
    record = None if told is None else json.loads(told)
    symbol, means = ("", "") if certificate is None else words.VERDICTS[certificate.verdict]
    context: dict[str, Any] = {
        "title": story.title,
        "headline": story.headline,
        "average": story.average,
        "word": story.word,
        "label": story.label,
        "hours": story.hours,
        "costs": story.costs,
        "demand": _demand(story),
        "price": _price(story),
        "each": _each(story),
        "bands": _bands(story, certificate),
        "vehicles": _rows(story),
        "left_out": _left_out(story),
        "prices": story.prices,
        "told": [{"name": name, "says": says[:1].upper() + says[1:]} for name, says in story.told],
        "assumed": story.assumed,
        "refused": story.refused,
        "leanings": [] if certificate is None else _without_python(facts.leanings(certificate), plain),
        "verdict": "" if certificate is None else str(certificate.verdict),
        "symbol": symbol,
        "means": means,
        "by": "" if certificate is None else certificate.by,
        "audit": [] if audit is None else _without_python(facts.assumptions(audit), plain),
        "asked": [facts.Line(name, value) for name, value in story.asked],
        "data": [replace(line, says="") for line in facts.data(record, solution)],
        "versions": facts.versions(record),
        "record": record_of(told),
        **assets(),
    }
    return Page(rendered("charging.html", context))


def _without_python(lines: list[facts.Line], plain: Any) -> list[facts.Line]:
    return [replace(line, says=plain(line.says), more="") for line in lines]


def _demand(story: Charging) -> Chart:
    total, band = story.x.sum(axis=0), story.likely_demand
    found = Profile(total, *(band or (total, total)), story.hours)
    chart = stairs("demand", "All vehicles together", ("hour", "kWh"), found, "one", "" if band is None else "likely")
    return _named(chart, found, story.word, band is not None, None)


def _price(story: Charging) -> Chart:
    found = profile(story.days, story.hours, SPREAD)
    several = len(story.days) > 1
    band = f"{SPREAD[0]}–{SPREAD[1]} % of the {story.word}s" if several else ""
    title = f"{'Mean price' if several else 'Price'} of every hour"
    chart = stairs("price", title, ("hour", story.unit), found, "two", band)
    legend = [("line two", "mean"), ("band two", band)] if several else []
    return replace(chart, legend=legend)


def _each(story: Charging) -> list[Chart]:
    if len(story.names) > MOST_CHARTS:
        return []
    charts: list[Chart] = []
    for i, name in enumerate(story.names):
        row, band = story.x[i], None if story.likely is None else (story.likely[0][i], story.likely[1][i])
        ends = None if story.bars is None else Ends(story.bars[0][i], story.bars[1][i])
        found = Profile(row, *(band or (row, row)), story.hours)
        labels = ("hour", "kWh")
        chart = stairs(f"vehicle{i}", name, labels, found, "one", "" if band is None else "likely", ends)
        charts.append(_named(chart, found, story.word, band is not None, ends))
    return charts


def _named(chart: Chart, found: Profile, word: str, banded: bool, ends: Ends | None) -> Chart:
    """In words of schedules instead of means."""
    top = int(np.argmax(found.mean))
    most = words.number(float(found.mean[top]), 3)
    says = f"{len(found.mean)} hours; most is charged at {found.names[top]}, {most} kWh."
    legend = [("line one", "this plan")] + ([("band one", f"likely for {word}s like these")] if banded else [])
    legend += [] if ends is None else [("bars", "sure")]
    return replace(chart, says=says, legend=legend)


def _bands(story: Charging, certificate: Certificate | None) -> str:
    parts: list[str] = []
    if story.likely is not None:
        parts.append(
            "The shaded band is a guess: for each hour by itself, where the best schedules for "
            f"{story.word}s like these would probably lie. Where it is wide, prices of hours are close to one another, "
            "and little is lost either way."
        )
    if story.bars is not None and certificate is not None:
        parts.append(
            f"Error bars are certified: with probability {words.confidence(certificate.delta)} all hold at once, with "
            "what is called sure below."
        )
    return " ".join(parts)


def _rows(story: Charging) -> list[dict[str, Any]]:
    most = float(np.max(story.x, initial=0.0)) or 1.0
    rows: list[dict[str, Any]] = []
    for name, energy, costs in list(zip(story.names, story.x.tolist(), story.vehicle_costs, strict=True))[:MOST_ROWS]:
        cells = [{"text": _short(one), "share": round(DEEPEST * one / most)} for one in energy]
        rows.append({"name": name, "total": _short(sum(energy)), "cells": cells, "costs": costs})
    return rows


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if value >= 0.005 else "0"


def _left_out(story: Charging) -> str:
    beyond = len(story.names) - MOST_ROWS
    return f"{beyond} more vehicles are in the file that was written." if beyond > 0 else ""
