"""Verdicts, defaults, what is leant on, what is printed, and what is refused."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from certified_data import UNIT, H, rows

import epszero as ez
from epszero.certificates import (
    Anytime,
    Betting,
    CertifiedPiece,
    Dependent,
    EmpiricalBernstein,
    Hoeffding,
    HoldOut,
    Known,
    McDiarmid,
    MeanDeviation,
    MedianOfMeans,
    RepairedStability,
    SubGaussian,
    Tightest,
    UniformStability,
    VectorStability,
)

pytestmark = pytest.mark.some(2)

BOX = ez.sets.Box(-0.2, 0.4, dim=3)


def leanings(certificate):
    return {leaning.what.split(" = ")[0]: leaning.provenance.value for leaning in certificate.leans_on}


# -- verdicts (THEORY section 5) -------------------------------------------------------------------------------------


def test_guaranteed_without_samples_and_with_exact_constants(exact):
    found = ez.certify(exact)
    assert found.verdict == "guaranteed"
    assert leanings(found) == {"strong monotonicity μ": "exact"}
    assert found.distance is not None


@pytest.mark.long
def test_conditional_without_samples_but_with_a_declared_constant():
    problem = ez.Inclusion(BOX, lambda x: x + jnp.tanh(x) - 0.3, declared=ez.declare(mu=1.0))
    found = ez.certify(ez.solve(problem, iterations=2))
    assert found.verdict == "conditional"
    assert leanings(found) == {"strong monotonicity μ": "declared"}


def test_conditional_with_samples(run):
    found = ez.certify(run, 0.05)
    assert found.verdict == "conditional"
    assert leanings(found)["independent samples of one law"] == "declared"
    assert leanings(found)["strong monotonicity μ"] == "exact"
    assert any("support of ξ" in leaning.what for leaning in found.leans_on)
    assert any("O(x, ξ)" in leaning.what and leaning.provenance == "exact" for leaning in found.leans_on)


def test_heuristic_with_an_estimated_support(line):
    bare = ez.solve(line, ez.Samples(rows(40, 1).values), tol=1e-9)
    refused = ez.certify(bare)
    assert (refused.verdict, refused.epsilon) == ("refused", np.inf)
    assert "support" in refused.reason
    found = ez.certify(bare, using=MeanDeviation(support="estimated"))
    assert found.verdict == "heuristic"
    assert "estimated" in leanings(found).values()
    assert np.isfinite(found.epsilon)


@pytest.mark.parametrize("bound", [SubGaussian(0.5), MedianOfMeans(0.9)])
def test_declared_tails_need_no_support(line, bound):
    bare = ez.solve(line, ez.Samples(rows(40, 1).values), tol=1e-9)
    found = ez.certify(bare, using=MeanDeviation(bound))
    assert found.verdict == "conditional"
    assert any("σ" in leaning.what or "E‖X" in leaning.what for leaning in found.leans_on)


def test_a_support_that_does_not_hold_every_sample_is_refused(run):
    found = ez.certify(run, using=MeanDeviation(support=ez.sets.Box(0.0, 0.5, dim=3)))
    assert (found.verdict, found.epsilon, found.distance) == ("refused", np.inf, None)
    assert "outside the support" in found.reason
    assert "violated" in leanings(found).values()


def test_a_refuted_constant_is_refused_where_it_matters():
    wrong = ez.Inclusion(BOX, lambda x, xi: H @ x - xi, declared=ez.declare(mu=1.2))
    solution = ez.solve(wrong, rows(40, 1), ez.ForwardBackward(step=0.3), iterations=12)
    found = ez.certify(solution, using=MeanDeviation())
    assert np.isfinite(found.epsilon)  # which does not lean on μ
    assert found.distance is None
    assert "declared" in found.notes["distance"]
    refused = ez.certify(solution, using=RepairedStability())
    assert (refused.verdict, refused.epsilon) == ("refused", np.inf)


def test_too_few_samples_are_refused(line):
    one = ez.solve(line, rows(1, 1), ez.ForwardBackward(step=0.3), iterations=12)
    found = ez.certify(one, using=MeanDeviation(EmpiricalBernstein()))
    assert (found.verdict, found.epsilon) == ("refused", np.inf)
    assert "too few" in found.reason


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (MeanDeviation(), "not known to be affine"),
        (HoldOut(), "kept aside"),
        (Anytime(), "kept aside"),
        (Dependent(phi=1.0), "affine in features"),
        (Known(), "depends on samples"),
        (Tightest([MeanDeviation(), Dependent(phi=1.0)]), "none of them"),
    ],
)
def test_kinds_that_do_not_apply_say_why(bent_run, kind, reason):
    found = ez.certify(bent_run, using=kind)
    assert (found.verdict, found.epsilon, found.distance) == ("refused", np.inf, None)
    assert reason in found.reason
    assert reason in str(found)


@pytest.mark.parametrize("kind", [UniformStability(), RepairedStability()])
def test_stability_needs_a_run_of_fixed_length_and_step(line, kind):
    early = ez.solve(line, rows(40, 1), ez.ForwardBackward(step=0.3), tol=1e-6)
    assert "iterations=K" in ez.certify(early, using=kind).reason
    chosen = ez.solve(line, rows(40, 1), ez.ForwardBackward(), iterations=12)  # its step is the same for all data
    assert np.isfinite(ez.certify(chosen, using=kind).epsilon)
    other = ez.solve(line, rows(40, 1), ez.Extragradient(step=0.2), iterations=12)
    assert "forward-backward" in ez.certify(other, using=kind).reason


def test_slow_mixing_is_refused(run):
    found = ez.certify(run, 0.05, Dependent(beta=lambda gap: 1.0, gap=2))
    assert found.verdict == "refused"
    assert "depend on each other" in found.reason


# -- defaults --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_default_follows_structure(run, played, bent_run, held, exact, additive):
    everything = {
        "affine over polyhedra": [run, played, ez.solve(additive, rows(20, 1), iterations=3)],
        "no samples": [exact],
        "kept aside": [held],
        "Lipschitz constant": [bent_run],
    }
    kinds = {"affine over polyhedra": CertifiedPiece, "no samples": Known, "kept aside": HoldOut,
             "Lipschitz constant": VectorStability}  # fmt: skip
    for why, solutions in everything.items():
        for solution in solutions:
            found = ez.certify(solution)
            assert type(found.using) is kinds[why]
            assert why in found.reason
    bare = ez.VariationalInequality(lambda x, xi: x + jnp.tanh(x - xi), ez.sets.Box(-1.0, 1.0, dim=3))
    found = ez.certify(ez.solve(bare, rows(30, 2), iterations=3))  # too few for a pilot
    assert type(found.using) is HoldOut
    assert found.verdict == "refused"


def test_the_default_does_not_look_at_values(line, run):
    other = ez.solve(line, ez.Samples(np.zeros((40, 3)), support=UNIT), ez.ForwardBackward(step=0.3), iterations=12)
    a, b = ez.certify(run), ez.certify(other)
    assert type(a.using) is type(b.using)
    assert a.reason == b.reason
    assert a.by == b.by  # the same bound, too


@pytest.mark.long
def test_certify_many_is_certify(line):
    many = ez.solve_many(line, [rows(40, seed) for seed in range(70)], ez.ForwardBackward(step=0.3), iterations=12)
    for kind in (None, MeanDeviation(Hoeffding()), MeanDeviation(support=UNIT), VectorStability()):
        for place, found in enumerate(ez.certify_many(many, 0.1, kind)):
            if place % 10 == 0:
                alone = ez.certify(many[place], 0.1, kind)
                assert found.epsilon == pytest.approx(alone.epsilon, rel=1e-10)
                assert found.distance == pytest.approx(alone.distance, rel=1e-10)
                assert (found.verdict, found.by, found.reason) == (alone.verdict, alone.by, alone.reason)


def test_a_hold_out_serves_every_x_too(line):
    solution = ez.solve(line, rows(60, 3), tol=1e-9, holdout=0.4)
    found = ez.certify(solution, 0.05, MeanDeviation(Hoeffding()))
    mean = rows(60, 3).values.mean(axis=0)
    radius = np.sqrt(3) / 2 * np.sqrt(2 * np.log(40) / 60)
    assert found.epsilon == pytest.approx(np.linalg.norm(solution.z + H @ solution.x - mean) + radius, rel=1e-7)


# -- terms and printing ----------------------------------------------------------------------------------------------


def test_terms_add_up(run, played):
    for solution in (run, played):
        for kind in (None, MeanDeviation(Hoeffding()), VectorStability()):
            found = ez.certify(solution, using=kind)
            assert found.terms["empirical"] + found.terms["deviation"] == pytest.approx(found.epsilon, rel=1e-9)
            assert found.terms["empirical"] == pytest.approx(solution.residual, abs=1e-10)


def test_what_is_printed(played, run):
    text = str(ez.certify(played, 0.05))
    first, *rest = text.splitlines()
    assert first.startswith("ε-zero, 95 % confidence")
    assert first.endswith("verdict: conditional")
    for name in ("residual", "distance", "exploitability", "by", "leans on"):
        assert any(line.startswith(f"  {name} ") for line in rest), text
    assert "‖z + B(x)‖ ≤" in text
    assert "empirical +" in text
    assert "% of ‖x‖" in text
    assert "40 samples" in text
    assert "99.9 % confidence" in str(ez.certify(run, 0.001))


def test_membership_is_checked(run):
    """x outside the domain, or z outside A(x), is never certified."""
    for broken in (replace(run, point=run.point + 5.0), replace(run, element=run.element - 3.0),
                   replace(run, element=run.element * np.nan)):  # fmt: skip
        found = ez.certify(broken)
        assert (found.verdict, found.epsilon) == ("refused", np.inf)


# -- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2, "5 %", np.nan, [0.1, 0.2], None])
def test_delta_is_a_probability(run, delta):
    with pytest.raises(ez.InputError, match="delta"):
        ez.certify(run, delta)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda run: ez.certify(np.ones(3)), "must come from ez.solve"),
        (lambda run: ez.certify(run, using="MeanDeviation"), "must be a kind"),
        (lambda run: ez.certify(run, using=MeanDeviation), "must be a kind"),
        (lambda run: ez.certify(run, confidence=0.9), "confidence"),
        (ez.certify_many, "list"),
        (lambda run: ez.certify_many([]), "at least one"),
        (lambda run: MeanDeviation(bound="betting"), "bound"),
        (lambda run: MeanDeviation(support=[0, 1]), "support"),
        (lambda run: MeanDeviation(support="guess"), "support"),
        (lambda run: MeanDeviation(support=ez.sets.Box(np.zeros((2, 3)), 1.0)), "batch"),
        (lambda run: HoldOut(samples=np.ones((3, 3))), "ez.Samples"),
        (lambda run: UniformStability("both"), "rule"),
        (lambda run: UniformStability(loss_bound=-1.0), "loss_bound"),
        (lambda run: Dependent(), "exactly one"),
        (lambda run: Dependent(beta=[0.1], phi=1.0), "exactly one"),
        (lambda run: Dependent(phi=1.0, gap=2), "phi"),
        (lambda run: Dependent(beta=[0.1], gap=0), "gap"),
        (lambda run: ez.certify(run, using=Dependent(beta=lambda gap: -1.0)), "beta"),
        (lambda run: Tightest([]), "list of certificates"),
        (lambda run: Tightest([MeanDeviation]), "objects of that kind"),
        (lambda run: Tightest([MeanDeviation()], weights=[1, 2]), "weights"),
        (lambda run: Anytime(McDiarmid()), "every sample size"),
        (lambda run: Anytime(support="estimated"), "stream"),
        (lambda run: Anytime(looks=(0,)), "looks"),
        (lambda run: SubGaussian(-1.0), "sigma"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(run, call, match):
    with pytest.raises(ez.InputError, match=match) as refusal:
        call(run)
    assert str(refusal.value).endswith(".")


def test_betting_wants_corners(held):
    found = ez.certify(held, using=HoldOut(Betting()))  # of O(x, ξ) only R is known
    assert found.verdict == "refused"
    assert "corners" in found.reason


# -- samples that the solution has seen ------------------------------------------------------------------------------


def _again(samples):
    rng = np.random.default_rng(9)
    values = samples.values
    return {
        "the same": samples,
        "a slice": samples[5:30],
        "a permutation": samples[rng.permutation(40)],
        "a copy": ez.Samples(values.copy(), support=UNIT),
        "a permuted copy": ez.Samples(values[rng.permutation(40)], support=UNIT),
        "part of a copy": ez.Samples(values[3:20], support=UNIT),
        "a bootstrap": samples.take(40, seed=0),
        "more than the seen": samples.followed_by(rows(5, 77)),
        "a copy and more": ez.Samples(np.concatenate([values, rows(5, 77).values]), support=UNIT),
    }


@pytest.mark.parametrize("name", _again(rows(40, 1)))
def test_seen_samples_are_no_hold_out(run, name):
    with pytest.raises(ez.InputError, match="has seen"):
        ez.certify(run, using=HoldOut(samples=_again(run.samples)[name]))


def test_a_bootstrap_by_hand_is_no_hold_out(run):
    drawn = np.random.default_rng(3).integers(40, size=40)
    with pytest.raises(ez.InputError, match="has seen"):
        ez.certify(run, using=HoldOut(samples=ez.Samples(run.samples.values[drawn], support=UNIT)))


def test_two_draws_from_a_pool_are_fresh_for_each_other(line):
    pool = rows(200, 8)
    solution = ez.solve(line, pool.take(60, seed=1), ez.ForwardBackward(step=0.3), iterations=12)
    found = ez.certify(solution, using=HoldOut(samples=pool.take(60, seed=2)))
    assert found.verdict == "conditional"
    few = ez.Samples(np.repeat(np.eye(3), 20, axis=0), support=UNIT)  # three values: equal ones prove nothing
    solution = ez.solve(line, few.take(60, seed=1), ez.ForwardBackward(step=0.3), iterations=12)
    assert np.isfinite(ez.certify(solution, using=HoldOut(samples=few.take(60, seed=2))).epsilon)
    with pytest.raises(ez.InputError, match="has seen"):
        ez.certify(solution, using=HoldOut(samples=few))


@pytest.mark.parametrize("kind", [None, VectorStability(), RepairedStability(), UniformStability()])
def test_rows_that_were_taken_twice_are_not_independent(line, kind):
    twice = rows(20, 1)[np.repeat(np.arange(20), 2)]
    found = ez.certify(ez.solve(line, twice, ez.ForwardBackward(step=0.3), iterations=12), using=kind)
    assert (found.verdict, found.epsilon) == ("refused", np.inf)
    assert "repetitions" in found.reason
    assert "violated" in leanings(found).values()


def test_two_draws_from_a_pool_as_plain_arrays_are_fresh_too(line):
    """60 of 360 days, twice: about nine days are in both by chance, and no history tells of the pool."""
    pool, rng = rows(360, 8).values, np.random.default_rng(0)
    seen, fresh = (ez.Samples(pool[rng.integers(360, size=60)], support=UNIT) for _ in range(2))
    solution = ez.solve(line, seen, ez.ForwardBackward(step=0.3), iterations=12)
    assert np.isfinite(ez.certify(solution, using=HoldOut(samples=fresh)).epsilon)


@pytest.mark.long
def test_draws_from_a_pool_speak_of_its_law():
    pool = ez.Samples(np.random.default_rng(0).uniform(0, 1, (50, 2)), support=ez.sets.Box(0.0, 1.0))
    problem = ez.VariationalInequality(lambda x, xi: x - xi, over=ez.sets.Box(0.0, 1.0, dim=2))

    def said(samples, **options):
        certificate = ez.certify(ez.solve(problem, samples, **options))
        return [str(one) for one in certificate.leans_on if "independent" in one.what]

    assert said(pool) == ["independent samples of one law: declared (their order does not contradict it)"]
    drawn = "independent samples of one law: declared (drawn at random from 50 rows: the law is that of such a row)"
    assert said(pool.take(300, seed=1)) == [drawn]
    assert drawn in said(pool.take(300, seed=1), holdout=0.5)
    mixed = pool.take(30, seed=1).followed_by(ez.Samples(pool.values[:9] / 2))
    assert (pool.drawn_from, pool.take(9, seed=0)[:5].drawn_from, mixed.drawn_from) == (None, 50, None)
    assert pool.take(9, seed=0, replace=False).drawn_from is None
