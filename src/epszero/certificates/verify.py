"""`verify`: recompute a certificate from its record, the problem and the data, and compare."""

import math
from dataclasses import dataclass
from typing import Any

from epszero._checks import InputError, known_arguments, refuse
from epszero.certificates._base import Kind
from epszero.certificates._inputs import checked_delta
from epszero.certificates.certificate import Certificate
from epszero.certificates.certify import certificate_of
from epszero.certificates.record import decoded, read_record, record_of, solution_of
from epszero.problems import Problem
from epszero.samples import Samples
from epszero.solve.setup import checked_samples

AGREE = 1e-7  # relative difference that rounding and other versions of libraries explain
NUMBERS = ("epsilon", "distance", "relative_distance", "exploitability", "total_exploitability", "cost_gap", "terms")
WORDS = ("verdict", "by", "notes", "leans_on", "declared", "kind")


@dataclass(frozen=True)
class Verification:
    """Whether a record holds up; true where it does."""

    agrees: bool
    differences: tuple[str, ...]  # in sentences
    certificate: Certificate | None  # as recomputed; None where the data are not those of the record

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        if self.agrees and self.certificate is not None:
            found = self.certificate.epsilon
            return f"The certificate holds up: ε = {found:.6g} was recomputed from x, z and the data."
        return "The certificate does not hold up. " + " ".join(self.differences)


@known_arguments
def verify(
    certificate_json: Any, problem: Any, samples: Any = None, fresh: Any = None, using: Kind | None = None
) -> Verification:
    """Recompute ε from the record that `certificate.to_json()` wrote, and compare every claim.

    `samples`: the data given to `ez.solve`, before samples were kept aside. `fresh`: what was passed to
    HoldOut(samples=…) or streamed into an Anytime certificate; a list where there are several. `using`: the kind, where
    a record cannot hold it (one of your own, or with a support that is more than arrays).
    """
    record = read_record(certificate_json)
    if not isinstance(problem, Problem):
        refuse("problem", f"must be a problem such as ez.Game, but it is a {type(problem).__name__}", "Pass yours")
    others = [] if fresh is None else list(fresh) if isinstance(fresh, list | tuple) else [fresh]
    if not all(isinstance(one, Samples) for one in others):
        refuse("fresh", "must be ez.Samples, or a list of them", "Wrap the data in ez.Samples")
    data = checked_samples(problem, samples)
    try:
        return _verified(record, problem, data, others, using)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"certificate_json: the record is damaged ({what}). Pass what to_json() returned.") from error


def _verified(record: dict[str, Any], problem: Problem, data: Any, fresh: list[Samples], using: Any) -> Verification:
    delta = checked_delta(record["delta"])
    kept, aside = None, record["data"]["kept_aside"]
    if aside is not None:
        if not isinstance(data, Samples) or len(data) <= aside["samples"]:
            return Verification(False, ("samples: those kept aside do not fit in the data given.",), None)
        data, kept = data.split((len(data) - aside["samples"]) / len(data), seed=aside["seed"])
    missing = _compare_data(record["data"], data, kept, fresh)
    if missing:
        return Verification(False, tuple(missing), None)
    kind = using or decoded(record["kind"], {one.digest(): one for one in fresh})
    again = certificate_of(solution_of(record, problem, data, kept), delta, kind)
    differences = _compare(record, record_of(again))
    return Verification(not differences, tuple(differences), again)


def _compare_data(known: dict[str, Any], data: Any, kept: Samples | None, fresh: list[Samples]) -> list[str]:
    parts = [] if data is None else list(data) if isinstance(data, list) else [data]
    if len(parts) != len(known["seen"]):
        return [f"samples: the record speaks of {len(known['seen'])} data sets, and {len(parts)} are given."]
    pairs = [("samples", *pair) for pair in zip(parts, known["seen"], strict=True)]
    if kept is not None:
        pairs.append(("samples kept aside", kept, known["kept_aside"]))
    wrong = [f"{name}: the data are not those of the record (their digests differ)." for name, one, recorded in pairs
             if one.digest() != recorded["digest"]]  # fmt: skip
    given = {one.digest() for one in fresh}
    if any(one["digest"] not in given for one in known["given"]):
        wrong.append("fresh: the certificate leans on samples that the run has not seen; pass these as fresh=.")
    return wrong


def _compare(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    room = AGREE * (old["epsilon"] or 0.0)
    found = [f"{name}: {_shown(old[name], new[name])}." for name in NUMBERS if not _alike(old[name], new[name], room)]
    found += [f"{name}: {_shown(old[name], new[name])}." for name in WORDS if old[name] != new[name]]
    supports = [[one["support"] for one in record["data"]["seen"]] for record in (old, new)]
    if supports[0] != supports[1]:
        found.append("samples: their support is not the one recorded.")
    return found


def _shown(old: Any, new: Any) -> str:
    if isinstance(old, dict | list):
        return "what is recorded is not what is found"
    return f"recorded {old}, found {new}"


def _alike(a: Any, b: Any, room: float) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[key], b[key], room) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_alike(*pair, room) for pair in zip(a, b, strict=True))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=AGREE, abs_tol=max(room, 1e-12))
    return a == b
