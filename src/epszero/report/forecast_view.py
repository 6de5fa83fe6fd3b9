"""The forecast as the page shows it: static tables, a chart, and the numbers that the sliders read."""

import json
from typing import Any

from markupsafe import Markup

from epszero.report.charts import Chart, Dot, Path, axes, line, short, tick_marks
from epszero.report.forecast import DATA, Forecast
from epszero.report.words import bound, confidence, number, upward

HOW = {
    "data": "these data",
    "resampled": "forecast: drawn from these data",
    "scaled": "forecast: scaled from its neighbours",
}
NAMES = {"epsilon": "ε", "distance": "distance", "saving": "largest saving", "gap": "cost above the least"}


def inert(text: str) -> Markup:
    """JSON that can do nothing inside a script element."""
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def view(table: Forecast | None) -> dict[str, Any] | None:
    """All that the template needs; None where there is no forecast."""
    if table is None:
        return None
    shown = [name for name in NAMES if any(getattr(c, name) is not None for col in table.columns for c in col.cells)]
    sizes = [
        {
            "samples": number(column.samples),
            "how": HOW[column.how],
            "kind": column.how,
            "cells": [bound(getattr(column.cells[table.own], name)) for name in shown],
        }
        for column in table.columns
    ]
    cells = table.columns[table.here].cells
    every = max(1, len(table.deltas) // 8)
    picked = [i for i in range(len(table.deltas)) if i % every == 0 or i == table.own]
    deltas = [
        {
            "delta": number(table.deltas[i]),
            "confidence": confidence(table.deltas[i]),
            "own": i == table.own,
            "cells": [bound(getattr(cells[i], name)) for name in shown],
        }
        for i in picked
    ]
    chart, places = _chart(table)
    numbers = {
        "here": table.here,
        "own": table.own,
        "deltas": list(table.deltas),
        "sizes": [column.samples for column in table.columns],
        "how": [HOW[column.how] for column in table.columns],
        "shown": [NAMES[name] for name in shown],
        "values": [
            [[_four(getattr(cell, name)) for name in shown] for cell in column.cells] for column in table.columns
        ],
        **places,
    }
    return {
        "columns": [NAMES[name] for name in shown],
        "sizes": sizes,
        "deltas": deltas,
        "chart": chart,
        "stopped": table.stopped,
        "numbers": inert(json.dumps(numbers, ensure_ascii=False, allow_nan=False)),
        "here": table.here,
        "own": table.own,
        "last_size": len(table.columns) - 1,
        "last_delta": len(table.deltas) - 1,
        "size": number(table.columns[table.here].samples),
        "delta": number(table.deltas[table.own]),
        "one_size": len(table.columns) < 2,
        "one_delta": len(table.deltas) < 2,
    }


def _four(value: float | None) -> float | None:
    return None if value is None else upward(value)


def _chart(table: Forecast) -> tuple[Chart, dict[str, Any]]:
    """ε against s at the certificate's δ; the places of all others, for the script."""
    sizes = [float(column.samples) for column in table.columns]
    every = [cell.epsilon for column in table.columns for cell in column.cells if cell.epsilon]
    x, y = axes(sizes, every, True, True)
    points = [(s, column.cells[table.own].epsilon or 0.0) for s, column in zip(sizes, table.columns, strict=True)]
    dots = [
        Dot(f"dot {column.how}", x.at(s), y.at(e), f"{short(s)} samples: {number(e, 3)}, {HOW[column.how]}")
        for (s, e), column in zip(points, table.columns, strict=True)
        if e > 0
    ]
    here = points[table.here]
    chosen = Dot("dot chosen", x.at(here[0]), y.at(here[1]), "chosen") if here[1] > 0 else None
    seen = [e for _, e in points if e > 0]
    says = "No bound at any size."
    if seen:
        start, end = (f"{number(e, 3)} at {short(s)}" for e, s in ((max(seen), sizes[0]), (min(seen), sizes[-1])))
        says = f"ε from {start} samples to {end}; the table below has the numbers."
    chart = Chart(
        "forecast",
        "ε against the number of samples",
        says,
        "samples",
        "ε",
        tick_marks(x),
        tick_marks(y),
        [Path("line one", line(x, y, points))],
        [*dots, *([chosen] if chosen else [])],
        legend=[
            (f"dot {DATA}", "these data"),
            ("dot resampled", "forecast, drawn from them"),
            ("dot scaled", "forecast, scaled"),
        ],
    )
    places = {
        "x": [round(x.at(s), 1) for s in sizes],
        "y": [
            [None if not cell.epsilon else round(y.at(cell.epsilon), 1) for cell in column.cells]
            for column in table.columns
        ],
    }
    return chart, places
