"""What a notebook shows of a solution, a certificate, an audit, a plan or samples: HTML that stands by itself.

One small style for all, for light and dark, under one class, so that nothing else in the notebook changes. No script,
no request, no identifier; all text is escaped. The words and numbers are those of the report, bounds rounded outward.
"""

from typing import Any, NamedTuple

import jax
import numpy as np
from markupsafe import Markup

from epszero._types import FloatArray
from epszero.audit import Audit
from epszero.certificates import Certificate, Plan
from epszero.report import facts, words
from epszero.report.answer import entry_names
from epszero.report.facts import Line
from epszero.report.report import TEMPLATES, audit_view, certificate_view, plan_view, rendered
from epszero.report.words import number
from epszero.samples import Samples
from epszero.solve import Solution

MOST_ROWS, MOST_COLUMNS = 8, 8  # of an answer that are shown
MOST_NAMED = 24  # columns of samples that are listed


class Grid(NamedTuple):
    """A table with names above and beside its numbers."""

    heads: list[str]
    rows: list[tuple[str, list[str]]]
    more: str  # what is not shown


def cell(thing: Any) -> str:
    """HTML of one of the five; of anything else its text."""
    kind = next((name for name, (cls, _) in VIEWS.items() if isinstance(thing, cls)), "")
    view = dict.fromkeys(("text", "verdict", "failed", "violated"), "")
    view |= VIEWS[kind][1](thing) if kind else {"text": str(thing)}
    style = Markup((TEMPLATES / "cell.css").read_text(encoding="utf-8"))
    return rendered("cell.html", {"kind": kind, "style": style, "view": view})


def _solution(solution: Solution) -> dict[str, Any]:
    return {
        "headline": words.solution_headline(solution),
        "failed": solution.status.is_failure,
        "run": facts.run(solution),
        "grids": _grids(solution),
    }


def _certificate(certificate: Certificate) -> dict[str, Any]:
    return certificate_view(certificate, certificate.solution)


def _samples(samples: Samples) -> dict[str, Any]:
    leaves = jax.tree.leaves_with_path(samples.values)
    many = f"{words.size_of(samples)} of {number(samples.dim)} number{'s' if samples.dim != 1 else ''} each"
    rows = [Line("support", "not given" if samples.support is None else repr(samples.support))]
    if samples.drawn_from is not None:
        rows.append(Line("drawn", f"at random from {number(samples.drawn_from)} rows, with replacement"))
    if samples.chosen:
        rows.append(Line("chosen", "values may have had a say in which rows are here"))
    if samples.repeated:
        rows.append(Line("repeated", f"{number(samples.repeated)} rows are here again"))
    if samples.dropped:
        rows.append(Line("dropped", f"{number(samples.dropped)} rows with missing values"))
    return {"headline": f"{many[:1].upper()}{many[1:]}.", "facts": rows, "grids": [_columns(samples, leaves)]}


def _columns(samples: Samples, leaves: list[Any]) -> Grid:
    """Least, mean and largest of every number of a sample."""
    names: list[str] = []
    values: list[FloatArray] = []
    for path, leaf in leaves:
        part = np.reshape(leaf, (len(samples), -1))
        label = jax.tree_util.keystr(path, simple=True, separator=".")
        own = range(part.shape[1]) if samples.columns is None else samples.columns
        names += [" ".join(word for word in (label, str(name)) if word) for name in own]
        values.append(part)
        if len(names) > MOST_NAMED:
            break
    rows = np.concatenate(values, axis=1)[:, :MOST_NAMED]
    with np.errstate(over="ignore"):
        three = zip(rows.min(axis=0), rows.mean(axis=0), rows.max(axis=0), strict=True)
    listed = [(name, [number(float(one)) for one in row]) for name, row in zip(names, three, strict=False)]
    left = samples.dim - len(listed)
    return Grid(["least", "mean", "largest"], listed, f"and {number(left)} more" if left else "")


def _grids(solution: Solution) -> list[Grid]:
    """The answer: a row per agent or block, a column per entry, as far as there is room."""
    names = entry_names(solution)
    blocks = [
        (jax.tree_util.keystr(path, simple=True, separator="."), np.asarray(leaf, dtype=np.float64))
        for path, leaf in jax.tree.leaves_with_path(solution.x)
    ]
    if all(leaf.ndim < 2 for _, leaf in blocks):  # one row each
        width = max(leaf.size for _, leaf in blocks)
        rows = [(name or "x", leaf.ravel()) for name, leaf in blocks]
        return [_grid("", rows, width, len(rows), names)]
    return [
        _grid(
            name,
            [(str(i), row) for i, row in enumerate(leaf.reshape(len(leaf), -1)[:MOST_ROWS])] if leaf.ndim else [],
            leaf.size // max(len(leaf), 1),
            len(leaf),
            names,
        )
        for name, leaf in ((name, np.atleast_1d(leaf)) for name, leaf in blocks[:MOST_ROWS])
    ]


def _grid(title: str, rows: list[tuple[str, FloatArray]], width: int, height: int, names: list[str] | None) -> Grid:
    fitting = names if names is not None and len(names) == width else [str(i) for i in range(min(width, MOST_COLUMNS))]
    shown = [
        (f"{title} {name}".strip(), [number(float(one)) for one in row[:MOST_COLUMNS]])
        for name, row in rows[:MOST_ROWS]
    ]
    whole = height <= MOST_ROWS and width <= MOST_COLUMNS
    more = "" if whole else f"of {number(height)} × {number(width)} numbers"
    return Grid(fitting[:MOST_COLUMNS], shown, more)


VIEWS: dict[str, tuple[type[Any], Any]] = {
    "solution": (Solution, _solution),
    "certificate": (Certificate, _certificate),
    "audit": (Audit, audit_view),
    "plan": (Plan, plan_view),
    "samples": (Samples, _samples),
}
