"""`Form`: an array that depends on x, as A(ξ)x + b(ξ) plus weighted functions of such affine maps, entry by entry.

Arrays are flat here, their entries are rows. What depends on ξ alone is known by its enclosure over the support, and by
a key: two arrays with one key are the same function of x and ξ, so that t·t is a square and equal terms of several
costs are one term. Moving entries about changes the places (`src`), not the key.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from epszero._trace.intervals import arithmetic
from epszero._trace.intervals.arithmetic import Interval, NoEnclosure, point
from epszero._trace.rules import expressions
from epszero._trace.rules.expressions import Expression

WHOLE = 2**17  # whole numbers below it, and so many products of two of them, are exact
NUMBERS = 8_000_000  # entries of a matrix that is written down
Places = Any  # an array of whole numbers


def key_of(*parts: Any) -> bytes:
    """One for each combination of parts: bytes, strings, numbers, arrays."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(str((part.shape, part.dtype)).encode() + np.ascontiguousarray(part).tobytes())
        else:
            found.update(part if isinstance(part, bytes) else repr(part).encode())
        found.update(b"|")
    return found.digest()


def taken(values: Interval, src: Places) -> Interval:
    """Rows."""
    lower = values.lower[src]
    return Interval(lower, lower if values.lower is values.upper else values.upper[src])


@dataclass(frozen=True, eq=False)
class Given:
    """Numbers that do not depend on x: rows of a base."""

    base: Interval  # flat
    src: Places
    key: bytes  # of the base
    random: bool  # it depends on ξ

    @staticmethod
    def of(values: Interval, key: bytes, random: bool) -> "Given":
        """All rows, flat."""
        lower = values.lower.reshape(-1)
        flat = Interval(lower, lower if values.lower is values.upper else values.upper.reshape(-1))
        return Given(flat, np.arange(len(lower)), key, random)

    @staticmethod
    def constant(values: Any) -> "Given":
        """Numbers that depend on nothing."""
        flat = np.ascontiguousarray(np.asarray(values, dtype=np.float64).reshape(-1))
        return Given.of(point(flat), key_of(flat), False)

    @property
    def values(self) -> Interval:
        """The numbers themselves."""
        return taken(self.base, self.src)

    @property
    def mark(self) -> bytes:
        """Equal for equal numbers."""
        return key_of(self.key, self.src)

    def take(self, src: Places) -> "Given":
        """Rows."""
        return replace(self, src=self.src[src])

    @property
    def number(self) -> float | None:
        """Where it is one and the same constant all over."""
        values = self.values
        if self.random or not len(values.lower):
            return None
        first = float(values.lower[0])
        return first if np.all(values.lower == first) and np.all(values.upper == first) else None

    def times(self, other: "Given") -> "Given":
        """Row by row."""
        for one, two in ((self, other), (other, self)):
            if one.number == 1.0:
                return two
        product = arithmetic.mul(self.values, other.values)
        return Given.of(product, key_of("mul", self.mark, other.mark), self.random or other.random)


@dataclass(frozen=True, eq=False)
class Affine:
    """Rows of A(ξ)x + b(ξ)."""

    A: Interval  # of the base
    b: Interval
    src: Places
    key: bytes
    moves: bool  # A depends on ξ
    shifts: bool  # b does
    flat: bool = False  # A = 0

    @property
    def rows(self) -> tuple[Interval, Interval]:
        """A and b."""
        return taken(self.A, self.src), taken(self.b, self.src)

    @property
    def mark(self) -> bytes:
        """Equal for equal functions."""
        return key_of(self.key, self.src)

    @property
    def nothing(self) -> bool:
        """Whether it is 0."""
        b = taken(self.b, self.src)
        return self.flat and not (b.lower.any() or b.upper.any())

    def take(self, src: Places) -> "Affine":
        """Rows."""
        return replace(self, src=self.src[src])


def affine(A: Interval, b: Interval, key: bytes, moves: bool, shifts: bool, flat: bool = False) -> Affine:
    """All rows."""
    return Affine(A, b, np.arange(len(b.lower)), key, moves, shifts, flat)


def nothing(rows: int, n: int) -> Affine:
    """0."""
    zero = point(np.zeros(rows))
    A = point(np.broadcast_to(np.zeros(n), (rows, n)))
    return affine(A, zero, key_of("nothing", rows), False, False, True)


@dataclass(frozen=True, eq=False)
class Local:
    """Entry by entry, a function of rows of affine maps."""

    expression: Expression
    variables: tuple[Affine, ...]
    params: tuple[Given, ...]
    rows: int

    def take(self, src: Places) -> "Local":
        """Rows."""
        return Local(
            self.expression,
            tuple(one.take(src) for one in self.variables),
            tuple(one.take(src) for one in self.params),
            len(src),
        )


