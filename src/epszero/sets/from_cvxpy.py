"""A convex set written in CVXPY: {x : constraints}, other variables of the constraints being existential.

CVXPY turns the constraints into conic form once, at construction (the values of its Parameters are taken then); after
that every projection and support is one Clarabel solve (sets/_oracle.py): polished to rounding when the constraints are
linear, else accurate to about 1e-8 in value and 1e-5 in the point, which is the least `tol` of `contains`, and only for
points not much further from the set than its size. Where the set has an interior, the point is inside to rounding; a
support is an upper bound where the set is bounded; `normal_near` says how good both are, and certificates ask it.
Diameter: an upper bound, the diagonal of the box around the set.
CVXPY is optional: pip install "epszero[cvxpy]".
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, refuse
from epszero._lazy import sp
from epszero._types import Array, FloatArray
from epszero.sets._base import Set
from epszero.sets._normals import Normal
from epszero.sets._oracle import ConicOracle
from epszero.sets.conic import ConicForm, minimise

if TYPE_CHECKING:
    import cvxpy as cp


class CvxpySet(Set):
    """The values that a CVXPY variable can take under constraints. Built by `from_cvxpy`."""

    static: ClassVar[tuple[str, ...]] = ("oracle",)
    oracle: ConicOracle
    inside: FloatArray  # a point of the set, away from its boundary where there is room

    @known_arguments
    def __init__(self, constraints: "Sequence[cp.Constraint]", variable: "cp.Variable") -> None:
        if not isinstance(constraints, list | tuple):
            refuse("constraints", f"must be a list, but it is a {type(constraints).__name__}", "Pass [x >= 0], say")
        form = _conic_form(list(constraints), variable)
        result = minimise(form, np.zeros(form.n))
        if result.status == "infeasible":
            listed = "; ".join(str(constraint) for constraint in constraints)
            refuse("constraints", f"no value of the variable meets them: {listed[:400]}", "Relax one of them")
        self.oracle = ConicOracle(form)
        self.inside = result.x

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.oracle.form.n,)

    def _project(self, v: Array) -> Array:
        return self.oracle.project(v)

    @property
    def accuracy(self) -> float:
        """The least `tol` of `contains`."""
        return 1e-5 if self.oracle.rows is None else 1e-9

    def _contains(self, v: Array, tol: float) -> Array:
        return super()._contains(v, max(tol, self.accuracy) if self.oracle.rows is None else tol)

    def _support(self, direction: Array) -> Array:
        return self.oracle.support(direction)

    def _diameter(self) -> Array:
        return jnp.asarray(self.oracle.diameter())

    def _point(self) -> Array:
        return jnp.asarray(self.inside)

    def _normal(self, x: FloatArray, z: FloatArray) -> Normal:
        return self.oracle.normal(x, z)

    def _conic(self, n: int) -> ConicForm:
        return self.oracle.form


@known_arguments
def from_cvxpy(constraints: "Sequence[cp.Constraint]", variable: "cp.Variable") -> CvxpySet:
    """The set of values that `variable`, a cvxpy.Variable(n), can take under the constraints."""
    return CvxpySet(constraints, variable)


def _conic_form(constraints: list[Any], variable: Any) -> ConicForm:
    try:
        import cvxpy as cp  # noqa: PLC0415 (optional)
        from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import dims_to_solver_cones  # noqa: PLC0415
    except ImportError as error:
        raise ImportError('from_cvxpy needs CVXPY, which is not installed: pip install "epszero[cvxpy]".') from error
    if not isinstance(variable, cp.Variable) or variable.ndim != 1:
        shape = getattr(variable, "shape", type(variable).__name__)
        refuse("variable", f"must be a vector cvxpy.Variable, but it is {shape}", "Pass cp.Variable(n)")
    n = int(variable.size)
    weights = np.arange(1.0, n + 1)
    problem: Any = cp.Problem(cp.Minimize(weights @ variable), constraints)
    if not problem.is_dcp():
        bad = next((str(c) for c in constraints if not c.is_dcp()), "")
        refuse("constraints", f"CVXPY cannot prove them convex: {bad}", "Rewrite them by the rules of cvxpy.org/dcp")
    if problem.is_mixed_integer():
        refuse("variable", "is integer or boolean, so the set is not convex", "Use a continuous variable")
    unset = [parameter.name() for parameter in problem.parameters() if parameter.value is None]
    if unset:
        refuse("constraints", f"the parameters {', '.join(unset)} have no value", "Set .value before building the set")
    data: Any = problem.get_problem_data(cp.CLARABEL)[0]
    if not np.array_equal(np.sort(data["c"])[-n:], weights) or np.count_nonzero(data["c"]) != n:
        plain: Any = cp.Variable(n)  # `variable` has attributes that CVXPY expands: a plain one in its place
        return _conic_form([*constraints, plain == variable], plain)
    columns = np.argsort(data["c"])[-n:]  # those that the objective weighs, in the order of the weights
    others = np.setdiff1d(np.arange(len(data["c"])), columns)
    A = sp.csr_matrix(sp.csc_matrix(data["A"])[:, np.concatenate([columns, others])])
    return ConicForm(A, np.asarray(data["b"]), tuple(dims_to_solver_cones(data["dims"])), n)
