"""Faces of sets, alone and intersected two by two, ℓ1 balls among them, against a conic solver.

x minimises ½‖x − v‖² over the set, so z = v − x is normal at x, and near v the minimiser is x + ZZᵀd for v + d as long
as no slack and no value of the face changes sign: Clarabel minimises again there. x itself is Clarabel's, moved onto
the rows that it all but touches, so that no projection of ours takes part.
"""

from itertools import combinations

import numpy as np
import pytest

import epszero as ez
from epszero.sets._joint import Joint
from epszero.sets.conic import ConicForm, minimise

S = ez.sets
ROWS = np.array([[1.0, 0.3, 0.1], [0.2, 1.0, -0.4], [-1.0, 0.1, 0.5], [0.1, -1.0, 0.2], [0.8, 0.9, 1.0]])
SETS = {
    "box": S.Box(-0.4, 0.5, dim=3),
    "box with a budget": S.BoxBudget(0.0, 1.0, at_least=0.3, dim=3),
    "simplex": S.Simplex(0.8, dim=3),
    "capped simplex": S.CappedSimplex(0.8, cap=0.45, dim=3),
    "half-space": S.HalfSpace([1.0, 2.0, -1.0], 0.45),
    "slab": S.Slab([1.0, 2.0, -1.0], -0.1, 0.4),
    "hyperplane": S.Hyperplane([1.0, 2.0, -1.0], 0.3),
    "subspace": S.AffineSubspace([[1.0, 1.0, 0.3]], [0.5]),
    "polyhedron": S.Polyhedron(ROWS, 0.9 * np.ones(5)),
    "l1 ball": S.Ball(0.85, norm=1, dim=3),
    "l∞ ball": S.Ball(0.42, norm=np.inf, dim=3),
    "moved": S.Translated(S.Ball(0.7, norm=1, dim=3), [0.1, -0.1, 0.2]),
    "scaled": S.Scaled(S.Polyhedron(ROWS, np.ones(5)), 0.85),
    "mirrored": S.Scaled(S.Translated(S.Ball(0.8, norm=1, dim=3), [0.1, 0.0, 0.0]), -1.4),
    "nonnegative": S.NonNegative(dim=3),
}
DIRECTIONS = 8


def nearest(form, v):
    found = minimise(form, -v, 1.0)
    assert found.status == "solved"
    return found.x


def exactly(whole, x, v):
    """x moved onto what it all but touches; v itself where that is nothing."""
    rows = [whole.rows.G, *(np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T for _ in whole.balls)]
    ends = [whole.rows.h, *(ball.radius + rows[1 + k] @ ball.center for k, ball in enumerate(whole.balls))]
    G, h = np.vstack(rows), np.concatenate(ends)
    slack = h - G @ x
    near = np.abs(slack) < 1e-6
    return x + np.linalg.pinv(G[near]) @ slack[near] if near.any() else v


def contradictions(one, seed):
    """How often a face is known, and what the solver says against it."""
    form: ConicForm = one.conic(3)
    whole = one._joint(3)
    assert isinstance(whole, Joint)
    rng, known, wrong = np.random.default_rng(seed), 0, []
    for _ in range(DIRECTIONS):
        v = 1.5 * rng.normal(size=3)
        x = exactly(whole, nearest(form, v), v)
        face = one.face(x, v - x)
        if face is None:
            continue
        N = face.normals
        Z = np.linalg.svd(N, full_matrices=True)[2][len(N) :].T if len(N) else np.eye(3)
        d = rng.normal(size=3)
        along = Z @ (Z.T @ d)
        losses = np.concatenate([face.rows @ along, -face.duals @ (d - along)])
        margins = np.concatenate([face.slacks, face.values])
        ends = [a / b for a, b in zip(margins, losses, strict=True) if b > 1e-12]
        if not (margins > -1e-9).all():
            wrong.append("a margin that is negative at x")
        if not (margins > 1e-9).all():
            continue  # on a kink
        known += 1
        for t in (0.4, 0.95):
            step = t * min([*ends, 2.0])
            if np.abs(nearest(form, v + step * d) - x - step * along).max() > 2e-5:
                wrong.append(f"x at {t} of the way")
        if ends and min(ends) < 1.0:
            further = v + (1.3 * min(ends) + 1e-3) * d
            x = exactly(whole, nearest(form, further), further)
            beyond = one.face(x, further - x)
            if beyond is not None and beyond.active == face.active and (whole.balls == () or len(N)):
                wrong.append("the same face beyond its end")
    return known, wrong


@pytest.mark.some(3)
@pytest.mark.parametrize("name", SETS)
def test_faces_of_sets_alone(name):
    known, wrong = contradictions(SETS[name], 1)
    assert not wrong
    assert known >= DIRECTIONS // 2


@pytest.mark.some(6)
@pytest.mark.parametrize(("first", "second"), list(combinations(SETS, 2)))
def test_faces_of_sets_two_by_two(first, second):
    both = S.Intersection(SETS[first], SETS[second])
    assert both.polyhedral
    known, wrong = contradictions(both, 2)
    assert not wrong
    assert known >= DIRECTIONS // 4


def test_an_entry_that_a_bound_and_a_ball_hold_is_free_on_one_side_only():
    """x ≥ 0 beside ‖x‖₁ ≤ 1 is a corner of a simplex: z₂ may be as negative as it likes."""
    both = S.Intersection(S.Ball(1.0, norm=1, dim=2), S.NonNegative(dim=2))
    face = both.face(np.array([1.0, 0.0]), np.array([2.0, -50.0]))
    assert face is not None
    assert sorted(face.values.tolist()) == pytest.approx([2.0, 52.0])
