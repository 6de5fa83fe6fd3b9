"""What is likely: by the normal approximation and by the bootstrap; beside what is sure, and never in its place."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.certificates import Asymptotic, Bootstrap, Known
from epszero.certificates.bootstrap import block_length, blocks, redrawn
from epszero.certificates.case import Case
from epszero.certificates.likely import Redrawn, likely_norm, quantile_of

H = np.array([[1.2, 0.4], [-0.2, 0.9]])
UNIT = ez.sets.Box(0.0, 1.0, dim=2)
PROBLEM = ez.Inclusion(ez.sets.Box(-5.0, 0.5, dim=2), lambda x, xi: H @ x - xi)
MEAN = np.array([0.5, 0.5])


def rows(s, seed):
    return ez.Samples(np.random.default_rng(seed).uniform(size=(s, 2)), support=UNIT)


def truth():
    return ez.solve(PROBLEM, ez.Samples(MEAN[None]), tol=1e-12).x


def test_the_quantile_in_one_dimension_is_the_normal_one():
    X = np.random.default_rng(0).normal(size=(400, 1))
    expected = 1.96 * 3.0 * X.std(ddof=1) / 20
    assert likely_norm(X, np.array([[3.0]]), 0.05) == pytest.approx(expected, rel=0.02)
    for scale in (1e-150, 1e140):
        assert likely_norm(scale * X, np.array([[3.0]]), 0.05) / scale == pytest.approx(expected, rel=0.02)
    assert likely_norm(X, np.zeros((1, 1)), 0.05) == 0.0
    assert likely_norm(np.ones((5, 1)), np.ones((1, 1)), 0.05) == 0.0


@pytest.mark.long
def test_on_a_kind_law_its_coverage_is_nearly_nominal():
    trials, x = 500, truth()
    solutions = ez.solve_many(PROBLEM, [rows(3000, seed) for seed in range(trials)])
    missed = {name: 0 for name in ("distance", "epsilon")}
    for solution in solutions:
        found = ez.certify(solution, 0.1, Asymptotic())
        missed["distance"] += bool(np.linalg.norm(solution.x - x) > found.distance)
        missed["epsilon"] += bool(np.linalg.norm(solution.z + H @ solution.x - MEAN) > found.epsilon)
    for name, count in missed.items():
        assert abs(count / trials - 0.1) <= 0.03 + 0.01, name


@pytest.mark.long
def test_always_heuristic_and_shorter_than_what_is_sure():
    solution = ez.solve(PROBLEM, rows(1000, 1))
    sure = ez.certify(solution)
    for kind in (Asymptotic(), Bootstrap(replications=40)):
        found = ez.certify(solution, using=kind)
        assert found.verdict == "heuristic"
        assert found.distance < sure.distance
        assert found.epsilon < sure.epsilon
    assert ez.certify(solution, using=Bootstrap(200)).distance == pytest.approx(
        ez.certify(solution, using=Asymptotic()).distance, rel=0.2
    )


def test_the_second_line_is_beside_the_first_and_not_in_it():
    solution = ez.solve(PROBLEM, rows(1000, 1))
    certificate = ez.certify(solution)
    plain = ez.certify(solution, likely=False)
    assert certificate.likely == pytest.approx(ez.certify(solution, using=Asymptotic()).distance, rel=1e-6)
    assert "likely ≤" in str(certificate)
    assert "likely" not in str(plain)
    assert certificate.to_json() == plain.to_json()
    assert ez.Certificate.from_json(plain.to_json()).likely is None
    assert ez.certify(ez.solve(PROBLEM, rows(5, 1))).likely is None
    with pytest.raises(ez.InputError, match="likely"):
        ez.certify(solution, likely="no")


@pytest.mark.long
def test_days_in_blocks():
    rng = np.random.default_rng(3)
    noise, chain = rng.normal(size=2000), np.zeros(2000)
    for i in range(1, 2000):
        chain[i] = 0.9 * chain[i - 1] + noise[i]
    assert block_length(noise[:, None]) <= 3
    assert 15 <= block_length(chain[:, None]) <= 120
    assert block_length(np.ones((50, 1))) == 1
    found = blocks(rng, 10, 4)
    assert len(found) == 10
    assert (np.diff(found)[[0, 1, 2, 4, 5, 6]] == 1).all()
    assert found.max() < 10
    spread = ez.Samples(np.clip(0.5 + chain[:, None] * [0.05, 0.03], 0, 1), support=UNIT)
    solution = ez.solve(PROBLEM, spread)
    by_blocks, by_rows = (ez.certify(solution, using=Bootstrap(60, block)) for block in (None, 1))
    assert by_blocks.terms["block"] > 10
    assert by_blocks.epsilon > 2 * by_rows.epsilon
    assert "rows on end" in by_blocks.by


def test_few_replications_count_as_few():
    """Where data sets drawn from the data vary exactly as x̂ does, misses are nominal, however few they are."""
    rng, trials, delta = np.random.default_rng(1), 3000, 0.1
    for r, n in ((20, 1), (20, 20), (60, 5)):
        missed = np.zeros(2)
        for _ in range(trials):
            others, truth = rng.normal(size=(r, n)), rng.normal(size=n)
            lower, upper = Redrawn(np.zeros(n), np.zeros(n), others).intervals(np.eye(n), delta)
            missed += [
                np.any((truth < lower) | (truth > upper)),
                abs(truth[0]) > quantile_of(np.abs(others[:, 0]), delta),
            ]
        assert (np.abs(missed / trials - delta) < 0.03).all(), (r, n, missed / trials)
    one_moves = Redrawn(np.zeros(2), np.zeros(2), np.eye(20, 2) * 1e-170)
    assert np.isfinite(one_moves.intervals(np.eye(2), delta)).all()
    assert quantile_of(np.arange(20), 0.01) == 19


@pytest.mark.long
def test_the_mean_of_a_part_stands_for_its_rows(monkeypatch):
    """Where the noise is additive in ξ; for any other oracle the rows themselves are drawn."""
    solution = ez.solve(PROBLEM, rows(200, 1))
    with jax.enable_x64(True):
        case = Case.of(solution)
        assert len(redrawn(case, solution.samples, [np.arange(7)])[0]) == 1
        found = ez.certify(solution, using=Bootstrap(30))
        monkeypatch.setattr("epszero.certificates.bootstrap._by_means", lambda *_: False)
        assert len(redrawn(case, solution.samples, [np.arange(7)])[0]) == 7
        by_rows = ez.certify(solution, using=Bootstrap(30))
    assert found.distance == pytest.approx(by_rows.distance, rel=1e-8)
    assert found.epsilon == pytest.approx(by_rows.epsilon, rel=1e-8)


@pytest.mark.parametrize("kind", [Asymptotic(), Bootstrap(replications=20)])
def test_one_sample_says_nothing(kind):
    found = ez.certify(ez.solve(PROBLEM, rows(1, 0)), using=kind)
    assert (found.verdict, found.epsilon) == ("refused", math.inf)


def test_wrong_settings():
    for settings in ({"replications": 3}, {"block": 0}, {"seed": -1}):
        with pytest.raises(ez.InputError, match=next(iter(settings))):
            Bootstrap(**settings)
    assert Known().other_truth is False


# -- oracles that are not affine, and entries of x ---------------------------------------------------------------------

A = np.array([[1.0, 0.5], [-0.5, 1.0]])


def bent(x, xi):
    return A @ x + jnp.tanh(x) - xi * (1 + 0.2 * x)


@pytest.mark.long
def test_the_sandwich_by_hand():
    """x̂ − x* ≈ −J⁻¹(B̂ − B)(x*), on the whole space and on a face."""
    samples = rows(400, 3)
    X = np.asarray(samples.values)
    for upper in (5.0, 0.1):
        box = ez.sets.Box(-5.0, np.array([5.0, upper]))
        solution = ez.solve(ez.VariationalInequality(bent, box), samples, tol=1e-12)
        found = ez.certify(solution, 0.1, Asymptotic())
        x = solution.x
        free = [0, 1] if upper == 5.0 else [0]
        J = (A + np.diag(1 - np.tanh(x) ** 2) - np.diag(0.2 * X.mean(axis=0)))[np.ix_(free, free)]
        cov = np.linalg.inv(J) @ np.cov((-X * (1 + 0.2 * x))[:, free].T).reshape(len(free), -1) @ np.linalg.inv(J).T
        draws = np.random.default_rng(0).multivariate_normal(np.zeros(len(free)), cov / 400, size=20_000)
        assert found.distance == pytest.approx(np.quantile(np.linalg.norm(draws, axis=1), 0.9), rel=0.03)
        band = found.intervals
        widest = np.quantile(np.max(np.abs(draws) / np.sqrt(np.diag(cov) / 400), axis=1), 0.9)
        expected = np.zeros(2)
        expected[free] = 2 * widest * np.sqrt(np.diag(cov) / 400)
        np.testing.assert_allclose(np.minimum(band.upper, x + expected) - band.lower, expected, rtol=0.05, atol=1e-9)


@pytest.mark.long
def test_affine_and_general_agree():
    """The sandwich on an affine problem is the delta method on its piece."""
    samples = rows(300, 4)
    hidden = ez.Inclusion(ez.sets.Box(-5.0, 0.5, dim=2), lambda x, xi: H @ x - xi + 1e-9 * jnp.tanh(x))
    plain, general = (ez.certify(ez.solve(one, samples), using=Asymptotic()) for one in (PROBLEM, hidden))
    assert general.distance == pytest.approx(plain.distance, rel=1e-3)
    assert general.epsilon == pytest.approx(plain.epsilon, rel=1e-3)


@pytest.mark.long
def test_shared_constraints():
    def game(bend):
        def cost(i):
            return lambda x, xi: jnp.sum(0.5 * (x[i] - xi[i]) ** 2 + bend * jnp.log(jnp.cosh(x[i])))

        boxes = [ez.sets.Box(-5.0, 5.0, dim=1)] * 2
        return ez.Game([cost(0), cost(1)], boxes, shared=(np.ones((1, 2)), np.array([0.4])))

    samples = rows(300, 4)
    plain, general = (ez.certify(ez.solve(game(bend), samples, tol=1e-11), using=Asymptotic()) for bend in (0.0, 1e-9))
    spread = np.std((np.asarray(samples.values) @ [1, -1]) / math.sqrt(2), ddof=1) / math.sqrt(300)
    assert plain.distance == pytest.approx(1.96 * spread, rel=0.03)
    assert general.distance == pytest.approx(plain.distance, rel=1e-3)


@pytest.mark.long
def test_a_ball_that_does_not_press_and_one_that_does():
    samples = rows(300, 4)

    def found(radius):
        problem = ez.VariationalInequality(lambda x, xi: x + jnp.tanh(x) - xi, ez.sets.Ball(radius, dim=2))
        return ez.certify(ez.solve(problem, samples), using=Asymptotic())

    assert found(5.0).verdict == "heuristic"
    assert found(0.1).verdict == "refused"
    assert "Bootstrap" in found(0.1).reason


def test_samples_kept_aside_do_not_make_x_better():
    """x̂ was found with half of the samples: it varies as it would with that half alone."""
    samples = rows(2000, 5)
    solution = ez.solve(PROBLEM, samples, holdout=0.5)
    assert isinstance(solution.samples, ez.Samples)
    alone = ez.certify(ez.solve(PROBLEM, ez.Samples(solution.samples.values, support=UNIT)), using=Asymptotic())
    found = ez.certify(solution, using=Asymptotic())
    assert found.distance == pytest.approx(alone.distance, rel=1e-9)
    assert ez.certify(solution).likely == pytest.approx(alone.distance, rel=1e-6)


@pytest.mark.long
def test_likely_where_no_piece_is_certified():
    """Near a kink, and for random slopes: the face of x serves, as nothing is promised."""
    kink = ez.Inclusion(ez.sets.Box(-5.0, 0.42, dim=2), lambda x, xi: x - xi)
    certificate = ez.certify(
        ez.solve(kink, ez.Samples(np.full((60, 2), 0.42) + 0.01 * rows(60, 1).values, support=UNIT))
    )
    slopes = ez.Inclusion(ez.sets.Box(-5.0, 5.0, dim=2), lambda x, xi: x * (1 + xi) - xi)
    random = ez.certify(ez.solve(slopes, rows(200, 1)))
    for one in (certificate, random):
        assert one.likely is not None
        assert "likely ≤" in str(one)
    assert random.likely < random.distance
    assert ez.certify(ez.solve(slopes, rows(10, 1))).likely is None
    assert ez.certify(ez.solve(PROBLEM, rows(200, 1)), using=ez.certificates.Prequential()).likely is None
    assert ez.certify(ez.solve(PROBLEM, rows(200, 1)), using=Bootstrap(20)).likely is None


@pytest.mark.long
def test_what_the_sandwich_refuses():
    samples = rows(50, 1)
    jumps = ez.Inclusion(UNIT, lambda x, xi: x + jnp.sign(x - xi))
    flat = ez.VariationalInequality(lambda x, xi: (x - xi) ** 3, ez.sets.Box(-1.0, 1.0, dim=2))
    still = ez.solve(flat, ez.Samples(np.zeros((50, 2)) + 0.0), tol=1e-3, x0=np.zeros(2))
    for solution in (ez.solve(jumps, samples, throw=False), still):
        found = ez.certify(solution, using=Asymptotic())
        assert found.verdict == "refused"
    assert "continuous" in ez.certify(ez.solve(jumps, samples, throw=False), using=Asymptotic()).reason


@pytest.mark.parametrize("kind", [Asymptotic(), Bootstrap(60)])
def test_intervals_are_guesses_and_stay_in_the_domain(kind):
    solution = ez.solve(PROBLEM, rows(300, 2))
    certificate = ez.certify(solution, using=kind)
    band = certificate.intervals
    assert band.guess
    assert not band.together
    assert band.says.startswith("a guess: 95 %")
    assert (band.lower <= solution.x).all()
    assert (solution.x <= band.upper).all()
    assert (band.upper <= 0.5).all()
    alone = certificate.interval(0)
    assert alone.width[0] <= band.width[0]
    assert certificate.interval(np.ones((1, 2))).value[0] == pytest.approx(solution.x.sum())
    with pytest.raises(ez.InputError, match="multipliers"):
        _ = certificate.multipliers


@pytest.mark.long
@pytest.mark.parametrize("where", ["affine", "general"])
def test_coverage_on_kind_laws(where):
    """At s = 3000 within 3 points of nominal, plus counting error: distance, residual and simultaneous intervals."""
    box = ez.sets.Box(-5.0, 5.0, dim=2)
    mean = MEAN[None]
    affine = where == "affine"
    problem = ez.Inclusion(box, lambda x, xi: H @ x - xi) if affine else ez.VariationalInequality(bent, box)
    exact = ez.solve(problem, ez.Samples(mean), tol=1e-12).x  # O is affine in ξ, so B is O at its mean
    solutions = ez.solve_many(problem, [rows(3000, seed) for seed in range(400)])
    for kind, count in ((Asymptotic(), 400), (Bootstrap(39), 400 if affine else 100)):
        slack = 0.03 + 2 * math.sqrt(0.1 * 0.9 / count)
        missed = dict.fromkeys(("distance", "epsilon", "intervals"), 0)
        for solution in solutions[:count]:
            found = ez.certify(solution, 0.1, kind)
            band = found.intervals
            B = np.asarray(problem.oracle(solution.x, MEAN))
            missed["distance"] += bool(np.linalg.norm(solution.x - exact) > found.distance)
            missed["epsilon"] += bool(np.linalg.norm(solution.z + B) > found.epsilon)
            missed["intervals"] += bool(np.any(exact < band.lower) or np.any(exact > band.upper))
        for name, number in missed.items():
            assert abs(number / count - 0.1) <= slack, (kind.title, name, number)
