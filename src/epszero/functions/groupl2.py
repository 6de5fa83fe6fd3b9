"""f(x) = Σ_g weight_g·‖x_g‖₂ over disjoint groups of entries; entries in no group are not penalised.

Prox: each group shortened by step·weight_g, or 0; O(groups × largest group). Conjugate: the indicator of
‖y_g‖ ≤ weight_g, and y_i = 0 in no group. Weight: a number or one per group; leading axes are a batch.
Source: Yuan & Lin, "Model selection and estimation in regression with grouped variables", JRSS B 68 (2006).
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, positive, refuse
from epszero._shaped import norm
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator, nan_in, shrinkage
from epszero.functions._indices import check_reach, distinct_indices

NOWHERE = np.iinfo(np.int32).max  # fills the rows of short groups: an index outside every vector


class GroupL2(Function):
    """The group lasso norm: `groups` is a list of lists of indices."""

    formula = True
    static = ("reach",)
    vectors = ("weight",)
    reach: int  # the largest index in a group, plus 1
    members: "np.ndarray[Any, np.dtype[np.int32]]"  # one row of indices per group, filled up with NOWHERE
    weight: FloatArray

    @known_arguments
    def __init__(self, groups: Sequence[Sequence[int]], weight: Real = 1.0) -> None:
        rows = _checked_groups(groups)
        self.reach = max(max(row) for row in rows) + 1
        widest = max(len(row) for row in rows)
        self.members = np.array([row + [NOWHERE] * (widest - len(row)) for row in rows], dtype=np.int32)
        self.weight = positive("weight", weight, strict=False)
        if self.weight.ndim and self.weight.shape[-1] != len(rows):
            refuse(
                "weight",
                f"has {self.weight.shape[-1]} entries on its last axis, but there are {len(rows)} groups",
                "Pass a number, or one weight per group",
            )

    def check_shape(self, argument: str, shape: tuple[int, ...]) -> None:
        super().check_shape(argument, shape)
        check_reach(argument, "groups", self.reach, shape[-1])

    def _value(self, x: Array) -> Array:
        return jnp.sum(self.weight * self._lengths(x), axis=-1) + nan_in(x)

    def _prox(self, v: Array, step: Array) -> Array:
        return v * self._to_entries(shrinkage(self._lengths(v), step * self.weight), v, 1.0)

    def _conjugate(self, y: Array) -> Array:
        outside = jnp.sum(indicator(self._lengths(y) - self.weight, self.weight), axis=-1)
        covered = self._to_entries(jnp.zeros(self.members.shape[:1]), y, 1.0) == 0
        return outside + jnp.sum(jnp.where(covered, 0.0, indicator(jnp.abs(y))), axis=-1)

    def _lengths(self, x: Array) -> Array:
        """‖x_g‖, one per group."""
        return norm(jnp.asarray(x).at[..., self.members].get(mode="fill", fill_value=0.0))

    def _to_entries(self, per_group: Array, like: Array, elsewhere: float) -> Array:
        """One number per group, given to each of its entries."""
        shape = (*per_group.shape[:-1], like.shape[-1])
        entries = jnp.full(shape, elsewhere, dtype=like.dtype)
        return entries.at[..., self.members].set(per_group[..., None].astype(like.dtype), mode="drop")


def _checked_groups(groups: Any) -> list[list[int]]:
    try:
        rows = [distinct_indices(f"groups[{g}]", group) for g, group in enumerate(groups)]
    except TypeError:
        refuse("groups", f"must be a list of lists of indices, but it is {groups!r}", "Write groups=[[0, 1], [2, 3]]")
    if not rows:
        refuse("groups", "must hold at least one group", "Pass lists of indices, or use Zero() to penalise nothing")
    owner: dict[int, int] = {}
    for g, row in enumerate(rows):
        for i in row:
            if i in owner:
                refuse(f"groups[{g}]", f"shares entry {i} with groups[{owner[i]}]", "Make the groups disjoint")
            owner[i] = g
    return rows
