"""Units must not matter: O in units of c, x of s and ξ of t scale ε by c, distances by s, savings by cs.

Powers of two over a wide range scale exactly; beyond it there is a refusal in a sentence. At no scale is a bound below
the truth, which is known here in closed form, and at no scale does a text say NaN or infinity. Exact answers converge.
"""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from budget import budget
from hypothesis import given
from hypothesis import strategies as st

import epszero as ez

ROWS = np.random.default_rng(5).uniform(size=(40, 2))
H, TURN = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[0.0, 1.0], [-1.0, 0.0]])
NOT_NUMBERS = re.compile(r"(?<![a-z])-?(inf|nan)(?![a-z])", re.IGNORECASE)


def over(name: str, s: float, n: int = 2) -> Any:
    sets = ez.sets
    if name == "box":
        return sets.Box(-s, s, dim=n)
    if name == "ball":
        return sets.Ball(s, dim=n)
    return sets.Simplex(s, dim=n) if name == "simplex" else sets.WholeSpace(dim=n)


def minimisation(c: float, s: float, t: float, where: str) -> Any:
    return ez.Minimization(lambda x, xi: c * s * (0.5 * (x / s) @ H @ (x / s) - (xi / t) @ (x / s)), over(where, s))


def certain(c: float, s: float, t: float, where: str) -> Any:
    return ez.Minimization(lambda x: c * s * (0.5 * (x / s) @ H @ (x / s) - 0.3 * jnp.sum(x / s)), over(where, s))


def inequality(c: float, s: float, t: float, where: str) -> Any:
    return ez.VariationalInequality(lambda x, xi: c * ((H + TURN) @ (x / s) - xi / t), over(where, s))


def weighted(c: float, s: float, t: float, where: str) -> Any:
    return ez.VariationalInequality(lambda x, xi: c * ((1 + xi / t) * (x / s) - 0.3), over(where, s))


def game(c: float, s: float, t: float, where: str) -> Any:
    def first(x, xi):
        return c * s * ((x[0] / s) @ (x[0] / s) + 0.3 * (x[0] / s) @ (x[1] / s) - (xi[:1] / t) @ (x[0] / s))

    def second(x, xi):
        return c * s * ((x[1] / s) @ (x[1] / s) - 0.3 * (x[0] / s) @ (x[1] / s) - (xi[1:] / t) @ (x[1] / s))

    return ez.Game([first, second], [over("free" if where == "free" else "box", s, 1)] * 2)


def aggregative(c: float, s: float, t: float, where: str) -> Any:
    def cost(own, average, xi, p):
        return c * s * (p["w"] * (own / s) @ (own / s) + 0.1 * (average / s) @ (own / s) - (xi / t) @ (own / s))

    return ez.AggregativeGame(cost, {"w": np.array([0.5, 1.0, 2.0])}, over(where, s))


STARTS = {game: [np.full(1, 0.5)] * 2, aggregative: np.full((3, 2), 0.5)}
MADE = (minimisation, certain, inequality, weighted, game, aggregative)
KINDS = {
    "mean": ez.certificates.MeanDeviation(),
    "fresh": ez.certificates.HoldOut(),
    "vector": ez.certificates.VectorStability(),
    "known": ez.certificates.Known(),
}


def answered(make: Any, where: str, kind: str, scales: tuple[float, float, float]) -> tuple[Any, Any]:
    c, s, t = scales
    samples = None if make is certain else ez.Samples(ROWS * t, support=ez.sets.Box(0, t, dim=2))
    x0 = jax.tree.map(lambda leaf: leaf * s, STARTS.get(make, np.full(2, 0.5)))
    solution = ez.solve(make(c, s, t, where), samples, x0=x0, holdout=0.5 if kind == "fresh" else None)
    return solution, ez.certify(solution, using=KINDS[kind])


def solved(problem: Any, t: float, **options: Any) -> tuple[Any, str]:
    """A solution, or the sentence that there is in its place."""
    try:
        return ez.solve(problem, ez.Samples(ROWS * t, support=ez.sets.Box(0, t, dim=2)), **options), ""
    except (ez.InputError, ez.SolveError) as error:
        return None, str(error)


