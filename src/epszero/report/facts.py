"""Tables of a page: the numbers, what they lean on, the audit, the plan, and what it takes to get them again."""

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from epszero._types import PyTree
from epszero.audit import Audit
from epszero.certificates import Certificate, Plan
from epszero.certificates import remedies as remedy
from epszero.certificates.remedies import FLOOR, Part, Remedy
from epszero.report.words import PROVENANCES, STANDINGS, bound, number, percent, size_of
from epszero.samples import Samples
from epszero.solve import Solution

PACKAGES = ("epszero", "jax", "numpy", "scipy", "clarabel")
SYMBOLS = {"mu": "μ", "kappa": "κ", "theta": "θ"}
MEANINGS = {
    "mu": "strong monotonicity",
    "kappa": "Lipschitz constant",
    "theta": "cocoercivity",
    "R": "most that O(x, ξ) changes with the sample",
    "M": "largest O(x, ξ)",
    "diameter": "of the domain",
}


PARTS = {
    Part.VARIANCE: "by variance: how much samples differ",
    Part.RANGE: "by range: how far the support reaches",
    Part.SPLIT: "by the split of δ among the lines",
}
REMEDIES = {
    Remedy.SAMPLES: "twice the samples",
    Remedy.SUPPORT: "a support half as wide, if that can be vouched for",
    Remedy.QUESTION: 'only this line, by of="distance"',
}


@dataclass(frozen=True)
class Line:
    """A line of a table: a name, a value or word with its symbol, and what is said of it."""

    name: str
    value: str
    says: str = ""
    symbol: str = ""
    kind: str = ""  # class in the style sheet
    more: str = ""  # a witness


def numbers(certificate: Certificate, game: bool | None, loss: bool | None) -> list[Line]:
    """ε, its terms, and what follows from it, with the notes; `game`, `loss`: whether the problem is one, or None."""
    terms = certificate.terms
    made = " + ".join(f"{bound(terms[name])} {name}" for name in ("empirical", "deviation") if name in terms)
    rows = [Line("ε, the residual", f"≤\u00a0{bound(certificate.epsilon)}", made and f"= {made}")]
    notes = certificate.notes
    share = certificate.relative_distance
    size = "" if share is None else f"{percent(share)} of the size of x. "
    rows.append(_bound("distance to the true answer", certificate.distance, size, notes.get("distance", "")))
    savings = certificate.exploitability
    if savings is not None or game is not False:
        most = None if savings is None else float(np.max(savings))
        rows.append(_bound("largest saving of an agent", most, "", notes.get("exploitability", "")))
        rows.append(_bound("savings of all together", certificate.total_exploitability, "", notes.get("total", "")))
    if certificate.cost_gap is not None or loss is not False:
        rows.append(_bound("cost above the least", certificate.cost_gap, "", notes.get("cost_gap", "")))
    known = {"empirical", "deviation", FLOOR, *(f"distance by {part}" for part in Part)}
    rest = {name: value for name, value in terms.items() if name not in known}
    rows += [Line(name.replace("_", " "), number(value), "enters the bound") for name, value in rest.items()]
    return rows


def _bound(name: str, value: float | None, size: str, note: str) -> Line:
    if value is None:
        return Line(name, "no bound", note)
    return Line(name, f"≤\u00a0{bound(value)}", f"{size}{note}".strip())


def made_of(certificate: Certificate) -> list[Line]:
    """The parts of the distance, and what no bound can be below; nothing where it does not come from a piece."""
    parts = remedy.parts(certificate)
    if not parts or certificate.distance is None:
        return []
    rows = [
        Line(PARTS[part], number(size, 3), f"{100 * size / certificate.distance:.0f}\u00a0% of the bound")
        for part, size in parts.items()
    ]
    floor = certificate.terms[FLOOR]
    says = "an outcome at a corner of the support, too rare to be seen in so many samples, moves the truth so far"
    return [*rows, Line("the floor: no bound that holds for every law is below", number(floor, 3), says)]


def remedies(certificate: Certificate) -> list[Line]:
    """About what the distance would be, the best first."""
    now = certificate.distance
    found = sorted(remedy.forecasts(certificate).items(), key=lambda item: item[1])
    return [
        Line(_asked(which, certificate), f"≈\u00a0{number(away, 3)}", f"{100 * (1 - away / now):.0f}\u00a0% less")
        for which, away in found
        if now is not None
    ]


