"""Where a number comes from, and what may be called by which name (docs/theory.md, where constants come from)."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Provenance(StrEnum):
    """From the most to the least that can be said for a statement."""

    EXACT = "exact"  # derived in closed form
    VERIFIED = "verified"  # a rigorous enclosure
    DECLARED = "declared"  # the user's word
    ESTIMATED = "estimated"  # from samples or probing
    VIOLATED = "violated"  # seen to be false


@dataclass(frozen=True)
class Constant:
    """A number with its provenance."""

    value: float
    provenance: Provenance
    evidence: str  # how it was found, in a few words


@dataclass(frozen=True)
class Known:
    """That a statement holds, and on whose word."""

    provenance: Provenance
    evidence: str  # in a few words


@dataclass(frozen=True)
class Unknown:
    """Not known, and why: the only way to say so."""

    reason: str


def worst(several: Iterable[Provenance]) -> Provenance:
    """What can be said for a statement that leans on several."""
    order = list(Provenance)
    return max(several, key=order.index, default=Provenance.EXACT)