def texts(solution: Any, certificate: Any) -> str:
    said = [*certificate.notes.values(), *map(str, certificate.leans_on)]
    return "\n".join([str(certificate), solution.message, certificate.reason, *said])


def numbers(certificate: Any, c: float, s: float) -> dict[str, Any]:
    """What is claimed, in units in which it should not depend on the scales."""
    claims = {
        "epsilon": (certificate.epsilon, c),
        "distance": (certificate.distance, s),
        "cost_gap": (certificate.cost_gap, c * s),
        "exploitability": (certificate.exploitability, c * s),
        "total": (certificate.total_exploitability, c * s),
    }
    return {name: None if value is None else np.asarray(value) / by for name, (value, by) in claims.items()}


@pytest.mark.long
@budget(2)
@given(
    make=st.sampled_from(MADE),
    where=st.sampled_from(["box", "ball", "simplex", "free"]),
    kind=st.sampled_from(["mean", "fresh", "vector"]),
    exponents=st.tuples(st.integers(-400, 400), st.integers(-400, 400), st.integers(-320, 320)),
    together=st.booleans(),
    which=st.integers(0, 2),
)
def test_certificates_scale_with_the_units(make, where, kind, exponents, together, which):
    kind = "known" if make is certain else kind
    exponents = [k if together or place == which else 0 for place, k in enumerate(exponents)]
    c, s, t = (2.0**k for k in exponents)
    solution, certificate = answered(make, where, kind, (c, s, t))
    plain, expected = answered(make, where, kind, (1.0, 1.0, 1.0))
    assert not NOT_NUMBERS.search(texts(solution, certificate))
    assert solution.status is plain.status
    for x, y in zip(jax.tree.leaves(solution.x), jax.tree.leaves(plain.x), strict=True):
        np.testing.assert_allclose(x / s, y, atol=1e-8)
    if certificate.verdict != expected.verdict:  # C = c/t is out of range where the two go apart
        assert together
        assert certificate.verdict == "refused"
        assert "scale" in certificate.reason
        return
    found, wanted = numbers(certificate, c, s), numbers(expected, 1.0, 1.0)
    for name, value in wanted.items():
        if found[name] is None and "scale" in certificate.notes.get(name, ""):
            continue
        assert (found[name] is None) == (value is None)
        if value is not None:
            np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-8, err_msg=name)


@budget(2)
@given(
    exponents=st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(-1000, 1000)),
    together=st.booleans(),
    which=st.integers(0, 2),
    kind=st.sampled_from(["mean", "fresh", "vector"]),
)
def test_no_bound_is_below_the_truth_at_any_scale(exponents, together, which, kind):
    """O = c(x/s − ξ/t), ξ uniform on [0, t]²: x* = s/2, and z = 0, as no bound is active."""
    c, s, t = (2.0**k if together or place == which else 1.0 for place, k in enumerate(exponents))
    problem = ez.VariationalInequality(lambda x, xi: c * (x / s - xi / t), over("box", s))
    solution, refusal = solved(problem, t, holdout=0.5 if kind == "fresh" else None)
    assert not NOT_NUMBERS.search(refusal)
    if refusal:
        return
    certificate = ez.certify(solution, using=KINDS[kind])
    assert not NOT_NUMBERS.search(texts(solution, certificate))
    away = np.linalg.norm(np.asarray(solution.x) / s - 0.5)
    assert certificate.epsilon / c >= away * (1 - 1e-9) or certificate.epsilon > away * c
    if certificate.distance is not None:
        assert certificate.distance / s >= away * (1 - 1e-9)


