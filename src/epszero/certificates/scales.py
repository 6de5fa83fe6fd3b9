"""Units in which a certificate can be computed: none of its numbers may be lost to the range of float64.

Bounds are made of squares and products of what users give: e ↦ ‖e‖², CᵀC, ½eᵀM⁻¹e. Sizes between 1e-140 and 1e140 leave
room for them; every formula scales with its units there. What lies outside is refused in a sentence, never rounded to
a smaller number. Numbers below 1e-300 are not told from zero: compiled programs may flush them.
- ε below 1e-140 where B̂ is larger: a residual that is zero for all purposes. It is rounded up.
- ε below 1e-140 where B̂ is nowhere larger, or B̂ that vanishes at x and beside it: refused, also at ε = 0.
- what follows from ε is left out where it lies outside the range itself.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from epszero._double import to_numpy
from epszero._points import flat_of, length
from epszero._types import PyTree
from epszero.certificates._base import Finding, cannot
from epszero.certificates.case import Case, evaluated
from epszero.certificates.residuals import Residuals

LEAST = 1e-140  # the smallest size that is computed with, and the inverse of the largest
VANISHING = 1e-290  # smaller results are not told from zero
REMEDY = "scale the data so that it is near 1"


def in_range(value: Any) -> Any:
    """Whether a size, or 0, can be squared."""
    return (value == 0) | ((value > LEAST) & (value < 1 / LEAST))


def check_size(what: str, value: float) -> None:
    """End the examination where a size cannot be computed with."""
    if not in_range(value):
        beyond = f"is {value:.3g}, too {'small' if value < 1 else 'large'} to compute with"
        cannot(f"{what} {'is lost to overflow' if np.isnan(value) else beyond}: {REMEDY}")


def check_point(case: Case) -> None:
    """Before anything is multiplied with x and z."""
    for what, tree in (("‖x‖", case.point), ("‖z‖", case.element)):
        size = length(flat_of(tree))
        if size > 1 / LEAST and np.isfinite(size):
            check_size(what, size)


def computable(case: Case, found: Finding) -> Finding:
    """The finding, rounded up where it is too small to compute with; refused where nothing near it can be."""
    for one in found.every:
        rows = np.zeros(1) if one.map is None else np.abs(one.map).max(axis=1, initial=0.0)
        for what, sizes in (("the slope of O in ξ", rows), ("what the samples leave open", one.radii)):
            outside = sizes[~in_range(sizes)]
            if len(outside) and not np.isposinf(outside).all():
                check_size(what, float(outside[0]))
        if np.isnan(one.epsilon) or 1 / LEAST <= one.epsilon < np.inf:
            check_size("the bound on ‖z + B(x)‖", one.epsilon)
    if found.epsilon >= LEAST or found.residuals is None:
        return found
    size = _size(case)
    if size <= LEAST:
        cannot(f"B is {size:.3g} at x and beside it, too small to be told from 0: {REMEDY}")
    if found.epsilon == 0:
        return found
    least = Residuals.ball(np.zeros_like(found.residuals.centre), LEAST)
    return replace(found, residuals=least, alternatives=())


def _size(case: Case) -> float:
    """The largest of ‖z‖ and of ‖B̂‖ at x and at points beside it."""
    points = [case.point, *(jax.tree.map(_beside(by), case.point) for by in (1e-3, 1.0))]
    values = [flat_of(to_numpy(evaluated(case.average, point))) for point in points]
    return max([length(case.z), *(length(value) for value in values if np.isfinite(value).all())])


def _beside(by: float) -> Callable[[Any], PyTree]:
    def moved(leaf: Any) -> Any:
        return leaf + by * (1 + np.abs(leaf)) * np.cos(np.arange(np.size(leaf))).reshape(np.shape(leaf))

    return moved


def out_of_range(case: Case, epsilon: float, value: Any, is_length: bool) -> str:
    """Why what follows from ε is not claimed; empty where it is. `is_length`: it was found as the root of a square."""
    numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    least, most = float(np.min(numbers)), float(np.max(numbers[~np.isposinf(numbers)], initial=0.0))
    steep = case.jacobian is not None and case.jacobian.kappa > 1 / np.sqrt(LEAST)
    lost = epsilon > 0 and (least < LEAST if is_length else least < VANISHING and (epsilon < np.sqrt(LEAST) or steep))
    if np.isnan(numbers).any() or lost or most > (1 / LEAST if is_length else 1 / VANISHING):
        return "it is beyond what float64 can hold in these units: scale the data"
    return ""
