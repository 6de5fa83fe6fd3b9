"""`Kind`: a way to certify; `Finding`: what it found; `Leaning`: what that leans on.

A kind is a small frozen dataclass with settings that are fixed before the data are looked at. `examine` gives the set
of residuals that are still possible with probability 1 − δ, or the reason why nothing can be said.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NoReturn

from epszero._memory import remembered
from epszero.certificates.residuals import Residuals
from epszero.facts import Constant, Provenance
from epszero.oracles.features import sample_rows
from epszero.samples import Samples
from epszero.samples.independence import IN_ORDER, LEVEL, quick

if TYPE_CHECKING:
    from epszero.certificates._near import Near
    from epszero.certificates.case import Case
    from epszero.certificates.certified_piece import Sharpened
    from epszero.certificates.likely import Guessed


@dataclass(frozen=True)
class Leaning:
    """One thing that a certificate leans on."""

    what: str
    provenance: Provenance
    evidence: str = ""

    @staticmethod
    def on(name: str, constant: Constant) -> "Leaning":
        """A constant."""
        return Leaning(f"{name} = {constant.value:.4g}", constant.provenance, constant.evidence)

    def __str__(self) -> str:
        return f"{self.what}: {self.provenance}" + (f" ({self.evidence})" if self.evidence else "")


INDEPENDENT = Leaning("independent samples of one law", Provenance.DECLARED, "their order does not contradict it")
CHOSEN = replace(INDEPENDENT, evidence="rows chosen by the user: that their values had no say in it is declared")


@dataclass(frozen=True)
class Gap:
    """An estimate of the cost gap that follows from no residual."""

    value: float
    because: str


@dataclass(frozen=True, eq=False)
class Finding:
    """Possible residuals, or a reason."""

    residuals: Residuals | None
    by: str  # one line: the kind, its bound, the samples used
    terms: dict[str, float] = field(default_factory=dict[str, float])
    leans_on: tuple[Leaning, ...] = ()
    reason: str = ""  # why nothing can be said
    alternatives: tuple[Residuals, ...] = ()  # other sets that hold the residual, all on the same event
    sharp: "Sharpened | None" = None  # where x* is shown to lie, or why that is not shown
    near: "Near | None" = None  # how far x* and how dear x̂, by bounds on the noise at the truth
    guessed: "Guessed | None" = None  # where x* probably is, of kinds that guess
    gap: Gap | None = None  # how dear x̂ is, where that was asked of costs themselves
    truth: str = ""  # what B and x* are, where they are not those of the law of one sample

    @property
    def epsilon(self) -> float:
        """The bound on ‖e‖, ∞ where there is none."""
        return min((one.epsilon for one in self.every), default=math.inf)

    @property
    def every(self) -> tuple[Residuals, ...]:
        """All sets that hold the residual at once."""
        return (() if self.residuals is None else (self.residuals,)) + self.alternatives


class Obstacle(StrEnum):
    """What stands in the way of a certificate, for those who decide by it; the reason is for people."""

    NOT_INDEPENDENT = "the samples are not independent"
    NOTHING_KEPT_ASIDE = "no samples were kept aside"
    NO_SUPPORT = "nothing bounds the noise"
    OTHER = "another"


class Refused(Exception):
    """Nothing can be said: the message says why and what would help."""

    def __init__(
        self,
        reason: str,
        leans_on: Sequence[Leaning] = (),
        terms: Mapping[str, float] = MappingProxyType({}),
        obstacle: Obstacle = Obstacle.OTHER,
    ) -> None:
        super().__init__(reason)
        self.leans_on = tuple(leans_on)
        self.terms = dict(terms)
        self.obstacle = obstacle


def cannot(reason: str, *leans_on: Leaning, obstacle: Obstacle = Obstacle.OTHER) -> NoReturn:
    """End an examination without a bound."""
    raise Refused(reason, leans_on, obstacle=obstacle)


def check_independent(samples: Sequence[Samples]) -> Leaning:
    """A row that was selected twice is one sample, not two independent ones; and the order of rows may tell."""
    for one in samples:
        p = remembered(one, "order", lambda one=one: quick(sample_rows(one.values)))
        if p <= LEVEL:
            said = f"p = {max(p, 1e-300):.1g}"
            cannot(
                "the samples are not independent: in the order in which they came, neighbours are too much alike, or "
                f"unlike ({said}). {IN_ORDER}; ez.audit says more",
                Leaning(INDEPENDENT.what, Provenance.VIOLATED, f"Ljung–Box, {said}"),
                obstacle=Obstacle.NOT_INDEPENDENT,
            )
        repeated = remembered(one, "repeated", lambda one=one: one.repeated)
        if repeated:
            cannot(
                f"{repeated} of {len(one)} samples are repetitions of others, or were drawn from them or with the "
                "same seed: pass every sample once",
                Leaning(INDEPENDENT.what, Provenance.VIOLATED, "rows occur more than once"),
                obstacle=Obstacle.NOT_INDEPENDENT,
            )
    if any(one.chosen for one in samples):
        return CHOSEN
    pools = sorted({one.drawn_from or 0 for one in samples})
    if not pools or pools[0] == 0:
        return INDEPENDENT
    rows = " or ".join(str(pool) for pool in pools)
    return replace(INDEPENDENT, evidence=f"drawn at random from {rows} rows: the law is that of such a row")


class Kind(ABC):
    """A kind of certificate."""

    other_truth: ClassVar[bool] = False  # whether B is another than the average over the law of one sample
    guess: ClassVar[bool] = False  # whether it says what is likely, whatever is known: always heuristic

    @abstractmethod
    def examine(self, case: "Case", delta: float) -> Finding:
        """The residuals that are possible with probability 1 − δ; raises `Refused` where nothing can be said."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is called in the line "by"."""

    @property
    def brought(self) -> list[Samples]:
        """Samples that it brings along, which the run need not have seen."""
        own = getattr(self, "samples", None)
        return [own] if isinstance(own, Samples) else []

    def recordable(self, most: int) -> "Kind":
        """The same kind in settings that a record can hold; `most`: how many samples there are."""
        del most
        return self