@pytest.mark.parametrize("q", [1e-320, 1e-162, 1e160, 1e307])
def test_what_squares_cannot_hold_is_refused_in_a_sentence(q):
    """q = 1e-162 once gave a distance ≤ 0 where it is 0.146, and q = 1e160 the text mu = -inf."""
    problem = ez.VariationalInequality(lambda x, xi: q * (x - xi), over("box", 2.0))
    solution, refusal = solved(problem, 1.0)
    assert not NOT_NUMBERS.search(refusal)
    if refusal:
        assert "Scale" in refusal
        return
    certificate = ez.certify(solution)
    assert certificate.verdict == "refused"
    assert certificate.distance is None
    assert "scale the data" in certificate.reason
    assert not NOT_NUMBERS.search(texts(solution, certificate))


def test_short_distances_are_not_rounded_to_zero():
    """x in units of 1e-162, where the square of a distance is no number any more."""
    s = 1e-162
    problem = ez.VariationalInequality(lambda x, xi: x / s - xi, over("box", 2 * s))
    certificate = ez.certify(ez.solve(problem, ez.Samples(ROWS, support=ez.sets.Box(0, 1, dim=2))))
    assert certificate.epsilon > 0.05
    assert certificate.distance is None
    assert "scale the data" in certificate.notes["distance"]


# -- exact answers -----------------------------------------------------------------------------------------------------


@pytest.mark.long
@budget(3)
@given(
    where=st.sampled_from(["box", "ball", "simplex", "free"]),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
    linear=st.sampled_from([1e-8, 1e-4, 1.0, 1e4, 1e8]),
    bend=st.sampled_from([1e-8, 1e-4, 1.0, 1e4, 1e8]),
    h=st.lists(st.integers(-9, 9), min_size=3, max_size=3),
    method=st.sampled_from([None, ez.ForwardBackward(), ez.ForwardBackwardForward(), ez.Extragradient()]),
    sampled=st.booleans(),
)
def test_exact_answers_converge(where, size, linear, bend, h, method, sampled):
    """½ bend·linear ‖x − ξ‖² + linear ⟨h, x⟩, minimised where the answer is known: a projection."""
    a, b = bend * linear, linear * np.array(h, dtype=float)
    rows = size * np.array([[1.0, 0.0, -1.0], [0.0, 2.0, 1.0], [2.0, 1.0, 0.0]])
    if sampled:
        problem = ez.Minimization(lambda x, xi: 0.5 * a * jnp.sum((x - xi) ** 2) + b @ x, over(where, size, 3))
    else:
        problem = ez.Minimization(lambda x: 0.5 * a * jnp.sum((x - size) ** 2) + b @ x, over(where, size, 3))
    solution = ez.solve(problem, ez.Samples(rows) if sampled else None, method)  # raises where it stalls
    answer = np.asarray(over(where, size, 3).project((rows.mean(axis=0) if sampled else size) - b / a))
    room = 1e-8 * (1 + np.abs(answer).max() / size) * size + 1e-13 * np.abs(b / a).max()
    np.testing.assert_allclose(solution.x, answer, atol=room)


@pytest.mark.long
def test_a_vertex_of_the_simplex_is_found():
    """Once: stalled at residual 8.9e-16, as the default tolerance was below what float64 can show."""
    problem = ez.Minimization(lambda x: jnp.dot(jnp.array([3.0, 1.0, 4.0]), x) + 1e-8 * x @ x, ez.sets.Simplex(dim=3))
    solution = ez.solve(problem)
    assert solution.status.value == "converged"
    np.testing.assert_allclose(solution.x, [0, 1, 0], atol=1e-12)


@pytest.mark.long
def test_a_tolerance_below_float64_is_answered_with_the_floor():
    problem = ez.Minimization(lambda x: 0.5 * 1e8 * jnp.sum((x - 1 / 3) ** 2) + 0.1 * x[0] ** 2, over("free", 1.0, 3))
    with pytest.raises(ez.SolveError, match=r"what float64 can show here, about .*: ask for tol=.* or more") as raised:
        ez.solve(problem, x0=np.full(3, 7.7), tol=1e-13)
    assert raised.value.solution.status.value == "stalled"
    assert ez.solve(problem, x0=np.full(3, 7.7)).status.value == "converged"
