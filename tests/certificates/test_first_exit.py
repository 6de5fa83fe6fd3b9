"""First exit against the solutions themselves: for every mean that is possible x(m) must be where it is said to be.

Nothing is random in what is claimed here: given a set of means, distance, intervals and the status of certified units
hold for all of them. So one m that contradicts is a proof of a mistake. x(m) comes from plain forward-backward steps.
"""

from functools import cache

import numpy as np
import pytest

import epszero as ez
from epszero._double import double
from epszero.certificates import first_exit as room
from epszero.certificates.case import Case
from epszero.certificates.piece import piece_of
from epszero.certificates.residuals import Residuals
from epszero.certificates.sharp import Undecided
from epszero.facts import Gram

N, DIM = 6, 4
KINDS = {
    "box": lambda: ez.sets.Box(-1.0, 1.0, dim=N),
    "lasso": lambda: ez.functions.L1(0.8),
    "elastic net": lambda: ez.functions.ElasticNet(0.8, 0.5),
    "hinge": lambda: ez.functions.Hinge(1.0, 0.3),
    "budget": lambda: ez.sets.BoxBudget(0.0, 1.0, at_least=2.2, dim=N),
    "simplex": lambda: ez.sets.Simplex(dim=N),
    "two budgets": lambda: ez.sets.BoxBudget(0.0, 1.0, at_least=np.array([1.2, 0.9]), dim=N // 2),
    "total variation": lambda: ez.functions.TotalVariation1D(0.6),
}


def resolvent(A, V, step):
    """Of a batch of points."""
    if isinstance(A, ez.sets.Set):
        shape = (*A.batch_shape, -1) if A.batch_shape else (-1,)
        return np.asarray(A.project(V.reshape(len(V), *shape))).reshape(V.shape)
    return np.asarray(A.prox(V, step))


def solutions(A, H, P):
    """x for every row p: 0 ∈ A(x) + Hx + p."""
    mu, kappa = np.linalg.eigvalsh((H + H.T) / 2)[0], np.linalg.norm(H, 2)
    symmetric = np.allclose(H, H.T)
    step, rate = (2 / (mu + kappa), mu / kappa) if symmetric else (mu / kappa**2, (mu / kappa) ** 2 / 2)
    X = np.zeros(P.shape)
    for _ in range(int(18 / rate)):
        X = resolvent(A, X - step * (X @ H.T + P), step)
    return X


@cache
def problem(kind, skew):
    """One compiled programme for each kind of set: the numbers come with the samples' place."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(N, N))
    H = 0.5 * np.eye(N) + root @ root.T / N + skew * (root - root.T) / 2
    A = KINDS[kind]()
    C = rng.normal(size=(N, DIM))
    shape = (-1,) if not isinstance(A, ez.sets.Set) or not A.batch_shape else (*A.batch_shape, N // A.batch_shape[0])

    def B(x, xi):
        return (H @ x.reshape(-1) + xi[DIM:] + C @ xi[:DIM]).reshape(x.shape)

    zero = np.zeros(N if shape == (-1,) else shape)
    start = np.asarray(A.project(zero)) if isinstance(A, ez.sets.Set) else zero
    return A, H, C, ez.Inclusion(A, B), start


def looked_at(kind, skew, seed, radius):
    """A solution, and what is certified of its piece for all means within `radius`, in a direction-dependent norm."""
    A, H, C, inclusion, start = problem(kind, skew)
    rng = np.random.default_rng(seed)
    h, m = 1.5 * rng.normal(size=N), np.zeros(DIM)
    sample = np.concatenate([m, h])
    solution = ez.solve(inclusion, ez.Samples(np.stack([sample, sample])), x0=start)
    case = Case.of(solution)
    with double():
        piece = piece_of(case, C)
        if not isinstance(piece, room.AffinePiece):
            return None
        residuals = Residuals(case.empirical, np.array([radius]), None, C, Gram.of(C))
        found = room.first_exit(case, Undecided("", piece, m, None), residuals, C)
    return A, H, C, h, np.ravel(solution.x), found


def means(rng, radius, count):
    v = rng.normal(size=(count, DIM))
    return radius * v / np.linalg.norm(v, axis=1, keepdims=True) * rng.uniform(0.2, 1, (count, 1)) ** 0.2


def contradictions(kind, skew, seed, radius, count=60):
    """What some x(m) proves wrong; None where nothing is certified."""
    looked = looked_at(kind, skew, seed, radius)
    if looked is None or looked[-1] is None:
        return None
    A, H, C, h, x, found = looked
    X = solutions(A, H, h + means(np.random.default_rng(seed + 1), radius, count) @ C.T)
    wrong, room_for = set(), 1e-6
    if (np.linalg.norm(X - x, axis=1) > found.distance() + room_for).any():
        wrong.add("distance")
    low, high = found.intervals(np.eye(N), 0.05)
    if (low - room_for > X).any() or (high + room_for < X).any():
        wrong.add("intervals")
    for way in found.ways:
        u, Z = X - x, way.on.Z
        if (np.abs(u - u @ Z @ Z.T).max(axis=1, initial=0.0) > room_for).any():
            wrong.add("status")
    return wrong


RADII = (0.02, 0.1, 0.3)


def _tried(kinds, seeds, skews=(0.0, 1.0)):
    """How often something is certified, and all that is wrong."""
    certified, wrong = 0, set()
    for kind in kinds:
        for skew in skews:
            for seed in seeds:
                for radius in RADII:
                    found = contradictions(kind, skew, seed, radius)
                    certified += found is not None
                    wrong |= {(kind, skew, seed, radius, one) for one in found or ()}
    return certified, wrong


@pytest.mark.some(6)
@pytest.mark.parametrize("kind", KINDS)
def test_no_solution_contradicts(kind):
    certified, wrong = _tried([kind], range(4), skews=(0.0,))
    assert not wrong
    assert certified


def test_no_solution_contradicts_where_H_is_not_symmetric():
    certified, wrong = _tried(["box"], range(2), skews=(1.0,))
    assert not wrong
    assert certified


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_no_solution_contradicts_in_many_problems(kind):
    certified, wrong = _tried([kind], range(3, 60))
    assert not wrong
    assert certified


# -- broken on purpose -----------------------------------------------------------------------------------------------


def _broken(monkeypatch, name, twin, owner=room):
    monkeypatch.setattr(owner, name, twin)
    return {one[-1] for one in _tried(["box", "lasso"], range(4), skews=(0.0,))[1]}


@pytest.mark.long
def test_dropping_once_is_convicted(monkeypatch):
    def once(J, units, margins, pushes, kept):
        return room._Subspace(J, units, kept & room._Subspace(J, units, kept).firm(margins, pushes))

    assert "status" in _broken(monkeypatch, "_stable", once)


def test_an_undetermined_unit_that_is_called_certified_is_convicted(monkeypatch):
    def every(J, units, margins, pushes, kept):
        return room._Subspace(J, units, np.ones_like(kept))

    assert {"status", "distance"} <= _broken(monkeypatch, "_stable", every)


def test_V_of_another_face_is_convicted(monkeypatch):
    right = room.Units.basis
    broken = _broken(monkeypatch, "basis", lambda self, kept: right(self, kept)[:, 1:], room.Units)
    assert {"intervals", "distance"} <= broken


def test_slips_that_are_not_counted_are_convicted(monkeypatch):
    right = room._slips

    def none(units, least, bad):
        found = right(units, least, bad)
        return None if found is None else (0 * found[0], 0 * found[1], found[2])

    assert "intervals" in _broken(monkeypatch, "_slips", none)
