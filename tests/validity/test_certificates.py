"""Whole certificates miss no more often than δ; and broken ones, which the same test must convict."""

import functools
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import epszero as ez
from epszero.certificates import (
    Dependent,
    EmpiricalBernstein,
    HoldOut,
    Kind,
    MeanBound,
    MeanDeviation,
    MeanSet,
    Tightest,
    VectorStability,
    _base,
    consequences,
)
from epszero.certificates.agents import Curvatures
from epszero.certificates.evidence import Evidence, examined
from epszero.certificates.noise import Noise
from epszero.facts import Constant, Observed, Provenance

from .certificates import DELTAS, ENTRANTS, SIZE, TIGHT, Entrant, Solved, apart, plain, trials_of
from .coverage import too_many
from .worlds import World, flat, world

MANY, FEW = 40, 8


QUICK = ("charging, uniform",)


@pytest.mark.parametrize(
    "where", [pytest.param(where, marks=[] if where in QUICK else pytest.mark.long) for where in ENTRANTS]
)
def test_misses_of_whole_certificates_are_no_more_frequent_than_delta(where):
    for trials, tight in ((MANY, True), (FEW, False)):
        chosen = [one for one in ENTRANTS[where] if (one.name in TIGHT) == tight]
        outcomes, _ = trials_of(world(where), chosen, DELTAS, trials, seed=1)
        for (name, delta), outcome in outcomes.items():
            told = f"{name}, δ = {delta}: {outcome.misses} of {trials}, {dict(outcome.claims)}"
            assert not too_many(outcome.misses, trials, delta), told
            assert outcome.refused == 0, told


@pytest.mark.long
def test_what_entrants_share_changes_no_certificate():
    """Cases serve one kind after another; each certificate is that of a case of its own."""
    here, rng = world("charging, uniform"), np.random.default_rng(4)
    solutions = here.solved([here.draw(rng, SIZE) for _ in range(3)])
    fresh = [here.draw(rng, SIZE) for _ in solutions]
    shared = Solved(solutions, fresh)
    entrants = [one for one in ENTRANTS[here.name] if one.data is ENTRANTS[here.name][0].data]
    for entrant in entrants:
        own = entrant.certify(Solved(solutions, fresh), 0.05)
        for one, other in zip(entrant.certify(shared, 0.05), own, strict=True):
            assert (one.epsilon, one.distance) == (other.epsilon, other.distance), entrant.name


@pytest.mark.long
def test_the_truth_of_a_world_agrees_with_the_library():
    """B in NumPy against the library's average, and savings against best responses by a conic solver."""
    for where in ENTRANTS:
        here = world(where)
        solution = ez.solve(here.problem, here.truth, ez.ForwardBackward(step=0.1), iterations=3)
        assert np.linalg.norm(here.residual(solution)) == pytest.approx(solution.residual, rel=1e-9, abs=1e-12)
        if here.savings is not None and where != "charging, rare":
            found = solution.check_equilibrium().saving
            np.testing.assert_allclose(here.savings(solution.x), found, rtol=1e-5, atol=1e-9)


# -- broken certificates ---------------------------------------------------------------------------------------------
# Most are shown with the exact quantile of the normal law in one dimension: it misses with probability δ, so there is
# no slack that could hide a break, and none has to be exaggerated.


@dataclass(frozen=True)
class Normal(MeanBound):
    """The exact interval for normal samples with standard deviation σ."""

    title = "normal quantile"
    needs_region = False
    sigma: float = 1.0

    def around(self, X, region, delta):
        radius = self.sigma * norm.isf(delta / 2) / np.sqrt(X.shape[-2])
        return MeanSet(X.mean(axis=-2), np.full(X.shape[:-2], radius))


def _draw(rng, s):
    return ez.Samples(rng.normal(size=(s, 1)))


ZERO = ez.Samples(np.zeros((1, 1)))


