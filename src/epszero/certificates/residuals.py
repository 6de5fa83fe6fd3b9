"""`Residuals`: all true residuals e = z + B(x) that are still possible, given the data.

    e ∈ centre + C{v : ‖v_k‖ ≤ r_k for every group k of entries}
One group is a ball of means, a group per entry is a box, a group per agent is what agents with data of their own have;
no C is a ball in all directions. What follows from a certificate is a supremum over this set (convert.py); where it is
not known in closed form it is replaced by something larger, never by something smaller.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from epszero._types import FloatArray

MANY_GROUPS = 200  # beyond which the norms of all pairs of blocks are not computed


@dataclass(eq=False)
class Gram:
    """K = (TC)ᵀ(TC) for a linear T, or a stack of such matrices; its largest eigenvalue is computed once."""

    K: FloatArray

    @cached_property
    def top(self) -> Any:
        """The largest eigenvalue, rounded up."""
        return _top(self.K)


@dataclass(frozen=True, eq=False)
class Residuals:
    """centre + C·(a product of balls)."""

    centre: FloatArray  # (n,): z + B(x) for the mean at the centre of its confidence set
    radii: FloatArray  # (K,)
    group: Any = None  # (d,): which of the K each entry of v belongs to; None for a single ball
    map: FloatArray | None = None  # C, (n, d); None: the identity, or too large to be written down
    gram: Gram | None = None  # CᵀC where there is a C
    B: Any = None  # the operator at the centre, where the set holds for every x at once
    additive: bool = False  # C is the same for every x

    @staticmethod
    def ball(centre: FloatArray, radius: float) -> "Residuals":
        """All e within `radius` of the centre."""
        return Residuals(centre, np.array([radius]))

    @property
    def epsilon(self) -> float:
        """sup ‖e‖."""
        return float(np.linalg.norm(self.centre)) + self.through_identity()

    def through_identity(self) -> float:
        """sup ‖Cv‖."""
        return float(self.radii[0]) if self.gram is None else float(self.through(self.gram))

    def through(self, gram: Gram) -> Any:
        """sup ‖TCv‖ = sup √(vᵀKv), for each K of the stack."""
        return largest(gram, self.radii, self.group)

    @property
    def round(self) -> bool:
        """Whether it is a ball in all directions."""
        return self.gram is None


def largest(gram: Gram, radii: FloatArray, group: Any = None) -> Any:
    """At least max √(vᵀKv) over ‖v_k‖ ≤ r_k, K positive semidefinite: exact for one group and for orthogonal ones.

    vᵀKv = Σ v_kᵀK_kl v_l ≤ Σ r_k r_l‖K_kl‖; and with v = Dw, ‖w‖² ≤ the number of groups, ≤ that number times ‖DKD‖.
    """
    if group is None:
        return radii[0] * np.sqrt(gram.top)
    K, D = gram.K, radii[group]
    by_norm = len(radii) * _top(K * np.outer(D, D))
    if len(radii) == K.shape[-1]:
        return np.sqrt(np.minimum(np.einsum("...ij,i,j->...", np.abs(K), D, D), by_norm))
    if len(radii) > MANY_GROUPS:
        return np.sqrt(by_norm)
    places = [np.flatnonzero(group == k) for k in range(len(radii))]
    total = sum(
        radii[k] * radii[m] * np.linalg.norm(K[..., places[k][:, None], places[m]], 2, axis=(-2, -1))
        for k in range(len(radii))
        for m in range(len(radii))
        if radii[k] and radii[m]
    )
    return np.sqrt(np.minimum(total, by_norm))


def _top(K: FloatArray) -> Any:
    return np.maximum(np.linalg.eigvalsh(K)[..., -1], 0.0) * (1 + 1e-12) if K.shape[-1] else np.zeros(K.shape[:-2])
