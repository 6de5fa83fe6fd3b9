"""Constraints that agents share, as an operator on strategies and multipliers.

For h(x) ≤ 0 with multipliers λ ≥ 0 the equilibrium conditions are 0 ∈ ∂g(x) × N_{≥0}(λ) + B(x, λ),
    B(x, λ) = (F(x) + ∇h(x)ᵀλ, −h(x)),
which is monotone where F is and each h_j is convex. F alone is averaged over samples.
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

from epszero._points import add
from epszero._pytree import Node
from epszero._types import Array, PyTree
from epszero.oracles._base import Average, Collapsed, Oracle


class PrimalDual(NamedTuple):
    """Strategies and the multipliers of the shared constraints."""

    x: PyTree
    multipliers: Any


def strategies(x: PyTree) -> PyTree:
    """The strategies of a point: all of it where no constraint is shared."""
    return x.x if isinstance(x, PrimalDual) else x


class Coupling(Node):
    """h, its rows convex."""

    affine: ClassVar[bool] = False

    @abstractmethod
    def value(self, x: PyTree) -> Array:
        """h(x), one entry per constraint."""

    @abstractmethod
    def pull(self, x: PyTree, multipliers: Array) -> PyTree:
        """∇h(x)ᵀλ, nested like x."""

    def traced(self, x: PyTree) -> "Coupling":
        """The same for points like x, its functions pytrees of their numbers (oracles/traced.py)."""
        del x
        return self

    @abstractmethod
    def rows(self, x: PyTree) -> int:
        """How many constraints there are, for points like x; refused where they do not fit."""


class Coupled(Oracle):
    """(F(x, ξ) + ∇h(x)ᵀλ, −h(x))."""

    base: Oracle
    coupling: Coupling

    def __init__(self, base: Oracle, coupling: Coupling) -> None:
        self.base = base
        self.coupling = coupling

    @property
    def structure(self) -> str:
        return self.base.structure

    @property
    def uncertain(self) -> bool:
        return self.base.uncertain

    @property
    def data_sets(self) -> int | None:
        return self.base.data_sets

    def __call__(self, x: PrimalDual, xi: PyTree = None) -> PrimalDual:
        return coupled(self.base(x.x, xi), self.coupling, x)

    def average(self, data: PyTree, x: PrimalDual) -> "CoupledMean":
        return CoupledMean(self.base.average(data, x.x), self.coupling.traced(x.x))

    def traced(self, x: PrimalDual, row: PyTree) -> Oracle:
        return self.replaced(base=self.base.traced(x.x, row), coupling=self.coupling.traced(x.x))

    def collapsed(self, data: PyTree, x: PrimalDual) -> Collapsed | None:
        base = self.base.collapsed(data, x.x)
        coupling = self.coupling.traced(x.x)
        return base and base._replace(at=lambda means: CoupledMean(base.at(means), coupling))

    def bend(self, x: PrimalDual, xi: PyTree, other: PyTree) -> Array:
        return self.base.bend(x.x, xi, other)


class CoupledMean(Average):
    """(F̂(x) + ∇h(x)ᵀλ, −h(x))."""

    base: Average
    coupling: Coupling

    def __init__(self, base: Average, coupling: Coupling) -> None:
        self.base = base
        self.coupling = coupling

    def __call__(self, x: PrimalDual) -> PrimalDual:
        return coupled(self.base(x.x), self.coupling, x)


def coupled(F: PyTree, coupling: Coupling, point: PrimalDual) -> PrimalDual:
    """B(x, λ) from F(x)."""
    return PrimalDual(add(F, coupling.pull(point.x, point.multipliers)), -coupling.value(point.x))
