"""Whether a box can meet its budget, and how far each entry then ranges: what `BoxBudget` checks and bounds."""

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from epszero._checks import first_index, label, refuse
from epszero._shaped import times
from epszero._types import Array

if TYPE_CHECKING:
    from epszero.sets.boxbudget import BoxBudget


def ranges(box: "BoxBudget") -> tuple[Array, Array]:
    """The exact range of each entry over the set (not narrowed where the other entries are unbounded)."""
    shape = box.batch_shape + box.known_point_shape
    lower, upper, w = (jnp.broadcast_to(a, shape) for a in (box.lower, box.upper, box.weights))
    least, most = times(w, jnp.where(w > 0, lower, upper)), times(w, jnp.where(w > 0, upper, lower))
    others_least = jnp.sum(least, axis=-1, keepdims=True) - least  # NaN where infinite: no narrowing
    others_most = jnp.sum(most, axis=-1, keepdims=True) - most
    a = (box.at_least[..., None] - others_most) / w
    b = (box.at_most[..., None] - others_least) / w
    narrow_low, narrow_high = jnp.where(w > 0, a, b), jnp.where(w > 0, b, a)
    return jnp.fmax(lower, narrow_low), jnp.fmin(upper, narrow_high)


def refuse_empty(box: "BoxBudget") -> None:
    """Refuse, in a sentence, budgets that cross, cannot be reached, or do not fit the bounds in shape."""
    try:
        _ = box.batch_shape, box.point_shape
    except ValueError:
        refuse(
            "at_least, at_most, weights",
            "must broadcast: budgets one per agent, bounds and weights one row per agent, "
            f"but the shapes are {box.at_least.shape}, {box.at_most.shape}, {box.weights.shape} with bounds "
            f"{box.lower.shape}, {box.upper.shape}",
            "Make the leading axes agree",
        )
    crossed = (box.at_least > box.at_most) | (box.at_least == np.inf) | (box.at_most == -np.inf)
    if crossed.any():
        where = first_index(crossed)
        least, most = (np.broadcast_to(a, crossed.shape)[where] for a in (box.at_least, box.at_most))
        refuse(
            f"at_least{label(where)}, at_most{label(where)}",
            f"the budget is empty: no number is at least {least:g} and at most {most:g}",
            "Make at_least ≤ at_most, the one below ∞ and the other above −∞",
        )
    if box.point_shape is None:
        return  # whether the budget can be reached depends on a dimension not known yet: see check_shape
    refuse_unreachable(box, box.point_shape[0])


def refuse_unreachable(box: "BoxBudget", n: int) -> None:
    """Refuse, in a sentence, a budget out of reach of the box in R^n."""
    w = np.broadcast_to(box.weights, np.broadcast_shapes(box.weights.shape, (n,)))
    with np.errstate(invalid="ignore", over="ignore"):
        greatest = np.where(w == 0, 0.0, w * np.where(w > 0, box.upper, box.lower)).sum(axis=-1)
        smallest = np.where(w == 0, 0.0, w * np.where(w > 0, box.lower, box.upper)).sum(axis=-1)
    slack = 1e-12 * (1 + np.abs(np.where(np.isfinite(greatest), greatest, 0.0)))
    short, over = greatest + slack < box.at_least, smallest - slack > box.at_most
    if short.any():
        where = first_index(short)
        refuse(
            f"at_least{label(where)}",
            f"is {np.broadcast_to(box.at_least, short.shape)[where]:g}, but the box reaches "
            f"at most {np.broadcast_to(greatest, short.shape)[where]:g}",
            "Lower at_least or raise upper",
        )
    if over.any():
        where = first_index(over)
        refuse(
            f"at_most{label(where)}",
            f"is {np.broadcast_to(box.at_most, over.shape)[where]:g}, but the box starts "
            f"at {np.broadcast_to(smallest, over.shape)[where]:g}",
            "Raise at_most or drop lower",
        )
