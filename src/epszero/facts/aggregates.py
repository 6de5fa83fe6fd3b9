"""μ and κ of aggregative games of any size, through their structure: no matrix over all agents is written down.

Where g(x_i, x̄, ξ, p_i) is affine in x_i and x̄, and ξ does not touch its slopes, the Jacobian is
blockdiag(D_i) + (1/N)[E_i](1ᵀ ⊗ I) with D_i = ∂g/∂x_i and E_i = ∂g/∂x̄, n × n each (structured.py). Slopes are
computed column by column for all agents at once; where all D_i and E_i are diagonal only the diagonals are kept.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._trace.degrees import degrees
from epszero._trace.programs import forwards
from epszero._types import Array, FloatArray, PyTree
from epszero.facts.low_rank import aggregative_mu_kappa
from epszero.oracles import Agents

WRITTEN = 30_000_000  # entries of blocks that are written down


@dataclass(frozen=True, eq=False)
class Aggregate:
    """D and E of every agent: (N, n, n), or (N, n) where all are diagonal."""

    own: FloatArray
    average: FloatArray

    @property
    def diagonal(self) -> bool:
        """Whether entries of strategies do not touch each other."""
        return self.own.ndim == 2

    @cached_property
    def mu_kappa(self) -> tuple[float, float]:
        """Strong monotonicity, rounded down, and the Lipschitz constant, rounded up."""
        if not self.diagonal:
            return aggregative_mu_kappa(self.own, self.average)
        each = [
            aggregative_mu_kappa(self.own[:, k, None, None], self.average[:, k, None, None])
            for k in range(self.own.shape[1])
        ]
        return min(mu for mu, _ in each), max(kappa for _, kappa in each)

    @cached_property
    def symmetric(self) -> bool:
        """Whether the Jacobian is: all E_i equal and symmetric, and every D_i symmetric."""
        room = 1e-12 * max(np.abs(self.own).max(), np.abs(self.average).max())
        alike = bool(np.abs(self.average - self.average[:1]).max() <= room) or len(self.own) == 1
        if self.diagonal:
            return alike
        return alike and all(
            bool(np.abs(blocks - blocks.swapaxes(1, 2)).max() <= room) for blocks in (self.own, self.average)
        )

    def restricted(self, basis: FloatArray) -> "Aggregate":
        """Between strategies whose differences the columns of `basis` span, the same for every agent."""
        eye = np.eye(len(basis))
        blocks = [part[:, :, None] * eye if self.diagonal else part for part in (self.own, self.average)]
        own, average = (np.einsum("ni,knm,mj->kij", basis, part, basis, optimize=True) for part in blocks)
        return Aggregate(own, average)


def aggregate(oracle: Agents, x: PyTree, row: PyTree) -> Aggregate | None:
    """D and E, where they are proved to depend on nothing but the parameters; None where not, or where too many."""
    one, parameters = (jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], tree) for tree in (x, oracle.parameters))
    seen = oracle.of_one_agent(row)
    degree = degrees(lambda both, xi: oracle.gradient(*both, xi, parameters), (one, one), seen)
    if degree.u > 1 or degree.mixed:
        return None
    flat = np.size(ravel_pytree(one)[0])
    whole = oracle.count * flat * flat <= WRITTEN
    found: list[list[FloatArray]] = [[], []]
    for place in (0, 1):
        for k in range(flat):
            column = np.asarray(_column(oracle, place, np.eye(flat)[k], one, seen))
            others = np.delete(column, k, axis=1)
            if not whole and others.any():
                return None
            found[place].append(column if whole else column[:, k])
    own, average = (np.stack(columns, axis=-1) for columns in found)
    off = ~np.eye(flat, dtype=bool)
    if whole and not own[:, off].any() and not average[:, off].any():
        own, average = (np.ascontiguousarray(np.diagonal(blocks, axis1=1, axis2=2)) for blocks in (own, average))
    return Aggregate(own, average)


@eqx.filter_jit
def _column(oracle: Agents, place: int, direction: Any, one: PyTree, seen: PyTree) -> Array:
    """How every agent's g changes with its own strategy (place 0) or the average (1) in one direction."""
    flat, unravel = ravel_pytree(one)
    still = jnp.zeros_like(flat)
    tangents = [jnp.where(place == which, jnp.asarray(direction), still) for which in (0, 1)]

    def of(parameters: PyTree) -> Array:
        def g(own: Any, average: Any) -> Any:
            return ravel_pytree(oracle.gradient(unravel(own), unravel(average), seen, parameters))[0]

        return jax.jvp(forwards(g), (flat, flat), tuple(tangents))[1]

    return jax.vmap(of, axis_size=oracle.count)(oracle.parameters)
