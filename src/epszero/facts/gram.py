"""Gram matrices of linear maps, and the largest image of a product of balls.

A map is squared in a unit of its own, a power of two near its largest entry, so that no square overflows or vanishes.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from epszero._points import SMALLEST
from epszero._types import FloatArray

MANY_GROUPS = 200  # beyond which the norms of all pairs of blocks are not computed
CORNERS = 14  # numbers up to which all corners of a box are tried


@dataclass(eq=False)
class Gram:
    """K = (TC)ᵀ(TC)/unit² for a linear T, or a stack of such matrices; its largest eigenvalue is computed once."""

    K: FloatArray
    unit: float = 1.0

    @staticmethod
    def of(C: FloatArray) -> "Gram":
        """CᵀC."""
        unit = power_near(C)
        return Gram((C / unit).T @ (C / unit), unit)

    @cached_property
    def top(self) -> Any:
        """The largest eigenvalue, rounded up."""
        return _top(self.K)


def largest(gram: Gram, radii: FloatArray, group: Any = None) -> Any:
    """At least max √(vᵀKv) over ‖v_k‖ ≤ r_k, K positive semidefinite: exact for one group and for orthogonal ones.

    vᵀKv = Σ v_kᵀK_kl v_l ≤ Σ r_k r_l‖K_kl‖; and with v = Dw, ‖w‖² ≤ the number of groups, ≤ that number times ‖DKD‖.
    """
    if group is None:
        return gram.unit * (radii[0] * np.sqrt(gram.top))
    size = power_near(radii)
    return gram.unit * (size * _largest(gram.K, radii / size, group))


def _largest(K: FloatArray, radii: FloatArray, group: Any) -> Any:
    D = radii[group]
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


def largest_on_box(gram: Gram, width: FloatArray) -> float:
    """max √(vᵀKv) over |v_i| ≤ width_i, which is at a corner; an upper bound where there are too many of them."""
    bound = float(largest(gram, width, np.arange(len(width))))
    if not 1 < len(width) <= CORNERS:
        return bound
    signs = 1.0 - 2.0 * (np.arange(2 ** (len(width) - 1))[:, None] >> np.arange(len(width)) & 1)
    size = power_near(width)
    corners = signs * (width / size)
    exact = np.sqrt(np.max(np.einsum("ci,ij,cj->c", corners, gram.K, corners, optimize=True))) * (1 + 1e-12)
    return min(bound, gram.unit * (size * float(exact)))


def power_near(numbers: FloatArray) -> float:
    """The power of two at or below the largest; 1 where there is none that can be computed with."""
    largest = float(np.abs(numbers).max(initial=0.0))
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if SMALLEST < largest < math.inf else 1.0
