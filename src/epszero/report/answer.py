"""The answer as charts: agents' strategies as a mean with a band, anything else entry by entry; the data below it."""

import base64
import inspect
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike

from epszero._types import FloatArray, PyTree
from epszero.certificates import Certificate
from epszero.problems import AggregativeGame, Game
from epszero.report import bars
from epszero.report.charts import MOST_POINTS, Chart, Ends, Profile, profile, stairs
from epszero.report.style import SPREAD, drawn
from epszero.report.words import bound, lower_bound, number
from epszero.samples import Samples
from epszero.solve import Solution

MOST_PARTS = 4  # of a strategy that are drawn
MOST_ROWS = 48  # of a table
LARGEST_PICTURE = 500_000  # characters
BAND = f"{SPREAD[0]}–{SPREAD[1]} %"


class Part:
    """A chart with its table."""

    def __init__(self, chart: Chart, found: Profile, banded: bool, ends: Ends | None) -> None:
        self.chart = chart
        self.heads = ["mean", *(f"{one} %" for one in SPREAD)] if banded else ["value"]
        columns = [[number(one) for one in found.mean.tolist()]]
        if banded:
            columns += [[number(one) for one in side.tolist()] for side in (found.low, found.high)]
        if ends is not None:
            self.heads += [f"{self.heads[0]} at least", "at most"]
            columns.append([lower_bound(one) for one in ends.lower.tolist()])
            columns.append([bound(one) for one in ends.upper.tolist()])
        few = len(found.names) <= MOST_ROWS
        self.rows = list(zip(found.names, zip(*columns, strict=True), strict=True)) if few else []


def parts(solution: Solution, certificate: Certificate | None = None) -> list[Part]:
    """Charts of the answer, with error bars, then of the samples where each has as many numbers as a strategy."""
    blocks = _strategies(solution)
    ends = dict(enumerate(bars.of_strategies(certificate, solution)))
    agents = getattr(solution.problem, "agents", None) if blocks else None
    found: list[Part] = []
    if not blocks:
        flat = _flat(solution.x)
        if not np.isfinite(flat).all():
            return []
        return [_entries("The answer", flat, bars.of_entries(certificate, solution))]
    names = entry_names(solution)
    for place, (name, rows) in enumerate(blocks[:MOST_PARTS]):
        if not np.isfinite(rows).all():
            continue
        title = f"Strategies of {number(agents)} agents" + (f": {name}" if name else "")
        if rows.shape[1] == 1:
            style = Style(("agent", "strategy"), "one", "", ends.get(place))
            found.append(_part(f"answer{place}", title, rows.T, None, style))
        else:
            labels = ("entry of a strategy", "mean over agents")
            style = Style(labels, "one", f"{BAND} of the agents", ends.get(place))
            found.append(_part(f"answer{place}", title, rows, names, style))
    entries = None if ends else bars.of_entries(certificate, solution)
    if entries is not None:
        found.append(_entries("Every entry of every strategy, agent after agent", _flat(solution.x), entries))
    width = blocks[0][1].shape[1]
    rows = _sample_rows(solution.samples, width)
    if len(blocks) == 1 and width > 1 and rows is not None:
        style = Style(("entry of a sample", "mean over samples"), "two", f"{BAND} of the samples", None)
        title = f"The data: {number(len(rows))} samples, entry by entry, such as prices"
        found.append(_part("samples", title, rows, names, style))
    return found


class Style(NamedTuple):
    """How a chart is drawn."""

    labels: tuple[str, str]
    kind: str  # class in the style sheet
    band: str  # what lies between the percentiles; empty where there is one row
    ends: Ends | None


def _entries(title: str, flat: FloatArray, ends: Ends | None) -> Part:
    return _part("answer", title, flat[None], None, Style(("entry of x", "value"), "one", "", ends))


def _part(name: str, title: str, rows: FloatArray, names: list[str] | None, style: Style) -> Part:
    listed = names if names is not None and len(names) == rows.shape[1] else [str(i) for i in range(rows.shape[1])]
    found = profile(rows, listed, SPREAD)
    ends = style.ends if rows.shape[1] <= MOST_POINTS else None
    chart = stairs(name, title, style.labels, found, style.kind, style.band, ends)
    return Part(chart, found, bool(style.band), ends)


def _strategies(solution: Solution) -> list[tuple[str, FloatArray]]:
    """A matrix with a row per agent for each part of a strategy; none where agents' strategies differ in size."""
    problem, x = solution.problem, solution.x
    if isinstance(problem, AggregativeGame):
        leaves = jax.tree.leaves_with_path(x)
        return [
            (jax.tree_util.keystr(path, simple=True, separator="."), _rows(leaf, problem.agents))
            for path, leaf in leaves
        ]
    if isinstance(problem, Game):
        flat = [_flat(own) for own in x]
        if len({len(own) for own in flat}) == 1:
            return [("", np.stack(flat))]
    return []


def _rows(leaf: ArrayLike, agents: int) -> FloatArray:
    return np.reshape(np.asarray(leaf, dtype=np.float64), (agents, -1))


def _flat(x: PyTree) -> FloatArray:
    leaves = [np.ravel(np.asarray(leaf, dtype=np.float64)) for leaf in jax.tree.leaves(x)]
    return np.concatenate(leaves) if leaves else np.zeros(1)


def entry_names(solution: Solution) -> list[str] | None:
    """Those of the columns of the samples, if they have any."""
    samples = solution.samples
    return list(samples.columns) if isinstance(samples, Samples) and samples.columns is not None else None


def _sample_rows(samples: Samples | list[Samples] | None, width: int) -> FloatArray | None:
    sets = samples if isinstance(samples, list) else [] if samples is None else [samples]
    if not sets or not all(isinstance(one.values, np.ndarray) and one.dim == width for one in sets):
        return None
    return np.concatenate([np.reshape(one.values, (-1, width)) for one in sets])


def picture(solution: Solution, certificate: Certificate | None = None) -> str:
    """The model's own picture as a data address, where it has one and strategies are not alike; else nothing."""
    problem = solution.problem
    if problem.picture is None or isinstance(problem, AggregativeGame):
        return ""
    sure = {"certificate": certificate} if "certificate" in inspect.signature(problem.picture).parameters else {}
    text = base64.b64encode(drawn(problem.plot(solution, **sure), "svg")).decode()
    return f"data:image/svg+xml;base64,{text}" if len(text) <= LARGEST_PICTURE else ""
