"""Huber's loss written with `where`: k u² where |u| ≤ δ, and 2kδ|u| − kδ² beyond: 2k times the atom (bends.py).

The numbers must match to rounding: then both branches have one value and one slope where they meet.
"""

from typing import Any

import numpy as np

from epszero._trace.intervals.arithmetic import NoEnclosure
from epszero._trace.rules.forms import Form, Given, Term, applied

MATCH = 1e-14  # relative


def huber(margin: Form, beyond: Form, within: Form) -> Form:
    """`where(margin < 0, within, beyond)`, elementwise; refused where it is something else."""
    delta, size = _part(margin, "abs")
    (still, square), (fallen, edge) = _part(within, "square"), _part(beyond, "abs")
    k, slope, d = _weight(square), _weight(edge), -delta
    alike = _argument(size) == _argument(square) == _argument(edge) and np.all(_weight(size) == 1.0)
    if alike and np.all(d > 0) and not np.any(still) and _near(slope, 2 * k * d) and _near(fallen, -k * d**2):
        made = applied("huber", Given.constant(d), _inner(square))
        return Form(within.shape, made.affine, made.terms).times(Given.constant(2 * k))
    raise NoEnclosure("where, on what depends on the point")


def _part(form: Form, name: str) -> tuple[Any, Term]:
    """The constant, and the one term of this kind."""
    b = form.affine.rows[1]
    plain = form.affine.flat and not form.affine.shifts and np.allclose(*b, rtol=MATCH, atol=0.0)
    if plain and len(form.terms) == 1 and form.terms[0].matrix is None:
        expression = form.terms[0].local.expression
        if expression[0] == name and expression[2] == ("var", 0):
            return b.lower, form.terms[0]
    raise NoEnclosure("where, on what depends on the point")


def _weight(term: Term) -> Any:
    values = term.weight.values
    if term.weight.random or not np.allclose(*values, rtol=MATCH, atol=0.0):
        raise NoEnclosure("where, on what depends on the point, with weights that depend on the sample")
    return values.lower


def _argument(term: Term) -> bytes:
    return term.local.variables[0].mark


def _inner(term: Term) -> Any:
    return type(term.local)(("var", 0), term.local.variables[:1], (), term.local.rows)


def _near(a: Any, b: Any) -> bool:
    return bool(np.all(np.abs(a - b) <= 8 * MATCH * np.abs(b)))
