"""Functions of a few numbers, entry by entry: expressions, how they are simplified, enclosures of their derivatives.

An expression is a nested tuple: ("var", p), ("param", q), ("const", c), ("add" | "mul", u, v), or (atom, detail, u)
with the name of an atom and what it needs to know. Equal tuples are equal functions. Patterns that are one function in
disguise become one atom: log1p(exp u), log(1 + exp u) and logaddexp are softplus; u log u is one; √(c + u²) too.
"""

from typing import Any

import numpy as np

from epszero._trace.intervals import arithmetic
from epszero._trace.intervals.arithmetic import Interval, NoEnclosure, point
from epszero._trace.rules import bends, exponentials, powers, waves
from epszero._trace.rules.curves import Atom

Expression = tuple[Any, ...]

PLAIN: dict[str, Atom] = {**exponentials.ATOMS, **powers.ATOMS, **bends.ATOMS, **waves.ATOMS}
ONE: Expression = ("const", 1.0)
GROUPS = {"logsumexp": "logsumexp″ ≤ ½", "norm": "norms", "convex": "convex compositions"}  # of several variables


def atom_of(name: str, detail: Any, params: Any) -> Atom:
    """By its name; `params` are the arrays that its details refer to."""
    if name == "integer_pow":
        return powers.whole_power(detail)
    if name in FAMILIES:
        return FAMILIES[name](detail if isinstance(detail, float) else params[detail[1]].lower)
    return PLAIN[name]


FAMILIES = {"pow": powers.real_power, "root": powers.smooth_root, "huber": bends.huber}


# -- building ----------------------------------------------------------------------------------------------------------


def const(value: float) -> Expression:
    """A number."""
    return ("const", float(value))


def added(u: Expression, v: Expression) -> Expression:
    """u + v."""
    if u[0] == v[0] == "const":
        return const(u[1] + v[1])
    if u == ("const", 0.0) or v == ("const", 0.0):
        return v if u == ("const", 0.0) else u
    return ("add", v, u) if v[0] == "const" else ("add", u, v)  # numbers first


def multiplied(u: Expression, v: Expression) -> Expression:  # noqa: PLR0911  (one line per pattern)
    """u · v."""
    if v[0] == "const":
        u, v = v, u
    if u == ONE:
        return v
    if u == v:
        return applied("square", None, u)
    if v[0] == "square" and u[0] == "reciprocal":
        u, v = v, u
    if u[0] == v[0] == "const":
        return const(u[1] * v[1])
    for a, b in ((u, v), (v, u)):
        if a[0] == "log" and a[2] == b:
            return ("xlogx", None, b)
        if a[0] == "exp" and b == ("logistic", None, minus(a[2])):  # eᵘ/(1 + eᵘ)
            return ("logistic", None, a[2])
        if a[0] == "mul" and a[1][0] == "const":
            return ("mul", a[1], multiplied(a[2], b))
    return ("mul", u, v)


def minus(u: Expression) -> Expression:
    """−u."""
    if u[0] == "const":
        return const(-u[1])
    return u[2] if u[0] == "neg" else ("neg", None, u)


def applied(name: str, detail: Any, u: Expression) -> Expression:  # noqa: PLR0911  (one line per pattern)
    """An atom of u."""
    one_and_exp = u[0] == "add" and u[1] == ONE and u[2][0] == "exp"
    if name == "neg":
        return minus(u)
    if name == "log1p" and u[0] == "exp":
        return ("softplus", None, u[2])
    if name == "log" and one_and_exp:
        return ("softplus", None, u[2][2])
    if name == "reciprocal" and one_and_exp:
        return ("logistic", None, minus(u[2][2]))
    if name == "square" and u[0] == "relu":
        return ("hinge", None, u[2])
    if name == "sqrt" and u[0] == "add" and u[1][0] == "const" and u[1][1] > 0 and _is_square(u[2]):
        return ("root", u[1][1], u[2][2])
    if name == "integer_pow" and detail in (1, 2, -1):
        return u if detail == 1 else applied("square" if detail == 2 else "reciprocal", None, u)
    if name == "pow" and detail in (1.0, 2.0):
        return u if detail == 1.0 else applied("square", None, u)
    return (name, detail, u)


def _is_square(u: Expression) -> bool:
    return u[0] == "square"


def renamed(u: Expression, variables: list[int], params: list[int]) -> Expression:
    """With other numbers for variables and parameters."""
    if u[0] == "var":
        return ("var", variables[u[1]])
    if u[0] == "param":
        return ("param", params[u[1]])
    if u[0] == "const":
        return u
    if u[0] in GROUPS:
        return (u[0], u[1], *(renamed(part, variables, params) for part in u[2:]))
    if u[0] in ("add", "mul"):
        return (u[0], renamed(u[1], variables, params), renamed(u[2], variables, params))
    detail = renamed(u[1], variables, params) if isinstance(u[1], tuple) else u[1]
    return (u[0], detail, renamed(u[2], variables, params))