@dataclass(frozen=True, eq=False)
class Term:
    """Local functions, each times a weight, and perhaps a matrix times all of these."""

    local: Local
    weight: Given  # one for each row of `local`
    matrix: Interval | None = None  # (rows, rows of `local`); None: the identity
    random: bool = False  # the matrix depends on ξ

    def take(self, src: Places) -> "Term":
        """Rows."""
        if self.matrix is not None:
            return replace(self, matrix=taken(self.matrix, src))
        return replace(self, local=self.local.take(src), weight=self.weight.take(src))

    def scaled(self, factor: Given) -> "Term":
        """Times one number for each row."""
        number = factor.number
        if self.matrix is None:
            return replace(self, weight=self.weight.times(factor))
        if number is not None:
            return replace(self, weight=self.weight.times(Given.constant(np.full(self.local.rows, number))))
        across = Interval(*(end[:, None] for end in factor.values))
        return replace(self, matrix=arithmetic.mul(across, self.matrix), random=self.random or factor.random)

    def dense(self) -> Interval:
        """The matrix, written down."""
        if self.matrix is not None:
            return self.matrix
        if self.local.rows**2 > NUMBERS:
            raise NoEnclosure(f"{self.local.rows} rows are too many to be written down")
        return point(np.eye(self.local.rows))


