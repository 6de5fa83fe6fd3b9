"""`Residuals`: all true residuals e = z + B(x) that are still possible, given the data.

    e ∈ centre + C{v : ‖v_k‖ ≤ r_k for every group k of entries}
One group is a ball of means, a group per entry is a box, a group per agent is what agents with data of their own have;
no C is a ball in all directions. What follows from a certificate is a supremum over this set (consequences.py); where
it is not known in closed form it is replaced by something larger, never by something smaller.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epszero._points import length
from epszero._types import FloatArray
from epszero.facts import Gram, largest
from epszero.oracles import Average


@dataclass(frozen=True, eq=False)
class Residuals:
    """centre + C·(a product of balls)."""

    centre: FloatArray  # (n,): z + B(x) for the mean at the centre of its confidence set
    radii: FloatArray  # (K,)
    group: NDArray[np.int64] | None = None  # (d,): which of the K each entry of v belongs to; None for a single ball
    map: FloatArray | None = None  # C, (n, d); None: the identity, or too large to be written down
    gram: Gram | None = None  # CᵀC where there is a C
    B: Average | None = None  # the operator at the centre, where the set holds for every x at once
    additive: bool = False  # C is the same for every x

    @staticmethod
    def ball(centre: FloatArray, radius: float) -> "Residuals":
        """All e within `radius` of the centre."""
        return Residuals(centre, np.array([radius]))

    @cached_property
    def epsilon(self) -> float:
        """sup ‖e‖."""
        return length(self.centre) + self.through_identity()

    def through_identity(self) -> float:
        """sup ‖Cv‖."""
        return float(self.radii[0]) if self.gram is None else float(self.through(self.gram))

    def through(self, gram: Gram) -> Any:
        """sup ‖TCv‖ = sup √(vᵀKv), for each K of the stack."""
        return largest(gram, self.radii, self.group)

    def against(self, rows: FloatArray) -> FloatArray:
        """sup ⟨row, v⟩ for each row."""
        if self.group is None:
            return self.radii[0] * length(rows, axis=-1)
        member = self.group[:, None] == np.arange(len(self.radii))
        return np.sqrt(np.square(rows) @ member) @ self.radii

    @property
    def round(self) -> bool:
        """Whether it is a ball in all directions."""
        return self.gram is None
