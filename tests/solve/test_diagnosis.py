"""What a failed run says of itself: the likely reason, from the evidence, and a remedy that works when followed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

BOX = ez.sets.Box(-2.0, 2.0, dim=2)


def jumping(x):
    return x + jnp.where(x > 0.3, 1.0, -1.0)


def told(problem, *arguments, **keywords):
    """What the run that fails says."""
    with pytest.raises(ez.SolveError) as caught:
        ez.solve(problem, *arguments, **keywords)
    return str(caught.value)


@pytest.mark.long
def test_a_jump_is_no_convergence_and_is_told_with_its_place():
    """The step shrinks to nothing there: that must hide no residual."""
    said = told(ez.VariationalInequality(jumping, BOX), x0=[1.0, -1.0])
    assert "stalled" in said
    assert "B jumps by 2 where x[0] passes 0.3:" in said or "B jumps by 2 where x[1] passes 0.3:" in said


@pytest.mark.long
def test_what_is_smoothed_is_solved():
    d = 1e-4
    smooth = ez.VariationalInequality(lambda x: x + 2 * jax.nn.sigmoid((x - 0.3) / d) - 1, BOX)  # of 2d·softplus(t/d)
    np.testing.assert_allclose(ez.solve(smooth, x0=[1.0, -1.0]).x, 0.3, atol=10 * d)


def test_what_is_written_as_a_function_in_A_is_solved_exactly():
    kink = ez.functions.Translated(ez.functions.L1(), [0.3, 0.3])
    np.testing.assert_allclose(ez.solve(ez.Inclusion(kink, lambda x: x), x0=[1.0, -1.0]).x, 0.3, atol=1e-12)


@pytest.mark.long
def test_the_entry_is_named_as_a_user_writes_it_and_the_jump_is_looked_for_within_the_set():
    def two(x):
        return [x[0] - 0.1, x[1] + jnp.where(x[1] > 0.5, 1.0, -1.0) + np.array([0.0, 0.5, 1.0])]

    said = told(ez.VariationalInequality(two, [BOX, ez.sets.Simplex(dim=3)]))
    assert "where x[1][0] passes 0.5" in said


@pytest.mark.long
def test_a_jump_outside_the_domain_is_no_reason():
    guarded = ez.VariationalInequality(lambda x: jnp.where(x < 0, -1e3, x**3), ez.sets.NonNegative(2))
    assert "jumps" not in told(guarded, None, ez.ForwardBackward(0.1), x0=[1.0, 1.0], iterations=5, tol=1e-9)


n, SLOPES = 5, np.geomspace(1.0, 1e8, 5)
UNITS = ez.VariationalInequality(lambda x: SLOPES * x - SLOPES / 3, ez.sets.Box(-np.ones(5), 1.0))


@pytest.mark.long
def test_scales_that_differ_are_told_and_both_remedies_work():
    said = told(UNITS, None, ez.ForwardBackward(), iterations=2000, tol=1e-6)
    assert "the slope of B is 1.0e+00 in x[0] and 1.0e+08 in x[4]" in said
    np.testing.assert_allclose(ez.solve(UNITS).x, 1 / 3, atol=1e-8)  # method and iterations left out
    s = 1 / np.sqrt(SLOPES)
    rescaled = ez.VariationalInequality(lambda y: s * (SLOPES * (s * y) - SLOPES / 3), ez.sets.Box(-1 / s, 1 / s))
    y = ez.solve(rescaled, None, ez.ForwardBackward(), iterations=2000, tol=1e-6).x
    np.testing.assert_allclose(s * y, 1 / 3, atol=1e-6)


COSTS = [lambda x: (x[0][0] - 1) ** 2 + 0.1 * x[0][0] * x[1][0], lambda x: (x[1][0] - 1) ** 2]
LINES = [ez.sets.Box(-3.0, 3.0, dim=1)] * 2


@pytest.mark.long
def test_no_slater_point_is_told_with_the_row_and_room_makes_it_solvable():
    def h(x):
        return jnp.stack([x[0] @ x[0] - 9.0, x[0] @ x[0] + x[1] @ x[1]])

    said = told(ez.Game(COSTS, LINES, shared=h), iterations=20_000, tol=1e-8)
    assert "with room to spare" in said
    assert "Constraints met at best: 1 (multiplier" in said
    room = ez.Game(COSTS, LINES, shared=lambda x: h(x) - 1e-3)
    solution = ez.solve(room)
    assert solution.status is ez.Status.CONVERGED
    assert solution.check_equilibrium().largest < 1e-6


@pytest.mark.long
def test_a_slater_point_is_found_where_there_is_one():
    """The ball is small and far from the middle of the box; the run fails for want of iterations only."""
    game = ez.Game(COSTS, LINES, shared=lambda x: (x[0][0] - 2) ** 2 + (x[1][0] + 2) ** 2 - 1e-4)
    assert "room to spare" not in told(game, iterations=20, tol=1e-12)


def test_where_nothing_is_seen_nothing_is_said():
    slow = ez.Minimization(lambda x: jnp.sum(x**4), BOX)
    said = told(slow, x0=[1.0, 1.0], tol=1e-12, iterations=50)
    assert not any(word in said for word in ("jumps", "Scales", "room", "not monotone"))


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("status", "remedy"),
    [(ez.Status.DIVERGED, ez.AdaptiveGoldenRatio()), (ez.Status.DIVERGED, None), (ez.Status.STALLED, None)],
)
def test_what_the_endings_advise_works(status, remedy):
    """A rotation, by forward-backward: in the whole space it diverges, in a box it goes round in circles."""
    over = ez.sets.WholeSpace(2) if status is ez.Status.DIVERGED else BOX
    rotation = ez.VariationalInequality(lambda x: jnp.stack([x[1], -x[0]]), over)
    failed = ez.solve(rotation, None, ez.ForwardBackward(0.5), x0=[0.5, 0.1], tol=1e-9, throw=False)
    assert failed.status is status
    assert "AdaptiveGoldenRatio" in failed.message
    np.testing.assert_allclose(ez.solve(rotation, None, remedy, x0=[0.5, 0.1]).x, 0.0, atol=1e-8)
