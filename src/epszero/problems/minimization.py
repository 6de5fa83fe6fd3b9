"""Minimise E loss(x, ξ) + g(x). It is 0 ∈ ∂g(x) + E ∇loss(x, ξ), with the gradient by automatic differentiation."""

from typing import Any, ClassVar

import jax

from epszero._checks import known_arguments, refuse
from epszero.functions import Zero
from epszero.oracles import Blocks, as_oracle
from epszero.problems._base import Problem
from epszero.problems.backward import Backward
from epszero.problems.declared import Declared


class Minimization(Problem):
    """min E loss(x, ξ) + regularizer(x): `loss(x)` or `loss(x, xi)` smooth and convex, the regularizer with a prox.

    A set as regularizer is a constraint. `declared=ez.declare(mu=..., kappa=...)` speaks of the gradient of the loss.
    """

    is_gradient: ClassVar[bool] = True

    @property
    def uncertain_side(self) -> str:
        return "loss"

    @known_arguments
    def __init__(self, loss: Any, regularizer: Any = None, declared: Declared | None = None) -> None:
        self.loss = as_oracle("loss", loss)
        if isinstance(self.loss, Blocks):
            refuse("loss", "must be one function of all of x", "Add the losses up in one function")
        A = Backward("regularizer", Zero() if regularizer is None else regularizer)
        super().__init__(A, self.loss.transformed(jax.grad), declared)
