"""Asynchronous agents: x_i⁺ = J_{Γ_iA_i}(x_i − Γ_iB̂_i(x̂)), x̂ what they did up to D steps ago.

x̂_j = x_j^{k − d_j} with delays d_j ∈ {0, …, min(D, k)} that follow from a seed and k: what agent j says arrives
late, in another order than it was said. Blocks are the leaves of x, and the rows of those that stack agents. No
delay: forward-backward. Converges for short steps: where I − γB̂ contracts agent by agent in the largest norm, for
any delays; else for steps of the order 1/(κ(1 + 2D)). Residual: z = Γ⁻¹(x − ΓB̂(x̂) − x⁺) ∈ A(x⁺), as each agent
knows its own x_i; z + B̂(x⁺) is evaluated where the loop looks. Cost: one B̂, one resolvent, and D + 1 points kept.
Source: Bertsekas & Tsitsiklis (1989), partially asynchronous iterations; Peng, Xu, Yan & Yin, SIAM J. Sci. Comput. 38
(2016): ARock.

Stability: with delays two runs differ by what they differed by several steps ago, in each block another; nothing is
known.
"""

from typing import Any

import jax
import jax.numpy as jnp

from epszero._checks import count, known_arguments
from epszero._points import add, norm
from epszero._types import FloatArray, PyTree
from epszero.facts import AverageFacts, declared_only, step_range
from epszero.methods._base import Method, State, first_state
from epszero.methods.sampling import blocks_of, check_uncoupled, checked_seed, fixed_steps, key_at
from epszero.methods.stability import WITHOUT_STABILITY, MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import Steps, StepSize, forward_backward
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward


class Asynchronous(Method):
    """Forward-backward by agents who know each other's strategies as they were up to `delay` steps ago.

    `delay`: D. `step`: as in `ez.ForwardBackward`, but never searched for; None takes 1/(1 + 2D) of its best one.
    `seed`: the delays are the same in every run with it.
    """

    static = ("delay", *Method.texts)
    stackable = False
    steps: Steps
    delay: int
    seed: FloatArray
    description: str

    @known_arguments
    def __init__(self, delay: int, step: StepSize = None, seed: int = 0) -> None:
        self.delay = count("delay", delay)
        self.steps = Steps.of(step)
        self.seed = checked_seed(seed)
        self.description = "asynchronous agents"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"delay": self.delay, "step": self.steps.given, "seed": int(self.seed)}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "Asynchronous":
        check_uncoupled(problem, "the asynchronous method")
        steps = fixed_steps(self.steps, x, step_range(known or declared_only(problem)), 1.0 + 2 * self.delay)
        said = f"asynchronous agents, delays up to {self.delay}, {steps.how}, seed {int(self.seed)}"
        return self._settled(steps=steps, description=said)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        past = jax.tree.map(lambda leaf: jnp.stack([leaf] * (self.delay + 1)), x)  # x^k, x^{k−1}, …, x^{k−D}
        return first_state(x, B(x), None, past)

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, past, k = state.x, state.own, state.k
        numbers, N = blocks_of(A, x)
        d = jnp.minimum(jax.random.randint(key_at(self.seed, k), (N,), 0, self.delay + 1), k)
        x_hat = jax.tree.map(lambda number, was: jnp.take_along_axis(was, d[number][None], axis=0)[0], numbers, past)
        x_next, z = forward_backward(A, x, B(x_hat), self.steps.at(k))
        past = jax.tree.map(lambda new, was: jnp.concatenate([new[None], was[:-1]]), x_next, past)
        return state._replace(k=k + 1, x=x_next, z=z, own=past)

    def measured(self, A: Backward, B: Average, state: State) -> State:
        Bx = B(state.x)
        return state._replace(Bx=Bx, residual=norm(add(state.z, Bx)))

    def last_step(self, state: State) -> PyTree:
        return self.steps.at(state.k - 1)

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """Of forward-backward, where there is no delay."""
        if self.delay:
            raise Unstable(f"No stability bound is known for agents with delays. {WITHOUT_STABILITY}")
        steps = MeasuredSteps(self.steps, facts, iterations)
        (q, because), c = steps.forward(), steps.longest * facts.R
        return steps.recursion(q, c, because, last=(q, c))
