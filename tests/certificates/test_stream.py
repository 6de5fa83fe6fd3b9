"""Certificates that grow with a stream: never weaker, whatever came in and however often they were read."""

import numpy as np
import pytest
from certified_data import H, rows

import epszero as ez
from epszero.certificates import Anytime, Betting, EmpiricalBernstein, Hoeffding, MeanDeviation, _base

BOUNDS = [None, EmpiricalBernstein(), Betting(), Hoeffding()]


@pytest.mark.parametrize("bound", BOUNDS)
def test_an_update_never_weakens(run, bound):
    certificate = ez.certify(run, 0.1, Anytime(bound))
    for seed, size in ((1, 5), (2, 40), (3, 1), (4, 90)):
        more = certificate.update(rows(size, 20 + seed))
        assert more.epsilon <= certificate.epsilon
        assert more.distance <= certificate.distance
        assert more.delta == 0.1
        certificate = more
    assert certificate.epsilon < 0.8 * ez.certify(run, 0.1, Anytime(bound)).epsilon
    assert certificate.terms["samples"] == 40 + 136


def test_bad_news_does_not_make_it_weaker_either(run, monkeypatch):
    """All new samples at one corner: the last look alone would be worse. Their order would tell, were it looked at."""
    assert ez.certify(run, 0.1, Anytime(Hoeffding())).update(ez.Samples(np.ones((40, 3)))).verdict == "refused"
    monkeypatch.setattr(_base, "quick", lambda rows: 1.0)
    corner = ez.Samples(np.ones((40, 3)))
    before = ez.certify(run, 0.1, Anytime(Hoeffding()))
    after = before.update(corner)
    alone = ez.certify(run, 0.1, Anytime(Hoeffding(), samples=run.samples.followed_by(corner)))
    assert alone.epsilon > before.epsilon
    assert after.epsilon == before.epsilon
    assert after.distance <= before.distance


@pytest.mark.parametrize("bound", BOUNDS)
def test_updates_equal_certifying_all_at_once_with_looks(run, played, bound):
    for solution in (run, played):
        pieces = [rows(10, 30), rows(25, 31), rows(7, 32)]
        certificate, stream = ez.certify(solution, 0.05, Anytime(bound)), solution.samples
        for piece in pieces:
            certificate, stream = certificate.update(piece), stream.followed_by(piece)
        whole = ez.certify(solution, 0.05, Anytime(bound, samples=stream, looks=(40, 50, 75)))
        assert certificate.epsilon == whole.epsilon
        assert certificate.distance == whole.distance
        assert isinstance(certificate.using, Anytime)
        assert certificate.using.looks == (40, 50, 75)


def test_arrays_will_do(run):
    assert ez.certify(run, using=Anytime()).update(np.full((5, 3), 0.5)).terms["samples"] == 45


def test_x_may_be_solved_anew_where_there_is_structure(run, line):
    first = ez.certify(run, 0.1, Anytime(Hoeffding()))
    more = rows(60, 40)
    everything = run.samples.followed_by(more)
    better = ez.solve(line, everything, tol=1e-9)
    found = first.update(more, better)
    assert found.solution is better
    # Each look bounds the residual of the new x: the mean of its samples, and the stitched radius.
    at = []
    for m in (40, 100):
        k = int(np.log2(m))
        radius = np.sqrt(3) / 2 / m * np.sqrt(2 * 2 ** (k + 1) * np.log(2 * (k + 1) * (k + 2) / 0.1))
        at.append(np.linalg.norm(better.z + H @ better.x - everything.values[:m].mean(axis=0)) + radius)
    assert found.epsilon == pytest.approx(min(at), rel=1e-8)


def test_without_structure_x_is_frozen_and_the_stream_fresh(held, bent, bent_run):
    first = ez.certify(held, 0.1, Anytime())
    assert first.terms["samples"] == len(held.holdout)
    second = first.update(rows(30, 41))
    assert second.epsilon <= first.epsilon
    other = ez.solve(bent, rows(40, 42), ez.ForwardBackward(step=0.3), iterations=15)
    with pytest.raises(ez.InputError, match="must stay as it is"):
        first.update(rows(30, 41), other)
    with pytest.raises(ez.InputError, match="has seen"):
        first.update(held.samples)
    assert ez.certify(bent_run, using=Anytime()).verdict == "refused"  # nothing was kept aside


def test_refusals(run, line, additive):
    with pytest.raises(ez.InputError, match="Anytime"):
        ez.certify(run, using=MeanDeviation()).update(rows(5, 1))
    stream = ez.certify(run, using=Anytime())
    with pytest.raises(ez.InputError, match="another problem"):
        stream.update(rows(5, 43), ez.solve(additive, rows(20, 1), iterations=3))
    with pytest.raises(ez.InputError, match="shape"):
        stream.update(np.ones((5, 2)))
    with pytest.raises(ez.InputError, match="outside the support"):
        stream.update(np.full((5, 3), 1.5))
    with pytest.raises(ez.InputError, match="new_sample"):
        stream.update(new_sample=rows(5, 43))
    read = ez.Certificate.from_json(stream.to_json())
    with pytest.raises(ez.InputError, match="record"):
        read.update(rows(5, 43))


def test_the_same_piece_twice_is_no_news(run):
    piece = rows(30, 44)
    with pytest.raises(ez.InputError, match="twice"):
        ez.certify(run, using=Anytime()).update(piece).update(piece)
