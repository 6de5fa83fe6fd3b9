"""What an audit says of one assumption."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import jax
import numpy as np

from epszero._types import PyTree
from epszero.facts import Provenance, Witness

SHOWN = 2000  # entries of a witness that a record holds


class Standing(StrEnum):
    """How an assumption stands."""

    HOLDS = "holds"  # proved
    DECLARED = "declared"  # the user's word, not contradicted
    UNREFUTED = "not contradicted"  # looked for, and no contradiction found; nobody vouches for it
    OPEN = "open"  # nothing is known
    VIOLATED = "violated"  # seen, or proved, to be false


BY_PROVENANCE = {
    Provenance.EXACT: Standing.HOLDS,
    Provenance.VERIFIED: Standing.HOLDS,
    Provenance.DECLARED: Standing.DECLARED,
    Provenance.ESTIMATED: Standing.UNREFUTED,
    Provenance.VIOLATED: Standing.VIOLATED,
}


@dataclass(frozen=True, eq=False)
class Assumption:
    """Its standing, the evidence in a sentence, and a witness where it is violated at points or samples."""

    status: Standing
    evidence: str
    witness: Witness | None = None
    sample: int | None = None  # a sample that tells, where no points do
    p_value: float | None = None  # of a test against it

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        record: dict[str, Any] = {"status": str(self.status), "evidence": self.evidence}
        if self.witness is not None:
            seen = self.witness
            record["witness"] = {"value": seen.value, "sample": seen.sample, "x": _listed(seen.x), "y": _listed(seen.y)}
        elif self.sample is not None:
            record["witness"] = {"sample": self.sample}
        if self.p_value is not None:
            record["p_value"] = self.p_value
        return record


def _listed(x: PyTree) -> Any:
    if sum(np.size(leaf) for leaf in jax.tree.leaves(x)) > SHOWN:
        return None
    return jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), x)
