"""Newton's system of an aggregative game of any size, where every agent's blocks are diagonal but for one direction.

With the letters of solve/systems.py: D_i diagonal, as for own costs that are sums over entries, P_i = diag(f) − aaᵀ,
f of zeros and ones, ‖a‖ = 1 or a = 0, as for boxes, simplices and boxes with a budget. With M_i = I − P_i + P_iΓ_iD_i:
    M_i d = b:   d_j = b_j where f_j = 0,   d_j = (b_j + νa_j)/(ΓD)_j elsewhere,   ν such that aᵀd = aᵀb,
so a step takes O(N t) for each of the t columns of E_i, and its memory is that of a few points.
Nothing is written out: f and a are read off P_i v for one v, D_i off D_i v, and both are compared with what a second v
gives, agent by agent. Where that differs by more than ALIKE there is no step of this kind; a little, as the own share
of a mean of very many makes, costs Newton's method a step or two more.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._points import subtract
from epszero._trace.programs import forwards
from epszero._types import Array, FloatArray, PyTree
from epszero.methods.steps import times
from epszero.oracles import Average
from epszero.problems.backward import Backward

ALIKE = 1e-3  # of the sizes: what two probes may differ by
NONE = 1e-9  # of the length of a probe: that much is not left out


class _Blocks(NamedTuple):
    """Of all agents, one row each."""

    free: Array  # f
    across: Array  # a
    slope: Array  # the diagonal of ΓD

    def pulled(self, v: Array) -> Array:
        """P_i v_i."""
        return self.free * v - self.across * jnp.sum(self.across * v, axis=1, keepdims=True)

    def solved(self, b: Array) -> Array:
        """M_i⁻¹ b_i."""
        over = self.free / jnp.where(self.free > 0, self.slope, 1.0)
        a = self.across
        weight = jnp.sum(a * a * over, axis=1, keepdims=True)
        along, there = jnp.sum(a * b, axis=1, keepdims=True), jnp.sum(a * b * over, axis=1, keepdims=True)
        nu = (along - there) / jnp.where(weight > 0, weight, 1.0)
        return jnp.where(self.free > 0, (b + nu * a) * over, b)


def step_by_rows(A: Backward, B: Average, x: PyTree, Gamma: PyTree, r: PyTree) -> FloatArray | None:
    """d, flat; None where blocks are not of this kind."""
    agents = len(jax.tree.leaves(x)[0])
    d, apart = _step(A, B, x, Gamma, r, signs_of(agents))
    if not float(apart) <= ALIKE:
        return None
    return np.asarray(d)


def signs_of(agents: int) -> FloatArray:
    """±1 for each agent, which add up to 0, so that no mean moves."""
    signs = np.where(np.arange(agents) % 2 == 0, 1.0, -1.0)
    if agents % 2:
        signs[-3:] = 1.0, 1.0, -2.0
    return signs


def rows_of(x: PyTree) -> tuple[int, int, Any, Any]:
    """Agents, entries of each, and the way from trees to rows and back."""
    leaves, structure = jax.tree.flatten(x)
    agents, shapes = len(leaves[0]), [jnp.shape(leaf)[1:] for leaf in leaves]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def rows(tree: PyTree) -> Array:
        return jnp.concatenate([jnp.reshape(leaf, (agents, -1)) for leaf in jax.tree.leaves(tree)], axis=1)

    def nested(matrix: Array) -> PyTree:
        pieces = jnp.split(matrix, ends[:-1], axis=1)
        return structure.unflatten([jnp.reshape(p, (agents, *s)) for p, s in zip(pieces, shapes, strict=True)])

    return agents, int(ends[-1]), rows, nested


@jax.jit
def _step(A: Backward, B: Average, x: PyTree, Gamma: PyTree, r: PyTree, signs: Array) -> tuple[Array, Array]:
    """d, and how far the blocks are from being of this kind."""
    agents, own, rows, nested = rows_of(x)

    def forward(v: PyTree) -> PyTree:
        return times(Gamma, forwards(B)(v))

    y = subtract(x, forward(x))

    def across(v: Array) -> Array:
        """Pv, agent by agent."""
        return rows(jax.jvp(lambda w: A.resolvent(w, Gamma), (y,), (nested(v),))[1])

    def along(v: Array) -> Array:
        """ΓHv."""
        return rows(jax.jvp(forward, (x,), (nested(v),))[1])

    probes = [jnp.asarray(signs)[:, None] * _probe(own, place)[None, :] for place in (0, 1)]
    blocks, apart = _blocks(across, along, probes)

    def column(entry: Array) -> Array:
        alike = jnp.broadcast_to(entry, (agents, own))
        return jnp.mean(blocks.solved(blocks.pulled(along(alike) - blocks.slope * alike)), axis=0)

    C = jax.lax.map(column, jnp.eye(own)).T
    right = -rows(r)
    m = jnp.linalg.solve(jnp.eye(own) + C, jnp.mean(blocks.solved(right), axis=0))
    alike = jnp.broadcast_to(m, (agents, own))
    d = blocks.solved(right - blocks.pulled(along(alike) - blocks.slope * alike))
    return ravel_pytree(nested(d))[0], jnp.where(jnp.isfinite(d).all(), apart, jnp.inf)


def _probe(own: int, place: int) -> FloatArray:
    return np.random.default_rng(place).uniform(1.0, 2.0, own)


def _blocks(across: Any, along: Any, probes: Sequence[Array]) -> tuple[_Blocks, Array]:
    first, second = probes
    Pv = across(first)
    free = (Pv != 0).astype(Pv.dtype)
    left = free * first - Pv
    size = jnp.sqrt(jnp.sum(left**2, axis=1, keepdims=True))
    some = size > NONE * jnp.sqrt(jnp.sum(first**2, axis=1, keepdims=True))
    a = jnp.where(some, left / jnp.where(some, size, 1.0), 0.0)
    slope = along(first) / first
    blocks = _Blocks(free, a, slope)
    one = jnp.max(jnp.abs(across(second) - blocks.pulled(second)))  # entries of probes are between 1 and 4
    other = jnp.max(jnp.abs(along(second) - slope * second)) / jnp.maximum(jnp.max(jnp.abs(slope)), 1e-300)
    return blocks, jnp.maximum(one, other)
