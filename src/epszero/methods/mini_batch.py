"""Mini-batch forward-backward: x⁺ = J_{Γ_kA}(x − Γ_k B̂_{S_k}(x)), S_k a random batch of b samples.

B̂_S is the mean of O(·, ξᵢ) over i ∈ S. S_k is drawn without repetition from a seed and k. For B̂ cocoercive and
steps that shrink, Σγ_k = ∞ and Σγ_k² < ∞, it converges to a zero of A + B̂ almost surely; with a constant step it
ends in a ball around it whose radius is of the order √(γ/b). All samples in a batch: forward-backward. Residual: z =
Γ⁻¹(x − ΓB̂_S(x) − x⁺) ∈ A(x⁺); z + B̂(x⁺) with all samples is evaluated where the loop looks. Cost: b evaluations of
O, one where it is affine in features, and one resolvent. Source: Robbins & Monro (1951); Rosasco, Villa & Vũ, J.
Optim. Theory Appl. 169 (2016); Combettes & Pesquet (2016).

Stability: every B̂_S has the constants of the samples, so q is that of forward-backward; a sample moves the steps
whose batch it is in, by γ_kR/b. Given the seed, which the data do not know, that is sure, for each sample its own
(`BatchStability`); on average over the samples, and in expectation over the seed, it is forward-backward's γ_kR/s.
"""

from typing import Any

from epszero._checks import count, known_arguments
from epszero._points import add, norm
from epszero._types import FloatArray, PyTree
from epszero.facts import AverageFacts, StepRange, declared_only, step_range
from epszero.methods._base import Method, State, first_state
from epszero.methods.sampling import batch_at, batches, check_sampled, checked_seed, fixed_steps, samples_in
from epszero.methods.stability import BatchStability, MeasuredSteps, Premises, Stability
from epszero.methods.steps import Steps, StepSize, forward_backward
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward


class MiniBatchForwardBackward(Method):
    """x⁺ = J_{ΓA}(x − ΓB̂_S(x)) with a random batch S of the samples at every step.

    `batch`: how many samples it holds. `step`: as in `ez.ForwardBackward`, but never searched for; k ↦ γ_k that
    shrinks for an answer as exact as the samples allow. `seed`: the batches are the same in every run with it.
    """

    static = ("batch", *Method.texts)
    needs_samples = True
    stackable = False
    steps: Steps
    batch: int
    seed: FloatArray
    description: str

    @known_arguments
    def __init__(self, batch: int, step: StepSize = None, seed: int = 0) -> None:
        self.batch = count("batch", batch, least=1)
        self.steps = Steps.of(step)
        self.seed = checked_seed(seed)
        self.description = "mini-batch forward-backward"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"batch": self.batch, "step": self.steps.given, "seed": int(self.seed)}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "MiniBatchForwardBackward":
        check_sampled(problem, "mini-batch forward-backward")
        steps = fixed_steps(self.steps, x, step_range(known or declared_only(problem)))
        said = f"mini-batch forward-backward, {self.batch} samples a step, {steps.how}, seed {int(self.seed)}"
        return self._settled(steps=steps, description=said)

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        found = step_range(known)
        return None if found is None else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        samples_in(B, self.batch)
        return first_state(x, B(x), None, None)

    def step(self, A: Backward, B: Any, state: State) -> State:
        s = samples_in(B, self.batch)
        x, Gamma = state.x, self.steps.at(state.k)
        some = B(x) if self.batch == s else B.over(x, batch_at(self.seed, state.k, s, self.batch))
        x_next, z = forward_backward(A, x, some, Gamma)
        return state._replace(k=state.k + 1, x=x_next, z=z)

    def measured(self, A: Backward, B: Average, state: State) -> State:
        Bx = B(state.x)
        return state._replace(Bx=Bx, residual=norm(add(state.z, Bx)))

    def last_step(self, state: State) -> PyTree:
        return self.steps.at(state.k - 1)

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """q and c of forward-backward, c spread over the samples of the batch."""
        steps = MeasuredSteps(self.steps, facts, iterations)
        (q, because), c = steps.forward(), steps.longest * facts.R
        found = steps.recursion(q, c, f"{because}, {self.batch} samples a step", last=(q, c))
        drawn = lambda s: batches(self.seed, iterations + 1, s, min(self.batch, s))  # noqa: E731
        said = found.because
        return BatchStability(found.q, found.c, because=said, turn=found.turn, ahead=float(q[-1]), drawn=drawn)
