"""Douglas–Rachford with the data in the resolvent of B̂: p = J_{γB̂}(ζ), x = J_{γA}(2p − ζ), ζ⁺ = ζ + x − p.

Converges for A maximally monotone, B̂ monotone, and any γ > 0; neither cocoercivity nor a Lipschitz constant is needed.
J_{γB̂} is solved for to ‖p + γB̂(p) − ζ‖ ≤ accuracy (methods/inner.py), at rounding level where B̂ is affine.
Residual: z = (2p − ζ − x)/γ ∈ A(x) however well p is known, since x is a resolvent; ê = z + B̂(x) is evaluated, and is
(p − x)/γ + B̂(x) − B̂(p) for an exact p. Cost: four B̂, one resolvent, two solves with one factorisation. ζ⁰ = x⁰.
Source: Lions & Mercier, SIAM J. Numer. Anal. 16 (1979); Bauschke & Combettes, Thm 26.11.

Stability (docs/theory.md#douglas-rachford): with q_R the Lipschitz constant of R = 2J_{γB̂} − Id, ζ ↦ ζ⁺ has
q = (1 + q_R)/2 and c = γR/(1 + γμ); the output x = J_{γA}(Rζ) has q = q_R and twice that c. p leaves the domain of A,
so the constants must hold everywhere, as they do where B is affine.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, one_positive, refuse
from epszero._points import add, norm, subtract
from epszero._types import FloatArray, PyTree
from epszero.facts import AverageFacts, declared_only
from epszero.methods._base import Method, State, first_state
from epszero.methods.inner import Inner, check_size, factorised, resolvent_of
from epszero.methods.stability import WITHOUT_STABILITY, MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import Steps
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward


class DouglasRachford(Method):
    """p = J_{γB̂}(ζ), x = J_{γA}(2p − ζ), ζ⁺ = ζ + x − p; the output is x, which lies in the domain of A.

    `step`: γ, any positive number; None takes 1/√(μκ) for a gradient and 1/κ else, where κ is known. `accuracy`: how
    well p + γB̂(p) = ζ is solved where B̂ is not affine; a run that cannot reach it stops and says so.
    """

    static = Method.texts
    steps: Steps
    accuracy: FloatArray
    description: str

    @known_arguments
    def __init__(self, step: float | None = None, accuracy: float = 1e-10) -> None:
        self.steps = Steps.of(None if step is None else one_positive("step", step))
        self.accuracy = np.asarray(one_positive("accuracy", accuracy))
        self.description = "Douglas–Rachford"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.steps.given, "accuracy": self.accuracy}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "DouglasRachford":
        check_size(x)
        known = known or declared_only(problem)
        steps = (Steps.of(implicit_step(known)) if self.steps.searched else self.steps).settled(x, None)
        return self._settled(steps=steps, description=f"Douglas–Rachford, {steps.how}")

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        inner = Inner(x, jnp.asarray(jnp.inf), factorised(B, self.steps.sizes, x))
        return first_state(x, B(x), x, inner)

    def step(self, A: Backward, B: Average, state: State) -> State:
        zeta, gamma = state.x, self.steps.sizes
        inner = resolvent_of(B, gamma, zeta, state.own, self.accuracy)
        w = jax.tree.map(lambda p, zeta: 2 * p - zeta, inner.p, zeta)
        x = A.resolvent(w, gamma)
        z = jax.tree.map(lambda w, x: (w - x) / gamma, w, x)
        zeta_next = add(zeta, subtract(x, inner.p))
        Bx = B(x)
        stuck = state.stuck | (inner.off > self.accuracy)
        return State(state.k + 1, zeta_next, Bx, x, z, norm(add(z, Bx)), stuck, inner)

    def last_step(self, state: State) -> PyTree:
        return self.steps.sizes

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """ζ ↦ ζ⁺ at the steps 0, …, K−1, then x = J_{γA}(Rζ); an error η of p is one of η in ζ⁺ and of 2η in Rζ."""
        if facts.jacobian is None and not facts.everywhere:
            raise Unstable(
                "B is not affine, and its constants are known on the domain only, which p = J_{γB̂}(ζ) may leave. "
                f"{WITHOUT_STABILITY}"
            )
        steps = MeasuredSteps(self.steps, facts, iterations)
        q, inverse, because = steps.reflected(facts.jacobian)
        c, both = inverse * float(steps.longest[0]) * facts.R, np.ones(1)
        found = steps.recursion((1 + q) / 2 * both, c * both, because, last=(q * both, 2 * c * both))
        error = 2 * float(self.accuracy) * inverse  # of both runs
        astray = Stability(found.q, np.append(np.full(iterations, error), 2 * error)).difference(1)
        return Stability(found.q, found.c, extra=astray, because=because, ahead=steps.last_ahead())


def implicit_step(known: AverageFacts) -> float:
    """The γ for which 2J_{γB̂} − Id contracts most, as far as is known."""
    if known.kappa is None or known.kappa <= 0:
        refuse("step", "is left out, and no Lipschitz constant of B is known", "Pass step=γ; any γ > 0 converges")
    if known.gradient and known.mu is not None:
        return 1 / float(np.sqrt(known.mu * known.kappa))
    return 1 / known.kappa
