"""Affine monotone inclusions as convex programs: against answers that are known in closed form or by another solver."""

import numpy as np
import pytest
from scipy.optimize import linprog

import epszero as ez
from epszero._double import double
from epszero.solve.complementarity import MOST_LINEAR, Programme, domain_form
from epszero.solve.linear_parts import Parts

RNG = np.random.default_rng(5)
n = 5
ROOT = RNG.normal(size=(n, n))
SYMMETRIC, SKEW = ROOT @ ROOT.T / n, ROOT - ROOT.T
q = RNG.normal(size=n)


def answer(sets, H, q, x):
    """What the program says, for sets nested like x."""
    problem = ez.VariationalInequality(lambda x: x, over=sets)
    with double():
        form = domain_form(problem.placed, x)
        return None if form is None else Programme(form, H).solution(q)


SETS = {
    "box": ez.sets.Box(-0.3, np.linspace(0.1, 0.5, n)),
    "nonnegative": ez.sets.NonNegative(n),
    "simplex": ez.sets.Simplex(dim=n),
    "capped simplex": ez.sets.CappedSimplex(1.5, 0.5, dim=n),
    "box with budget": ez.sets.BoxBudget(0.0, 1.0, at_least=1.0, at_most=2.0, dim=n),
    "polyhedron": ez.sets.Polyhedron(
        np.vstack([np.eye(n), -np.eye(n), np.ones((1, n))]), [*np.ones(n), *np.ones(n), -0.5]
    ),
    "equations": ez.sets.AffineSubspace(RNG.normal(size=(2, n)), [1.0, 0.0]),
    "ball": ez.sets.Ball(0.5, dim=n),
    "ball of norm 1": ez.sets.Ball(0.5, norm=1, dim=n),
    "second-order cone": ez.sets.SecondOrderCone(n),
}


@pytest.mark.parametrize("H", [SYMMETRIC + SKEW, SYMMETRIC + 0.1 * np.eye(n)], ids=["turning", "symmetric"])
@pytest.mark.parametrize("name", SETS)
def test_it_is_the_fixed_point_of_the_projection(name, H):
    x = answer(SETS[name], H, q, np.zeros(n))
    curved = name in ("ball", "second-order cone")  # a value good to 1e-9 is a point good to its root
    np.testing.assert_allclose(SETS[name].project(x - (H @ x + q)), x, atol=1e-4 if curved else 1e-6)


@pytest.mark.parametrize("name", ["box", "simplex", "capped simplex", "polyhedron", "ball of norm 1", "ball"])
def test_without_a_symmetric_part_too(name):
    """A linear program where the set is a polyhedron."""
    x = answer(SETS[name], SKEW, q, np.zeros(n))
    np.testing.assert_allclose(SETS[name].project(x - (SKEW @ x + q)), x, atol=1e-4 if name == "ball" else 1e-6)


def test_answers_in_closed_form():
    box = answer(ez.sets.Box(0, 1, dim=2), np.diag([2.0, 4.0]), np.array([-1.0, 1.0]), np.zeros(2))
    np.testing.assert_allclose(box, [0.5, 0.0], atol=1e-7)
    ball = answer(ez.sets.Ball(1.0, dim=2), np.eye(2), np.array([-3.0, -4.0]), np.zeros(2))
    np.testing.assert_allclose(ball, [0.6, 0.8], atol=1e-7)


@pytest.mark.parametrize("sizes", [(3, 5), (20, 12)])
def test_matrix_games_have_the_value_that_linprog_finds(sizes):
    m, k = sizes
    A = np.random.default_rng(m).uniform(-1, 1, size=sizes)
    H = np.block([[np.zeros((m, m)), A], [-A.T, np.zeros((k, k))]])
    x = [np.zeros(m), np.zeros(k)]
    both = answer([ez.sets.Simplex(dim=m), ez.sets.Simplex(dim=k)], H, np.zeros(m + k), x)
    one, other = both[:m], both[m:]
    rows = np.hstack([A.T, -np.ones((k, 1))])  # min v subject to Aᵀx ≤ v
    value = linprog([*np.zeros(m), 1.0], A_ub=rows, b_ub=np.zeros(k), A_eq=[[*np.ones(m), 0.0]], b_eq=[1.0],
                    bounds=[(0, None)] * m + [(None, None)]).fun  # fmt: skip
    assert np.max(one @ A) == pytest.approx(value, abs=1e-9)
    assert np.min(A @ other) == pytest.approx(value, abs=1e-9)


