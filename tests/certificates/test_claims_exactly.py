"""What a certificate claims and leans on, condition by condition, and where the ends of the scale are."""

import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from certified_data import rows

import epszero as ez
from epszero.certificates import Anytime, Hoeffding, MeanDeviation, VectorStability
from epszero.certificates._base import Finding
from epszero.certificates.case import Case
from epszero.certificates.certify import _consequences  # pyright: ignore[reportPrivateUsage]
from epszero.certificates.mean.median_of_means import _rare  # pyright: ignore[reportPrivateUsage]
from epszero.certificates.residuals import Residuals
from epszero.certificates.scales import out_of_range


def leans(certificate):
    return " ".join(leaning.what for leaning in certificate.leans_on)


def test_a_stream_that_the_run_has_seen_is_not_called_fresh(run, held):
    assert "fresh" not in leans(ez.certify(run, 0.1, Anytime(Hoeffding())))
    assert "fresh" in leans(ez.certify(held, 0.1, Anytime(Hoeffding())))


def test_every_one_of_many_is_checked(run):
    for place in (0, 1, 2):
        given = [run, run, run]
        given[place] = "no solution"
        with pytest.raises(ez.InputError, match="solution"):
            ez.certify_many(given, 0.1)


def test_far_from_the_point_of_the_graph_only_the_distance_is_claimed(played):
    with jax.enable_x64(True):
        case = Case.of(played)
        found = Finding(Residuals.ball(np.full(12, 0.01), 0.1), "by hand")
        near = _consequences(case, found)
        assert all(near[name].value is not None for name in ("distance", "exploitability", "total"))
        case.__dict__["graph"] = case.graph._replace(moved=0.25)
        far = _consequences(case, found)
    assert far["distance"].value == pytest.approx(near["distance"].value + 0.25)
    assert far["exploitability"].value is None
    assert far["total"].value is None
    assert "away from x" in far["exploitability"].because
    assert "not a minimisation" in far["cost_gap"].because


@pytest.mark.parametrize(
    ("epsilon", "value", "is_length", "kappa", "lost"),
    [
        (1.0, 1.0, True, None, False),
        (1.0, 1e-150, True, None, True),
        (0.0, 0.0, True, None, False),
        (1.0, 1e-150, False, None, False),
        (1.0, 1e-295, False, None, False),
        (1e-80, 1e-295, False, None, True),
        (1.0, 1e-295, False, 1e80, True),
        (1.0, 1e-295, False, 1e60, False),
        (1.0, 1e150, True, None, True),
        (1.0, 1e150, False, None, False),
        (1.0, 1e295, False, None, True),
        (1.0, math.nan, True, None, True),
        (1.0, math.inf, True, None, False),
        (1.0, [1.0, math.inf], False, None, False),
        (1.0, [1.0, 1e295], False, None, True),
    ],
)
def test_what_is_beyond_the_range_is_not_claimed(epsilon, value, is_length, kappa, lost):
    case = SimpleNamespace(jacobian=None if kappa is None else SimpleNamespace(kappa=kappa))
    assert bool(out_of_range(case, epsilon, value, is_length)) is lost  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("scalar", [True, False])
@pytest.mark.parametrize("delta", [1e-30, 1e-200])
def test_tails_of_tiny_probabilities_are_bounded_by_all_ways_to_choose(scalar, delta):
    """P(Bin(k, p) ≥ a) ≤ C(k, a) pᵃ, which is δ: not below by more than rounding."""
    blocks, shares, found = _rare(scalar, delta)
    for k, share, p in list(zip(blocks, shares, found, strict=True))[::97]:
        a = math.ceil(share * k - 1e-9)
        assert math.log(math.comb(int(k), a)) + a * math.log(p) == pytest.approx(math.log(delta), rel=1e-6)


def test_samples_kept_aside_count_where_every_x_is_certified(line):
    with_more = ez.solve(line, rows(60, 3), ez.ForwardBackward(step=0.3), iterations=5, holdout=0.4)
    assert ez.certify(with_more, 0.1, MeanDeviation(Hoeffding())).terms["samples"] == 60


def test_data_sets_with_supports_of_their_own_are_not_mixed_up(line):
    """Many at once are as one at a time, also where sizes agree and supports do not, or the other way round."""
    values = [rows(20, seed).values for seed in (1, 2, 3)]
    wide = [ez.Samples(own, support=ez.sets.Box(0.0, 1.0 + place, dim=3)) for place, own in enumerate(values)]
    unit = ez.sets.Box(0.0, 1.0, dim=3)
    long = [ez.Samples(np.concatenate([values[0], own])[: 20 + 5 * place], support=unit) for place, own in
            enumerate([rows(20, 7).values, rows(20, 8).values, rows(20, 9).values])]  # fmt: skip
    for given in (wide, long):
        solutions = [ez.solve(line, one, ez.ForwardBackward(step=0.3), iterations=3) for one in given]
        together = ez.certify_many(solutions, 0.1, MeanDeviation(Hoeffding()))
        for solution, found in zip(solutions, together, strict=True):
            assert found.epsilon == pytest.approx(ez.certify(solution, 0.1, MeanDeviation(Hoeffding())).epsilon)


@pytest.mark.long
def test_a_run_that_is_not_known_to_be_stable_is_refused():
    problem = ez.VariationalInequality(
        lambda x, xi: jnp.tanh(x - xi) ** 3, ez.sets.Box(-1.0, 1.0, dim=3), declared=ez.declare(kappa=1.0, R=1.7)
    )
    solution = ez.solve(problem, rows(30, 1), ez.Extragradient(), iterations=5)
    found = ez.certify(solution, 0.1, VectorStability())
    assert found.verdict == "refused"
    assert "Declare mu" in found.reason
