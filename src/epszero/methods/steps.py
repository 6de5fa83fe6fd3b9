"""Step sizes Γ: one number, one per block (nested like x, or per row of x), or a schedule k ↦ Γ_k."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import positive, refuse
from epszero._points import nested_like
from epszero._types import Array, PyTree

PROBES = (0, 1, 2, 10, 100, 1000, 10_000, 100_000)
"""Iterations at which a schedule is looked at before anything runs."""


def checked_step(step: Any, x: PyTree) -> PyTree:
    """`step` as float64 arrays, positive, and fit to multiply x block by block."""
    if jax.tree.structure(step) == jax.tree.structure(x):
        checked = jax.tree.map(lambda leaf: positive("step", leaf), step)
    else:
        checked = positive("step", step)
    jax.tree.map(_fit, nested_like(checked, x), x)
    return checked


def checked_schedule(schedule: Callable[..., Any], x: PyTree) -> PyTree:
    """The steps at the probes, each checked like a constant one; the schedule itself must be traceable by JAX."""
    try:
        jax.eval_shape(schedule, jnp.asarray(0))
    except jax.errors.JAXTypeError:
        refuse("step", "as a function of k must be computable inside a compiled loop",
               "Write it with jax.numpy instead of math or if")  # fmt: skip
    return [checked_step(jax.tree.map(np.asarray, schedule(jnp.asarray(k))), x) for k in PROBES]


def times(step: PyTree, v: PyTree) -> PyTree:
    """Γv."""
    return jax.tree.map(lambda s, leaf: _rows(s, leaf) * leaf, nested_like(step, v), v)


def over(v: PyTree, step: PyTree) -> PyTree:
    """Γ⁻¹v."""
    return jax.tree.map(lambda s, leaf: leaf / _rows(s, leaf), nested_like(step, v), v)


def _rows(step: Array, leaf: Array) -> Array:
    return jnp.reshape(step, jnp.shape(step) + (1,) * (jnp.ndim(leaf) - jnp.ndim(step)))


def _fit(step: Any, leaf: Any) -> None:
    if step.ndim > max(leaf.ndim - 1, 0) or step.shape != leaf.shape[: step.ndim]:
        refuse(
            "step",
            f"one step per block means one per row: shape {leaf.shape[:-1]} or a number for a block of shape "
            f"{leaf.shape}, but it is {step.shape}",
            "Pass a number, or steps nested like x",
        )
