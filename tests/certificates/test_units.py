"""First exit beside shared constraints: for every mean that is possible x(m) and its prices are where it says.

As in test_first_exit.py nothing is random in what is claimed, so that one m that contradicts is a proof of a mistake.
x(m) and its multipliers come from solving the game again, whose residual is looked at.
"""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import epszero as ez
from epszero._double import double
from epszero.certificates import first_exit as room
from epszero.certificates import units
from epszero.certificates.case import Case
from epszero.certificates.piece import AffinePiece, piece_of
from epszero.certificates.residuals import Residuals
from epszero.certificates.sharp import Undecided
from epszero.facts import Gram

SIZES, DIM = (2, 2, 3), 4
N = sum(SIZES)
ENDS = [slice(a, b) for a, b in pairwise(np.cumsum([0, *SIZES]))]
G = np.array([[1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.3]])
KINDS = {
    "budget": lambda: [ez.sets.Box(-1.0, 1.0, dim=2), ez.sets.Box(-1.0, 1.0, dim=2), ez.sets.Simplex(1.0, dim=3)],
    "boxes": lambda: [ez.sets.Box(-1.0, 1.0, dim=size) for size in SIZES],
    "elastic net": lambda: [ez.functions.ElasticNet(0.4, 0.5), ez.functions.L1(0.3), ez.sets.Box(-1.0, 1.0, dim=3)],
}


@cache
def problem(kind):
    rng = np.random.default_rng(7)
    root = rng.normal(size=(N, N))
    H = 0.6 * np.eye(N) + root @ root.T / N + 0.3 * (root - root.T)
    for own in ENDS:
        H[own, own] = (H[own, own] + H[own, own].T) / 2
    C = rng.normal(size=(N, DIM))

    def cost(i):
        def of(x, xi):
            flat = [H[ENDS[i], ENDS[j]] @ x[j] * (0.5 if i == j else 1.0) for j in range(len(SIZES))]
            return x[i] @ (sum(flat) + xi[DIM:][ENDS[i]] + C[ENDS[i]] @ xi[:DIM])

        return of

    game = ez.Game([cost(i) for i in range(len(SIZES))], KINDS[kind](), shared=(G, np.array([0.3, 0.2])))
    return game, C, [np.full(size, 1 / 3 if size == 3 else 0.0) * 0.3 for size in SIZES]


def flat(x):
    return np.concatenate([np.ravel(part) for part in x])


def looked_at(kind, seed, radius):
    game, C, start = problem(kind)
    h, m = 1.2 * np.random.default_rng(seed).normal(size=N), np.zeros(DIM)
    sample = np.concatenate([m, h])
    solution = ez.solve(game, ez.Samples(np.stack([sample, sample])), x0=start, throw=False)
    case = Case.of(solution)
    wide = np.vstack([C, np.zeros((len(G), DIM))])
    with double():
        piece = piece_of(case, C)
        if not isinstance(piece, AffinePiece):
            return None
        residuals = Residuals(case.empirical, np.array([radius]), None, wide, Gram.of(wide))
        return h, solution, room.first_exit(case, Undecided("", piece, m, None), residuals, wide)


def contradictions(kind, seed, radius, count=25):
    """What some x(m) proves wrong; None where nothing is certified."""
    looked = looked_at(kind, seed, radius)
    if looked is None or looked[-1] is None:
        return None
    h, solution, found = looked
    game, _, start = problem(kind)
    rng = np.random.default_rng(seed + 1)
    v = rng.normal(size=(count, DIM))
    v *= radius / np.linalg.norm(v, axis=1, keepdims=True) * rng.uniform(0.3, 1, (count, 1)) ** 0.2
    every = ez.solve_many(game, [ez.Samples(np.stack([np.append(m, h)] * 2)) for m in v], x0=start)
    assert max(one.residual for one in every) < 1e-7
    X, prices, room_for = np.stack([flat(one.x) for one in every]), np.stack([one.multipliers for one in every]), 1e-5
    wrong = set()
    if (np.linalg.norm(X - flat(solution.x), axis=1) > found.distance() + room_for).any():
        wrong.add("distance")
    low, high = found.intervals(np.eye(N), 0.05)
    if (low - room_for > X).any() or (high + room_for < X).any():
        wrong.add("intervals")
    low, high = found.prices(0.05)
    if (low - room_for > prices).any() or (high + room_for < prices).any():
        wrong.add("prices")
    shared = found.kept[found.units.own :]
    if np.abs((X @ G.T - np.array([0.3, 0.2]))[:, shared & found.units.leant]).max(initial=0.0) > room_for:
        wrong.add("status")
    return wrong


RADII = (0.02, 0.1, 0.3)


def _tried(kind, seeds):
    certified, wrong = 0, set()
    for seed in seeds:
        for radius in RADII:
            found = contradictions(kind, seed, radius)
            certified += found is not None
            wrong |= {(kind, seed, radius, one) for one in found or ()}
    return certified, wrong


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", KINDS)
def test_no_solution_contradicts(kind):
    certified, wrong = _tried(kind, range(3))
    assert not wrong
    assert certified


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_no_solution_contradicts_in_many_problems(kind):
    certified, wrong = _tried(kind, range(3, 23))
    assert not wrong
    assert certified > 20


# -- broken on purpose -----------------------------------------------------------------------------------------------


def _broken(monkeypatch, name, twin, seeds):
    monkeypatch.setattr(units.Units, name, twin)
    return {one[-1] for one in _tried("budget", seeds)[1]}


def test_prices_of_dropped_constraints_that_are_forgotten_are_convicted(monkeypatch):
    right = units.Units._together

    def forgotten(self, kept):
        return right(self, np.append(kept[: self.own], np.ones(len(self.G), dtype=bool)))

    assert "prices" in _broken(monkeypatch, "_together", forgotten, (0, 4))


def test_prices_that_nothing_tells_apart_but_are_called_known_are_convicted(monkeypatch):
    right = units.Units._together

    def known(self, kept):
        found, told = right(self, kept)
        return found, np.ones_like(told)

    assert "prices" in _broken(monkeypatch, "_together", known, (6,))


def test_a_constraint_that_is_left_out_of_V_is_convicted(monkeypatch):
    right = units.Units.basis

    def held(self, kept):
        return right(self, np.append(kept[: self.own], np.ones(len(self.G), dtype=bool)))

    assert {"distance", "intervals"} & _broken(monkeypatch, "basis", held, (4, 7))
