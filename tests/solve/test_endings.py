"""How a run ends: status, remedies, trace, notes, interruption."""

import os
import signal
import subprocess
import sys
import textwrap

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.solve.loop import PATIENCE

SLOW = ez.Minimization(lambda x: jnp.sum(x**4), ez.sets.Box(-1, 1, dim=2))  # sublinear: no tol is reached soon
ROTATION = ez.Inclusion(ez.functions.Zero(), lambda x: jnp.stack([x[1], -x[0]]))


def shifted(x):
    return 2.0 * x - 1.0


def test_converged():
    solution = ez.solve(ez.VariationalInequality(shifted, over=ez.sets.Box(0, 1, dim=3)), tol=1e-10)
    assert solution.status is ez.Status.CONVERGED
    assert solution.status.remedy == ""
    assert solution.residual <= 1e-10
    assert "converged at iteration" in str(solution)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_without_a_tol_the_accuracy_does_not_depend_on_the_units(scale):
    problem = ez.Minimization(lambda x: scale * jnp.sum((x - 3) ** 2), ez.sets.Box(-10, 10, dim=2))
    np.testing.assert_allclose(ez.solve(problem, x0=[10, -10]).x, 3.0, atol=1e-7)


def test_a_start_at_the_solution_converges_at_once():
    problem = ez.Minimization(lambda x: jnp.sum((x - 3) ** 2), ez.sets.Box(-10, 10, dim=2))
    first = ez.solve(problem)
    assert ez.solve(problem, x0=first.x).iterations <= 1


def test_exactly_K_iterations_end_without_complaint():
    solution = ez.solve(SLOW, None, ez.ForwardBackward(0.1), x0=[1, 1], iterations=25)
    assert solution.status is ez.Status.ITERATIONS_USED_UP
    assert solution.iterations == 25


@pytest.mark.long
def test_a_tol_that_is_not_reached_raises_and_the_error_carries_the_solution():
    with pytest.raises(ez.SolveError, match="iterations used up.*raise iterations") as caught:
        ez.solve(SLOW, x0=[1, 1], tol=1e-12, iterations=50)
    assert caught.value.solution.iterations == 50
    solution = ez.solve(SLOW, x0=[1, 1], tol=1e-12, iterations=50, throw=False)
    assert solution.status is ez.Status.ITERATIONS_USED_UP
    np.testing.assert_array_equal(solution.x, caught.value.solution.x)


@pytest.mark.long
def test_both_stop_at_whichever_comes_first():
    problem = ez.VariationalInequality(shifted, over=ez.sets.Box(0, 1, dim=3))
    early = ez.solve(problem, None, ez.ForwardBackward(0.1), x0=[0, 0, 0], tol=1e-3, iterations=10_000)
    assert early.status is ez.Status.CONVERGED
    assert early.iterations == 33  # ‖z + B(x^{K+1})‖ = √3 · 0.8^{K+1}, for the first time below 1e-3
    assert early.residual <= 1e-3
    late = ez.solve(problem, None, ez.ForwardBackward(0.1), x0=[0, 0, 0], tol=1e-3, iterations=5, throw=False)
    assert late.status is ez.Status.ITERATIONS_USED_UP
    assert late.iterations == 5


def test_diverged():
    with pytest.raises(ez.SolveError, match="diverged.*shorter step"):
        ez.solve(ROTATION, None, ez.ForwardBackward(0.5), x0=[1, 0], iterations=10_000)
    solution = ez.solve(ROTATION, None, ez.ForwardBackward(0.5), x0=[1, 0], iterations=10_000, throw=False)
    assert solution.status is ez.Status.DIVERGED
    assert solution.iterations < 1000


@pytest.mark.long
def test_stalled_at_the_limit_of_float64():
    third = np.array([1.0, 1 / 3])
    problem = ez.VariationalInequality(lambda x: 1e6 * (third * x - np.pi / 7), over=ez.sets.Box(-10, 10, dim=2))
    solution = ez.solve(problem, None, ez.ForwardBackward(3e-7), tol=1e-30, throw=False)
    assert solution.status is ez.Status.STALLED
    assert 0 < solution.residual < 1e-8


@pytest.mark.long
def test_stalled_in_circles():
    cycling = ez.VariationalInequality(lambda x: jnp.stack([x[1], -x[0]]), over=ez.sets.Box(-1, 1, dim=2))
    solution = ez.solve(cycling, None, ez.ForwardBackward(0.5), x0=[0.5, 0.1], tol=1e-9, throw=False)
    assert solution.status is ez.Status.STALLED
    assert solution.iterations < 10 * PATIENCE
    assert "circles" in solution.message