@functools.cache
def line(far: bool = False) -> World:
    """O(x, ξ) = x − a − ξ, x* = a. `far`: a = 5 and the run hardly leaves 0, so that e is far from 0."""
    a, step = (5.0, 1e-3) if far else (0.0, 1.0)
    problem = ez.Inclusion(ez.sets.WholeSpace(dim=1), lambda x, xi: x - a - xi)
    return World("line", problem, _draw, ZERO, lambda x: x - a, step, 1)


@functools.cache
def bent(mu: float) -> World:
    """O(x, ξ) = x + tanh(x)/20 − ξ, whose μ on the line is 1; declared is another."""
    problem = ez.Inclusion(
        ez.sets.WholeSpace(dim=1), ez.oracles.Affine(lambda x, xi: x + 0.05 * jnp.tanh(x) - xi), ez.declare(mu=mu)
    )
    return World("bent", problem, _draw, ZERO, lambda x: x + 0.05 * np.tanh(x), 0.9, 20)


def duel() -> World:
    """Two agents who pay for nothing but their own x_i: ½h_i x_i² + ξx_i; a saving is e_i²/2h_i. Each call anew."""
    h = np.array([1.0, 3.0])
    costs = [lambda x, xi, i=i: jnp.sum(0.5 * h[i] * x[i] ** 2 + xi * x[i]) for i in range(2)]
    problem = ez.Game(costs, [ez.sets.WholeSpace(dim=1), ez.sets.WholeSpace(dim=1)])
    return World("duel", problem, _draw, ZERO, lambda x: h * x, 0.4, 60, lambda x: (h * flat(x)) ** 2 / (2 * h))


def missed(where: World, entrant: Entrant, delta: float, trials: int = 200, claim: str = "") -> tuple[int, int, float]:
    """As `too_many` wants it: misses of one claim, or of any."""
    outcome = trials_of(where, [entrant], [delta], trials, seed=3)[0][entrant.name, delta]
    return (outcome.claims[claim] if claim else outcome.misses), trials, delta


@pytest.mark.long
def test_the_exact_interval_misses_as_often_as_it_may():
    misses, trials, delta = missed(line(), plain("exact", MeanDeviation(Normal())), 0.3)
    assert 0.2 <= misses / trials <= 0.4
    assert not too_many(misses, trials, delta)


@dataclass(frozen=True)
class Scaled(MeanBound):
    """The radius times a number."""

    title = "scaled"
    bound: MeanBound
    by: float

    def around(self, X, region, delta):
        found = self.bound.around(X, region, delta)
        return MeanSet(found.centre, found.radius * self.by)


@pytest.mark.long
def test_a_confidence_set_at_forty_per_cent_of_its_radius_is_convicted():
    """At δ = 0.3 empirical Bernstein is so long that 40 % of it still miss less often; a quarter does not."""
    for delta, by in ((0.3, 0.25), (0.05, 0.4)):
        broken = plain("scaled", MeanDeviation(Scaled(EmpiricalBernstein(), by)))
        assert too_many(*missed(world("charging, prices"), broken, delta))


