"""Step sizes Γ: one number, one per block (nested like x, or per row of x), a schedule k ↦ Γ_k, or found on the way."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import positive, refuse
from epszero._points import SMALLEST, flat, flat_of, nested_like, shaped_like, subtract
from epszero._pytree import Node
from epszero._types import Array, FloatArray, PyTree
from epszero.facts import StepRange
from epszero.oracles import Opaque
from epszero.problems.backward import Backward

StepSize = PyTree | Callable[..., PyTree] | None
"""What users may pass as `step`: a number, one per row of x, steps nested like x, k ↦ step, or None."""

PROBES = (0, 1, 2, 10, 100, 1000, 10_000, 100_000)
"""Iterations at which a schedule is looked at before anything runs."""


class Steps(Node):
    """Where the step of an iteration comes from, as the user said it and, once settled, as it will be."""

    static = ("schedule", "how", "outline")
    sizes: PyTree  # Γ, or None where it is scheduled or searched for
    schedule: Opaque | None  # k ↦ Γ_k
    how: str  # for descriptions
    scale: PyTree  # where the step is searched for: how long each block's is relative to the others; None: alike
    outline: Any  # structure and shapes of the points, once settled

    def __init__(
        self, sizes: PyTree, schedule: Opaque | None = None, how: str = "", scale: PyTree = None, outline: Any = None
    ) -> None:
        self.sizes = sizes
        self.schedule = schedule
        self.how = how
        self.scale = scale
        self.outline = outline

    @staticmethod
    def of(step: StepSize) -> "Steps":
        """What a user passed as `step`; a number is checked at once, the rest when x is known."""
        if isinstance(step, int | float):
            checked_step(step, np.zeros(()))
        return Steps(None, Opaque(step)) if callable(step) else Steps(step)

    @property
    def given(self) -> StepSize:
        """The step as `of` took it."""
        return self.sizes if self.schedule is None else self.schedule.function

    def bare(self) -> "Steps":
        """The same without what is said of it."""
        return self.replaced(how="")

    def settled(self, x: PyTree, known: StepRange | None, scale: PyTree = None) -> "Steps":
        """Checked against points like x and the range that is known to converge; the best of it where left open."""
        outline = jax.tree.structure(x), tuple(np.shape(leaf) for leaf in jax.tree.leaves(x))
        if self.schedule is not None:
            _check_range(checked_schedule(self.schedule, x), known)
            return Steps(None, self.schedule, "scheduled step", outline=outline)
        if self.sizes is not None:
            step = checked_step(self.sizes, x)
            _check_range(step, known)
            return Steps(step, None, f"step {_brief(step)}", outline=outline)
        if known is not None:
            _check_computable(known)
            how = f"step {known.best:.6g} from {known.because}"
            return Steps(jnp.asarray(known.best), None, how, outline=outline)
        how = "step by backtracking" if scale is None else f"steps by backtracking, {in_units(scale, x)}"
        return Steps(None, None, how, scale)

    @property
    def searched(self) -> bool:
        """Whether the step is found on the way."""
        return self.sizes is None and self.schedule is None

    @property
    def longest(self) -> float:
        """The longest step, of a schedule at the iterations that are looked at."""
        with jax.enable_x64(True):
            steps = [self.at(jnp.asarray(k)) for k in ((0,) if self.schedule is None else PROBES)]
        return float(flat_of(steps).max())

    def at(self, k: Array) -> PyTree:
        """Γ_k."""
        return self.sizes if self.schedule is None else self.schedule(jnp.maximum(k, 0))

    def rows(self, iterations: int) -> FloatArray:
        """γ_{k,i}: one row for each k = 0, …, K, or one for all; one column for each number of Γ."""
        count = 1 if self.schedule is None else iterations + 1
        with jax.enable_x64(True):
            return np.asarray(jax.vmap(lambda k: flat(self.at(k)))(jnp.arange(count)), dtype=np.float64)

    def entries(self, rows: FloatArray) -> FloatArray:
        """These rows with one column for each entry of a point, one leaf after another."""
        structure, shapes = self.outline
        with jax.enable_x64(True):
            ones = jax.tree.unflatten(structure, [np.ones(shape) for shape in shapes])
            numbers = shaped_like(self.at(jnp.asarray(0)), np.arange(rows.shape[1], dtype=np.float64))
            return rows[:, flat_of(times(numbers, ones)).astype(int)]


def in_units(scale: PyTree, x: PyTree) -> str:
    """Whose units `scale` is in proportion to."""
    each = [np.ndim(step) == np.ndim(leaf) for step, leaf in zip(*map(jax.tree.leaves, (scale, x)), strict=False)]
    return f"in proportion to the {'entries' if all(each) else 'agents'}' units"


def scaled(scale: PyTree, step: Array) -> PyTree:
    """The steps of all blocks, from one number and how they compare."""
    return step if scale is None else jax.tree.map(lambda leaf: step * leaf, scale)


def root(scale: PyTree) -> PyTree:
    """Γ^½ for the relative steps Γ: the norm in which steps of different length are alike."""
    return jnp.asarray(1.0) if scale is None else jax.tree.map(jnp.sqrt, scale)


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
        refuse(
            "step",
            "as a function of k must be computable inside a compiled loop",
            "Write it with jax.numpy instead of math or if",
        )
    return [checked_step(jax.tree.map(np.asarray, schedule(jnp.asarray(k))), x) for k in PROBES]


def times(Gamma: PyTree, v: PyTree) -> PyTree:
    """Γv."""
    return jax.tree.map(lambda gamma, leaf: _by_row(gamma, leaf) * leaf, nested_like(Gamma, v), v)


def over(v: PyTree, Gamma: PyTree) -> PyTree:
    """Γ⁻¹v."""
    return jax.tree.map(lambda gamma, leaf: leaf / _by_row(gamma, leaf), nested_like(Gamma, v), v)


def forward_backward(A: Backward, x: PyTree, Bx: PyTree, Gamma: PyTree) -> tuple[PyTree, PyTree]:
    """x̄ = J_{ΓA}(y) with y = x − ΓB̂(x), and z = Γ⁻¹(y − x̄) ∈ A(x̄)."""
    y = subtract(x, times(Gamma, Bx))
    x_bar = A.resolvent(y, Gamma)
    z = over(subtract(y, x_bar), Gamma)
    return x_bar, z


def _by_row(step: Array, leaf: Array) -> Array:
    """One step per row, ready to multiply the rows of a leaf."""
    return jnp.reshape(step, jnp.shape(step) + (1,) * (jnp.ndim(leaf) - jnp.ndim(step)))


def _fit(step: Any, leaf: Any) -> None:
    if step.ndim > max(leaf.ndim - 1, 0) or step.shape != leaf.shape[: step.ndim]:
        refuse(
            "step",
            f"one step per block means one per row: shape {leaf.shape[:-1]} or a number for a block of shape "
            f"{leaf.shape}, but it is {step.shape}",
            "Pass a number, or steps nested like x",
        )


def _check_range(step: PyTree, known: StepRange | None) -> None:
    if known is None or not known.vouched:
        return
    longest = float(flat_of(step).max())
    if longest >= known.limit:
        refuse(
            "step",
            f"must be below {known.limit:.6g}, the limit for the constants ({known.because}), but it is {longest:.6g}",
            f"Take a shorter one, or step=None for {known.best:.6g}, the best",
        )


def _check_computable(known: StepRange) -> None:
    """A step that multiplies B̂ must be a number that can."""
    if not SMALLEST < known.best < 1 / SMALLEST:
        refuse(
            "problem",
            f"its slopes lead to a step beyond what can be computed with ({known.because})",
            "Scale the problem's function or x so that both are near 1",
        )


def _brief(step: PyTree) -> str:
    sizes = flat_of(step)
    return f"{sizes[0]:.6g}" if np.ptp(sizes) == 0 else f"from {sizes.min():.6g} to {sizes.max():.6g} by block"
