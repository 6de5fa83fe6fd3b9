"""`Problem`: something that is an inclusion 0 ∈ A(x) + B(x) underneath."""

import copy
from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax
import numpy as np

from epszero._checks import refuse
from epszero._doors import picture_of
from epszero._double import on_device
from epszero._memory import remembered
from epszero._types import PyTree
from epszero.oracles import Coupled, Coupling, Oracle, PrimalDual
from epszero.problems.backward import Backward, is_part
from epszero.problems.declared import Declared
from epszero.problems.seen import Examination
from epszero.sets import NonNegative


class Problem:
    """A known side A, a side B known through an oracle, and what the user vouches for. Immutable.

    Where agents share constraints, `A` and `oracle` act on strategies and multipliers together (`PrimalDual`), while
    `strategies` and `coupling` are what they were made of; elsewhere `strategies` is A.
    """

    examined: ClassVar[bool] = False  # there are costs to look at (`examine`)
    is_gradient: ClassVar[bool] = False  # B = ∇f with f convex: then 1/κ is a cocoercivity constant

    @property
    def uncertain_side(self) -> str:
        """The argument that holds the oracle, for messages."""
        return "B"

    def __init__(
        self,
        A: Backward,
        oracle: Oracle,
        declared: Declared | None,
        coupling: Coupling | None = None,
        picture: Callable[..., Any] | None = None,
    ) -> None:
        if declared is not None:
            _check_declared(declared)
        self.strategies = A
        self.coupling = coupling
        self.A = A if coupling is None else Backward("shared", PrimalDual(A.parts, NonNegative()))
        self.oracle = oracle if coupling is None else Coupled(oracle, coupling)
        self.declared = declared or Declared()
        self.picture = picture

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            raise AttributeError(f"{type(self).__name__} is immutable: build a new one instead of setting {name!r}.")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name!r} cannot be deleted.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Back from a pickle, where arrays lose their read-only mark."""
        for leaf in jax.tree.leaves(state):
            if isinstance(leaf, np.ndarray):
                leaf.flags.writeable = False
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(A={self.strategies}, B {self.oracle.structure})"

    def declaring(self, declared: Declared) -> Self:
        """The same problem with this declared of it in place of what was, say of a ready-made model."""
        _check_declared(declared)
        other = copy.copy(self)
        other.__dict__["declared"] = declared
        return other

    def plot(self, solution: Any, **options: Any) -> Any:
        """A picture of the solution, as a Matplotlib figure: the model's own, or else bars or lines for every agent.

        `certificate=` draws its error bars. Models may take more options.
        """
        if self.picture is not None:
            return self.picture(solution, **options)
        unknown = next((name for name in options if name != "certificate"), None)
        if unknown is not None:
            refuse(unknown, "plot has no such argument here", "It takes: solution, certificate")
        return picture_of(self, solution, options.get("certificate"))

    def lifted(self, x: PyTree) -> PyTree:
        """x as the methods see it: with multipliers, at first 0, where constraints are shared."""
        if self.coupling is None:
            return x
        given = x if isinstance(x, PrimalDual) else PrimalDual(x, None)
        rows = self.coupling.rows(given.x)
        if given.multipliers is not None and np.shape(given.multipliers) != (rows,):
            refuse(
                "x0",
                f"must have multipliers, one per shared constraint, {rows} in all, but their shape is "
                f"{np.shape(given.multipliers)}",
                "Pass solution.point, or the strategies alone",
            )
        return PrimalDual(given.x, np.zeros(rows) if given.multipliers is None else given.multipliers)

    @property
    def start(self) -> PyTree:
        """A point of the domain, where it fixes the shapes; None for a block that it does not."""
        return remembered(self, "start", self._start)

    def _start(self) -> PyTree:
        return self.strategies.start()

    @property
    def placed(self) -> Backward:
        """A with its arrays where the compiled programs want them."""
        return remembered(self, "placed", self._placed)

    def _placed(self) -> Backward:
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

    def examine(self, data: PyTree, x: PyTree, *, proved: bool = False) -> Examination:
        """Look at the functions more closely, near x: refuse what is wrong for sure, tell what is seen.

        `proved`: costs are known to be convex.
        """
        del data, x, proved
        return Examination()

    def judges(self, row: PyTree, x: PyTree) -> bool:
        """Whether an examination depends on the values of the data, for samples like `row`."""
        del row, x
        return False

    def defined(self, data: PyTree, x: PyTree) -> bool:
        """Whether every cost that is looked at has a value at x."""
        del data, x
        return True

    def refuse_undefined(self, data: PyTree, x: PyTree) -> None:
        """Refuse, by name, what is NaN or infinite at x."""


def _check_declared(declared: Any) -> None:
    if not isinstance(declared, Declared):
        refuse(
            "declared",
            f"must come from ez.declare(...), but it is a {type(declared).__name__}",
            "Write declared=ez.declare(mu=..., kappa=...)",
        )