def is_plain(u: Expression) -> bool:
    """Whether enclosures are as tight as the atoms': a sum of multiples of atoms of a variable."""
    if u[0] in ("var", "param", "const") or u[0] in GROUPS:
        return True
    if u[0] == "add":
        return False
    if u[0] == "mul":
        return u[1][0] in ("const", "param") and is_plain(u[2])
    return u[2][0] == "var" or (u[0] == "neg" and is_plain(u[2])) or (u[2][0] == "neg" and u[2][2][0] == "var")


def said_of(u: Expression) -> set[str]:
    """What bounds it, in a few words."""
    if u[0] in ("var", "param", "const"):
        return set()
    if u[0] in ("add", "mul"):
        return said_of(u[1]) | said_of(u[2])
    if u[0] in GROUPS:
        return {GROUPS[u[0]]}
    known = PLAIN.get(u[0])
    name = "powers" if u[0] in ("integer_pow", "pow") else str(u[0]) if known is None else known.said or known.name
    return said_of(u[2]) | ({name} if u[0] != "neg" else set())


# -- derivatives -------------------------------------------------------------------------------------------------------


class Jet:
    """Enclosures of value, gradient and Hessian in the variables; what is not there is 0."""

    def __init__(
        self, value: Interval, first: dict[int, Interval], second: dict[tuple[int, int], Interval], cap: Any = None
    ) -> None:
        self.value, self.first, self.second = value, first, second
        self.cap = cap  # where it is known that the Hessian lies between 0 and this times I


def jet(u: Expression, variables: list[Interval], params: list[Interval], kinks: set[str]) -> Jet:
    """Over boxes of the variables; names of atoms whose derivatives may jump there are added to `kinks`."""
    kind = u[0]
    if kind == "var":
        return Jet(variables[u[1]], {u[1]: point(np.ones(variables[u[1]].lower.shape))}, {})
    if kind == "param":
        return Jet(params[u[1]], {}, {})
    if kind == "const":
        return Jet(point(np.asarray(u[1])), {}, {})
    if kind == "add":
        a, b = (jet(part, variables, params, kinks) for part in u[1:])
        return Jet(arithmetic.add(a.value, b.value), _sum(a.first, b.first), _sum(a.second, b.second))
    if kind == "mul":
        return _product(*(jet(part, variables, params, kinks) for part in u[1:]))
    if kind in GROUPS:
        raise NoEnclosure(f"a function of {kind}")
    inner = jet(u[2], variables, params, kinks)
    return _chain(atom_of(kind, u[1], params), inner, kinks)


def _sum(a: dict[Any, Interval], b: dict[Any, Interval]) -> dict[Any, Interval]:
    both = dict(a)
    for key, value in b.items():
        both[key] = arithmetic.add(both[key], value) if key in both else value
    return both


def _scaled(factor: Interval, parts: dict[Any, Interval]) -> dict[Any, Interval]:
    return {key: arithmetic.mul(factor, part) for key, part in parts.items()}


def _pairs(a: dict[int, Interval], b: dict[int, Interval]) -> dict[tuple[int, int], Interval]:
    """a_p b_q + b_p a_q for p ≤ q."""
    found: dict[tuple[int, int], Interval] = {}
    for p, left in a.items():
        for q, right in b.items():
            term = arithmetic.mul(left, right)
            key = (min(p, q), max(p, q))
            term = arithmetic.add(term, term) if p == q else term
            found[key] = arithmetic.add(found[key], term) if key in found else term
    return found


def _product(a: Jet, b: Jet) -> Jet:
    first = _sum(_scaled(b.value, a.first), _scaled(a.value, b.first))
    second = _sum(_sum(_scaled(b.value, a.second), _scaled(a.value, b.second)), _pairs(a.first, b.first))
    return Jet(arithmetic.mul(a.value, b.value), first, second)


def _chain(atom: Atom, inner: Jet, kinks: set[str]) -> Jet:
    t = inner.value
    value = atom.value(t)
    if not inner.first:
        return Jet(value, {}, {})
    slope, bend = atom.first(t), atom.second(t)
    if atom.kink is not None and np.any((t.lower <= atom.kink) & (t.upper >= atom.kink)):
        kinks.add(atom.name)
    outer = {
        (p, q): arithmetic.square(part) if p == q else arithmetic.mul(part, inner.first[q])
        for p, part in inner.first.items()
        for q in inner.first
        if p <= q
    }
    return Jet(value, _scaled(slope, inner.first), _sum(_scaled(bend, outer), _scaled(slope, inner.second)))