def _asked(which: Remedy, certificate: Certificate) -> str:
    if which is Remedy.RISK:
        return f"δ = {number(2 * certificate.delta)} in place of {number(certificate.delta)}"
    return REMEDIES[which]


def leanings(certificate: Certificate) -> list[Line]:
    """What it leans on, and on whose word; violated things first, then words, then proofs."""
    order = ["violated", "estimated", "declared", "verified", "exact"]
    listed = sorted(certificate.leans_on, key=lambda one: order.index(str(one.provenance)))
    return [
        Line(one.what, str(one.provenance), one.evidence, PROVENANCES[str(one.provenance)][0], str(one.provenance))
        for one in listed
    ]


def constants(audit: Audit) -> list[Line]:
    """Each with its provenance and evidence."""
    rows: list[Line] = []
    for name, one in audit.constants.items():
        word = str(one.provenance)
        title = " ".join(part for part in (SYMBOLS.get(name, name), MEANINGS.get(name, "")) if part)
        rows.append(Line(title, word, one.evidence, PROVENANCES[word][0], word, number(one.value)))
    return rows


def assumptions(audit: Audit) -> list[Line]:
    """Violated ones first."""
    listed = sorted(audit.assumptions.items(), key=lambda item: list(STANDINGS).index(str(item[1].status)))
    rows: list[Line] = []
    for name, one in listed:
        word = str(one.status)
        seen = ""
        if one.witness is not None:
            seen = f"witness: {one.witness}"
        elif one.sample is not None:
            seen = f"witness: sample {one.sample}"
        rows.append(Line(name, word, one.evidence, STANDINGS[word][0], word.replace(" ", "-"), seen))
    return rows


def plans(plan: Plan) -> list[Line]:
    """Kind by kind, best first."""
    return [Line(row.kind, number(row.answer), row.note) for row in plan.rows]


def run(solution: Solution) -> list[Line]:
    """How the answer was found."""
    rows = [
        Line("problem", type(solution.problem).__name__, f"{number(_entries(solution.x))} numbers in the answer"),
        Line("ended", solution.status.value, " ".join((solution.status.remedy, *solution.notes)).strip()),
        Line("residual on the data", number(solution.residual, 3)),
        Line("iterations", number(solution.iterations), "fixed beforehand" if solution.fixed_iterations else ""),
        Line("method", solution.method.description),
        Line("data", size_of(solution.samples)),
    ]
    if solution.holdout is not None:
        rows.append(Line("kept aside", size_of(solution.holdout), "unseen by the run"))
    if solution.multipliers is not None:
        low, high = float(np.min(solution.multipliers)), float(np.max(solution.multipliers))
        said = f"prices of the {len(solution.multipliers)} shared constraints"
        rows.append(Line("multipliers", f"{number(low, 3)} to {number(high, 3)}", said))
    return rows


def data(record: dict[str, Any] | None, solution: Solution | None) -> list[Line]:
    """Sizes and digests, from the certificate's record or else from the solution."""
    if record is not None:
        found = record["data"]
        parts = [("seen by the run", one) for one in found["seen"]]
        parts += [("kept aside", found["kept_aside"])] if found["kept_aside"] else []
        parts += [("brought by the certificate", one) for one in found["given"]]
        listed = [(name, one["samples"], one["digest"], one["support"]) for name, one in parts]
    elif solution is not None and solution.samples is not None:
        sets = solution.samples if isinstance(solution.samples, list) else [solution.samples]
        listed = [_brief("seen by the run", one) for one in sets]
        listed += [] if solution.holdout is None else [_brief("kept aside", solution.holdout)]
    else:
        return []
    rows = [
        Line(name, f"{number(many)} samples", f"support {support}" if support else "no support given", more=digest)
        for name, many, digest, support in listed[:MOST_SETS]
    ]
    if len(listed) > MOST_SETS:
        rows.append(Line(f"and {len(listed) - MOST_SETS} more", "", "all of them are in the certificate's record"))
    return rows


MOST_SETS = 20


def _brief(name: str, samples: Samples) -> tuple[str, int, str, str | None]:
    return name, len(samples), samples.digest(), None if samples.support is None else repr(samples.support)


def versions(record: dict[str, Any] | None) -> list[Line]:
    """Of this machine, and of the one that certified where they differ."""
    here = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    then = {} if record is None else record["versions"]
    rows: list[Line] = []
    for name, one in here.items():
        other = then.get(name, one)
        rows.append(Line(name, one, "" if other == one else f"the certificate was made with {other}"))
    return rows


def _entries(x: PyTree) -> int:
    return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(x))
