"""Find x ∈ C with ⟨F(x), y − x⟩ ≥ 0 for all y ∈ C, F(x) = E F(x, ξ). It is 0 ∈ N_C(x) + F(x)."""

from epszero._checks import known_arguments
from epszero.oracles import as_oracle
from epszero.problems._base import Problem
from epszero.problems.backward import Backward
from epszero.problems.declared import Declared
from epszero.problems.given import Functions, Parts


class VariationalInequality(Problem):
    """VI(F, C): `F(x)` or `F(x, xi)`, `over` a set or nested sets (functions give a mixed variational inequality)."""

    @property
    def uncertain_side(self) -> str:
        return "F"

    @known_arguments
    def __init__(self, F: Functions, over: Parts, declared: Declared | None = None) -> None:
        super().__init__(Backward("over", over), as_oracle("F", F), declared)
