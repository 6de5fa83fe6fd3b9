"""Linear images of x: bounds that hold for every solution, also where x* is not unique; and twins that do not hold."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import epszero as ez
from epszero.certificates import image as module
from epszero.oracles import strategies

A = np.array([[1.0, 2.0, 0.0, 3.0], [0.0, 1.0, 1.0, 1.0], [1.0, 0.0, -1.0, 1.0], [2.0, 1.0, 0.0, 3.0]])  # of rank 3
A[:, 3] = A[:, 0] + A[:, 1]
NULL = np.array([1.0, 1.0, 0.0, -1.0]) / np.sqrt(3)


def roads(power):
    """Two stages with two roads each: four paths, whose flows are not unique."""
    edges = [(1, 2, 1.0, 0.5, power), (1, 2, 1.2, 0.3, power), (2, 3, 0.8, 0.4, power), (2, 3, 1.0, 0.6, power)]
    return ez.models.routing(edges, [(1, 3, 4.0)], uncertain=True)


def squares(x, y):
    return 0.5 * jnp.sum((A @ x - y) ** 2)


def tilted(x, xi):
    """Noise that Aᵀ does not produce: it moves x along the directions in which B is flat."""
    return 0.5 * jnp.sum((A @ x) ** 2) + xi[0] * (x @ NULL) - 0.1 * jnp.sum(A @ x)


def curved(x, xi):
    return 0.5 * x @ jnp.diag(jnp.array([1.0, 2.0, 3.0, 4.0])) @ x + xi @ x


def scores(x, y):
    return jnp.sum(jnp.logaddexp(0.0, A @ x - y)) + 0.1 * jnp.sum((A @ x) ** 2)


UNIT = ez.sets.Box(-1.0, 1.0, dim=4)
ATOMS = np.random.default_rng(8).uniform(size=(12, 4))
WORLDS = {
    "roads, affine": (roads(1), 0.5 * ATOMS, ez.sets.Box(0.0, 0.5), None),
    "roads, power 4": (roads(4), 0.5 * ATOMS, ez.sets.Box(0.0, 0.5), None),
    "dependent columns": (ez.Minimization(squares, ez.sets.Box(-5.0, 5.0, dim=4)), ATOMS, ez.sets.Box(0.0, 1.0), A),
    "noise out of range": (ez.Minimization(tilted, UNIT), 2 * ATOMS[:, 0] - 1, ez.sets.Box(-1.0, 1.0), A),
    "a piece": (ez.Minimization(curved, UNIT), ATOMS - 0.5, ez.sets.Box(-0.5, 0.5), A[:2]),
    "held out": (ez.Minimization(scores, UNIT, ez.declare(R=4.0)), ATOMS, ez.sets.Box(0.0, 1.0), A),
}
TRIALS, DELTA, SIZE = 30, 0.3, 60


def count(name, trials=TRIALS):
    """How often an image misses, its norm or an entry, and the mean of its bound."""
    problem, atoms, support, L = WORLDS[name]
    L = problem.picture.network.uses if L is None else L
    pool = ez.Samples(atoms, support=support)
    truth = L @ np.concatenate([np.ravel(part) for part in _parts(ez.solve(problem, ez.Samples(atoms)))])
    using = ez.certificates.HoldOut() if name == "held out" else None
    missed, said = 0, []
    for trial in range(trials):
        drawn = pool.take(SIZE, seed=trial)
        solution = ez.solve(problem, drawn, holdout=None if using is None else 0.5)
        found = ez.certify(solution, DELTA, using=using, of=L).image
        assert found is not None
        assert found.distance is not None, found.because
        outside = (truth < found.lower - 1e-7).any() or (truth > found.upper + 1e-7).any()
        missed += bool(outside or np.linalg.norm(found.value - truth) > found.distance + 1e-7)
        said.append(found.distance)
    return missed, float(np.mean(said))


def _parts(solution):
    x = strategies(solution.point)
    return x if isinstance(x, list) else [x]


@pytest.mark.some(6)
@pytest.mark.parametrize("name", WORLDS)
def test_images_hold_as_often_as_they_say(name):
    missed, _ = count(name)
    assert missed <= binom.ppf(0.9999, TRIALS, DELTA)


def test_a_twin_that_forgets_what_is_out_of_range_is_convicted(monkeypatch):
    """Without D‖(I − P)e‖ the bound speaks of a solution that cannot slide along flat directions."""
    honest = count("noise out of range")
    monkeypatch.setattr(module, "reach", lambda case, x: np.zeros(1))
    missed, said = count("noise out of range")
    assert honest[0] == 0
    assert said < honest[1]
    assert missed > binom.ppf(0.9999, TRIALS, DELTA)


@pytest.mark.long
def test_a_twin_that_trusts_the_empirical_residual_is_convicted(monkeypatch):
    within = module._within

    def trusting(case, residuals, *rest):
        return within(case, replace(residuals, centre=case.empirical, radii=residuals.radii * 0.01), *rest)

    monkeypatch.setattr(module, "_within", trusting)
    missed, _ = count("dependent columns")
    assert missed > binom.ppf(0.9999, TRIALS, DELTA)


def test_it_is_the_distance_where_the_image_is_x_itself():
    """S-lemma on L = I is that of section 4; never wider than ‖L‖ times the distance."""
    J = np.array([[2.0, 0.5], [-0.3, 1.0]])
    problem = ez.VariationalInequality(lambda x, xi: J @ x + xi, over=ez.sets.Ball(2.0, dim=2))
    data = ez.Samples(np.random.default_rng(1).uniform(-1, 1, size=(500, 2)), support=ez.sets.Box(-1.0, 1.0))
    solution = ez.solve(problem, data)
    whole = ez.certify(solution, of=np.eye(2))
    assert whole.distance is not None
    assert whole.image is not None
    assert whole.image.distance == pytest.approx(whole.distance, rel=1e-3)
    one = ez.certify(solution, of=lambda x: x[0] - x[1]).image
    assert one is not None
    assert one.distance is not None
    assert one.distance <= np.sqrt(2) * whole.distance * (1 + 1e-6)
    entry = ez.certify(solution, of=1).image
    assert entry is not None
    assert entry.value == pytest.approx(solution.x[1:])


def test_prediction_errors_come_out_at_the_rate_of_regression():
    """With one response per row ‖A(x̂ − x*)‖ is the projection of the noise: far below ‖A‖ times any distance."""
    rng = np.random.default_rng(2)
    data = ez.Samples(rng.uniform(-1, 1, size=(4000, 4)), support=ez.sets.Box(-1.0, 1.0))
    solution = ez.solve(ez.Minimization(squares, ez.sets.Box(-5.0, 5.0, dim=4)), data)
    certificate = ez.certify(solution, of=A)
    assert certificate.distance is None
    assert certificate.image is not None
    assert certificate.image.distance is not None
    assert certificate.image.distance < 8 * np.sqrt(3 / 3 / 4000)
    assert "image           ‖L(x − x*)‖ ≤ " in str(certificate)


@pytest.mark.long
def test_records_hold_images_and_are_verified():
    problem, atoms, support, _ = WORLDS["roads, power 4"]
    L = problem.picture.network.uses
    data = ez.Samples(atoms, support=support).take(200, seed=1)
    certificate = ez.certify(ez.solve(problem, data), of=L)
    record = certificate.to_json()
    assert ez.verify(record, problem, data)
    again = ez.Certificate.from_json(record)
    assert again.image is not None
    assert certificate.image is not None
    assert again.image.distance == certificate.image.distance
    assert np.array_equal(again.image.lower, certificate.image.lower)
    assert np.allclose(again.image.value, certificate.image.value)
    false = json.loads(record)
    false["image"]["distance"] /= 2
    assert not ez.verify(false, problem, data)
    false = json.loads(record)
    false["image"]["upper"].pop()
    with pytest.raises(ez.InputError, match="does not fit"):
        ez.verify(false, problem, data)
    plain = json.loads(ez.certify(ez.solve(problem, data)).to_json())
    assert "image" not in plain


@pytest.mark.long
def test_refusals():
    problem, atoms, support, _ = WORLDS["dependent columns"]
    data = ez.Samples(atoms, support=support).take(100, seed=1)
    solution = ez.solve(problem, data)
    whole = ez.certify(solution, of=np.eye(4)).image
    assert whole is not None
    assert whole.distance is None
    assert "does not determine" in whole.because
    free = ez.solve(ez.Minimization(squares), data, x0=np.zeros(4))
    image = ez.certify(free, of=A).image
    assert image is not None
    assert image.distance is None
    assert "bounded set" in image.because
    wrongs = {
        "image that is 0": np.zeros((2, 4)),
        "one column per entry": np.ones((2, 3)),
        "not a linear": lambda x: x @ x,
        "finite": np.array([[np.nan] * 4]),
        "of: must be": "image",
        "rectangular array": lambda x: {"a": x, "b": x[0]},
        "differ in size": np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1e-40, 0.0, 0.0]]),
    }
    for rule, wrong in wrongs.items():
        with pytest.raises(ez.InputError, match=rule):
            ez.certify(solution, of=wrong)


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-100, 1e200])
def test_units_of_an_image_do_not_matter(unit):
    """Squares of small numbers are 0 in float64: a bound that loses them is 0, too."""
    problem, atoms, support, L = WORLDS["dependent columns"]
    solution = ez.solve(problem, ez.Samples(atoms, support=support).take(100, seed=1))
    plain, other = ez.certify(solution, of=L).image, ez.certify(solution, of=unit * L).image
    assert plain is not None
    assert other is not None
    assert other.distance == pytest.approx(unit * plain.distance, rel=1e-9)
    for end in ("lower", "upper", "value"):
        np.testing.assert_allclose(getattr(other, end) / unit, getattr(plain, end), rtol=1e-9)


@pytest.mark.long
def test_many_at_once_say_the_same():
    problem, atoms, support, L = WORLDS["dependent columns"]
    sets = [ez.Samples(atoms, support=support).take(100, seed=seed) for seed in range(3)]
    solutions = ez.solve_many(problem, sets)
    for one, solution in zip(ez.certify_many(solutions, of=L), solutions, strict=True):
        assert one.image is not None
        alone = ez.certify(solution, of=L).image
        assert alone is not None
        assert one.image.distance == pytest.approx(alone.distance)