def test_multipliers_of_one_part_answer_the_other():
    """Two players on boxes: bounds that are not 0, costs that are, and equations that became inequalities."""
    m, k = 4, 6
    rng = np.random.default_rng(3)
    A, q = rng.normal(size=(m, k)), rng.normal(size=m + k)
    H = np.block([[np.zeros((m, m)), A], [-A.T, np.zeros((k, k))]])
    boxes = [ez.sets.Box(-rng.uniform(0.5, 1, m), rng.uniform(0.2, 1, m)), ez.sets.Box(rng.uniform(-2, -1, k), 0.7)]
    both = answer(boxes, H, q, [np.zeros(m), np.zeros(k)])
    moved = both - (H @ both + q)
    back = np.concatenate([boxes[0].project(moved[:m]), boxes[1].project(moved[m:])])
    np.testing.assert_allclose(back, both, atol=1e-9)


def test_rows_with_one_entry_are_bounds_and_lone_multipliers_are_slacks():
    """As small as the linear program that a textbook writes down for a matrix game."""
    m, k = 3, 5
    A = np.random.default_rng(0).normal(size=(m, k))
    H = np.block([[np.zeros((m, m)), A], [-A.T, np.zeros((k, k))]])
    problem = ez.VariationalInequality(lambda x: x, over=[ez.sets.Simplex(dim=m), ez.sets.Simplex(dim=k)])
    with double():
        form = domain_form(problem.placed, [np.zeros(m), np.zeros(k)])
    sizes = [(one.inequalities.matrix.shape, one.equations.matrix.shape) for one in Parts(form, H, form.b == 1).parts]
    assert sorted(sizes) == [((m, k + 1), (1, k + 1)), ((k, m + 1), (1, m + 1))]


def test_batches_of_sets_are_taken_row_by_row():
    boxes = ez.sets.Box([[0.0, 0.0], [-1.0, -1.0], [2.0, 2.0]], [[1.0, 2.0], [0.0, 0.5], [3.0, 3.0]])
    targets = np.array([[0.5, 3.0], [0.2, 0.2], [0.0, 2.5]])
    x = answer(boxes, np.eye(6), -targets.ravel(), np.zeros((3, 2)))
    np.testing.assert_allclose(x.reshape(3, 2), boxes.project(targets), atol=1e-7)
    x = answer(ez.sets.Simplex([1.0, 2.0], dim=2), np.eye(4), -np.array([3.0, 0.0, 0.2, 0.2]), np.zeros((2, 2)))
    np.testing.assert_allclose(x, [1.0, 0.0, 1.0, 1.0], atol=1e-7)


def test_one_set_for_all_rows():
    x = answer(ez.sets.Simplex(dim=2), np.eye(6), -np.array([3.0, 0.0, 0.2, 0.2, 0.0, 9.0]), np.zeros((3, 2)))
    np.testing.assert_allclose(x, [1.0, 0.0, 0.5, 0.5, 0.0, 1.0], atol=1e-7)


def test_where_there_is_no_conic_form_there_is_no_answer():
    assert answer_of_function() is None
    many = MOST_LINEAR + 1
    assert answer(ez.sets.Box(0, 1, dim=many), np.zeros((many, many)), np.zeros(many), np.zeros(many)) is None


def answer_of_function():
    problem = ez.Inclusion(ez.functions.L1(), lambda x: x)
    with double():
        return domain_form(problem.placed, np.zeros(2))


def test_an_unsolvable_inclusion_has_none():
    """x ≥ 0 and F = −1: there is no solution."""
    assert answer(ez.sets.NonNegative(2), np.zeros((2, 2)), -np.ones(2), np.zeros(2)) is None
