"""The answer as charts: agents' strategies as a mean with a band, anything else entry by entry; the data below it."""

import base64

import jax
import numpy as np
from numpy.typing import ArrayLike

from epszero._types import FloatArray, PyTree
from epszero.problems import AggregativeGame, Game
from epszero.report.charts import Chart, Profile, profile, stairs
from epszero.report.style import SPREAD, drawn
from epszero.report.words import number
from epszero.samples import Samples
from epszero.solve import Solution

MOST_PARTS = 4  # of a strategy that are drawn
MOST_ROWS = 48  # of a table
LARGEST_PICTURE = 500_000  # characters
BAND = f"{SPREAD[0]}–{SPREAD[1]} %"


class Part:
    """A chart with its table."""

    def __init__(self, chart: Chart, found: Profile, banded: bool) -> None:
        self.chart = chart
        self.banded = banded
        self.heads = ["mean", *(f"{one} %" for one in SPREAD)] if banded else ["value"]
        values = zip(found.names, found.mean, found.low, found.high, strict=True)
        self.rows = [(name, number(float(m)), number(float(a)), number(float(b))) for name, m, a, b in values]
        self.rows = self.rows if len(self.rows) <= MOST_ROWS else []


def parts(solution: Solution) -> list[Part]:
    """Charts of the answer, then of the samples where each has as many numbers as a strategy."""
    blocks = _strategies(solution)
    agents = getattr(solution.problem, "agents", None) if blocks else None
    found: list[Part] = []
    if not blocks:
        flat = _flat(solution.x)
        if not np.isfinite(flat).all():
            return []
        return [_part("answer", "The answer", flat[None], None, ("entry of x", "value"), "one")]
    names = _names(solution.samples)
    for place, (name, rows) in enumerate(blocks[:MOST_PARTS]):
        if not np.isfinite(rows).all():
            continue
        title = f"Strategies of {number(agents)} agents" + (f": {name}" if name else "")
        if rows.shape[1] == 1:
            found.append(_part(f"answer{place}", title, rows.T, None, ("agent", "strategy"), "one"))
        else:
            labels = ("entry of a strategy", "mean over agents")
            found.append(_part(f"answer{place}", title, rows, names, labels, "one", f"{BAND} of the agents"))
    width = blocks[0][1].shape[1]
    rows = _sample_rows(solution.samples, width)
    if len(blocks) == 1 and width > 1 and rows is not None:
        labels = ("entry of a sample", "mean over samples")
        found.append(
            _part(
                "samples",
                f"The data: {number(len(rows))} samples, entry by entry, such as prices",
                rows,
                names,
                labels,
                "two",
                f"{BAND} of the samples",
            )
        )
    return found


def _part(
    name: str, title: str, rows: FloatArray, names: list[str] | None, labels: tuple[str, str], kind: str, band: str = ""
) -> Part:
    listed = names if names is not None and len(names) == rows.shape[1] else [str(i) for i in range(rows.shape[1])]
    found = profile(rows, listed, SPREAD)
    return Part(stairs(name, title, labels, found, kind, band), found, bool(band))


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


def _names(samples: Samples | list[Samples] | None) -> list[str] | None:
    return list(samples.columns) if isinstance(samples, Samples) and samples.columns is not None else None


def _sample_rows(samples: Samples | list[Samples] | None, width: int) -> FloatArray | None:
    sets = samples if isinstance(samples, list) else [] if samples is None else [samples]
    if not sets or not all(isinstance(one.values, np.ndarray) and one.dim == width for one in sets):
        return None
    return np.concatenate([np.reshape(one.values, (-1, width)) for one in sets])


def picture(solution: Solution) -> str:
    """The model's own picture as a data address, where it has one and strategies are not alike; else nothing."""
    problem = solution.problem
    if problem.picture is None or isinstance(problem, AggregativeGame):
        return ""
    text = base64.b64encode(drawn(problem.plot(solution), "svg")).decode()
    return f"data:image/svg+xml;base64,{text}" if len(text) <= LARGEST_PICTURE else ""
