"""Error bars on a page: ends for the charts of the answer, and tables of sums over agents and of multipliers.

Bounds are rounded outward. Only bands that are cheap are asked for: of all entries only where these are drawn.
"""

from dataclasses import dataclass

import jax
import numpy as np

from epszero._types import FloatArray, PyTree
from epszero.certificates import Certificate
from epszero.certificates.bands import Band
from epszero.problems import AggregativeGame
from epszero.report.charts import MOST_POINTS, Ends
from epszero.report.words import bound, confidence, lower_bound, number
from epszero.solve import Solution

MOST_ROWS = 48  # of a table


@dataclass(frozen=True)
class Table:
    """Name, value, lower and upper end, row by row."""

    title: str
    first: str  # what the rows are
    rows: list[tuple[str, str, str, str]]


def of_strategies(certificate: Certificate | None, solution: Solution) -> list[Ends | None]:
    """For each part of a strategy, of its mean over agents; of every agent where that part is one number."""
    if certificate is None or certificate.without_intervals or not isinstance(solution.problem, AggregativeGame):
        return []
    agents, total = solution.problem.agents, certificate.aggregate
    sizes = [np.size(leaf) for leaf in jax.tree.leaves(total.value)]
    each = certificate.intervals if 1 in sizes and _entries(solution.x) <= MOST_POINTS else None
    found: list[Ends | None] = []
    for place, size in enumerate(sizes):
        if size > 1:
            found.append(_ends(total, place, 1.0 / agents))
        else:
            found.append(None if each is None else _ends(each, place))
    return found


def of_entries(certificate: Certificate | None, solution: Solution) -> Ends | None:
    """Of every entry of x, in a row; none where they are too many to be drawn."""
    if certificate is None or certificate.without_intervals or _entries(solution.x) > MOST_POINTS:
        return None
    band = certificate.intervals
    lower, upper = (np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(side)]) for side in _sides(band))
    return Ends(lower, upper)


def tables(certificate: Certificate | None, solution: Solution, names: list[str] | None) -> list[Table]:
    """Of sums over agents, and of multipliers."""
    if certificate is None or certificate.without_intervals:
        return []
    problem, found = solution.problem, list[Table]()
    if isinstance(problem, AggregativeGame):
        total = certificate.aggregate
        for place, (path, leaf) in enumerate(jax.tree.leaves_with_path(total.value)):
            part = jax.tree_util.keystr(path, simple=True, separator=".")
            title = f"Sum over {number(problem.agents)} agents" + (f": {part}" if part else "")
            found.append(_table(title, "entry", np.ravel(leaf), _ends(total, place), names))
    if problem.coupling is not None:
        prices = certificate.multipliers
        title = "Multipliers: the prices of shared constraints"
        found.append(_table(title, "constraint", np.ravel(prices.value), _ends(prices, 0), names))
    return [table for table in found if len(table.rows) <= MOST_ROWS]


def said(certificate: Certificate | None) -> str:
    """In which sense error bars hold, or why there are none."""
    if certificate is None:
        return ""
    if certificate.without_intervals:
        return f"No error bars: {certificate.without_intervals}."
    guess = " That is a guess, as the certificate is." if certificate.verdict == "heuristic" else ""
    return (
        f"Error bars are certified: with probability at least {confidence(certificate.delta)} the truth lies within "
        f"all of them at once, those of tables too, and all numbers of the certificate hold.{guess}"
    )


def _table(title: str, first: str, values: FloatArray, ends: Ends, names: list[str] | None) -> Table:
    listed = names if names is not None and len(names) == len(values) else [str(i) for i in range(len(values))]
    columns = zip(listed, values.tolist(), ends.lower.tolist(), ends.upper.tolist(), strict=True)
    return Table(title, first, [(name, number(at), lower_bound(low), bound(high)) for name, at, low, high in columns])


def _sides(band: Band) -> tuple[PyTree, PyTree]:
    return band.lower, band.upper


def _ends(band: Band, place: int, times: float = 1.0) -> Ends:
    lower, upper = (times * np.ravel(jax.tree.leaves(side)[place]) for side in _sides(band))
    return Ends(lower, upper)


def _entries(x: PyTree) -> int:
    return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(x))
