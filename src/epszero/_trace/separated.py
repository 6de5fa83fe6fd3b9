"""Products of x and ξ taken apart: f(x, ξ) = Σ c · u(x) · φ(ξ), found from the operations of f, with few features φ.

The traced program is followed with polynomials for numbers (polynomials.py). What is computed of x alone stays what it
is: its entries are atoms u. What is computed of ξ alone is followed as far as it is polynomial, or taken for new atoms,
whichever leaves fewer features; what both enter must be a polynomial in the atoms. The features are the monomials of
the atoms of ξ that remain: aᵢaⱼ and aᵢb in the gradient a(aᵀx − b) of a least-squares loss, each once. f is followed
itself, and no derivative taken, so nothing is claimed of a function but what its values are.
Cost: O(terms) in Python, once per shape; then an evaluation costs O(terms), whatever the number of samples.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from epszero._double import is_traced
from epszero._trace.intervals.moves import plain_array
from epszero._trace.polynomials import (
    HIGHEST,
    MOVES,
    Monomial,
    NotPolynomial,
    Polynomial,
    Work,
    evaluated,
    made,
    terms_of,
)
from epszero._trace.programs import CALLS, applied, is_literal, opened, rerun
from epszero._types import FloatArray, PyTree

MOST = 500  # features that are worth having: 65 for least squares in 10 entries, 495 in 30
SMALL = 1000  # entries of x that are followed when they are moved
X, XI = 1, 2  # what a value depends on; their sum: on both


class Separated(NamedTuple):
    """f(x, ξ) = joint(x, features(ξ)); all features are in one vector."""

    features: Callable[[PyTree], PyTree]
    joint: Callable[[PyTree, PyTree], PyTree]


def separated(function: Callable[..., PyTree], x: PyTree, xi: PyTree) -> Separated | None:
    """With the fewest features that are found; None where there are none, or too many."""
    closed, returned = jax.make_jaxpr(inlined(function), return_shape=True)(x, xi)
    if closed.jaxpr.effects or any(str(atom.aval.dtype) != "float64" for atom in closed.jaxpr.outvars):
        return None
    sides = [X] * len(jax.tree.leaves(x)) + [XI] * len(jax.tree.leaves(xi))
    found: list[_Sums] = []
    for folded in (True, False):
        try:
            reading = Reading(closed, sides, folded=folded)
            found.append(_Sums(reading, reading.outputs()))
        except NotPolynomial:
            continue
    least = min(found, key=lambda sums: len(sums.features), default=None)
    if least is None or not 1 <= len(least.features) <= MOST:
        return None
    structure = jax.tree.structure(returned)
    joint, features = least.joint(), least.of_samples()
    return Separated(
        lambda xi: [features(*jax.tree.leaves(xi))],
        lambda x, given: structure.unflatten(joint(jax.tree.leaves(x), given[0])),
    )


def _scaled(part: dict[Monomial, float]) -> tuple[tuple[tuple[Monomial, float], ...], float]:
    """A polynomial whose first number is 1, and by which factor it differs."""
    terms = sorted(part.items())
    first = terms[0][1]
    return tuple((monomial, number / first) for monomial, number in terms), first


class Atom(NamedTuple):
    """An entry of a value of the program."""

    variable: Any
    entry: int


class Reading:
    """A program followed with polynomials; `folded`: a sum of values of ξ alone is an atom of its own."""

    def __init__(self, closed: Any, sides: Sequence[int], *, folded: bool) -> None:
        self.closed, self.folded, self.work = closed, folded, Work()
        self.atoms: list[Atom] = []
        self.side: list[int] = []  # of each atom
        self._numbers: dict[Any, int] = {}
        self._sides: dict[Any, int] = dict(zip(closed.jaxpr.invars, sides, strict=True))
        self._known: dict[Any, Any] = dict(zip(closed.jaxpr.constvars, map(plain_array, closed.consts), strict=True))

    def outputs(self) -> list[Any]:
        """All entries of all outputs."""
        for equation in self.closed.jaxpr.eqns:
            self._follow(equation)
        return [entry for atom in self.closed.jaxpr.outvars for entry in self._value(atom).reshape(-1)]

    def _follow(self, equation: Any) -> None:
        side = 0
        for atom in equation.invars:
            side |= 0 if is_literal(atom) else self._sides.get(atom, 0)
        self._sides.update(dict.fromkeys(equation.outvars, side))
        if side == X and not self._is_small_move(equation):  # whatever it is
            return
        operands = [self._value(atom) for atom in equation.invars]
        if not side:
            self._known.update(zip(equation.outvars, evaluated(equation, operands), strict=True))
            return
        try:
            results = made(equation, operands)
        except NotPolynomial:
            if side == X | XI:
                raise
            return
        for variable, array in zip(equation.outvars, results, strict=True):
            self._known[variable] = self._folded(array, variable) if side == XI else array

    def _is_small_move(self, equation: Any) -> bool:
        """Whether an operation on x only moves numbers: followed, so that x₁ is x₁ wherever it is read."""
        sizes = [math.prod(atom.aval.shape) for atom in (*equation.invars, *equation.outvars)]
        return equation.primitive.name in MOVES and sum(sizes) <= SMALL

    def _value(self, atom: Any) -> Any:
        """A constant, or polynomials."""
        if is_literal(atom):
            return np.asarray(atom.val, dtype=atom.aval.dtype)
        if atom not in self._known:
            self._known[atom] = self._fresh(atom)
        return self._known[atom]

    def _fresh(self, variable: Any) -> Any:
        """A value whose entries are atoms."""
        size = math.prod(variable.aval.shape)
        self.work.done(size)
        found = np.empty(size, dtype=object)
        for entry in range(size):
            found[entry] = self._atom((variable, entry), Atom(variable, entry))
        return found.reshape(variable.aval.shape)

    def _atom(self, key: Any, atom: Atom) -> Polynomial:
        """The one of this name."""
        if key not in self._numbers:
            self._numbers[key] = len(self.atoms)
            self.atoms.append(atom)
            self.side.append(self._sides[atom.variable])
        return Polynomial({(self._numbers[key],): 1.0}, self.work)

    def _folded(self, array: Any, variable: Any) -> Any:
        """With atoms, named by their terms, in place of sums and of high powers."""
        found = np.empty(array.size, dtype=object)
        for entry, value in enumerate(array.reshape(-1)):
            terms = terms_of(value)
            low = all(len(monomial) <= HIGHEST for monomial in terms)
            stays = low and (len(terms) <= 1 or not self.folded)
            found[entry] = value if stays else self._atom(frozenset(terms.items()), Atom(variable, entry))
        return found.reshape(array.shape)

    def program(self, side: int, variables: Sequence[Any]) -> Callable[..., list[Any]]:
        """These values, from the leaves of x alone or of ξ alone."""
        jaxpr = self.closed.jaxpr
        inputs = [variable for variable in jaxpr.invars if self._sides[variable] == side]
        kept = [equation for equation in jaxpr.eqns if self._sides[equation.outvars[0]] in (0, side)]
        names = jaxpr.debug_info._replace(arg_names=("",) * len(inputs), result_paths=("",) * len(variables))
        part = jaxpr.replace(invars=inputs, outvars=list(variables), eqns=kept, debug_info=names)
        return jaxpr_as_fun(ClosedJaxpr(part, self.closed.consts))


class _Term(NamedTuple):
    """c · φ_k · u₁u₂…, in one entry of what is returned; k is −1 where no feature enters."""

    output: int
    feature: int
    given: Monomial
    number: float


class _Sums:
    """All entries as sums of terms.

    A feature is a monomial of atoms of ξ, or the polynomial in them that goes with a monomial of x, where there are
    fewer of these; one that differs by a factor only is the same. Its size is that of its numbers c, all together: then
    features count alike in f.
    """

    def __init__(self, reading: Reading, outputs: list[Any]) -> None:
        self.reading, self.size = reading, len(outputs)
        parts: dict[tuple[int, Monomial], dict[Monomial, float]] = {}
        self.terms: list[_Term] = []
        for output, entry in enumerate(outputs):
            for monomial, number in terms_of(entry).items():
                given = tuple(atom for atom in monomial if reading.side[atom] == X)
                random = tuple(atom for atom in monomial if reading.side[atom] == XI)
                if len(random) > HIGHEST:
                    raise NotPolynomial
                if random:
                    parts.setdefault((output, given), {})[random] = number
                else:
                    self.terms.append(_Term(output, -1, given, number))
        self.monomials = sorted({monomial for part in parts.values() for monomial in part})
        scaled = [_scaled(part) for part in parts.values()]
        whole = len({polynomial for polynomial, _ in scaled}) < len(self.monomials)
        numbered: dict[Any, int] = {}
        for (output, given), part, (polynomial, factor) in zip(parts, parts.values(), scaled, strict=True):
            pieces = [(polynomial, factor)] if whole else [(((one, 1.0),), number) for one, number in part.items()]
            for feature, number in pieces:
                self.terms.append(_Term(output, numbered.setdefault(feature, len(numbered)), given, number))
        sizes = np.zeros(len(numbered))
        for term in self.terms:
            if term.feature >= 0:
                sizes[term.feature] += term.number**2
        self.scales = np.sqrt(sizes)
        self.features = list(numbered)
        self.terms = [
            term._replace(number=term.number / self.scales[term.feature]) if term.feature >= 0 else term
            for term in self.terms
        ]

    def of_samples(self) -> Callable[..., Any]:
        """ξ ↦ φ(ξ), from the leaves of ξ: monomials with the same exponents side by side, then sums of them."""
        used = sorted({atom for monomial in self.monomials for atom in monomial})
        place = {atom: number for number, atom in enumerate(used)}
        values = _gathered(self.reading, XI, used)
        kinds: dict[tuple[int, ...], list[tuple[Monomial, tuple[int, ...]]]] = {}
        for monomial in self.monomials:
            counted = sorted(Counter(monomial).items(), key=lambda pair: (-pair[1], pair[0]))
            atoms = tuple(place[atom] for atom, _ in counted)
            kinds.setdefault(tuple(power for _, power in counted), []).append((monomial, atoms))
        columns = {powers: np.array([atoms for _, atoms in kind]).T for powers, kind in kinds.items()}
        order = {
            monomial: number for number, (monomial, _) in enumerate(one for kind in kinds.values() for one in kind)
        }
        single = all(len(feature) == 1 for feature in self.features)
        chosen = np.array([order[feature[0][0]] for feature in self.features])
        weights = np.zeros((len(self.features), 1 if single else len(order)))
        for row, feature in zip(weights, self.features, strict=True):
            for monomial, number in () if single else feature:
                row[order[monomial]] = number

        def features(*leaves: Any) -> Any:
            atoms = values(leaves)
            pieces: list[Any] = []
            for powers, places in columns.items():
                chosen_atoms = [_taken(atoms, one) for one in places]
                factors = [jax.lax.integer_pow(one, power) for one, power in zip(chosen_atoms, powers, strict=True)]
                pieces.append(functools.reduce(jnp.multiply, factors))
            every = jnp.concatenate(pieces)
            return self.scales * (_taken(every, chosen) if single else weights @ every)

        return features

    def joint(self) -> Callable[[Sequence[Any], Any], list[Any]]:
        """(leaves of x, φ) ↦ the outputs, as a sum for every number of factors of x, with features and without."""
        used = sorted({atom for term in self.terms for atom in term.given})
        values = _gathered(self.reading, X, used)
        kinds: dict[tuple[bool, int], list[_Term]] = {}
        for term in self.terms:
            kinds.setdefault((term.feature >= 0, len(term.given)), []).append(term)
        place = {atom: number for number, atom in enumerate(used)}
        tables = [_table(terms, self.size, random, place) for (random, _), terms in kinds.items()]
        avals = [atom.aval for atom in self.reading.closed.jaxpr.outvars]
        ends = np.cumsum([math.prod(aval.shape) for aval in avals])[:-1]

        def joint(leaves: Sequence[Any], features: Any) -> list[Any]:
            given = values(leaves) if used else jnp.zeros(0)
            total = jnp.zeros(self.size)
            for numbers, feature, atoms in tables:
                product: Any = numbers
                if feature is not None:
                    product = product * _taken(features, feature)
                for column in atoms:
                    product = product * _taken(given, column)
                total = total + jnp.sum(product, axis=1)
            return [part.reshape(aval.shape) for part, aval in zip(jnp.split(total, ends), avals, strict=True)]

        return joint


def _table(terms: list[_Term], size: int, random: bool, place: dict[int, int]) -> tuple[FloatArray, Any, list[Any]]:
    """One row for each output: numbers, features, and atoms of x, filled up with zeros."""
    counts = np.bincount([term.output for term in terms], minlength=size)
    shape, factors = (size, int(counts.max())), len(terms[0].given)
    numbers, feature = np.zeros(shape), np.zeros(shape, dtype=int) if random else None
    atoms = [np.zeros(shape, dtype=int) for _ in range(factors)]
    filled = np.zeros(size, dtype=int)
    for term in terms:
        where = term.output, filled[term.output]
        numbers[where] = term.number
        if feature is not None:
            feature[where] = term.feature
        for column, atom in zip(atoms, term.given, strict=True):
            column[where] = place[atom]
        filled[term.output] += 1
    return numbers, feature, atoms


def _gathered(reading: Reading, side: int, atoms: list[int]) -> Callable[[Sequence[Any]], Any]:
    """The leaves of x, or of ξ ↦ the values of these atoms, in a row."""
    chosen = [reading.atoms[atom] for atom in atoms]
    variables = list(dict.fromkeys(atom.variable for atom in chosen))
    starts = dict(zip(variables, np.cumsum([0, *(math.prod(v.aval.shape) for v in variables)])[:-1], strict=True))
    places = np.array([starts[atom.variable] + atom.entry for atom in chosen], dtype=int)
    program = reading.program(side, variables)

    def values(leaves: Sequence[Any]) -> Any:
        every = jnp.concatenate([jnp.ravel(value).astype(float) for value in program(*leaves)])
        return every if np.array_equal(places, np.arange(len(every))) else _taken(every, places)

    return values


def _taken(values: Any, places: Any) -> Any:
    """These entries of a vector, all of which there are."""
    return jnp.asarray(values).at[places].get(mode="promise_in_bounds", wrap_negative_indices=False)


def inlined(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """The same values without calls, and with x/y as x · (1/y), where y is not constant."""

    def plain(*arguments: PyTree) -> PyTree:
        closed, returned = jax.make_jaxpr(function, return_shape=True)(*arguments)
        values = rerun(closed.jaxpr, closed.consts, jax.tree.leaves(arguments), _inline)
        return jax.tree.structure(returned).unflatten(values)

    return plain


def _inline(_: Any, equation: Any, operands: list[Any]) -> list[Any]:
    inside = equation.params.get(CALLS.get(equation.primitive.name, ""))
    if inside is not None and not equation.effects:
        return rerun(*opened(inside), operands, _inline)
    if equation.primitive.name == "div" and _double(equation.outvars[0]) and is_traced(operands[1]):
        return [jax.lax.mul(operands[0], jax.lax.div(jnp.ones_like(operands[1]), operands[1]))]
    return applied(equation.primitive, operands, equation.params)


def _double(atom: Any) -> bool:
    return str(atom.aval.dtype) == "float64"
