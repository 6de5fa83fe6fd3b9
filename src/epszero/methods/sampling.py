"""What randomised methods draw: batches of samples and sets of blocks, from a seed and the number k of the step alone.

So the choices do not depend on the data, are the same in every run with that seed, and can be drawn again afterwards: a
claim about a run may look at the batches that it met.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import count, refuse
from epszero._types import Array, FloatArray, PyTree
from epszero.facts import StepRange
from epszero.functions import Function
from epszero.methods.steps import Steps
from epszero.oracles.sampled import SampledMean
from epszero.problems import Problem
from epszero.problems.backward import Backward
from epszero.sets import Set

TOGETHER = 64  # steps whose batches are drawn at once


def key_at(seed: Any, k: Any) -> Any:
    """The randomness of step k."""
    return jax.random.fold_in(jax.random.key(jnp.asarray(seed)), k)


def batch_at(seed: Any, k: Any, s: int, batch: int) -> Array:
    """Which `batch` of s samples step k looks at, without repetition."""
    return jax.random.permutation(key_at(seed, k), s)[:batch]


def batches(seed: Any, steps: int, s: int, batch: int) -> FloatArray:
    """`batch_at` for the steps 0, 1, …, in rows."""
    with jax.enable_x64(True):
        return np.asarray(jax.lax.map(lambda k: batch_at(seed, k, s, batch), jnp.arange(steps), batch_size=TOGETHER))


def checked_seed(seed: Any) -> FloatArray:
    """A seed as a leaf of a method."""
    return np.asarray(count("seed", seed))


def check_sampled(problem: Problem, name: str) -> None:
    """Refuse a problem from which no batch of samples can be drawn."""
    if not problem.oracle.uncertain:
        refuse("method", f"{name} draws from samples, and nothing is uncertain here", "Use ez.ForwardBackward()")
    check_uncoupled(problem, name)


def check_uncoupled(problem: Problem, name: str) -> None:
    """Refuse shared constraints, on which forward-backward does not converge."""
    if problem.coupling is not None:
        refuse("method", f"{name} is not for shared constraints", "Use ez.PreconditionedForwardBackward()")


def samples_in(B: Any, batch: int) -> int:
    """s, of an average that a batch can be drawn from."""
    assert isinstance(B, SampledMean)
    if batch > B.size:
        refuse("batch", f"must be at most the number of samples, {B.size}, but it is {batch}", "Draw fewer")
    return B.size


def fixed_steps(steps: Steps, x: PyTree, found: StepRange | None, shorter: float = 1.0) -> Steps:
    """Steps that are settled before the run, the best over `shorter` where left open: a search would see noise."""
    if steps.searched and found is not None:
        steps = Steps.of(found.best / shorter)
    settled = steps.settled(x, found)
    if settled.searched:
        refuse("step", "is left out, and no constants of B are known to choose it by", "Pass step=γ, or k ↦ γ_k")
    return settled


def blocks_of(A: Backward, x: PyTree) -> tuple[PyTree, int]:
    """The number, 0, …, N − 1, of the block (the agent) that each entry of x belongs to, nested like x; and N."""
    so_far = 0

    def numbered(part: Any, leaf: PyTree) -> Any:
        nonlocal so_far
        one = isinstance(part, Set | Function) and jnp.ndim(leaf) > part.rank
        shape = jnp.shape(leaf)[: -part.rank] if one else ()
        many = int(np.prod(shape))
        start, so_far = so_far, so_far + many
        numbers = np.arange(start, so_far).reshape(shape)
        whole = numbers.reshape(shape + (1,) * part.rank) if one else numbers
        return jax.tree.map(lambda below: np.broadcast_to(whole, jnp.shape(below)), leaf)

    return A.each(numbered, x), so_far
