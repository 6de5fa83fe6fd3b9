"""Where a number comes from, and what may be called by which name (THEORY section 5)."""

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


def worst(several: Iterable[Provenance]) -> Provenance:
    """What can be said for a statement that leans on several."""
    order = list(Provenance)
    return max(several, key=order.index, default=Provenance.EXACT)
