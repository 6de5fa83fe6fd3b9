"""`Problem`: something that is an inclusion 0 ∈ A(x) + B(x) underneath."""

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Self

import jax
import numpy as np

from epszero._checks import refuse
from epszero._double import on_device
from epszero._types import PyTree
from epszero.oracles import Coupled, Coupling, Oracle, PrimalDual
from epszero.problems.backward import Backward, is_part
from epszero.problems.declared import Declared
from epszero.sets import NonNegative


class Problem:
    """A known side A, a side B known through an oracle, and what the user vouches for.

    Where agents share constraints, `A` and `oracle` act on strategies and multipliers together (`PrimalDual`), while
    `strategies` and `coupling` are what they were made of; elsewhere `strategies` is A.
    """

    is_gradient: ClassVar[bool] = False  # B = ∇f with f convex: then 1/κ is a cocoercivity constant

    @property
    def uncertain_side(self) -> str:
        """The argument that holds the oracle, for messages."""
        return "B"

    def __init__(
        self, A: Backward, oracle: Oracle, declared: Any,
        coupling: Coupling | None = None, picture: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        if declared is not None:
            _check_declared(declared)
        self.strategies = A
        self.coupling = coupling
        self.A = A if coupling is None else Backward("shared", PrimalDual(A.parts, NonNegative()))
        self.oracle = oracle if coupling is None else Coupled(oracle, coupling)
        self.declared = declared or Declared()
        self.picture = picture
        self.derived: dict[Any, Any] = {}  # what was found out about it, to be looked up again
        self.unit_steps: PyTree = None  # of each agent relative to the others, where their units differ much

    def __repr__(self) -> str:
        return f"{type(self).__name__}(A={self.strategies}, B {self.oracle.structure})"

    def declaring(self, declared: Declared) -> Self:
        """The same problem with this declared of it in place of what was, say of a ready-made model."""
        _check_declared(declared)
        other = copy.copy(self)
        other.declared, other.derived = declared, {}
        return other

    def plot(self, solution: Any, **options: Any) -> Any:
        """A picture of the solution, as a Matplotlib figure, where the model comes with one."""
        if self.picture is None:
            refuse("plot", f"this {type(self).__name__} has no picture of its own", "Draw solution.x with Matplotlib")
        return self.picture(solution, **options)

    def lifted(self, x: PyTree) -> PyTree:
        """x as the methods see it: with multipliers, at first 0, where constraints are shared."""
        if self.coupling is None:
            return x
        given = x if isinstance(x, PrimalDual) else PrimalDual(x, None)
        rows = self.coupling.rows(given.x)
        if given.multipliers is not None and np.shape(given.multipliers) != (rows,):
            refuse("x0", f"must have multipliers, one per shared constraint, {rows} in all, but their shape is "
                   f"{np.shape(given.multipliers)}", "Pass solution.point, or the strategies alone")  # fmt: skip
        return PrimalDual(given.x, np.zeros(rows) if given.multipliers is None else given.multipliers)

    @cached_property
    def start(self) -> PyTree:
        """A point of the domain, where it fixes the shapes; None for a block that it does not."""
        return self.strategies.start()

    @cached_property
    def placed(self) -> Backward:
        """A with its arrays where the compiled programs want them."""
        with jax.enable_x64(True):
            return on_device(self.A)

    @property
    def leading(self) -> tuple[int, ...] | None:
        """The axes before the one whose length is open, where x is one array; None where it is not."""
        parts = jax.tree.leaves(self.strategies.parts, is_leaf=is_part)
        return parts[0].batch_shape if len(parts) == 1 and hasattr(parts[0], "batch_shape") else None

    def check_costs(self, row: PyTree, x: PyTree) -> None:
        """Refuse costs that do not return one number, for a sample of the shape of `row`."""

    def check_point(self, argument: str, x: PyTree) -> None:
        """Refuse, in a sentence, a point that the problem's functions cannot take."""
        self.strategies.check_shapes(argument, x)

    def examine(self, data: PyTree, x: PyTree) -> tuple[list[str], bool]:
        """Look at the data and the functions more closely before a run: refuse, or give notes.

        The second answer says whether other data of the same shape would be judged alike.
        """
        del data, x
        return [], True


def _check_declared(declared: Any) -> None:
    if not isinstance(declared, Declared):
        refuse(
            "declared",
            f"must come from ez.declare(...), but it is a {type(declared).__name__}",
            "Write declared=ez.declare(mu=..., kappa=...)",
        )
