"""`verify`: recompute a certificate from its record, the problem and the data, and compare.

Nothing that a record says is believed. What it claims is worked out again from x, z, the problem and the samples; where
a claim leans on the run (stability), the run is made again from its start, and must lead to x. What cannot be made
again, such as a method or a kind of the user's own, cannot be verified, which is not the same as false.

Compared: every number and every word of the claim, the declared constants, the kind, and of the data their digests, how
many they are and their supports. Taken as given: x, z, δ and the kind, from which all else is worked out. Looked at for
their form only: the versions, and, where no claim leans on it, the run. What no record can show: that rows were put in
another order or left out before they were passed on, that fresh samples were picked among several, and whether what
is declared is true.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from epszero._checks import InputError, known_arguments, refuse
from epszero._double import double
from epszero._memory import shape_of
from epszero._points import flat_of
from epszero._types import PyTree
from epszero.certificates._base import CHOSEN, Kind
from epszero.certificates._inputs import checked_problem
from epszero.certificates.agreement import AGREE, differences, nudged, nudged_samples
from epszero.certificates.case import Case, HowFound
from epszero.certificates.certificate import Certificate
from epszero.certificates.certified_piece import IMAGE, LINES
from epszero.certificates.certify import NAMED, certificate_of
from epszero.certificates.choose import chosen
from epszero.certificates.encoding import FAULTS, REMEDY, CannotRebuild, encoded, rebuilt
from epszero.certificates.reading import read_record
from epszero.certificates.record import brief, claims_of, image_from, unpacked
from epszero.methods import ForwardBackward, Method
from epszero.oracles import strategies
from epszero.problems import Problem
from epszero.samples import Samples
from epszero.solve import HOLDOUT_SEED, solve
from epszero.solve.setup import GivenSamples, check_shapes, checked_samples

NUDGES = 3  # recomputations that show how far rounding carries


class Outcome(StrEnum):
    """What became of a verification."""

    HOLDS = "holds up"
    FALSE = "does not hold up"
    CANNOT = "cannot be verified"


FORMER_SEED = 0  # of hold-outs, in records of the first form


class FalseClaim(Exception):
    """A record says something of the data or of the run that is not so."""


@dataclass(frozen=True)
class Verification:
    """Whether a record holds up; true where it does."""

    outcome: Outcome
    differences: tuple[str, ...]  # in sentences
    certificate: Certificate | None  # as recomputed; None where it could not be

    @property
    def agrees(self) -> bool:
        """Whether it holds up."""
        return self.outcome is Outcome.HOLDS

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        if self.agrees and self.certificate is not None:
            found = self.certificate.epsilon
            return f"The certificate holds up: ε = {found:.6g} was recomputed from x, z and the data."
        return f"The certificate {self.outcome}. " + " ".join(self.differences)


@known_arguments
def verify(
    certificate_json: str | bytes | Mapping[str, Any] | Certificate,
    problem: Problem,
    samples: GivenSamples = None,
    fresh: Samples | Sequence[Samples] | None = None,
    using: Kind | None = None,
) -> Verification:
    """Recompute ε from the record that `certificate.to_json()` wrote, and compare every claim.

    `samples`: the data given to `ez.solve`, before samples were kept aside; or the whole stream, where more came in by
    `certificate.update`. `fresh`: what was passed to HoldOut(samples=…); or the stream of an Anytime certificate, whole
    or in the pieces that came in; a list where there are several. `using`: the kind, where a record cannot hold it (one
    of your own, or with a support that is more than arrays).

    Of the run only what a claim leans on is made again; else its iterations, status and notes are not compared. A
    hold-out is drawn with one seed for everyone. That rows were put in another order or left out before they were
    passed to `ez.solve`, or that fresh samples were picked among several, no record can show.
    """
    record = read_record(certificate_json)
    checked_problem(problem)
    _check_kind(using)
    others = _fresh(fresh)
    data = checked_samples(problem, samples)
    try:
        with double():
            if any(each["evidence"] == CHOSEN.evidence for each in record["leans_on"]):
                data, others = _as_chosen(data, others)
            return _verified(record, problem, _Data.of(record, data, others), using)
    except InputError:
        raise
    except CannotRebuild as error:
        return Verification(Outcome.CANNOT, (str(error),), None)
    except FalseClaim as error:
        return Verification(Outcome.FALSE, (str(error),), None)
    except FAULTS as error:
        what = f"{type(error).__name__}: {error}"[:300]
        raise InputError.about("certificate_json", f"the record is damaged ({what})", REMEDY) from error


def _check_kind(using: Any) -> None:
    if not (using is None or isinstance(using, Kind)):
        refuse("using", f"must be a kind of certificate, but it is {using!r}", "Pass the one that was used")


def _fresh(given: Any) -> list[Samples]:
    others = [] if given is None else list(given) if isinstance(given, list | tuple) else [given]
    if not all(isinstance(one, Samples) for one in others):
        refuse("fresh", "must be ez.Samples, or a list of them", "Wrap the data in ez.Samples")
    return others


def _verified(record: dict[str, Any], problem: Problem, data: "_Data", using: Kind | None) -> Verification:
    point, element = (unpacked(problem, record[name]) for name in ("point", "element"))
    if shape_of(point) != shape_of(element):
        refuse("certificate_json", "the record is damaged: point and element are of different shapes", REMEDY)
    check_shapes(problem, data.seen, point)
    kind = using or rebuilt(record["kind"], data.by_digest)
    case = Case(
        problem,
        point,
        element,
        data.seen,
        kept_aside=data.kept,
        run=lambda: _run_again(record, problem, data.seen, point),
    )
    rows = image_from(record, len(flat_of(strategies(point))))
    again = certificate_of(case, record["delta"], kind, rows=rows)
    most = len(data.seen) if isinstance(data.seen, Samples) else 1
    written = encoded(kind.recordable(most))
    if again.reason == NAMED and record["reason"] != NAMED:  # then it must be the kind that is taken by default
        usual = [chosen(case, of) for of in (None, *LINES, *([] if rows is None else [IMAGE]))]
        again = replace(again, reason=next((why for one, why in usual if encoded(one) == written), NAMED))
    new = {**claims_of(again, problem), "kind": written}

    def moved() -> list[dict[str, Any]]:
        found = [_nudged(case, data, seed) for seed in range(NUDGES)]
        return [claims_of(certificate_of(one, record["delta"], kind, rows=rows), problem) for one in found]

    wrong = differences(record, new, moved)
    if [brief(one) for one in kind.brought] != record["data"]["given"]:
        wrong.append("fresh: the samples that the certificate leans on are not those that the record speaks of.")
    if wrong and record["form"] == 1:  # made where some constants were found in another way, and called otherwise
        wrong.append("The record is of the first form: certify anew.")
        return Verification(Outcome.CANNOT, tuple(wrong), again)
    return Verification(Outcome.FALSE if wrong else Outcome.HOLDS, tuple(wrong), again)


def _nudged(case: Case, data: "_Data", seed: int) -> Case:
    """The same case a few units in the last place away."""
    point, element = nudged(case.point, 3 * seed), nudged(case.element, 3 * seed + 1)
    seen, kept = (nudged_samples(one, 3 * seed + 2) for one in (data.seen, data.kept))
    return Case(case.problem, point, element, seen, kept_aside=kept, run=lambda: case.run)  # pyright: ignore[reportArgumentType]


# -- the run -----------------------------------------------------------------------------------------------------------


def _run_again(record: dict[str, Any], problem: Problem, data: Any, point: PyTree) -> HowFound:
    """The run that a record speaks of, made again: it must lead to the same point."""
    run = record["run"]
    K = run["iterations"]
    if not run["fixed_iterations"]:
        return HowFound(ForwardBackward(), K, False)  # which ends every argument that leans on it
    asked, start = _asked(record, problem, point)
    with double():
        again = solve(problem, data, asked, x0=start, iterations=K, throw=False)
    away = np.linalg.norm(flat_of(again.point) - flat_of(point))
    scale = np.linalg.norm(flat_of(point)) + np.linalg.norm(flat_of(again.start))
    if not away <= AGREE * scale:
        if record["form"] == 1:
            raise CannotRebuild("run: a record of the first form does not say where its run started.")
        raise FalseClaim(f"run: {K} iterations from the recorded start end {away:.3g} away from x.")
    found = {
        "method": type(again.method).__name__,
        "description": again.method.description,
        "status": again.status.value,
    }
    wrong = [name for name, word in found.items() if run[name] != word]
    if wrong and record["form"] > 1:
        raise FalseClaim(f"run: its {wrong[0]} is {found[wrong[0]]!r}, and {run[wrong[0]][:80]!r} is recorded.")
    return HowFound(again.method, K, True)


def _asked(record: dict[str, Any], problem: Problem, point: PyTree) -> tuple[Method | None, PyTree]:
    """The method as it was asked for, and x⁰."""
    run = record["run"]
    if record["form"] == 1:
        return _old_method(run), None
    try:
        asked = None if run["asked"] is None else Method.from_record(run["asked"], point)
    except LookupError as error:
        raise CannotRebuild(f"run: {error}") from error
    return asked, unpacked(problem, run["start"])


def _old_method(run: Mapping[str, Any]) -> Method:
    """From a record of the first form, which has one step for all blocks and iterations, or nothing."""
    steps = run["steps"]
    if not isinstance(steps, list) or len(steps) != 1 or not isinstance(steps[0], int | float):
        raise CannotRebuild("run: a record of the first form does not hold these steps.")
    options = {} if run["relaxation"] is None else {"relaxation": run["relaxation"]}
    return Method.from_record({"method": run["method"], "step": steps[0], **options}, None)


# -- the data ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Data:
    """What the run has seen and what was kept aside, as the record says; and all that it may lean on besides."""

    seen: Samples | list[Samples] | None
    kept: Samples | None
    by_digest: dict[str, Samples]

    @staticmethod
    def of(record: dict[str, Any], data: Any, fresh: list[Samples]) -> "_Data":
        """From what the user passed; `FalseClaim` where it is not what the record speaks of."""
        known = record["data"]
        aside, later = known["kept_aside"], fresh
        if isinstance(data, Samples) and len(known["seen"]) == 1:
            first = known["seen"][0]["samples"] + (0 if aside is None else aside["samples"])
            if known["given"] and len(data) > first:  # the whole stream, of which the run knew the beginning
                data, later = data[:first], [*fresh, data[first:]]
        data, kept = _parted(data, aside, FORMER_SEED if record["form"] == 1 else HOLDOUT_SEED)
        parts = [] if data is None else list(data) if isinstance(data, list) else [data]
        if len(parts) != len(known["seen"]):
            raise FalseClaim(f"samples: the record speaks of {len(known['seen'])} data sets, not {len(parts)}.")
        for one, recorded in zip(parts, known["seen"], strict=True):
            _same("samples", one, recorded)
        if kept is not None and aside is not None:
            _same("samples kept aside", kept, {name: value for name, value in aside.items() if name != "seed"})
        found = {one.digest(): one for one in reversed(_streams([*parts, *([] if kept is None else [kept])], later))}
        if any(one["digest"] not in found for one in known["given"]):
            raise FalseClaim("fresh: the certificate leans on samples that the run has not seen; pass these as fresh=.")
        return _Data(data, kept, found)


def _as_chosen(data: Any, fresh: list[Samples]) -> tuple[Any, list[Samples]]:
    """Copies do not know that their rows were chosen. A record that says so claims less, and is believed."""
    one_each = isinstance(data, list)
    seen: list[Samples] = list(data) if one_each else [] if data is None else [data]
    if any(one.chosen for one in (*seen, *fresh)):
        return data, fresh
    chosen = [one[np.arange(len(one))] for one in seen]
    return chosen if one_each else chosen[0] if chosen else None, [one[np.arange(len(one))] for one in fresh]


def _parted(data: Any, aside: dict[str, Any] | None, seed: int) -> tuple[Any, Samples | None]:
    """What the run has seen, and what it has not: drawn with the one seed that there is."""
    if aside is None:
        return data, None
    if aside["seed"] != seed:
        raise FalseClaim(
            f"samples kept aside: the record says that they were drawn with the seed {aside['seed']}, but ez.solve "
            f"draws with {seed}, so that nobody can pick among several."
        )
    if not isinstance(data, Samples) or len(data) <= aside["samples"]:
        raise FalseClaim("samples: those kept aside do not fit in the data given.")
    return data.split((len(data) - aside["samples"]) / len(data), seed=seed)


def _same(name: str, one: Samples, recorded: dict[str, Any]) -> None:
    found = brief(one)
    if found["digest"] != recorded["digest"]:
        raise FalseClaim(f"{name}: the data are not those of the record (their digests differ).")
    if found != recorded:
        raise FalseClaim(f"{name}: their support or their number is not the one recorded.")


def _streams(known: list[Samples], fresh: list[Samples]) -> list[Samples]:
    """Data sets that a certificate may lean on: as passed, and streams that the pieces make up."""
    found = [*fresh, *known]
    for start in (None, *known):
        whole = start
        for piece in fresh:
            try:
                whole = piece if whole is None else whole.followed_by(piece)
            except InputError:  # of another kind
                break
            found.append(whole)
    return found
