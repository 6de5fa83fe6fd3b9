"""Constants from what searches by enclosures find."""

import math

from epszero.facts.branching import Supremum
from epszero.facts.provenance import Constant, Provenance, Unknown


def negated(found: Supremum | Unknown) -> Constant | Unknown:
    """A lower bound from the supremum of the negative; −∞ says something too: nothing is known from below."""
    return found if isinstance(found, Unknown) else Constant(-found.at_most, Provenance.VERIFIED, _boxes(found))


def bounded(found: Supremum | Unknown) -> Constant | Unknown:
    """An upper bound, where there is one."""
    if isinstance(found, Unknown):
        return found
    if not math.isfinite(found.at_most):
        return Unknown("it has no bound over domain and support that enclosures could find")
    return Constant(found.at_most, Provenance.VERIFIED, _boxes(found))


def _boxes(found: Supremum) -> str:
    return f"enclosed over {found.boxes} box{'es' * (found.boxes > 1)}"


def larger(one: Constant | None, other: Constant | Unknown) -> Constant | Unknown:
    """The lower bound that says more."""
    if one is None or isinstance(other, Unknown):
        return other if one is None else one
    return one if one.value >= other.value else other


def less(one: Constant | None, other: Constant | Unknown) -> Constant | Unknown:
    """The upper bound that says more."""
    if one is None or isinstance(other, Unknown):
        return other if one is None else one
    return one if one.value <= other.value else other
