"""Find x with 0 ∈ A(x) + B(x), B(x) = E O(x, ξ)."""

from epszero._checks import known_arguments
from epszero.oracles import as_oracle
from epszero.problems._base import Problem
from epszero.problems.backward import Backward
from epszero.problems.declared import Declared
from epszero.problems.given import Functions, Parts


class Inclusion(Problem):
    """0 ∈ A(x) + B(x).

    `A`: a set (its normal cone), a function (its subdifferential), an object with `resolvent(v, step)`, or these nested
    in lists and dictionaries, one per block of x. `B`: a function `B(x)`, or an oracle `B(x, xi)` that is averaged over
    samples; or a list of them, one per block, each of the whole x. `declared`: see `ez.declare`.
    """

    @known_arguments
    def __init__(self, A: Parts, B: Functions, declared: Declared | None = None) -> None:
        super().__init__(Backward("A", A), as_oracle("B", B), declared)
