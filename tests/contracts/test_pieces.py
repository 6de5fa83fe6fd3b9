"""Every polyhedral set and function, in every kind of problem: its piece is certified, and no number of it is wrong.

The law is uniform on a small box, so that its mean is known: x* is the solution there, and every line and interval of
the certificate must hold it. On the piece x is affine in m, which solving at other m must confirm, up to where a first
slack or multiplier ends.
"""

from typing import Any

import jax
import numpy as np
import pytest

import epszero as ez
from epszero.certificates.sharp import Sharp

S, F = ez.sets, ez.functions
WALLS = np.array([[1.0, 0.3, 0.1], [0.2, 1.0, -0.4], [-1.0, 0.1, 0.5], [0.1, -1.0, 0.2], [0.8, 0.9, 1.0]])
PARTS: dict[str, Any] = {
    "box": S.Box(-0.4, 0.4, dim=3),
    "box with a budget": S.BoxBudget(0.0, 1.0, at_least=1.2, dim=3),
    "simplex": S.Simplex(dim=3),
    "capped simplex": S.CappedSimplex(1.0, cap=0.6, dim=3),
    "half-space": S.HalfSpace([1.0, 2.0, -1.0], 0.1),
    "slab": S.Slab([1.0, 2.0, -1.0], -0.1, 0.1),
    "hyperplane": S.Hyperplane([1.0, 2.0, -1.0], 0.3),
    "subspace": S.AffineSubspace([[1.0, 1.0, 0.0]], [0.2]),
    "polyhedron": S.Polyhedron(WALLS, 0.3 * np.ones(5)),
    "l1 ball": S.Ball(0.6, norm=1, dim=3),
    "l∞ ball": S.Ball(0.4, norm=np.inf, dim=3),
    "translated set": S.Translated(S.Ball(0.6, norm=1, dim=3), [0.1, -0.2, 0.3]),
    "scaled set": S.Scaled(S.Simplex(dim=3), -0.7),
    "intersection": S.Intersection(S.Box(0.0, 0.5, dim=3), S.HalfSpace([1.0, 1.0, 1.0], 0.8)),
    "intersection with an l1 ball": S.Intersection(S.Ball(0.6, norm=1, dim=3), S.HalfSpace([1.0, 2.0, -1.0], 0.3)),
    "l1": F.L1(0.5),
    "hinge": F.Hinge(0.7, 0.2),
    "largest entry": F.MaxEntry(1.0),
    "total variation": F.TotalVariation1D(0.4),
    "elastic net": F.ElasticNet(0.5, 0.8),
    "translated": F.Translated(F.L1(0.5), 0.25),
    "scaled": F.Scaled(F.Hinge(0.7, 0.2), 1.5),
    "tilted": F.Tilted(F.TotalVariation1D(0.4), [0.1, 0.0, -0.1]),
    "mirrored": F.Precomposed(F.ElasticNet(0.5, 0.8), -2.0),
    "indicator": F.Indicator(S.Box(-0.4, 0.4, dim=3)),
    "linear": F.Linear([0.3, 0.0, -0.2]),
    "zero": F.Zero(),
}
H = np.array([[1.5, 0.6, -0.2], [-0.4, 1.2, 0.3], [0.1, -0.5, 1.0]])
WEAR = np.array([1.0, 1.3, 0.8])


def minimisation(part):
    return ez.Minimization(lambda x, xi: 0.5 * x @ (H + H.T) @ x / 2 + xi @ x, part), np.zeros(3)


def inequality(part):
    over = {"over": part} if isinstance(part, S.Set) else {}
    F = ez.VariationalInequality if over else ez.Inclusion
    return (F(lambda x, xi: H @ x + xi, **over) if over else F(part, lambda x, xi: H @ x + xi)), np.zeros(3)


def game(part):
    def cost(i):
        return lambda x, xi: 0.5 * (1.0 + i) * x[i] @ x[i] + 0.4 * x[0] @ x[1] + (1 - 2 * i) * xi @ x[i]

    return ez.Game([cost(0), cost(1)], [part, S.Box(-0.6, 0.6, dim=3)]), [np.zeros(3)] * 2


def aggregative(part):
    def cost(x, mean, xi, wear):
        return 0.5 * wear * x @ x + 0.3 * x @ mean + wear * xi @ x

    return ez.AggregativeGame(cost, WEAR, part), np.zeros((3, 3))


KINDS = (minimisation, inequality, game, aggregative)


def flat(x):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(x)])


def at(rows, h):
    return ez.Samples(np.atleast_2d(rows), support=S.Box(h - 0.02, h + 0.02))


def wrong(problem, start, seed):
    """What is wrong of one certificate; None where its piece is not certified."""
    rng = np.random.default_rng(seed)
    h = 1.2 * rng.normal(size=3)
    solution = ez.solve(problem, at(rng.uniform(h - 0.02, h + 0.02, (400, 3)), h), x0=start)
    certificate, truth = ez.certify(solution, likely=False), ez.solve(problem, at(h, h), x0=start)
    assert certificate.sharp is not None
    known, x, false = certificate.sharp.known, flat(solution.x), []
    if not isinstance(known, Sharp):
        return None
    if np.linalg.norm(x - flat(truth.x)) > certificate.distance + 1e-8:
        false.append("distance")
    band = certificate.intervals
    if (flat(band.lower) > flat(truth.x) + 1e-8).any() or (flat(band.upper) < flat(truth.x) - 1e-8).any():
        false.append("intervals")
    piece, m = known.piece, known.mean
    ways = []
    for _ in range(3):
        d = rng.normal(size=3)
        ends = [-a / b for a, b in zip(piece.margins, piece.sensitivities @ d, strict=True) if b < -1e-12]
        ways.append(0.9 * min([*ends, 0.5]) * d)
    far = [ez.Samples((m + way)[None], support=S.Box(-99.0, 99.0, dim=3)) for way in ways]
    for way, there in zip(ways, ez.solve_many(problem, far, x0=start), strict=True):
        if np.abs(x + piece.start - piece.T @ way - flat(there.x)).max() > 1e-6:
            false.append("x(m)")
    return false


CASES = [(name, KINDS[(place + shift) % 4]) for place, name in enumerate(PARTS) for shift in (0, 1)]


@pytest.mark.long
@pytest.mark.parametrize(("name", "kind"), CASES, ids=[f"{name}, {kind.__name__}" for name, kind in CASES])
def test_pieces_of_every_part_in_every_kind_of_problem(name, kind):
    if kind is aggregative and not isinstance(PARTS[name], S.Set):
        kind = game  # strategies of agents alike are sets
    problem, start = kind(PARTS[name])
    found = [wrong(problem, start, seed) for seed in range(3)]
    assert not [one for one in found if one]
    assert any(one is not None for one in found), "no piece is certified"
