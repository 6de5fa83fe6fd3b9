"""`MeanBound`: from samples to a set that holds the mean of their law with probability 1 − δ; and `MeanSet`, that set.

A bound is chosen before the data are seen. `around` works on arrays (…, m, d): m samples of d numbers each, leading
axes are trials. `radius` says what can be promised before there are data, where a bound can.
"""

import math
from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from epszero._checks import real_array, refuse
from epszero._types import FloatArray, Real
from epszero.facts.region import Region

PLAIN = 2.0**200  # sizes between 1/PLAIN and PLAIN are computed with as they are: squares neither overflow nor vanish


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

    def prepared(self, X: FloatArray, region: Region | None) -> Callable[[float], MeanSet]:
        """`around` at levels that are named later: what does not depend on δ is worked out once."""
        return lambda delta: self.around(X, region, delta)

    def least(self, delta: float) -> int:
        """How many samples are needed before anything can be said."""
        del delta
        return 1

    def radius(self, m: int, dim: int, region: Region | None, delta: float) -> float | None:
        """The radius of a ball about the sample mean that m samples are sure to give; None where it depends on them."""
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


def log_of(times: float, delta: float) -> float:
    """ln(times/δ), which is finite for every δ between 0 and 1."""
    if not 0 < delta < 1:
        refuse("delta", f"is a probability of failure, between 0 and 1, but it is {delta!r}", "Pass 0.05 for 95 %")
    return math.log(times) - math.log(delta)


def bounded(region: Region | None) -> Region:
    """The region, refused where there is none."""
    if region is None:
        refuse("region", "is needed: the bound rests on a bounded support", "Pass a Region, or take SubGaussian")
    return region


def in_units(X: FloatArray, region: Region) -> tuple[FloatArray, Region, float]:
    """Samples and region divided by a power of two, and that: so that no square overflows or vanishes."""
    if region.diameter == 0 or 1 / PLAIN < region.diameter < PLAIN:
        return X, region, 1.0
    unit = 2.0 ** math.frexp(region.diameter)[1]
    lower, upper, centre = (None if one is None else one / unit for one in (region.lower, region.upper, region.centre))
    prior = region.prior
    if prior is not None:
        spread = prior.variances / unit / unit
        prior = replace(prior, centre=prior.centre / unit, variance=prior.variance / unit / unit, variances=spread)
    corners = None if region.corners is None else region.corners / unit
    small = Region(region.diameter / unit, region.circumradius / unit, lower, upper, centre, prior, corners)
    return X / unit, small, unit
