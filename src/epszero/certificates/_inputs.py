"""Checks of what users pass to certificates."""

from typing import Any, Literal

from epszero._checks import real_array, refuse
from epszero._types import Real
from epszero.certificates.mean import MeanBound
from epszero.problems import Problem
from epszero.samples import Samples
from epszero.sets import Set

GivenSupport = Set | Literal["estimated"] | None
"""A set that holds whatever can occur, the range of the data, or nothing."""


def checked_bound(bound: Any) -> None:
    """A confidence set for a mean, or None."""
    if not (bound is None or isinstance(bound, MeanBound)):
        refuse(
            "bound",
            f"must be a bound such as ez.certificates.EmpiricalBernstein(), but it is {bound!r}",
            "Pass an object of that kind, or leave it out",
        )


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


def checked_data_set(samples: Any) -> None:
    """One data set, or None."""
    if not (samples is None or isinstance(samples, Samples)):
        refuse("samples", f"must be ez.Samples, but it is a {type(samples).__name__}", "Wrap the data in it")


def checked_delta(delta: Real) -> float:
    """A probability of failure in (0, 1)."""
    value = real_array("delta", delta)
    if value.ndim or not 0 < value < 1:
        refuse("delta", f"is the probability of failure, between 0 and 1, but it is {delta!r}", "Pass 0.05 for 95 %")
    return float(value)


def checked_problem(problem: Any) -> None:
    """A problem, refused in a sentence where it is something else."""
    if not isinstance(problem, Problem):
        refuse("problem", f"must be a problem such as ez.Game, but it is a {type(problem).__name__}", "Pass yours")
