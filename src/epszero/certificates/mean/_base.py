"""`MeanBound`: from samples to a set that holds the mean of their law with probability 1 − δ; and `MeanSet`, that set.

A bound is chosen before the data are seen. `around` works on arrays (…, m, d): m samples of d numbers each, leading
axes are trials. `radius` says what can be promised before there are data, where a bound can.
"""

from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epszero._checks import real_array
from epszero._types import FloatArray, Real
from epszero.constants.region import Region


@dataclass(frozen=True, eq=False)
class MeanSet:
    """A ball {v : ‖v − centre‖ ≤ radius}, or a box {v : |v − centre| ≤ radius} where there is a radius per entry."""

    centre: FloatArray  # (…, d)
    radius: FloatArray  # (…) for a ball, (…, d) for a box

    @property
    def is_box(self) -> bool:
        """Whether there is a radius per entry."""
        return self.radius.ndim == self.centre.ndim

    def contains(self, v: Real) -> Any:
        """Whether v lies in the set, up to rounding; one answer per trial."""
        v = real_array("v", v)
        apart = np.abs(v - self.centre)
        rounding = 4 * np.finfo(float).eps * np.max(np.abs(v) + np.abs(self.centre), axis=-1)
        if self.is_box:
            return np.all(apart <= self.radius + rounding[..., None], axis=-1)
        return np.linalg.norm(apart, axis=-1) <= self.radius + rounding

    def support(self, direction: Real) -> Any:
        """sup ⟨direction, v⟩ over the set."""
        direction = real_array("direction", direction)
        size = np.abs(direction) if self.is_box else np.linalg.norm(direction, axis=-1)
        spread = np.sum(self.radius * size, axis=-1) if self.is_box else self.radius * size
        return np.sum(direction * self.centre, axis=-1) + spread

    def norm_from(self, v: Real) -> Any:
        """sup ‖u − v‖ over u in the set."""
        apart = np.abs(real_array("v", v) - self.centre)
        if self.is_box:
            return np.linalg.norm(apart + self.radius, axis=-1)
        return np.linalg.norm(apart, axis=-1) + self.radius


class MeanBound(ABC):
    """A way to a confidence set for a mean."""

    title: ClassVar[str]  # for the line "by" of a certificate
    needs_region: ClassVar[bool] = True  # whether a bounded support is assumed

    def around(self, X: FloatArray, region: Region | None, delta: float) -> MeanSet:
        """The set, for samples (…, m, d) of which every possible one lies in `region`; by default `radius` about X̄."""
        *trials, m, d = X.shape
        radius = self.radius(m, d, region, delta)
        assert radius is not None, "a bound writes around, radius, or both"
        return MeanSet(sample_mean(X), np.full(trials, radius))

    def least(self, delta: float) -> int:
        """How many samples are needed before anything can be said."""
        del delta
        return 1

    def radius(self, m: int, dim: int, region: Region | None, delta: float) -> float | None:
        """A radius that m samples are sure to give, whatever they are; None where it depends on them."""
        del m, dim, region, delta
        return None

    def streaming(self) -> "MeanBound | None":
        """The same bound in a form that holds at every sample size at once; None where it has none."""
        return None

    def assumptions(self) -> list[tuple[str, str]]:
        """What the user vouches for by choosing this bound, beyond a support: (assumption, whose word)."""
        return []


def sample_mean(X: FloatArray) -> FloatArray:
    """X̄."""
    return np.mean(X, axis=-2)
