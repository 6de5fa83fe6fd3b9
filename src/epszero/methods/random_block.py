"""Random blocks: m of the N blocks of x, agents at random, take x_i⁺ = J_{Γ_iA_i}(x_i − Γ_iB̂_i(x)).

The others stay where they are. Blocks are what A is separable by: the leaves of x, and the rows of those that stack
agents. Which m move at step k follows from a seed and k; at step 0 all do, so that each has an element of A.
Converges almost surely where forward-backward does, with its steps. All N blocks: forward-backward. Residual: z_i =
Γ_i⁻¹(x_i − Γ_iB̂_i(x) − x_i⁺) ∈ A_i(x_i⁺) of the step at which block i last moved, which stays true while it rests.
Cost: one B̂, one resolvent. Source: Combettes & Pesquet, SIAM J. Optim. 25 (2015), block-coordinate forward-backward;
Richtárik & Takáč (2014).

Stability, in the root mean square over the seed (docs/theory.md#random-blocks): q = √(1 − p + p q²) and c = √p γR
with p = m/N and the q of forward-backward. For one seed there is no such bound, as one block's step alone need not be
nonexpansive.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import count, known_arguments, refuse
from epszero._points import add, norm
from epszero._types import FloatArray, PyTree
from epszero.facts import AverageFacts, StepRange, declared_only, step_range
from epszero.methods._base import Method, State, first_state
from epszero.methods.sampling import blocks_of, check_uncoupled, checked_seed, fixed_steps, key_at
from epszero.methods.stability import MeasuredSteps, Premises, Stability
from epszero.methods.steps import Steps, StepSize, forward_backward
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward


class RandomBlock(Method):
    """m random blocks of x (agents) make a step of forward-backward, the others wait.

    `blocks`: m. `step`: as in `ez.ForwardBackward`, but never searched for. `seed`: the blocks are the same in every
    run with it.
    """

    static = ("blocks", "share", *Method.texts)
    stackable = False
    steps: Steps
    blocks: int
    share: float  # m/N, once settled
    seed: FloatArray
    description: str

    @known_arguments
    def __init__(self, blocks: int = 1, step: StepSize = None, seed: int = 0) -> None:
        self.blocks = count("blocks", blocks, least=1)
        self.steps = Steps.of(step)
        self.share = 1.0
        self.seed = checked_seed(seed)
        self.description = "random blocks"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"blocks": self.blocks, "step": self.steps.given, "seed": int(self.seed)}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "RandomBlock":
        check_uncoupled(problem, "random blocks")
        N = blocks_of(problem.placed, x)[1]
        if self.blocks > N:
            refuse("blocks", f"must be at most the number of blocks, {N}, but it is {self.blocks}", "Move fewer")
        steps = fixed_steps(self.steps, x, step_range(known or declared_only(problem)))
        said = f"random blocks, {self.blocks} of {N} a step, {steps.how}, seed {int(self.seed)}"
        return self._settled(steps=steps, share=self.blocks / N, description=said)

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        found = step_range(known)
        return None if found is None else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        return first_state(x, B(x), None, None)

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, k = state.x, state.k
        numbers, N = blocks_of(A, x)
        x_bar, z_bar = forward_backward(A, x, state.Bx, self.steps.at(k))
        order = jax.random.permutation(key_at(self.seed, k), N)
        moves = (jnp.zeros(N, bool).at[order[: self.blocks]].set(True)) | (k == 0)
        x_next, z = (
            jax.tree.map(lambda number, new, old: jnp.where(moves[number], new, old), numbers, *pair)
            for pair in ((x_bar, x), (z_bar, state.z))
        )
        Bx = B(x_next)
        return state._replace(k=k + 1, x=x_next, Bx=Bx, z=z, residual=norm(add(z, Bx)))

    def last_step(self, state: State) -> PyTree:
        return self.steps.at(state.k - 1)

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """The first step moves all blocks; the others in the root mean square over the seed."""
        steps, p = MeasuredSteps(self.steps, facts, iterations), self.share
        (q, because), c = steps.forward(), steps.longest * facts.R
        some, c_some = np.sqrt(1 - p + p * q**2), np.sqrt(p) * c
        found = steps.recursion(some, c_some, because, last=(some, c_some))
        found.q[0], found.c[0] = q[0], c[0]
        return replace(found, on_average=p < 1)
