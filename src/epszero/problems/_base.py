"""`Problem`: something that is an inclusion 0 ∈ A(x) + B(x) underneath."""

from typing import Any, ClassVar

from epszero._checks import refuse
from epszero.oracles import Oracle
from epszero.problems.backward import Backward
from epszero.problems.declared import Declared


class Problem:
    """A known side A, a side B known through an oracle, and what the user vouches for."""

    is_gradient: ClassVar[bool] = False  # B = ∇f with f convex: then 1/κ is a cocoercivity constant
    uncertain_side: ClassVar[str] = "B"  # the argument that holds the oracle, for messages

    def __init__(self, A: Backward, oracle: Oracle, declared: Any) -> None:
        if declared is not None and not isinstance(declared, Declared):
            refuse(
                "declared",
                f"must come from ez.declare(...), but it is a {type(declared).__name__}",
                "Write declared=ez.declare(mu=..., kappa=...)",
            )
        self.A = A
        self.oracle = oracle
        self.declared = declared or Declared()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(A={self.A}, B {self.oracle.structure})"
