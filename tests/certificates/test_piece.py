"""The piece that x̂ lies on: x(m) is what solving at m finds, and margins end where it ends."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero._double import double
from epszero.certificates import piece as pieces
from epszero.certificates.case import Case
from epszero.certificates.faces import faces_of
from epszero.certificates.piece import AffinePiece, may_have_pieces, piece_of
from epszero.facts import Aggregate, Unknown

S, F = ez.sets, ez.functions
ROWS = np.array([[1.0, 0.3, 0.1], [0.2, 1.0, -0.4], [-1.0, 0.1, 0.5], [0.1, -1.0, 0.2], [0.8, 0.9, 1.0]])
PARTS = {
    "box": S.Box(-0.4, 0.4, dim=3),
    "box with a budget": S.BoxBudget(0.0, 1.0, at_least=1.2, dim=3),
    "simplex": S.Simplex(dim=3),
    "capped simplex": S.CappedSimplex(0.6, dim=3),
    "half-space": S.HalfSpace([1.0, 2.0, -1.0], 0.1),
    "slab": S.Slab([1.0, 2.0, -1.0], -0.1, 0.1),
    "hyperplane": S.Hyperplane([1.0, 2.0, -1.0], 0.3),
    "subspace": S.AffineSubspace([[1.0, 1.0, 0.0]], [0.2]),
    "polyhedron": S.Polyhedron(ROWS, 0.3 * np.ones(5)),
    "l1 ball": S.Ball(0.6, norm=1, dim=3),
    "l∞ ball": S.Ball(0.4, norm=np.inf, dim=3),
    "translated": S.Translated(S.Box(-0.4, 0.4, dim=3), [0.1, -0.2, 0.3]),
    "scaled": S.Scaled(S.Polyhedron(ROWS, np.ones(5)), 0.3),
    "l1": F.L1(0.5),
    "hinge": F.Hinge(0.7, 0.2),
    "largest entry": F.MaxEntry(1.0),
    "total variation": F.TotalVariation1D(0.4),
    "elastic net": F.ElasticNet(0.5, 0.8),
}
H = np.array([[1.5, 0.6, -0.2], [-0.4, 1.2, 0.3], [0.1, -0.5, 1.0]])
ZERO = np.zeros(3)


def piece(problem, samples, x0=None) -> tuple[AffinePiece, ez.Solution]:
    solution = ez.solve(problem, samples, x0=x0, tol=1e-12)
    with double():
        case = Case.of(solution)
        collapsed = case.collapsed(case.samples)
        assert collapsed is not None
        C, _ = case.noise_map(collapsed)
        assert C is not None
        found = piece_of(case, C)
    assert not isinstance(found, Unknown), found.reason
    return found, solution


def at(m) -> ez.Samples:
    return ez.Samples(np.atleast_2d(m), support=S.Box(-99.0, 99.0, dim=np.size(m)))


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in tree]) if isinstance(tree, list) else np.ravel(tree)


@pytest.mark.some(4)
@pytest.mark.parametrize("name", PARTS)
def test_on_the_piece_x_is_what_solving_finds_and_just_off_it_is_not(name):
    """At m̂ + t·d, t up to where the first margin ends; and half as far beyond."""
    problem = ez.Inclusion(PARTS[name], lambda x, xi: H @ x + xi)
    rng, seen = np.random.default_rng(3), 0
    for _ in range(6):
        m = rng.normal(size=3)
        found, solution = piece(problem, at(m), ZERO)
        d = rng.normal(size=3)
        slopes = found.sensitivities @ d
        ends = [-a / b for a, b in zip(found.margins, slopes, strict=True) if b < -1e-12]
        assert (found.margins > 0).all()
        end = min([*ends, 10.0])
        x = flat(solution.x) + found.start
        for t in (0.0, 0.5 * end, 0.99 * end):
            there = flat(ez.solve(problem, at(m + t * d), x0=ZERO, tol=1e-12).x)
            np.testing.assert_allclose(x - t * found.T @ d, there, atol=1e-9)
        if end < 5.0:
            beyond, _ = piece(problem, at(m + 1.01 * end * d), ZERO)
            seen += beyond.key != found.key
    assert seen > 0 or name in ("hyperplane", "subspace")


def test_an_aggregative_game_by_blocks_is_the_same_as_whole():
    def cost(x, average, xi, p):
        return 0.5 * p * x @ x + 0.4 * x @ average + (xi - jnp.array([0.9, 0.0])) @ x

    game = ez.AggregativeGame(cost, np.linspace(0.5, 2.0, 5), S.BoxBudget(0.0, 1.0, at_least=0.5, dim=2))
    solution = ez.solve(game, at([0.1, 0.2]), tol=1e-12)
    with double():
        case = Case.of(solution)
        faces = faces_of(case)
        assert not isinstance(faces, Unknown)
        J = case.jacobian
        assert J is not None
        whole = pieces._Whole(J.jacobian, faces, None, np.zeros((10, 1)))
    weights = np.linspace(0.5, 2.0, 5)[:, None] * np.ones(2) + 0.4 / 5  # an agent is part of the average
    made = whole, pieces._Separate(Aggregate(weights, np.full((5, 2), 0.4)), faces, np.zeros((10, 1)))
    R = np.random.default_rng(0).normal(size=(10, 3))
    assert made[0].flat == made[1].flat
    for do in ("solved", "times"):
        np.testing.assert_allclose(getattr(made[0], do)(R), getattr(made[1], do)(R), atol=1e-12)


@pytest.mark.long
def test_multipliers_of_shared_constraints_beside_a_curved_function():
    """Regression: the curvature of an elastic net moves z, and no normal carries that."""
    h, way = [np.array([-2.0, -0.5]), np.array([-1.0, 0.3])], (-0.2, 0.3)

    def cost(i):
        return lambda v, xi: 0.5 * v[i] @ v[i] + 0.3 * v[0] @ v[1] + (h[i] + way[i] * xi) @ v[i]

    parts, shared = [F.ElasticNet(0.2, 0.8), S.Box(-1.0, 1.0, dim=2)], (np.array([[1.0, 0.0, 1.0, 0.0]]), [0.5])
    game, start = ez.Game([cost(0), cost(1)], parts, shared=shared), [np.zeros(2)] * 2
    found, solution = piece(game, at([0.0, 0.0]), start)
    assert np.abs(found.T).max() > 0.05
    for d in np.array([[0.05, 0.0], [0.0, 0.05], [-0.05, 0.02]]):
        there = ez.solve(game, at(d), x0=start, tol=1e-12)
        np.testing.assert_allclose(flat(solution.x) + found.start - found.T @ d, flat(there.x), atol=1e-9)
        np.testing.assert_allclose(found.prices + found.price_slopes @ d, there.multipliers, atol=1e-9)


@pytest.mark.some(2)
@pytest.mark.parametrize(("agents", "has"), [(5, True), (600, False)])
def test_strategies_of_several_leaves_have_pieces_where_the_matrix_is_written_down(agents, has):
    """Regression: beyond that the blocks of agents are not those of leaves."""

    def cost(x, average, xi, p):
        return 0.5 * p * x["a"] @ x["a"] + x["a"] @ average["a"] + xi @ x["a"] + x["b"] @ x["b"] + xi[0] * x["b"][0]

    sets = {"a": S.Box(-1.0, 1.0, dim=2), "b": S.Box(-1.0, 1.0, dim=1)}
    game = ez.AggregativeGame(cost, np.linspace(0.5, 1.0, agents), sets)
    rows = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    solution = ez.solve(game, ez.Samples(rows, support=S.Box(-1.0, 1.0, dim=2)))
    with double():
        assert may_have_pieces(Case.of(solution)) == has
    assert np.isfinite(ez.certify(solution).epsilon)


def test_what_leans_on_nothing_firm_has_no_piece():
    """Two rows that say the same: their multipliers are not unique."""
    twice = S.Polyhedron([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.0])
    problem = ez.Inclusion(twice, lambda x, xi: x + xi)
    rows = np.random.default_rng(0).uniform(-1, 1, (60, 2)) - 2.0
    known = ez.certify(ez.solve(problem, ez.Samples(rows, support=S.Box(-3.0, -1.0, dim=2)))).sharp
    assert known is not None
    if not isinstance(known.known, Unknown):  # then the corner is held whichever two rows hold it
        np.testing.assert_allclose(known.known.piece.T, 0.0)