@pytest.mark.long
def test_not_finite():
    problem = ez.VariationalInequality(lambda x: jnp.where(x > 0.5, jnp.nan, x - 2.0), over=ez.sets.Box(0, 1, dim=2))
    with pytest.raises(ez.SolveError, match="not finite.*NaN or infinity"):
        ez.solve(problem, None, ez.ForwardBackward(0.1), x0=[0, 0], tol=1e-9)


def test_x0_outside_the_domain_is_projected_and_said_so():
    problem = ez.VariationalInequality(shifted, over=ez.sets.Box(0, 1, dim=2))
    outside = ez.solve(problem, None, ez.ForwardBackward(0.3), x0=[4.0, -3.0], iterations=3)
    inside = ez.solve(problem, None, ez.ForwardBackward(0.3), x0=[1.0, 0.0], iterations=3)
    np.testing.assert_array_equal(outside.x, inside.x)
    assert "x0 was outside the domain and was projected on it (moved by 4.24)" in outside.message
    assert inside.notes == ()


def test_the_trace_is_taken_where_asked():
    problem = ez.VariationalInequality(shifted, over=ez.sets.Box(0, 1, dim=2))

    def run(**keywords):
        return ez.solve(problem, None, ez.ForwardBackward(0.01), x0=[0, 0], **keywords)

    trace = run(iterations=100, trace=[0, 7, 50, 100]).trace
    assert trace.iterations.tolist() == [0, 7, 50, 100]
    for k, residual in zip(trace.iterations, trace.residual, strict=True):
        assert run(iterations=int(k)).residual == pytest.approx(residual, rel=1e-12)
    assert run(iterations=95, trace=10).trace.iterations.tolist() == [*range(0, 95, 10), 95]
    by_default = run(iterations=250).trace.iterations.tolist()
    assert by_default == [*range(1, 10), *range(10, 100, 10), 100, 200, 250]
    stopped = run(tol=1e-3, iterations=10_000, trace=10).trace
    assert stopped.iterations[-1] < 10_000
    assert stopped.residual[-1] <= 1e-3


def test_a_note_warns_of_float32_constants():
    rough = jnp.asarray([0.1, 0.2])  # float32, made outside the library
    problem = ez.VariationalInequality(lambda x: x - rough, over=ez.sets.Box(0, 1, dim=2))
    assert any("float32" in note for note in ez.solve(problem).notes)


def test_progress_function_and_bar(capsys):
    seen = []
    ez.solve(SLOW, None, ez.ForwardBackward(0.1), x0=[1, 1], iterations=3000, progress=lambda k, r: seen.append((k, r)))
    assert seen[-1][0] == 3000
    assert [k for k, _ in seen] == sorted({k for k, _ in seen})
    assert all(residual > 0 for _, residual in seen)
    ez.solve(SLOW, None, ez.ForwardBackward(0.1), x0=[1, 1], iterations=3000)
    assert capsys.readouterr() == ("", "")  # the library itself prints nothing
    ez.solve(SLOW, None, ez.ForwardBackward(0.1), x0=[1, 1], iterations=3000, progress=True)
    assert capsys.readouterr() != ("", "")


def test_holdout_keeps_samples_aside():
    samples = ez.Samples(np.arange(100.0))
    problem = ez.VariationalInequality(lambda x, xi: x - xi, over=ez.sets.Box(0, 200, dim=1))
    solution = ez.solve(problem, samples, holdout=0.3)
    assert isinstance(solution.samples, ez.Samples)
    assert isinstance(solution.holdout, ez.Samples)
    assert len(solution.samples) == 70
    assert len(solution.holdout) == 30
    assert sorted([*solution.samples.values[:, 0], *solution.holdout.values[:, 0]]) == list(range(100))
    np.testing.assert_allclose(solution.x, solution.samples.values.mean(), atol=1e-6)


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_returns_what_there_is():
    script = textwrap.dedent("""
        import jax.numpy as jnp, numpy as np, epszero as ez
        problem = ez.VariationalInequality(lambda x: 1e-9 * x - 1e-9, over=ez.sets.Box(0, 5, dim=1000))
        started = []
        def report(k, residual):
            if not started:
                started.append(print("going", flush=True))
        solution = ez.solve(problem, None, ez.ForwardBackward(1.0), tol=1e-30, iterations=10**8, progress=report)
        assert solution.status is ez.Status.INTERRUPTED, solution.status
        assert 0 < solution.iterations < 10**8
        assert solution.check().in_domain
        print("returned", solution.iterations)
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "going\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert out.startswith("returned")
    assert process.returncode == 0
