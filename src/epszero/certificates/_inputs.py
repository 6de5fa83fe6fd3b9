"""Checks of what users pass to certificates."""

from typing import Any

from epszero._checks import real_array, refuse
from epszero.certificates.mean import MeanBound
from epszero.sets import Set


def checked_bound(bound: Any) -> None:
    """A confidence set for a mean, or None."""
    if not (bound is None or isinstance(bound, MeanBound)):
        refuse("bound", f"must be a bound such as ez.certificates.EmpiricalBernstein(), but it is {bound!r}",
               "Pass an object of that kind, or leave it out")  # fmt: skip


def checked_support(support: Any) -> None:
    """A set, "estimated", or None."""
    if isinstance(support, str) and support == "estimated":
        return
    if not (support is None or isinstance(support, Set)):
        refuse(
            "support", f'must be a set of ez.sets, or "estimated", but it is {support!r}', "Pass ez.sets.Box(low, high)"
        )
    if support is not None and support.batch_shape:
        refuse("support", "must be one set, but it is a batch of sets", "Pass a single set")


def checked_delta(delta: Any) -> float:
    """A probability of failure in (0, 1)."""
    value = real_array("delta", delta)
    if value.ndim or not 0 < value < 1:
        refuse("delta", f"is the probability of failure, between 0 and 1, but it is {delta!r}", "Pass 0.05 for 95 %")
    return float(value)
