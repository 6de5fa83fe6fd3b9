"""Losses read as functions of affine maps: curvature and noise about x̂ against the values themselves; the default."""

import jax.numpy as jnp
import numpy as np
import pytest
from tests.validity.coverage import allowed
from tests.validity.truths import judged, logistic

import epszero as ez
from epszero._double import double
from epszero.certificates import AtTheTruth, HoldOut, by_terms, terms
from epszero.certificates.case import Case
from epszero.certificates.pilot import local_of
from epszero.certificates.terms import TermsGround, terms_of
from epszero.certificates.truth import Metric

LOSSES = {
    "logistic": lambda x, r: jnp.log1p(jnp.exp(-r[0] * (r[1:] @ x))) + 0.25 * x @ x,
    "huber and exp": lambda x, r: jnp.sqrt(1 + (r[1:] @ x - r[0]) ** 2) + 0.1 * jnp.exp(r[1] * x[0]) + 0.2 * x @ x,
}


def solved(loss, s=200, n=3, A=None):
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, size=(s, n))
    y = np.where(a @ np.linspace(1, -1, n) + 0.3 * rng.normal(size=s) > 0, 1.0, -1.0)
    samples = ez.Samples(np.column_stack([y, a]), support=ez.sets.Box(-1.0, 1.0, dim=n + 1))
    return ez.solve(ez.Minimization(loss, A or ez.sets.Ball(2.0, dim=n)), samples)


@pytest.mark.some(2)
@pytest.mark.parametrize("name", LOSSES)
def test_curvature_and_noise_hold_for_every_point_within(name):
    with double():
        case = Case.of(solved(LOSSES[name]))
        (samples,) = case.samples
        here = local_of(case, case.x, samples)
        read = terms_of(here)
        assert read is not None
        n, rng = here.entries, np.random.default_rng(1)
        b, J = rng.normal(size=n), 0.3 * np.eye(n)
        ground = TermsGround(here, read, Metric.of(np.eye(n), here.slopes), 5.0, b, J, np.zeros(n))
        W, ball = rng.normal(size=(n, n)), 0.6
        h = np.linalg.norm(read.R, axis=1) * ball
        inside = ground._within(h, {"ball": (np.eye(n), ball)})
        assert inside is not None
        V = inside.moments(W, ball).V
        tightest = np.inf
        for _ in range(100):
            u = rng.normal(size=n)
            u *= ball * rng.random() / np.linalg.norm(u)
            there = local_of(case, case.x - u, samples).values
            gained = np.mean(here.values - there, axis=0) @ u
            assert gained >= u @ inside.curvature @ u * (1 - 1e-9)
            tightest = min(tightest, gained / (u @ inside.curvature @ u))
            assert np.sum(((there - b + J @ u) @ W.T) ** 2) <= V
        assert tightest < 1.5


def test_an_ellipsoid_holds_the_truth_only_where_curvature_beats_the_noise():
    with double():
        case = Case.of(solved(LOSSES["logistic"]))
        here = local_of(case, case.x, case.samples[0])
        read = terms_of(here)
        n = here.entries
        metric = Metric.of(np.eye(n), here.slopes)
        ground = TermsGround(here, read, metric, 5.0, np.zeros(n), np.eye(n), np.zeros(n))
        h, stretched = np.full(len(read.R), 50.0), np.linalg.norm(read.R @ metric.back, axis=1)
        small, large = (ground._exit(N, 0.0, h, stretched) for N in (0.05, 0.2))
        assert 0.05 < small < large
        assert ground._exit(np.inf, 0.0, h, stretched) == np.inf


@pytest.mark.parametrize(
    "loss", [lambda x, r: jnp.abs(r[1:] @ x - r[0]) + x @ x, lambda x, r: jnp.sin(x[0]) * x[1] ** 2 + r[0] * x[0]]
)
def test_kinks_and_other_forms_are_not_read(loss):
    with double():
        found = solved(LOSSES["logistic"])
        case = Case(ez.Minimization(loss, ez.sets.Ball(2.0, dim=3)), found.point, found.element, found.samples)
        assert terms_of(local_of(case, case.x, case.samples[0])) is None


@pytest.mark.long
def test_a_nonlinear_loss_is_certified_by_default_from_all_samples():
    found = ez.certify(solved(LOSSES["logistic"], s=400))
    assert isinstance(found.using, AtTheTruth)
    assert found.verdict is ez.certificates.Verdict.CONDITIONAL
    assert found.distance < 1.0
    assert any("M of every" in str(one) for one in found.leans_on)
    kept = ez.solve(found.solution.problem, found.solution.samples, holdout=0.5)
    assert isinstance(ez.certify(kept).using, HoldOut)


@pytest.mark.long
@pytest.mark.slow
def test_it_misses_no_more_often_than_it_says_and_a_broken_twin_is_convicted(monkeypatch):
    world = logistic(3, 12, 400)
    solutions = world.solved(30)
    found = judged(world, solutions, 0.3)
    assert found["any"] <= allowed(30, 0.3)
    assert found["distances"] == 30
    monkeypatch.setattr(terms.TermsGround, "search", lambda self, search, start: terms.Known(0.01 * start, 0.0, 0.0))
    monkeypatch.setattr(by_terms, "ROUND", 1.0)
    assert judged(world, solutions, 0.3)["any"] > allowed(30, 0.3)


@pytest.mark.long
def test_hold_out_needs_no_more_than_norms_for_many_entries():
    n, rng = 4000, np.random.default_rng(0)
    problem = ez.Minimization(
        lambda x, xi: jnp.sum(jnp.cosh(0.1 * x)) + 0.5 * x @ x - jnp.sin(xi[0]) * x[0], ez.sets.Box(-1.0, 1.0, dim=n),
        declared=ez.declare(R=2.0, mu=1.0, kappa=2.0),
    )  # fmt: skip
    solution = ez.solve(problem, ez.Samples(rng.uniform(-1, 1, size=(60, 1))), holdout=0.5)
    assert ez.certify(solution, using=HoldOut()).epsilon < 3.0
