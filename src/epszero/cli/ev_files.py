"""What `epszero ev` writes: schedules as CSV or as a workbook, and the record of `--json`."""

import csv
import datetime
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from epszero.cli import ev_words
from epszero.cli.endings import refuse
from epszero.cli.ev_plan import Answer, Range
from epszero.cli.ev_words import How, Told

COSTS = ("kwh", "eur_per_day", "eur_evenly", "eur_at_once")
UNDATED = datetime.datetime(2000, 1, 1)
SHEETS = ("schedule", "costs", "about")


def check_form(out: Path) -> None:
    """Refuse, before any work, a form that cannot be written."""
    ending = out.suffix.lower()
    if ending in (".xls", ".ods", ".xlsm"):
        refuse("--out", f"{str(out)!r} would be a form that is not written here", "Write .csv or .xlsx")
    if ending == ".xlsx":
        try:
            import xlsxwriter  # noqa: F401, PLC0415  # pyright: ignore  (an extra)
        except ImportError:
            refuse(
                "--out",
                "to write .xlsx needs the package XlsxWriter, which is not installed",
                "Run pip install 'epszero[excel]', or write .csv, which spreadsheets open too",
            )


def schedule_rows(answer: Answer) -> list[list[Any]]:
    """A heading, and a row per vehicle: its name, kWh of every hour, and what it pays."""
    cars = answer.setting.cars
    rows: list[list[Any]] = [[cars.label, *answer.setting.span.names, *COSTS]]
    columns = (cars.vehicles, answer.x, answer.cost, answer.evenly, answer.at_once)
    for name, energy, paid, even, once in zip(*columns, strict=True):
        hours = [max(float(one), 0.0) for one in energy]
        rows.append([name, *hours, float(np.sum(hours)), *(float(one) for one in (paid, even, once))])
    return rows


def as_csv(answer: Answer) -> str:
    """Schedules in kWh, numbers in full."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [repr(cell) if isinstance(cell, float) else cell for cell in row] for row in schedule_rows(answer)
    )
    return text.getvalue()


def as_workbook(answer: Answer, told: list[Told], assumed: list[str], prices: list[str]) -> bytes:
    """Three sheets: the schedule, the costs, and what stands behind them."""
    import xlsxwriter  # noqa: PLC0415  # pyright: ignore  (an extra, checked before)

    packed = io.BytesIO()
    book: Any = xlsxwriter.Workbook(packed, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    book.set_properties({"created": UNDATED})  # equal answers give equal files
    head, number, wrapped = (
        book.add_format(form) for form in ({"bold": True}, {"num_format": "0.00"}, {"text_wrap": True, "valign": "top"})
    )
    sheet = book.add_worksheet(SHEETS[0])
    for place, row in enumerate(schedule_rows(answer)):
        sheet.write_row(place, 0, row, head if place == 0 else number)
    sheet.freeze_panes(1, 1)
    sheet.set_column(0, 0, 18)
    sheet = book.add_worksheet(SHEETS[1])
    for place, row in enumerate(cost_rows(answer)):
        sheet.write_row(place, 0, row, head if place == 0 else number)
    sheet.set_column(0, 0, 24)
    sheet = book.add_worksheet(SHEETS[2])
    lines = [("answer", ev_words.headline(answer))]
    lines += [] if answer.certificate is None else [("", ev_words.average(answer.setting))]
    lines += [("prices", line) for line in prices] + [(one.name, one.says) for one in told]
    lines += [("assumed", line) for line in assumed]
    for place, line in enumerate(lines):
        sheet.write_row(place, 0, line, wrapped)
    sheet.set_column(0, 0, 24)
    sheet.set_column(1, 1, 110)
    book.close()
    return packed.getvalue()


def cost_rows(answer: Answer) -> list[list[Any]]:
    """The fleet's cost a day, against the two others."""
    total, word = float(answer.cost.sum()), ev_words.span_word(answer.setting)
    rows: list[list[Any]] = [[f"€ a {word}, all vehicles", "cost", "this plan saves"], ["this plan", total, ""]]
    rows += [["charging evenly", float(answer.evenly.sum()), answer.saves_evenly]]
    rows += [["charging at once", float(answer.at_once.sum()), answer.saves_at_once]]
    if answer.day_by_day is not None:
        rows.append([f"planned anew every {word}", answer.day_by_day, answer.day_by_day - total])
    return rows


def record(answer: Answer, how: How, assumed: list[str], prices: str, told: list[Told]) -> dict[str, Any]:
    """The document of --json: numbers in full, sentences beside them."""
    setting, certificate = answer.setting, answer.certificate
    days = setting.days
    multipliers = answer.solution.multipliers
    return {
        "vehicles": setting.cars.vehicles,
        "hours": list(setting.span.hours),
        "overnight": setting.span.overnight,
        "schedules": np.maximum(answer.x, 0.0).tolist(),
        "mean_prices_eur_per_kwh": answer.price.tolist(),
        "costs": {
            "unit": "EUR per day",
            "plan": float(answer.cost.sum()),
            "evenly": float(answer.evenly.sum()),
            "at_once": float(answer.at_once.sum()),
            "planned_anew_every_day": answer.day_by_day,
            "vehicles": {
                "plan": answer.cost.tolist(),
                "evenly": answer.evenly.tolist(),
                "at_once": answer.at_once.tolist(),
            },
        },
        "savings": {"evenly": answer.saves_evenly, "at_once": answer.saves_at_once},
        "likely": _likely(answer),
        "sure": _sure(answer),
        "said": {one.name: one.says for one in told},
        "assumed": assumed,
        "equally_cheap_kwh": answer.open_energy.tolist(),
        "multipliers": None if multipliers is None else multipliers.tolist(),
        "prices": prices,
        "days": len(days.samples),
        "first_day": str(days.days[0]) if days.days else None,
        "last_day": str(days.days[-1]) if days.days else None,
        "draws": how.draws,
        "certificate": None if certificate is None else json.loads(certificate.to_json()),
    }


def _likely(answer: Answer) -> dict[str, Any] | None:
    likely = answer.likely
    if likely is None:
        return None
    return {
        "confidence": likely.confidence,
        "block_days": likely.block,
        "cost": _pair(likely.cost),
        "saves_evenly": _pair(likely.saves_evenly),
        "saves_at_once": _pair(likely.saves_at_once),
        "best_is_cheaper_by": likely.dearer,
        "schedules_from": None if likely.schedules is None else likely.schedules[0].tolist(),
        "schedules_to": None if likely.schedules is None else likely.schedules[1].tolist(),
    }


def _sure(answer: Answer) -> dict[str, Any] | None:
    sure = answer.sure
    if sure is None:
        return None
    return {
        "confidence": 1 - sure.certificate.delta,
        "verdict": str(sure.certificate.verdict),
        "cost": _pair(sure.cost),
        "saves_evenly": _pair(sure.saves_evenly),
        "saves_at_once": _pair(sure.saves_at_once),
        "others_are_cheaper_by": sure.dearer,
        "one_vehicle_could_save": sure.one,
        "distance_kwh": sure.certificate.distance,
        "schedules_from": None if sure.schedules is None else sure.schedules[0].tolist(),
        "schedules_to": None if sure.schedules is None else sure.schedules[1].tolist(),
    }


def _pair(one: Range) -> list[float]:
    return [one.low, one.high]
