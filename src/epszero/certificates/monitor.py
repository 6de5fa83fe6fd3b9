"""`monitor`: new samples as they come, and an alarm when x is no longer an ε-zero of what they say.

Claim: as long as ‖z + E[O(x, ξ_j) | past]‖ ≤ ε for every new sample, the probability that drift is ever told is at most
δ, however long and whenever one looks. No independence is assumed, and no law: the past may choose the next. The
support is assumed, and watched: a sample outside it is an alarm of its own, after which nothing is claimed.
x and z must not depend on the new samples, so these may not be among those that x was computed from.
By an e-process (certificates/e_process.py) with the residuals g_j = z + O(x, ξ_j). How fast a drift is told depends on
its size against the noise. Source: docs/theory.md, section 11. Cost: O(n d) for a sample.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from epszero._checks import known_arguments, one_positive, refuse
from epszero._double import double
from epszero._types import FloatArray, PyTree, Real, Support
from epszero.certificates._base import Refused
from epszero.certificates._inputs import checked_delta, checked_problem, checked_support
from epszero.certificates.case import Case
from epszero.certificates.certificate import Certificate, Verdict
from epszero.certificates.e_process import Frame, State, advanced
from epszero.certificates.evidence import Evidence
from epszero.certificates.mean import EmpiricalBernstein
from epszero.certificates.record import unpacked
from epszero.facts.region import SLACK
from epszero.problems import Problem
from epszero.samples import Samples, inside_support
from epszero.sets import Set
from epszero.solve.setup import check_shapes


class AlarmKind(StrEnum):
    """What is told."""

    DRIFT = "x is no longer an ε-zero"
    OUTSIDE = "a sample lies outside the support"


@dataclass(frozen=True)
class Alarm:
    """What is told, and at which of the new samples, from 1 on."""

    kind: AlarmKind
    at: int
    says: str

    def __str__(self) -> str:
        return self.says


@dataclass(frozen=True)
class Watched:
    """What is watched: x and z of a problem, which no new sample may have had a say in."""

    problem: Problem
    point: PyTree
    element: PyTree
    support: Support | None  # of ξ
    of_features: Set | None  # as it was given to the certificate
    known: Samples | None  # what x was computed from


@dataclass(frozen=True, eq=False)
class Monitor:
    """The state of a watch; `update` gives the next, and leaves this one as it is."""

    epsilon: float
    delta: float
    seen: int  # new samples so far
    e: float  # evidence now; 1 at the start
    alarm: Alarm | None
    watched: Watched = field(repr=False)
    frame: Frame | None = field(default=None, repr=False)
    state: State | None = field(default=None, repr=False)
    last: Samples | None = field(default=None, repr=False)  # what came in last

    @known_arguments
    def update(self, new_samples: Samples | Real) -> "Monitor":
        """After these samples, in the order in which they came. Once an alarm was raised it stays."""
        more = new_samples if isinstance(new_samples, Samples) else Samples(new_samples)
        for known in (self.watched.known, self.last):
            if known is not None and known.overlaps(more):
                refuse(
                    "new_samples",
                    "some of them were here before, or others that were drawn with the same seed",
                    "Pass new ones only, each once",
                )
        if self.alarm is not None:
            return replace(self, seen=self.seen + len(more), last=more)
        with double():
            return self._after(more)

    def _after(self, more: Samples) -> "Monitor":
        check_shapes(self.watched.problem, more, self.watched.point)
        inside = self._inside(more)
        first = int(np.argmin(inside)) if not inside.all() else len(more)
        found = self if first == 0 else self._within(more[:first])
        if found.alarm is None and first < len(more):
            at = self.seen + first + 1
            said = f"Sample {at} lies outside the support that the certificate leans on: it no longer holds."
            found = replace(found, alarm=Alarm(AlarmKind.OUTSIDE, at, said))
        return replace(found, seen=self.seen + len(more), last=more)

    def _inside(self, more: Samples) -> Any:
        support = self.watched.support
        return np.ones(len(more), bool) if support is None else inside_support(support, more.values).astype(bool)

    def _within(self, more: Samples) -> "Monitor":
        """All of them inside the support."""
        given = Samples.from_arrays(more.values, self.watched.support)
        case = Case(self.watched.problem, self.watched.point, self.watched.element, given)
        try:
            evidence = Evidence(case, [given], self.watched.of_features, independent=False)
            frame = self.frame or _frame(evidence)
            rows = evidence.rows[0]
            beyond = ~_in_reach(frame, rows)
        except Refused as error:
            refuse("certificate", f"cannot be watched: {error}", "Certify with a support, or watch another problem")
        state, e, alarm = self.state or State.start(1, len(frame.base)), self.e, None
        for place, (row, out) in enumerate(zip(rows, beyond, strict=True)):
            at = self.seen + place + 1
            if out:
                says = f"Sample {at} is farther off than was declared: the certificate no longer holds."
                alarm = Alarm(AlarmKind.OUTSIDE, at, says)
                break
            state = advanced(state, frame, frame.residuals(row[None]), self.epsilon)
            e = float(state.e[0])
            if e >= 1 / self.delta:
                alarm = Alarm(AlarmKind.DRIFT, at, _drift(self.epsilon, self.delta, at, e))
                break
        return replace(self, e=e, alarm=alarm, frame=frame, state=state)

    def __str__(self) -> str:
        if self.alarm is not None:
            return f"Alarm: {self.alarm}"
        told = f"e = {self.e:.3g}, where {1 / self.delta:.4g} is an alarm"
        return f"No alarm after {self.seen} new samples: {told}. x may still be an ε-zero, ε = {self.epsilon:.4g}."


def _drift(epsilon: float, delta: float, at: int, e: float) -> str:
    return (
        f"After {at} new samples x is no longer an ε-zero of what they say, ε = {epsilon:.4g}: e = {e:.3g}, which has "
        f"probability {delta:g} at most, over all time, as long as it is one. Solve and certify anew."
    )


@known_arguments
def monitor(
    certificate: Certificate,
    problem: Problem | None = None,
    support: Set | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Monitor:
    """Watch a certificate: `monitor(certificate).update(new_samples)`, again and again, until `.alarm` is not None.

    `problem`, `support`: of a certificate that was read from a record, which holds neither. `epsilon`: another than the
    certificate's, fixed beforehand. `delta`: the probability of a false alarm over all time; the certificate's unless
    given.
    """
    if not isinstance(certificate, Certificate):  # pyright: ignore[reportUnnecessaryIsInstance]  (users do)
        refuse("certificate", f"must be a certificate, but it is a {type(certificate).__name__}", "Pass ez.certify's")
    if certificate.verdict is Verdict.REFUSED and epsilon is None:
        refuse("certificate", "is refused, so there is no ε to watch", "Pass epsilon=, or certify with another kind")
    allowed = certificate.epsilon if epsilon is None else one_positive("epsilon", epsilon)
    level = certificate.delta if delta is None else checked_delta(delta)
    return Monitor(float(allowed), level, 0, 1.0, None, _watched(certificate, problem, support))


def _watched(certificate: Certificate, problem: Problem | None, support: Set | None) -> Watched:
    solution, record = certificate.solution, certificate.record
    own = getattr(certificate.using, "support", None)
    if isinstance(own, str):
        refuse("certificate", "leans on an estimated range, so nothing bounds what may come", "Certify with a support")
    checked_support(support)
    if solution is not None:
        if problem is not None or support is not None:
            refuse("problem, support", "are those of the solution", "Leave them out")
        if not isinstance(solution.samples, Samples):
            refuse("certificate", "must be of one data set that all agents see", "Watch one of them")
        declared = solution.problem.declared.support
        known = solution.samples if solution.holdout is None else solution.samples.followed_by(solution.holdout)
        within = declared if known.support is None else known.support
        return Watched(solution.problem, solution.point, solution.element, within, own, known)
    if problem is None or record is None:
        refuse("problem", "is needed: a record does not hold it", "Pass the problem that was certified")
    checked_problem(problem)
    point, element = (unpacked(problem, record[name]) for name in ("point", "element"))
    return Watched(problem, point, element, problem.declared.support if support is None else support, own, None)


def _frame(evidence: Evidence) -> Frame:
    """How residuals follow from rows, and how far these can be."""
    case, collapsed = evidence.case, evidence.collapsed
    (region,), _ = evidence.regions(EmpiricalBernstein())
    assert region is not None
    origin, half = evidence.rows[0][0], region.diameter
    if region.lower is not None and region.upper is not None:
        origin, half = (region.lower + region.upper) / 2, (region.upper - region.lower) / 2 * (1 + SLACK)
    if collapsed is None:
        return Frame(case.z + origin, None, origin, half)
    C, _ = case.noise_map(collapsed)
    if C is None:
        refuse("certificate", "is of a problem that is too large to be watched", "Watch a part of it")
    return Frame(case.residual(collapsed.at([origin])), C, origin, half)


def _in_reach(frame: Frame, rows: FloatArray) -> Any:
    """Whether rows are where they can be."""
    apart, room = rows - frame.origin, 1 + 1e-6
    if isinstance(frame.half, float):
        return np.linalg.norm(apart, axis=1) <= frame.half * room
    return np.all(np.abs(apart) <= frame.half * room + 1e-9 * np.abs(frame.origin), axis=1)
