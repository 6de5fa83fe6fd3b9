# The part of clarabel that epszero calls; the package is a compiled module without types.
from typing import Any

class NonnegativeConeT:
    def __init__(self, dim: int) -> None: ...

class ZeroConeT:
    def __init__(self, dim: int) -> None: ...

class SecondOrderConeT:
    def __init__(self, dim: int) -> None: ...

class PSDTriangleConeT:
    def __init__(self, dim: int) -> None: ...

class ExponentialConeT:
    def __init__(self) -> None: ...

class DefaultSettings:
    verbose: bool
    tol_gap_abs: float
    tol_gap_rel: float
    tol_feas: float
    reduced_tol_gap_abs: float
    reduced_tol_gap_rel: float
    reduced_tol_feas: float

class DefaultSolution:
    x: list[float]
    z: list[float]
    s: list[float]
    obj_val: float
    status: Any

class DefaultSolver:
    def __init__(self, P: Any, q: Any, A: Any, b: Any, cones: list[Any], settings: DefaultSettings) -> None: ...
    def solve(self) -> DefaultSolution: ...
