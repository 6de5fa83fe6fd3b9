"""Loopless variance reduction: g = B̂_S(x) − B̂_S(w) + B̂(w), x⁺ = J_{ΓA}(x − Γg); w⁺ = x with probability p, else w.

B̂_S is the mean of O over a random batch S of b samples, and w a snapshot at which B̂ is known. As x and w come near
to the zero the variance of g fades, so a constant step converges, linearly where B̂ is strongly monotone: for γ ≤
1/(6L) and p = b/s, L the Lipschitz constant of every sample. All samples in a batch: forward-backward. Noise that is
additive cancels in g: again forward-backward. Residual: z = Γ⁻¹(x − Γg − x⁺) ∈ A(x⁺); z + B̂(x⁺) is evaluated where
the loop looks. Cost: 2b evaluations of O, all s of them with probability p, and one resolvent. Source: Kovalev,
Horváth & Richtárik (2020), L-SVRG, here with a resolvent; Alacaoglu & Malitsky (2022).

Stability: where the samples differ by a constant it is forward-backward, and so is its stability. Elsewhere the step
has no q ≤ 1, since it moves with w, which is another point in each run: nothing is known.
"""

from typing import Any

import jax
import jax.numpy as jnp

from epszero._checks import count, known_arguments, one_positive, refuse
from epszero._points import add, norm, subtract
from epszero._types import FloatArray, PyTree
from epszero.facts import AverageFacts, declared_only, step_range
from epszero.methods._base import Method, State, first_state
from epszero.methods.sampling import batch_at, check_sampled, checked_seed, fixed_steps, key_at, samples_in
from epszero.methods.stability import WITHOUT_STABILITY, MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import Steps, StepSize, forward_backward
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward

SHORTER = 6.0  # than the best step of forward-backward, where none is given
COIN = 1 << 20  # apart from the numbers of batches, so that coins do not depend on them


class LooplessVarianceReduction(Method):
    """x⁺ = J_{ΓA}(x − Γ(B̂_S(x) − B̂_S(w) + B̂(w))), with a random batch S and a snapshot w that is renewed by chance.

    `batch`: samples in S. `step`: as in `ez.ForwardBackward`, but never searched for; None takes a sixth of its best
    one. `renewal`: p, by default the share b/s of the samples. `seed`: the draws are the same in every run with it.
    """

    static = ("batch", *Method.texts)
    needs_samples = True
    stackable = False
    steps: Steps
    batch: int
    renewal: float | None
    seed: FloatArray
    description: str

    @known_arguments
    def __init__(self, batch: int = 1, step: StepSize = None, renewal: float | None = None, seed: int = 0) -> None:
        self.batch = count("batch", batch, least=1)
        self.steps = Steps.of(step)
        if renewal is not None and one_positive("renewal", renewal) > 1:
            refuse("renewal", f"is a probability, but it is {renewal:g}", "Pass a number in (0, 1]")
        self.renewal = None if renewal is None else float(renewal)
        self.seed = checked_seed(seed)
        self.description = "loopless variance reduction"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"batch": self.batch, "step": self.steps.given, "renewal": self.renewal, "seed": int(self.seed)}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "LooplessVarianceReduction":
        check_sampled(problem, "loopless variance reduction")
        steps = fixed_steps(self.steps, x, step_range(known or declared_only(problem)), SHORTER)
        said = f"loopless variance reduction, {self.batch} samples a step, {steps.how}, seed {int(self.seed)}"
        return self._settled(steps=steps, description=said)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        samples_in(B, self.batch)
        Bx = B(x)
        return first_state(x, Bx, None, (x, Bx))

    def step(self, A: Backward, B: Any, state: State) -> State:
        s, x, (w, Bw), k = samples_in(B, self.batch), state.x, state.own, state.k
        if self.batch == s:
            g = B(x)
        else:
            S = batch_at(self.seed, k, s, self.batch)
            g = add(subtract(B.over(x, S), B.over(w, S)), Bw)
        x_next, z = forward_backward(A, x, g, self.steps.at(k))
        p = self.batch / s if self.renewal is None else self.renewal
        coin = jax.random.uniform(jax.random.fold_in(key_at(self.seed, k), COIN)) < p
        own = jax.lax.cond(coin, lambda: (x, B(x)), lambda: (w, Bw))
        return state._replace(k=k + 1, x=x_next, z=z, own=jax.tree.map(jnp.asarray, own))

    def measured(self, A: Backward, B: Average, state: State) -> State:
        Bx = B(state.x)
        return state._replace(Bx=Bx, residual=norm(add(state.z, Bx)))

    def last_step(self, state: State) -> PyTree:
        return self.steps.at(state.k - 1)

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """Of forward-backward, where all O(·, ξ) have one Jacobian: then g = B̂(x)."""
        if facts.jacobian is None:
            raise Unstable(f"No bound is known for variance reduction with random slopes. {WITHOUT_STABILITY}")
        steps = MeasuredSteps(self.steps, facts, iterations)
        (q, because), c = steps.forward(), steps.longest * facts.R
        return steps.recursion(q, c, because, last=(q, c))
