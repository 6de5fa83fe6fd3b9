"""`verify`: recompute a certificate from its record, the problem and the data, and compare."""

import math
from dataclasses import dataclass
from typing import Any

from epszero._checks import known_arguments, refuse
from epszero.certificates.certificate import Certificate
from epszero.certificates.certify import certificate_of
from epszero.certificates.record import decoded, read_record, record_of, solution_of
from epszero.problems import Problem
from epszero.samples import Samples
from epszero.solve.setup import checked_samples

AGREE = 1e-7  # relative difference that rounding and other versions of libraries explain


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
            return (
                f"The certificate holds up: ε = {self.certificate.epsilon:.6g} was recomputed from x, z and the data."
            )
        return "The certificate does not hold up. " + " ".join(self.differences)


@known_arguments
def verify(certificate_json: Any, problem: Any, samples: Any = None, fresh: Samples | None = None) -> Verification:
    """Recompute ε from the record that `certificate.to_json()` wrote, and compare every claim.

    `samples`: the data given to `ez.solve`, before samples were kept aside. `fresh`: what was passed to
    HoldOut(samples=…) or streamed into an Anytime certificate.
    """
    record = read_record(certificate_json)
    if not isinstance(problem, Problem):
        refuse(
            "problem",
            f"must be a problem such as ez.Game, but it is a {type(problem).__name__}",
            "Pass the one certified",
        )
    data = checked_samples(problem, samples)
    kept, aside = None, record["data"]["kept_aside"]
    if aside is not None:
        if not isinstance(data, Samples) or len(data) <= aside["samples"]:
            return _other("samples", "the record's samples and those kept aside do not fit in the data given")
        data, kept = data.split((len(data) - aside["samples"]) / len(data), seed=aside["seed"])
    missing = _compare_data(record, data, kept, fresh)
    if missing:
        return Verification(False, tuple(missing), None)
    kind = decoded(record["kind"])
    if record["data"]["given"] is not None:
        object.__setattr__(kind, "samples", fresh)
    again = certificate_of(solution_of(record, problem, data, kept), record["delta"], kind)
    differences = _compare(record, record_of(again))
    return Verification(not differences, tuple(differences), again)


def _other(name: str, what: str) -> Verification:
    return Verification(False, (f"{name}: {what}.",), None)


def _compare_data(record: dict[str, Any], data: Any, kept: Samples | None, fresh: Samples | None) -> list[str]:
    parts = [] if data is None else list(data) if isinstance(data, list) else [data]
    seen = record["data"]["seen"]
    if len(parts) != len(seen):
        return [f"samples: the record speaks of {len(seen)} data sets, and {len(parts)} are given."]
    given = record["data"]["given"]
    if given is not None and fresh is None:
        return ["fresh: the certificate leans on other samples than the run saw; pass them as fresh=."]
    pairs = [*zip(["samples"] * len(parts), parts, seen, strict=True)]
    if kept is not None:
        pairs.append(("samples kept aside", kept, record["data"]["kept_aside"]))
    if given is not None and fresh is not None:
        pairs.append(("fresh", fresh, given))
    return [f"{name}: the data are not those of the record (their digests differ)." for name, one, known in pairs
            if one.digest() != known["digest"]]  # fmt: skip


def _compare(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for name in (
        "epsilon",
        "distance",
        "relative_distance",
        "exploitability",
        "total_exploitability",
        "cost_gap",
        "terms",
    ):
        if not _alike(old[name], new[name], AGREE * (old["epsilon"] or 0.0)):
            shown = (old[name], new[name]) if not isinstance(old[name], dict | list) else ("as recorded", "otherwise")
            found.append(f"{name}: recorded {shown[0]}, recomputed {shown[1]}.")
    found += [
        f"{name}: recorded {old[name]!r}, recomputed {new[name]!r}." for name in ("verdict",) if old[name] != new[name]
    ]
    if [one["what"] for one in old["leans_on"]] != [one["what"] for one in new["leans_on"]]:
        found.append("leans_on: what the certificate leans on is not what the record says.")
    return found


def _alike(a: Any, b: Any, room: float) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[key], b[key], room) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_alike(*pair, room) for pair in zip(a, b, strict=True))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=AGREE, abs_tol=max(room, 1e-12))
    return a == b