def learnt(bound=None) -> Entrant:
    """Hold-out on the data that the run has seen, behind the back of the refusal."""

    @dataclass(frozen=True, eq=False)
    class Seen(Kind):
        title = property(lambda self: "seen")

        def examine(self, case, delta):
            return examined(Evidence(case, case.samples, None), bound or EmpiricalBernstein(), delta, "seen")

    return Entrant("seen", plain("", Seen()).certify, lambda world, rng: world.draw(rng, SIZE // 2))


@pytest.mark.long
def test_hold_out_on_seen_data_is_convicted():
    sound = Entrant("fresh", apart(lambda fresh: HoldOut(samples=fresh)), learnt().data)
    assert too_many(*missed(world("memory"), learnt(), 0.05, 40))
    assert not too_many(*missed(world("memory"), sound, 0.05, 40))


@pytest.mark.long
def test_vector_stability_without_the_slope_of_the_noise_is_convicted(monkeypatch):
    entrant = Entrant("L = 0", plain("", VectorStability()).certify, learnt().data)
    assert not too_many(*missed(world("memory"), entrant, 0.3, 40))
    monkeypatch.setattr(Noise, "slope", Constant(0.0, Provenance.EXACT, "broken"))
    assert too_many(*missed(world("memory"), entrant, 0.3, 40))


@dataclass(frozen=True, eq=False)
class Unsplit(Kind):
    """The best of several, each at the whole δ."""

    kinds: list
    title = property(lambda self: "unsplit")

    def examine(self, case, delta):
        return min((kind.examine(case, delta) for kind in self.kinds), key=lambda found: found.epsilon)


@pytest.mark.some(2)
@pytest.mark.parametrize(("several", "broken"), [(Unsplit, True), (Tightest, False)])
def test_the_best_of_many_without_a_split_of_delta_is_convicted(several, broken):
    def kind(fresh):
        rng = np.random.default_rng(np.abs(fresh.values[0]).view(np.uint64))
        return several([HoldOut(Normal(), samples=_draw(rng, 20)) for _ in range(20)])

    assert too_many(*missed(line(far=True), Entrant("20 hold-outs", apart(kind)), 0.3, 40)) == broken


@dataclass(frozen=True, eq=False)
class Peeking(Kind):
    """A bound for one sample size, read at many."""

    looks: tuple[int, ...] = (1, 2, 4, 8, 16, 24, 32, 40, 50, SIZE)
    title = property(lambda self: "peeking")

    def examine(self, case, delta):
        found = [examined(Evidence(case, [case.samples[0][:m]], None), Normal(), delta, "peeking") for m in self.looks]
        return replace(found[-1], alternatives=tuple(one for finding in found[:-1] for one in finding.every))


@pytest.mark.long
def test_a_fixed_size_bound_read_at_many_sizes_is_convicted():
    assert too_many(*missed(line(far=True), plain("peeking", Peeking()), 0.3))
    assert not too_many(*missed(line(far=True), plain("one look", Peeking(looks=(SIZE,))), 0.3))


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("kind", "broken"),
    [(MeanDeviation(Normal()), True), (Dependent(beta={10: 0.0}, gap=10, bound=Normal()), False)],
)
def test_dependence_that_is_ignored_is_convicted(kind, broken, monkeypatch):
    """Each draw ten times over: ten apart they are independent. From outside, where no history tells of it.

    Nor their order, which is not looked at here; it would tell.
    """
    monkeypatch.setattr(_base, "quick", lambda rows: 1.0)
    tenfold = Entrant(
        "tenfold",
        plain("", kind).certify,
        lambda world, rng: ez.Samples(np.repeat(rng.normal(size=(10, 1)), 10, axis=0)),
    )
    for delta in DELTAS:
        assert too_many(*missed(line(), tenfold, delta)) == broken


@pytest.mark.long
def test_exploitability_with_a_wrong_hessian_is_convicted(monkeypatch):
    entrant = plain("exact", MeanDeviation(Normal()))
    assert not too_many(*missed(duel(), entrant, 0.05, claim="exploitability"))
    right = consequences.curvatures

    def wrong(case, search=True):
        known = right(case, search)
        assert isinstance(known, Curvatures)
        return replace(known, inverse=[M / 4 for M in known.inverse], key="wrong")

    monkeypatch.setattr(consequences, "curvatures", wrong)
    assert too_many(*missed(duel(), entrant, 0.05, claim="exploitability"))


@pytest.mark.some(2)
@pytest.mark.parametrize(("mu", "broken"), [(1.0, False), (2.0, True)])
def test_a_distance_with_a_wrong_mu_is_convicted(mu, broken, monkeypatch):
    """Were it not held against pairs of points, which would tell."""
    monkeypatch.setattr(Observed, "mu", property(lambda self: self.facts.mu))
    assert too_many(*missed(bent(mu), plain("exact", MeanDeviation(Normal())), 0.05, claim="distance")) == broken
