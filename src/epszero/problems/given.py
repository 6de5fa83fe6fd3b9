"""What users may hand to problems, as types: known sides, functions, and constraints that are shared."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from epszero._lazy import Sparse
from epszero._types import PyTree, Real
from epszero.functions import Function
from epszero.oracles import Coupling
from epszero.sets import Set


class HasResolvent(Protocol):
    """A maximally monotone operator A, known through (Id + step·A)⁻¹."""

    def resolvent(self, v: PyTree, step: Any, /) -> PyTree: ...


Parts: TypeAlias = Set | Function | HasResolvent | Sequence["Parts"] | Mapping[str, "Parts"]
"""A: a normal cone, a subdifferential, an operator, or these nested like x."""

Functions: TypeAlias = Callable[..., Any] | Sequence["Functions"] | Mapping[str, "Functions"]
"""B: a function or an oracle of x, or of x and a sample; or these nested like x."""

Matrix: TypeAlias = Real | Sparse
"""Dense, or sparse in SciPy's way."""

Linear: TypeAlias = Matrix | Sequence[Matrix] | Callable[..., Any]
"""G: a matrix, one block of columns per agent, or a linear function of x."""

Shared: TypeAlias = Coupling | Callable[..., Any] | tuple[Linear, Real] | Sequence["Shared"]
"""Constraints on all strategies: Gx ≤ b as (G, b), h(x) ≤ 0 as h, or several of these."""
