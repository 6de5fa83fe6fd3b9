"""Error bars: bounds on entries of x*, or on any linear function of it, once its piece is certified.

Claim: ℓᵀx* lies between `lower` and `upper` for all rows ℓ of a band, and of all ready-made bands at once, together
with every line of the certificate, with probability ≥ 1 − δ. The share ι of δ for intervals is divided equally among
the groups that the problem has: entries, one call of `interval`, the aggregate where agents are alike,
multipliers where constraints are shared. Within a group of k rows that the noise moves (k is a fact of the piece) each
row has ι/(groups·k). The number of groups is read off the problem before any data.
One event over the rows of all groups would give the few rows of an aggregate the level of the many entries: with 10 000
agents × 24 hours ln(2k/ι) is 20 where ln(2·3·24/ι) is 12 (ι = 0.001), to spare entries 5 % of theirs. As a width grows
with √ln or ln of its level, shares that make up for it are nearly equal, so they are equal.
Two calls of `interval` spend the same share: each holds together with all else, but not with the other.
`together=False` spends all of δ but the piece's share on one band, which then holds by itself.
Kinds that guess have bands, too (certificates/likely.py): each by itself at δ, marked as guesses, no part of the claim.
As x* lies in dom A, bounds end where the box around dom A does.
Assumes what the certificate assumes. Cost: a scalar bound per row and sample; no matrix over all entries.
Source: docs/theory.md, section 6.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from epszero._checks import real_array, refuse
from epszero._double import double
from epszero._lazy import sp
from epszero._points import flat_of, length, shaped_like
from epszero._types import FloatArray, PyTree
from epszero.certificates._base import Leaning
from epszero.certificates.first_exit import Partial
from epszero.certificates.likely import Guessed
from epszero.certificates.sharp import Sharp
from epszero.facts import Unknown, places_of
from epszero.facts.domains import by_solver, domain_box
from epszero.oracles import strategies
from epszero.problems import AggregativeGame, Problem

if TYPE_CHECKING:
    from epszero.certificates.certificate import Certificate

Linear = int | PyTree | Callable[..., Any]
"""What users may ask an interval of: the number of an entry, a matrix, or a linear function of x."""

BENT = 1e-9  # relative: a function that is further from being linear is not
EPS = 8 * float(np.finfo(np.float64).eps)


class Group(StrEnum):
    """Bands that have a share of their own, by what their rows are."""

    ENTRIES = "entries of x"
    ASKED = "functions of x"
    AGGREGATE = "sums over agents"
    MULTIPLIERS = "multipliers"


@dataclass(frozen=True, eq=False)
class Band:
    """Simultaneous bounds: with probability `confidence` all of them hold."""

    lower: PyTree
    upper: PyTree
    value: PyTree  # at x
    of: Group
    confidence: float  # 1 − δ
    together: bool  # with every line and all ready-made bands of the certificate; else only by itself
    guess: bool = False  # the certificate is heuristic, and so is this

    @property
    def width(self) -> PyTree:
        """upper − lower."""
        return jax.tree.map(np.subtract, self.upper, self.lower)

    @property
    def says(self) -> str:
        """How sure it is, and of what."""
        count = len(flat_of(self.value))
        which = f"all {count} {self.of} together" if count > 1 else f"one of the {self.of}"
        scope = "and all lines of the certificate" if self.together else "by themselves" if count > 1 else "by itself"
        sure = f"{100 * self.confidence:.6g} % for {which}, {scope}"
        return f"a guess: {sure}" if self.guess else sure

    def __str__(self) -> str:
        rows = zip(flat_of(self.lower), flat_of(self.value), flat_of(self.upper), strict=True)
        return "\n".join([self.says, *(f"{low:.6g} ≤ {value:.6g} ≤ {high:.6g}" for low, value, high in rows)])


@dataclass(frozen=True, eq=False)
class Image:
    """A linear image L x of x (certificates/image.py): L x* is near it, and between bounds; None with the reason."""

    rows: FloatArray  # L, a row for each entry of the image
    value: FloatArray  # L x
    distance: float | None  # ‖L(x − x*)‖ is at most this
    lower: FloatArray | None  # of L x*, all entries at once, together with `distance` and every line
    upper: FloatArray | None
    because: str  # what it used, or why there is none
    leans_on: tuple[Leaning, ...] = ()

    @property
    def relative_distance(self) -> float | None:
        """The distance divided by ‖L x‖."""
        size = length(self.value)
        return self.distance / size if self.distance is not None and 0 < size < np.inf else None

    def __str__(self) -> str:
        if self.distance is None:
            return f"none: {self.because}"
        share = "" if self.relative_distance is None else f", {100 * self.relative_distance:.3g} % of ‖Lx‖"
        return f"‖L(x − x*)‖ ≤ {self.distance:.4g}{share}"


class _Known(NamedTuple):
    """What a band is made of."""

    sharp: Sharp | Partial | Guessed
    problem: Problem
    x: PyTree
    level: float
    together: bool


def groups(problem: Problem) -> tuple[Group, ...]:
    """Those that the problem has."""
    agents = (Group.AGGREGATE,) if isinstance(problem, AggregativeGame) else ()
    shared = () if problem.coupling is None else (Group.MULTIPLIERS,)
    return Group.ENTRIES, Group.ASKED, *agents, *shared


def entries_band(certificate: "Certificate") -> Band:
    """Of every entry of x."""
    here = _known(certificate)
    lower, upper = _bounds(here, sp.identity(len(here.sharp.x), format="csr"))
    return _band(certificate, here, Group.ENTRIES, (shaped_like(here.x, lower), shaped_like(here.x, upper), here.x))


def aggregate_band(certificate: "Certificate") -> Band:
    """Of the sum over agents."""
    here = _known(certificate)
    if Group.AGGREGATE not in groups(here.problem):
        refuse("aggregate", "is that of a game of agents alike", "Use interval(of=…) with a matrix")
    one = jax.tree.map(lambda leaf: np.asarray(leaf)[0], here.x)
    places = np.stack(places_of(here.problem, here.x))  # (agents, entries of one)
    rows = np.broadcast_to(np.arange(places.shape[1]), places.shape)
    shape = places.shape[1], len(here.sharp.x)
    L = sp.csr_matrix((np.ones(places.size), (rows.ravel(), places.ravel())), shape=shape)
    lower, upper = _bounds(here, L)
    ends = shaped_like(one, lower), shaped_like(one, upper), shaped_like(one, L @ here.sharp.x)
    return _band(certificate, here, Group.AGGREGATE, ends)


def multipliers_band(certificate: "Certificate") -> Band:
    """Of the prices of shared constraints."""
    here = _known(certificate)
    if Group.MULTIPLIERS not in groups(here.problem):
        refuse("multipliers", "there are none: no constraint is shared", "Use intervals for the entries of x")
    if isinstance(here.sharp, Guessed):
        refuse("multipliers", "are not guessed", "Use the default certificate, or intervals for the entries of x")
    lower, upper = here.sharp.prices(here.level)
    prices = here.sharp.piece.prices
    room = EPS * np.abs(prices)
    return _band(certificate, here, Group.MULTIPLIERS, (np.maximum(lower - room, 0.0), upper + room, prices))


def band(certificate: "Certificate", of: Linear, together: bool) -> Band:
    """Of a linear function of x."""
    here = _known(certificate, together)
    L = rows_of(of, here.x, len(here.sharp.x))
    return _band(certificate, here, Group.ASKED, (*_bounds(here, sp.csr_matrix(L)), L @ here.sharp.x))


def missing(certificate: "Certificate", together: bool = True) -> tuple[str, str] | None:
    """Why there are no bands, and what would help; None where there are."""
    sharp, solution = certificate.sharp, certificate.solution
    if solution is None:
        return "a record does not carry the samples that they are made of", "Certify the solution anew"
    if certificate.guessed is not None and certificate.verdict != "refused":
        return None
    if sharp is None or certificate.verdict == "refused":
        return _other_kind(certificate, solution.problem)
    if isinstance(sharp.intervals, Unknown):
        return f"the piece is not certified: {sharp.intervals.reason}", "Collect more samples"
    if together and not sharp.levels.intervals > 0:
        return "nothing of delta was kept for intervals", 'Leave of= out, or pass of="intervals"'
    return None


def _other_kind(certificate: "Certificate", problem: Problem) -> tuple[str, str]:
    if not problem.oracle.uncertain:
        return "nothing is uncertain here", "Look at the residual"
    if certificate.verdict == "refused":
        return "the certificate is refused", "Read certificate.reason"
    return (
        "they need the certified piece: B affine in x, additive noise, polyhedral sets, a bounded support",
        "Use the default certificate, for a problem of that kind",
    )


def _known(certificate: "Certificate", together: bool = True) -> _Known:
    why = missing(certificate, together)
    if why is not None:
        refuse("interval", *why)
    sharp, solution, guessed = certificate.sharp, certificate.solution, certificate.guessed
    assert solution is not None
    if guessed is not None:
        return _Known(guessed, solution.problem, strategies(solution.point), certificate.delta, False)
    assert sharp is not None
    assert not isinstance(sharp.intervals, Unknown)
    level = sharp.levels.intervals / len(groups(solution.problem))
    level = level if together else sharp.delta - sharp.shares["piece"]
    return _Known(sharp.intervals, solution.problem, strategies(solution.point), level, together)


def _band(certificate: "Certificate", here: _Known, of: Group, ends: tuple[PyTree, PyTree, PyTree]) -> Band:
    return Band(*ends, of, 1 - certificate.delta, here.together, certificate.verdict == "heuristic")


def _bounds(here: _Known, L: Any) -> tuple[FloatArray, FloatArray]:
    """On the rows of a sparse matrix: rounded outward, and within what dom A allows."""
    lower, upper = here.sharp.intervals(L.toarray() if isinstance(here.sharp, Partial) else L, here.level)
    room = EPS * (abs(L) @ np.abs(here.sharp.x))
    return within_domain(here.problem, here.x, L, lower - room, upper + room)


def within_domain(
    problem: Problem, x: PyTree, L: Any, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """No wider than the box around dom A allows."""
    if by_solver(problem.strategies):  # a support function would be a programme of its own for every entry
        return lower, upper
    box, rows = domain_box(problem.strategies, x), sp.csr_matrix(L)
    up, down = rows.maximum(0.0), rows.minimum(0.0)
    least, most = up @ box.lower + down @ box.upper, up @ box.upper + down @ box.lower
    return np.maximum(lower, least), np.minimum(upper, most)


def rows_of(of: Any, x: PyTree, n: int) -> FloatArray:
    """The matrix that a user asks of, checked."""
    if isinstance(of, int | np.integer) and not isinstance(of, bool):
        if not -n <= of < n:
            refuse("of", f"is {of}, but x has {n} entries", f"Pass a number between 0 and {n - 1}")
        return np.eye(n)[[int(of)]]
    if callable(of):
        return _rows_of_function(of, x, n)
    L = np.atleast_2d(real_array("of", of))
    if L.ndim != 2 or L.shape[1] != n:
        refuse("of", f"must have one column per entry of x, {n}, but its shape is {L.shape}", "Pass a matrix, or a row")
    return L


def _rows_of_function(of: Callable[..., Any], x: PyTree, n: int) -> FloatArray:
    """The matrix of a function, which is checked to be linear at points that nobody chose."""

    def at(v: FloatArray) -> FloatArray:
        with double():
            found = of(shaped_like(x, v))
        return np.ravel(real_array("of", found, allow_infinite=True, allow_nan=True))

    zero = at(np.zeros(n))
    L = np.stack([at(row) for row in np.eye(n)], axis=1) - zero[:, None]
    rng = np.random.default_rng(0)
    for size in (1.0, 1e3):
        v = size * rng.normal(size=n)
        apart = np.abs(at(v) - L @ v)
        if zero.any() or not (apart <= BENT * size * (1 + np.abs(L).sum(axis=1))).all():
            refuse("of", "is not a linear function of x", "Pass a matrix, or a linear function without a constant")
    return L
