"""`Certificate`: what a user receives: the number, what it means and leans on, and all it takes to recompute it."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import numpy as np

from epszero._checks import known_arguments, one_of, refuse
from epszero._doors import html_of
from epszero._frames import Library, framed
from epszero._memory import remembered
from epszero._points import flat_of, length
from epszero._types import FloatArray, Real
from epszero.certificates._base import Kind, Leaning, Obstacle
from epszero.certificates.anytime import Anytime
from epszero.certificates.asymptotic import beside
from epszero.certificates.bands import (
    Band,
    Image,
    Linear,
    aggregate_band,
    band,
    entries_band,
    missing,
    multipliers_band,
)
from epszero.certificates.certified_piece import Sharpened
from epszero.certificates.dependent import Dependent
from epszero.certificates.known import Known
from epszero.certificates.likely import Guessed, Normal, likely_norm
from epszero.certificates.remedies import FLOOR, Part, parts
from epszero.certificates.sharp import Sharp
from epszero.facts import Provenance
from epszero.samples import Samples
from epszero.solve import Solution
from epszero.solve.labels import column_names, listed, named_rows

Which = Literal["intervals", "aggregate", "multipliers"]
NO_GAME = "the problem is not a game"
NO_MINIMUM = "the problem is not a minimisation"
FEW = 20  # samples, below which nothing is said of what is likely


class Verdict(StrEnum):
    """What may be said of a certificate (docs/theory.md)."""

    GUARANTEED = "guaranteed"  # all it leans on is exact or verified
    CONDITIONAL = "conditional"  # something is declared
    HEURISTIC = "heuristic"  # something is estimated
    REFUSED = "refused"  # an assumption is violated, or nothing can be said: ε = ∞


def verdict_of(epsilon: float, leans_on: tuple[Leaning, ...]) -> Verdict:
    """The verdict that follows from what is leant on."""
    provenances = {leaning.provenance for leaning in leans_on}
    if not math.isfinite(epsilon) or Provenance.VIOLATED in provenances:
        return Verdict.REFUSED
    if Provenance.ESTIMATED in provenances:
        return Verdict.HEURISTIC
    return Verdict.CONDITIONAL if Provenance.DECLARED in provenances else Verdict.GUARANTEED


@dataclass(frozen=True, eq=False)
class Certificate:
    """x is an ε-zero: ‖z + B(x)‖ ≤ ε with probability ≥ 1 − δ; and what follows from that on the same event."""

    epsilon: float  # ∞ where nothing can be said
    delta: float
    verdict: Verdict
    by: str  # the kind of certificate, its bound, the samples used
    reason: str  # why this kind was chosen, or why nothing can be said
    distance: float | None  # ‖x − x*‖ is at most this; None where `notes` says why there is no bound
    relative_distance: float | None  # the same divided by ‖x‖
    exploitability: FloatArray | None  # of each agent: what it could save by deviating alone
    total_exploitability: float | None  # of all agents together: the Nikaido–Isoda gap
    cost_gap: float | None  # in a minimisation: how much dearer than the best
    notes: dict[str, str]  # for each of these: what it used, or why it is None
    terms: dict[str, float]  # what ε is made of
    leans_on: tuple[Leaning, ...]
    using: Kind = field(repr=False)
    sharp: Sharpened | None = field(default=None, repr=False)  # the piece that the truth lies on, where it is certified
    guessed: Guessed | None = field(default=None, repr=False)  # where x* probably is, of a kind that guesses
    obstacle: Obstacle | None = None  # where nothing can be said: what stands in the way
    solution: Solution | None = field(default=None, repr=False)  # None where the certificate was read from a record
    record: dict[str, Any] | None = field(default=None, repr=False)  # the record it was read from
    image: Image | None = field(default=None, repr=False)  # a linear image of x, where `certify(of=…)` asked for one
    beside: bool = field(default=True, repr=False)  # whether what is likely is printed beside what is sure

    @known_arguments
    def update(self, new_samples: Samples | Real, solution: Solution | None = None) -> "Certificate":
        """The certificate with more of the stream, never weaker than before; for `Anytime` certificates only.

        `solution`: a new one, solved on whatever has come in by now, where the oracle is affine in features.
        """
        from epszero.certificates.certify import certify, streamed  # noqa: PLC0415  (they import this module)

        if not isinstance(self.using, Anytime):
            refuse(
                "update",
                f"is for certificates by ez.certificates.Anytime(), and this one is by {self.using.title}",
                "Certify anew on all data, which must then be decided on beforehand",
            )
        if self.solution is None:
            refuse(
                "update", "needs the solution, which a record does not carry", "Update the certificate it was made of"
            )
        more = new_samples if isinstance(new_samples, Samples) else Samples(new_samples)
        return certify(*streamed(self, more, solution))

    @known_arguments
    def interval(self, of: Linear, together: bool = True) -> Band:
        """Bounds on a linear function of x*, all its entries at once.

        `of`: the number of an entry of x (flat), a matrix with one column per entry of x, or a linear function of x; to
        be decided before the data are looked at. It holds together with all lines and the ready-made bands, with
        probability 1 − δ. Two calls do not hold together, nor does a call with the bands that a picture draws of a
        matrix of its own (`ez.models.routing`); one call with all rows does.
        `together=False`: nearly all of δ for this band, which is shorter and holds by itself, not with anything else.
        """
        return band(self, of, together)

    @property
    def intervals(self) -> Band:
        """Bounds on every entry of x*, shaped like x, all at once, and with `aggregate` and `multipliers`."""
        return entries_band(self)

    @property
    def aggregate(self) -> Band:
        """Bounds on the sum of all agents' strategies, in games of agents alike; with `intervals` and `multipliers`."""
        return aggregate_band(self)

    @property
    def multipliers(self) -> Band:
        """Bounds on the multipliers of shared constraints, all at once, and with `intervals` and `aggregate`."""
        return multipliers_band(self)

    @property
    def likely(self) -> float | None:
        """About how far x is from x*, with probability 1 − δ, as s grows: a guess beside the bound, and no part of it.

        By the normal approximation on the piece of x (`ez.certificates.Asymptotic`), certified or not, worked out when
        it is asked for; None where that has nothing to say, for fewer than 20 samples, for days in their order, and
        where the certificate is a guess itself. It fails for rare outcomes, which the bound does not.
        """
        known = None if self.sharp is None else self.sharp.known
        if isinstance(known, Sharp) and self.solution is not None and self.solution.holdout is None:
            return likely_norm(known.features, known.roots.T, self.delta) + length(known.piece.start)
        guess = self._guess
        return None if guess is None else guess.distance(self.delta)

    @property
    def _guess(self) -> Normal | None:
        """By the normal approximation, beside what is sure."""
        apart = self.using.guess or self.using.other_truth or isinstance(self.using, Dependent | Anytime | Known)
        if self.solution is None or apart or self.verdict is Verdict.REFUSED:
            return None
        seen = self.solution.samples
        if not isinstance(seen, Samples) or len(seen) < FEW:
            return None
        solution = self.solution
        return remembered(solution, "likely", lambda: beside(solution))

    @property
    def without_intervals(self) -> str:
        """Why it has no error bars for a page or picture; empty where it has. Guesses are asked for by name."""
        if self.guessed is not None:
            return "they would be guesses, which certificate.intervals has, and no picture"
        why = missing(self)
        return "" if why is None else why[0]

    @known_arguments
    def to_frame(
        self, of: Which = "intervals", agents: Sequence[str] | None = None, library: Library = "polars"
    ) -> Any:
        """Error bars as a DataFrame: a line for each entry, with its lower end, its value at x and its upper end.

        `of`: "intervals" for the entries of x, "aggregate" for sums over agents, "multipliers" for shared constraints.
        `agents`: names for the agents. What holds together is said by `certificate.intervals.says` and its like.
        """
        one_of("of", of, ("intervals", "aggregate", "multipliers"), "Leave it out for the entries of x")
        band = getattr(self, of)
        assert self.solution is not None, "a record has no bands"
        problem, samples = self.solution.problem, self.solution.samples
        if of == "intervals":
            labels = named_rows(listed(problem, self.solution.x, samples), agents)
        elif of == "aggregate":
            names, many = column_names(samples), len(flat_of(band.value))
            labels = {"entry": list(names) if names is not None and len(names) == many else list(range(many))}
        else:
            labels = {"constraint": list(range(len(flat_of(band.value))))}
        sides = {name: flat_of(getattr(band, name)) for name in ("lower", "value", "upper")}
        return framed(labels | sides, library)

    def to_json(self) -> str:
        """Everything, and all it takes to recompute ε: see `ez.verify`."""
        from epszero.certificates.record import record_of  # noqa: PLC0415  (it imports this module)

        return json.dumps(self.record or record_of(self), indent=1, ensure_ascii=False, allow_nan=False)

    @staticmethod
    def from_json(text: str) -> "Certificate":
        """The certificate that `to_json` wrote, as it was claimed: `ez.verify` says whether the claim holds up."""
        from epszero.certificates.record import certificate_from  # noqa: PLC0415  (it imports this module)

        return certificate_from(text)

    _repr_html_ = html_of

    def __str__(self) -> str:
        percent = f"{100 * (1 - self.delta):.6g}"
        point = "ε-stationary point" if self.notes.get("stationary") else "ε-zero"
        lines = [f"{f'{point}, {percent} % confidence':<58}verdict: {self.verdict}"]
        if self.verdict is Verdict.REFUSED:
            lines += [_line("residual", "no bound"), _line("because", self.reason)]
        else:
            made = ""
            if "empirical" in self.terms and "deviation" in self.terms:
                made = f" = {self.terms['empirical']:.2g} empirical + {self.terms['deviation']:.3g} deviation"
            lines.append(_line("residual", f"‖z + B(x)‖ ≤ {self.epsilon:.4g}{made}"))
            if self.notes.get("truth"):
                lines.append(_line("where", self.notes["truth"]))
            lines += self._meanings()
            lines += [_line("by", self.by), _line("chosen", self.reason)]
        for place, leaning in enumerate(self.leans_on):
            lines.append(_line("leans on" if place == 0 else "", str(leaning)))
        return "\n".join(lines)

    def _meanings(self) -> list[str]:
        lines: list[str] = []
        if self.distance is not None:
            share = "" if self.relative_distance is None else f", {100 * self.relative_distance:.3g} % of ‖x‖"
            lines.append(_line("distance", f"‖x − x*‖ ≤ {self.distance:.4g}{share}"))
            lines += self._probably()
            lines += self._made_of()
        elif self.notes["distance"]:
            lines.append(_line("distance", f"none: {self.notes['distance']}"))
            lines += self._probably()
        if self.image is not None:
            lines.append(_line("image", str(self.image)))
        if self.exploitability is not None:
            most = float(np.max(self.exploitability))
            lines.append(
                _line(
                    "exploitability",
                    f"no agent can save more than {most:.3g} alone; all together {self.total_exploitability:.3g}",
                )
            )
        elif self.notes["exploitability"] != NO_GAME:
            lines.append(_line("exploitability", f"none: {self.notes['exploitability']}"))
        if self.cost_gap is not None:
            lines.append(_line("cost gap", f"at most {self.cost_gap:.4g} above the least"))
        elif self.notes["cost_gap"] not in ("", NO_MINIMUM):
            lines.append(_line("cost gap", f"none: {self.notes['cost_gap']}"))
        if self.notes.get("stationary"):
            lines.append(_line("stationary", "derivatives balance at x, which need not be an optimum or equilibrium"))
        return lines

    def _probably(self) -> list[str]:
        """What is likely, beside what is sure."""
        away = self.likely if self.beside else None
        if away is None or self.solution is None:
            return []
        size = length(flat_of(self.solution.x))
        share = f", {100 * away / size:.2g} % of ‖x‖" if 0 < size < math.inf else ""
        return [_line("", f"likely ≤ {away:.2g}{share}: a guess, by the normal approximation")]

    def _made_of(self) -> list[str]:
        """Where a distance on a certified piece comes from, what limits it, and what would help most."""
        made = parts(self)
        if not made or self.distance is None:
            return []
        most = max(made, key=lambda part: made[part])
        shares = ", ".join(f"{100 * size / self.distance:.0f} % by {part}" for part, size in made.items())
        return [_line("", f"{shares}; no bound can be below {self.terms[FLOOR]:.3g}"), _line("", REMEDIES[most])]


REMEDIES = {
    Part.VARIANCE: "more samples help most: twice as many take 30 % off that part",
    Part.RANGE: "a narrower support helps most: half as wide takes half off that part, as do twice the samples",
    Part.SPLIT: 'asking for one line helps most: of="distance"',
}


def _line(name: str, text: str) -> str:
    return f"  {name:<16}{text}"
