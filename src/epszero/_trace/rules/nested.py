"""Compositions in the manner of disciplined convex programming, where no more than the curvature is known.

φ(u) is convex if φ is convex over the range of u and u is affine, or φ is nondecreasing there and u is convex, or it is
nonincreasing and u is concave; concave with the signs changed. max(u, v) of convex functions is convex. Of such a
function nothing is known but that its Hessian is positive semidefinite, and its range; so it proves convexity and
monotonicity, and no Lipschitz constant. Source: Grant, Boyd & Ye, "Disciplined convex programming" (2006).
"""

from typing import Any

import numpy as np

from epszero._trace.intervals import arithmetic
from epszero._trace.intervals.arithmetic import Interval, NoEnclosure, point
from epszero._trace.rules.curves import Atom
from epszero._trace.rules.expressions import atom_of
from epszero._trace.rules.forms import Affine, Form, Given, Local, entries, key_of
from epszero._trace.rules.groups import MANY, Nested
from epszero._trace.rules.ranges import Ranges


def curvature(form: Form, ranges: Ranges, kinks: set[str]) -> int | None:
    """1 convex, −1 concave, 0 affine, of every row; None where it is not known."""
    signs: set[int] = set()
    for term in form.terms:
        found = ranges.jet(term.local, kinks)
        weights = arithmetic.mul(term.dense(), Interval(*(end[None] for end in term.weight.values)))
        up, down = bool(np.all(weights.lower >= 0)), bool(np.all(weights.upper <= 0))
        bent = _bent(found, len(term.local.variables), term.local.rows)
        if bent is None or not (up or down or bent == 0):
            return None
        signs.add(bent if up else -bent)
    signs.discard(0)
    return None if len(signs) > 1 else signs.pop() if signs else 0


def _bent(found: Any, m: int, rows: int) -> int | None:
    """The sign of a Hessian, of all rows."""
    if found.cap is not None:
        return 1
    lower, upper = np.zeros((rows, m, m)), np.zeros((rows, m, m))
    for (p, q), part in found.second.items():
        for one, other in {(p, q), (q, p)}:
            lower[:, one, other], upper[:, one, other] = part
    if not (lower.any() or upper.any()):
        return 0
    if _bends_up(lower, upper):
        return 1
    return -1 if _bends_up(-upper, -lower) else None


def _bends_up(lower: Any, upper: Any) -> bool:
    """Whether all symmetric matrices between are positive semidefinite: by determinants, or by rows."""
    own = np.diagonal(lower, axis1=1, axis2=2)
    if np.any(own < 0):
        return False
    off = np.maximum(np.abs(lower), np.abs(upper))
    if own.shape[1] == 2:
        return bool(np.all(own[:, 0] * own[:, 1] * (1 - 1e-14) >= off[:, 0, 1] ** 2))
    rows = off.sum(axis=2) - np.diagonal(off, axis1=1, axis2=2)
    return bool(np.all(own * (1 - 1e-14) >= rows))


def composed_atom(name: str, detail: Any, inner: Form, ranges: Ranges) -> Form:
    """An atom of a form whose rows are mixed."""
    if isinstance(detail, Given):
        raise NoEnclosure("a power with several exponents, of a sum of functions that bend")
    kinks: set[str] = set()
    bent = curvature(inner, ranges, kinks)
    if bent is None:
        raise NoEnclosure("a function that bends, of a sum of such functions of which no curvature is known")
    t = ranges.of_form(inner)
    atom: Atom = atom_of(name, detail, [])
    value, slope, second = atom.value(t), atom.first(t), atom.second(t)
    if atom.kink is not None and np.any((t.lower <= atom.kink) & (t.upper >= atom.kink)):
        kinks.add(name)
    rises, falls = rising(slope)
    for sign in (1, -1):  # convex, or its negative is
        outer = np.all(second.lower >= 0) if sign > 0 else np.all(second.upper <= 0)
        if outer and (bent == 0 or (bent == sign and rises) or (bent == -sign and falls)):
            mark = key_of(name, repr(detail), inner.mark, sign)
            return convex_term(inner, mark, value if sign > 0 else arithmetic.negative(value), kinks, sign)
    raise NoEnclosure("a composition whose curvature no rule tells")


def rising(slope: Interval) -> tuple[bool, bool]:
    """Whether a function with this range of slopes is nondecreasing, and whether it is nonincreasing."""
    return bool(np.all(slope.lower >= 0)), bool(np.all(slope.upper <= 0))


def largest_of(forms: list[Form], ranges: Ranges, sign: int) -> Form:
    """The maximum of convex forms (sign 1), or the minimum of concave ones (−1), row by row."""
    kinks = {"max" if sign > 0 else "min"}
    if any(curvature(form, ranges, kinks) not in (0, sign) for form in forms):
        raise NoEnclosure("a maximum of what is not known to be convex")
    boxes = [ranges.of_form(form) for form in forms]
    pick = np.maximum if sign > 0 else np.minimum
    value = Interval(*(pick.reduce([getattr(box, end) for box in boxes]) for end in ("lower", "upper")))
    whole = forms[0]
    for form in forms[1:]:
        whole = whole.plus(form)  # touches all that any of them does
    mark = key_of("largest", sign, *(form.mark for form in forms))
    return convex_term(whole, mark, value if sign > 0 else arithmetic.negative(value), kinks, sign)


def convex_term(touching: Form, mark: bytes, value: Interval, kinks: set[str], sign: int) -> Form:
    """Sign times a convex function of the entries of x that a form depends on."""
    used = np.zeros(touching.n, dtype=bool)
    for one in (touching.affine, *(one for term in touching.terms for one in term.local.variables)):
        A = one.rows[0]
        used |= ((A.lower != 0) | (A.upper != 0)).any(axis=0)
    columns = np.flatnonzero(used)
    if not 0 < len(columns) <= MANY:
        raise NoEnclosure(f"a composition of {len(columns)} entries of x")
    n, rows = touching.n, touching.size
    unit = Affine(point(np.eye(n)), point(np.zeros(n)), np.zeros(0, dtype=int), key_of("x", n), False, False)
    variables = tuple(Affine(unit.A, unit.b, np.full(rows, k), unit.key, False, False) for k in columns)
    known = Nested(mark, tuple(value.lower.tolist()), tuple(value.upper.tolist()), tuple(sorted(kinks)))
    place = Given(point(np.arange(float(rows))), np.arange(rows), key_of("row", rows), _random(touching))  # rows differ
    made = entries(Local(("convex", known, *(("var", k) for k in range(len(columns)))), variables, (place,), rows))
    return Form(touching.shape, made.affine, made.terms).times(Given.constant(np.full(rows, float(sign))))


def _random(form: Form) -> bool:
    """Whether anything in it depends on ξ."""
    parts = [form.affine, *(one for term in form.terms for one in term.local.variables)]
    given = [one for term in form.terms for one in (*term.local.params, term.weight)]
    shifted = any(one.moves or one.shifts for one in parts) or any(one.random for one in given)
    return shifted or any(term.random for term in form.terms)