@dataclass(frozen=True, eq=False)
class Form:
    """An array that depends on x."""

    shape: tuple[int, ...]
    affine: Affine
    terms: tuple[Term, ...] = ()

    @cached_property
    def mark(self) -> bytes:
        """Equal for equal functions."""
        parts: list[Any] = [self.shape, self.affine.mark]
        for term in self.terms:
            local = term.local
            marks = [one.mark for one in (*local.variables, *local.params, term.weight)]
            parts += [local.expression, *marks, *(term.matrix or ()), term.random]
        return key_of(*parts)

    @property
    def size(self) -> int:
        """How many rows."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def n(self) -> int:
        """Entries of x."""
        return self.affine.A.lower.shape[1]

    def take(self, src: Places, shape: tuple[int, ...]) -> "Form":
        """Rows, as an array of that shape."""
        src = np.asarray(src).reshape(-1)
        return Form(shape, self.affine.take(src), tuple(term.take(src) for term in self.terms))

    def plus(self, other: "Form") -> "Form":
        """Of one shape."""
        one, two = self.affine, other.affine
        if two.nothing or one.nothing:
            total = one if two.nothing else two
        else:
            (A, b), (C, d) = one.rows, two.rows
            moves, shifts = one.moves or two.moves, one.shifts or two.shifts
            marks = sorted([one.mark, two.mark])
            linear = A if two.flat else C if one.flat else arithmetic.add(A, C)
            total = affine(linear, arithmetic.add(b, d), key_of("add", *marks), moves, shifts, one.flat and two.flat)
        return Form(self.shape, total, (*self.terms, *other.terms))

    def times(self, factor: Given) -> "Form":
        """Row by row."""
        number = factor.number
        if number == 1.0:
            return self
        terms = tuple(term.scaled(factor) for term in self.terms)
        old = self.affine
        if old.nothing:
            return Form(self.shape, old, terms)
        (A, b), c = old.rows, factor.values
        across = Interval(*(end[:, None] for end in c)) if c.lower is not c.upper else _column(c.lower)
        scaled = affine(
            old.A if old.flat and len(old.A.lower) == len(b.lower) else arithmetic.mul(across, A),
            arithmetic.mul(c, b),
            key_of("mul", old.mark, factor.mark),
            (old.moves or factor.random) and not old.flat,
            old.shifts or factor.random,
            old.flat,
        )
        return Form(self.shape, scaled, terms)

    def mixed(self, T: Interval, shape: tuple[int, ...], key: bytes, random: bool) -> "Form":
        """T times the rows, T a matrix that depends on x no more."""
        if T.lower.shape[0] * max(T.lower.shape[1], self.n) > NUMBERS:
            raise NoEnclosure("a matrix is too large to be written down")
        old = self.affine
        rows = T.lower.shape[0]
        if old.nothing:
            total = nothing(rows, self.n)
        else:
            A, b = old.rows
            linear = nothing(rows, self.n).A if old.flat else matmul(T, A)
            marks = key_of("mixed", key, old.mark)
            moves, shifts = (old.moves or random) and not old.flat, old.shifts or random
            column = Interval(*(end[:, None] for end in b)) if b.lower is not b.upper else _column(b.lower)
            offset = matmul(T, column)
            total = affine(linear, Interval(*(end[:, 0] for end in offset)), marks, moves, shifts, old.flat)
        terms = [
            replace(term, matrix=T if term.matrix is None else matmul(T, term.matrix), random=random or term.random)
            for term in self.terms
        ]
        return Form(shape, total, tuple(terms))

    def local(self) -> Local:
        """As one function, entry by entry; refused where entries are mixed already."""
        parts: list[Local] = []
        old = self.affine
        if not old.nothing:
            if old.flat:
                number = Given(old.b, old.src, key_of("offset", old.key), old.shifts)
                parts.append(_number(number, self.size))
            else:
                parts.append(Local(("var", 0), (old,), (), self.size))
        for term in self.terms:
            if term.matrix is not None:
                raise NoEnclosure("a function that bends, of a sum of such functions")
            parts.append(joined(expressions.multiplied, _number(term.weight, self.size), term.local))
        if not parts:
            return _number(Given.constant(np.zeros(self.size)), self.size)
        total = parts[0]
        for part in parts[1:]:
            total = joined(expressions.added, total, part)
        return total


def _column(values: Any) -> Interval:
    column = values[:, None]
    return Interval(column, column)


def matmul(T: Interval, A: Interval) -> Interval:
    """T A; exactly where nothing rounds, by midpoints and radii where both are known nearly."""
    if T.lower is T.upper and A.lower is A.upper:
        product = _unrounded(T.lower, A.lower)
        if product is not None:
            return point(product)
    a = Interval(T.lower[None], T.lower[None] if T.lower is T.upper else T.upper[None])
    b = Interval(A.lower[None], A.lower[None] if A.lower is A.upper else A.upper[None])
    found = arithmetic.centred(a, b) if _near(T) and _near(A) else arithmetic.matmul(a, b)
    return Interval(*(end[0] for end in found))


def _unrounded(T: Any, A: Any) -> Any:
    """The product, where entries are small whole numbers, or no sum has more than one term, a multiple by ±1."""
    whole = [bool(np.all(np.round(M) == M)) and float(np.abs(M).max(initial=0.0)) < WHOLE for M in (T, A)]
    if all(whole) and T.shape[1] < WHOLE:
        return T @ A
    units = [bool(np.all((M == 0) | (np.abs(M) == 1))) for M in (T, A)]
    if any(units) and np.all((T != 0).astype(np.float64) @ (A != 0).astype(np.float64) <= 1):
        return T @ A
    return None


def _near(A: Interval) -> bool:
    """Whether it is known up to little more than rounding."""
    size = np.abs(A.lower).max(initial=0.0)
    return A.lower is A.upper or bool(np.isfinite(size) and np.abs(A.upper - A.lower).max(initial=0.0) <= 1e-8 * size)


def _number(given: Given, rows: int) -> Local:
    value = given.number
    if value is not None:
        return Local(expressions.const(value), (), (), rows)
    return Local(("param", 0), (), (given,), rows)


def joined(how: Any, one: Local, two: Local) -> Local:
    """`how` of two expressions, with common variables and parameters."""
    variables, params = list(one.variables), list(one.params)
    found = [{part.mark: place for place, part in enumerate(parts)} for parts in (variables, params)]
    maps: list[list[int]] = []
    for parts, known, new in ((variables, found[0], two.variables), (params, found[1], two.params)):
        places: list[int] = []
        for part in new:
            if part.mark not in known:
                known[part.mark] = len(parts)
                parts.append(part)  # pyright: ignore[reportArgumentType]
            places.append(known[part.mark])
        maps.append(places)
    renamed = expressions.renamed(two.expression, *maps)
    return Local(how(one.expression, renamed), tuple(variables), tuple(params), one.rows)


def applied(name: str, detail: Any, inner: Local) -> Form:
    """An atom of a local function, as a form of those rows; `detail` may be a `Given`."""
    if isinstance(detail, Given):
        value = detail.number
        if value is None:
            holder = Local(("param", 0), (), (detail,), inner.rows)
            both = joined(lambda u, p: ("pair", u, p), inner, holder)
            expression = (name, both.expression[2], both.expression[1])
            return entries(Local(expression, both.variables, both.params, inner.rows))
        detail = value
    return entries(replace(inner, expression=expressions.applied(name, detail, inner.expression)))


def entries(local: Local) -> Form:
    """A local function as a form."""
    n = local.variables[0].A.lower.shape[1]
    one = Given.constant(np.ones(local.rows))
    return Form((local.rows,), nothing(local.rows, n), (Term(local, one),))
