"""Minimise E loss(x, ξ) + g(x). It is 0 ∈ ∂g(x) + E ∇loss(x, ξ), with the gradient by automatic differentiation."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax

from epszero._checks import known_arguments, refuse
from epszero._types import PyTree
from epszero.functions import Zero
from epszero.oracles import Blocks, as_oracle
from epszero.problems._base import Problem
from epszero.problems.backward import Backward
from epszero.problems.declared import Declared
from epszero.problems.examination import examine_loss, loss_is_defined, refuse_undefined_loss
from epszero.problems.given import Parts
from epszero.problems.seen import Examination


class Minimization(Problem):
    """min E loss(x, ξ) + regularizer(x): `loss(x)` or `loss(x, xi)` convex, the regularizer with a prox.

    The loss is smooth, or has kinks that `ez.solve` recognises. A set as regularizer is a constraint.
    `declared=ez.declare(mu=..., kappa=...)` speaks of the gradient of the loss.
    """

    is_gradient: ClassVar[bool] = True
    examined: ClassVar[bool] = True

    @property
    def uncertain_side(self) -> str:
        return "loss"

    @known_arguments
    def __init__(
        self, loss: Callable[..., Any], regularizer: Parts | None = None, declared: Declared | None = None
    ) -> None:
        self.loss = as_oracle("loss", loss)
        if isinstance(self.loss, Blocks):
            refuse("loss", "must be one function of all of x", "Add the losses up in one function")
        A = Backward("regularizer", Zero() if regularizer is None else regularizer)
        super().__init__(A, self.loss.transformed(Gradient), declared)

    def examine(self, data: PyTree, x: PyTree, *, proved: bool = False) -> Examination:
        return Examination() if proved else examine_loss(self, data, x)

    def judges(self, row: PyTree, x: PyTree) -> bool:
        del row, x
        return self.loss.uncertain

    def defined(self, data: PyTree, x: PyTree) -> bool:
        return loss_is_defined(self, data, x)

    def refuse_undefined(self, data: PyTree, x: PyTree) -> None:
        refuse_undefined_loss(self, data, x)


class Gradient:
    """(x, …) ↦ ∇f in x; a class, so that it can be pickled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, x: PyTree, *xi: PyTree) -> PyTree:
        return jax.grad(self.function)(x, *xi)
