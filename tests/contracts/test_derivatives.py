"""One contract for the derivative of every projection and prox, the generalized Jacobian of Newton's finish.

J is a projection or a prox of a convex function, so its generalized Jacobian consists of symmetric P with 0 ≼ P ≼ I.
Automatic differentiation must give such a P everywhere, on kinks too, with J(v + h) − J(v) − P(v + h)h = o(‖h‖): that J
is semismooth, with this choice of P, is all that the local convergence of Newton's method needs. A solver without a
derivative says NaN, and nothing else.
"""

import functools
import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from set_cases import CASES as SETS
from set_cases import Case as SetCase
from test_functions import CASES as FUNCTIONS
from test_functions import Case as FunctionCase

import epszero as ez

SOLVERS = {"set CvxpySet"}  # no derivative: NaN
CYCLES = {
    "set Intersection",
    "set Intersection matrices",
}  # Dykstra's algorithm may stop before its derivative has converged, on kinks
STEP = 0.7  # of every prox
CASES = {f"set {case.name}": case for case in SETS} | {f"function {case.name}": case for case in FUNCTIONS}
every = pytest.mark.parametrize("name", CASES)


class Mapped:
    """A projection or prox on flat points, and its derivative."""

    def __init__(self, name: str) -> None:
        case: Any = CASES[name]
        self.name = name
        if isinstance(case, SetCase):
            self.size = case.n * len(case.members)
            outline = case.set.point() if isinstance(case.set, ez.sets.Product) else np.zeros(case.shape)
            self.map = case.set.project
        else:
            assert isinstance(case, FunctionCase)
            self.size = int(np.prod(case.shape))
            outline = np.zeros(case.shape)
            self.map = lambda v: case.function.prox(v, STEP)
        with jax.enable_x64(True):
            self.nest = ravel_pytree(outline)[1]
            flat = jax.jit(lambda v: ravel_pytree(self.map(self.nest(v)))[0])
            self.flat, self.slopes = flat, jax.jit(jax.jacfwd(flat))

    def J(self, v: Any) -> Any:
        with jax.enable_x64(True):
            return np.asarray(self.flat(jnp.asarray(v)))

    def P(self, v: Any) -> Any:
        with jax.enable_x64(True):
            return np.asarray(self.slopes(jnp.asarray(v)))

    def rng(self) -> np.random.Generator:
        """The same for each test, whatever ran before."""
        return np.random.default_rng(zlib.crc32(self.name.encode()))

    def generic(self, count: int) -> Any:
        return 2.0 * self.rng().normal(size=(count, self.size)) + 0.1

    def kinks(self) -> list[Any]:
        """Zeros, ties, bounds, equal eigenvalues, faces of every dimension, and points just on the boundary."""
        n, rng = self.size, self.rng()
        side = round(np.sqrt(n))
        eye = np.eye(side).ravel() if side * side == n else np.eye(n)[0]
        plain = [np.zeros(n), np.ones(n), -np.ones(n), eye, -2.0 * eye, np.eye(n)[-1], 0.5 * np.ones(n)]
        grid = [rng.integers(-2, 3, size=n) / 2.0 for _ in range(4)]
        near = [self.J(v) for v in self.generic(3)]
        far = [self.J(1e3 * v) for v in self.generic(2)]
        across = [self.J(v) + rng.integers(-1, 2, size=n) * 0.5 for v in grid[:2]]
        return [*plain, *grid, *near, *far, *across]


@functools.cache
def mapped(name: str) -> Mapped:
    return Mapped(name)


def check_element(P: Any) -> None:
    """Symmetric, with eigenvalues in [0, 1]."""
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P, P.T, atol=1e-9)
    eigenvalues = np.linalg.eigvalsh((P + P.T) / 2)
    assert eigenvalues.min() >= -1e-9
    assert eigenvalues.max() <= 1 + 1e-9


@pytest.mark.some(6)
@every
def test_the_derivative_is_that_of_finite_differences(name):
    of = mapped(name)
    for v in of.generic(2):
        P = of.P(v)
        if name in SOLVERS:
            assert np.isnan(P).all()
            continue
        check_element(P)
        step = 1e-6
        columns = [(of.J(v + step * e) - of.J(v - step * e)) / (2 * step) for e in np.eye(of.size)]
        np.testing.assert_allclose(P, np.stack(columns, axis=1), atol=2e-5)


@pytest.mark.some(4)
@pytest.mark.parametrize("name", sorted(CASES.keys() - SOLVERS - CYCLES))
def test_on_kinks_it_is_an_element_of_the_generalized_Jacobian(name):
    of, rng = mapped(name), np.random.default_rng(1)
    for v in of.kinks():  # with a P that is not consistent, what is missed stays a share of ‖h‖ until rounding wins
        here = of.J(v)
        check_element(of.P(v))
        for direction in (rng.normal(size=of.size), rng.integers(-1, 2, size=of.size).astype(float)):
            length = max(float(np.linalg.norm(direction)), 1.0)
            missed = []
            for t in (1e-5, 1e-7, 1e-9):
                h = t * direction / length
                P = of.P(v + h)
                check_element(P)
                missed.append(float(np.linalg.norm(of.J(v + h) - here - P @ h)) / t)
            assert min(missed) <= 2e-3, (v, direction, missed)


def test_where_more_rows_of_a_polyhedron_meet_than_are_needed():
    """v leans on three of seven rows that meet at the origin, which stays the nearest point: the derivative is 0."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        A = rng.normal(size=(7, 3))
        A[:, 2] = np.abs(A[:, 2])
        polyhedron = ez.sets.Polyhedron(A, np.zeros(7))
        v = rng.uniform(0.5, 1.0, 3) @ A[rng.permutation(7)[:3]]
        with jax.enable_x64(True):
            P = np.asarray(jax.jacfwd(polyhedron.project)(jnp.asarray(v)))
        np.testing.assert_allclose(polyhedron.project(v), 0.0, atol=1e-12)
        np.testing.assert_allclose(P, 0.0, atol=1e-12)


def test_the_contract_itself_can_fail():
    """Half of each, which `jnp.maximum` says at a tie, is no element for the simplex: it is not symmetric."""

    def plain(v: Any) -> Any:
        top = jnp.sort(v)[::-1]
        level = jnp.max((jnp.cumsum(top) - 1) / jnp.arange(1, 4))
        return jnp.maximum(v - level, 0.0)

    with jax.enable_x64(True):
        at_a_kink = np.asarray(jax.jacfwd(plain)(jnp.array([1.0, 0.0, 0.0])))
    with pytest.raises(AssertionError):
        check_element(at_a_kink)
