"""The page: every kind of part, alone and together; hostile text; the same bytes again; nothing half-written."""

import json
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

import epszero as ez
from epszero.report import answer, report
from epszero.report.words import number

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def game():
    return ez.models.ev_charging(vehicles=3, hours=4, need=(2.0, 6.0))


@pytest.fixture(scope="module")
def prices():
    days = np.random.default_rng(0).uniform(0.02, 0.25, size=(200, 4))
    return ez.Samples(days, support=ez.sets.Box(0.0, 0.5), columns=[EVIL, "b", "c", "d"])


@pytest.fixture(scope="module")
def certificate(game, prices):
    return ez.certify(ez.solve(game, prices))


def embedded(page, name):
    return json.loads(re.search(rf'id="{name}">(.*?)</script>', page.html, re.DOTALL).group(1))


@pytest.mark.long
def test_a_full_page(certificate):
    page = report(certificate, seed=7, command=["epszero", "demo", "--seed", "7"])
    digest = certificate.solution.samples.digest()
    told = ["With 95\u00a0% confidence", "Verdict: conditional", "independent samples of one law", "forecast"]
    for words in [*told, "No agent can save more than", "epszero demo --seed 7", digest]:
        assert words in page.html
    assert len(page.html) < 200_000
    assert not re.search(r"\bnan\b|\binf\b|http", page.html.replace("http-equiv", ""), re.IGNORECASE)


def test_the_same_inputs_give_the_same_bytes(certificate):
    assert report(certificate, seed=1).html == report(certificate, seed=1).html


def test_bounds_are_never_rounded_down(certificate):
    table = embedded(report(certificate), "forecast-numbers")
    epsilon, distance, saving = table["values"][table["here"]][table["own"]]
    assert certificate.epsilon <= epsilon <= 1.002 * certificate.epsilon
    assert certificate.distance <= distance <= 1.002 * certificate.distance
    assert certificate.exploitability.max() <= saving <= 1.002 * certificate.exploitability.max()


def test_the_forecast_says_what_certificates_say(certificate, game, prices):
    table = embedded(report(certificate), "forecast-numbers")
    at = table["deltas"].index(0.001)
    assert table["values"][table["here"]][at][0] == pytest.approx(
        ez.certify(certificate.solution, 0.001).epsilon, rel=2e-3
    )
    double = table["sizes"].index(400)
    fresh = ez.Samples(np.random.default_rng(5).uniform(0.02, 0.25, size=(400, 4)), support=prices.support)
    truth = ez.certify(ez.solve(game, fresh))
    assert table["values"][double][table["own"]][0] == pytest.approx(truth.epsilon, rel=0.1)
    middle = len(table["deltas"]) // 4  # a level that was not certified on drawn data
    again = ez.certify(ez.solve(game, fresh), table["deltas"][middle])
    assert table["values"][double][middle][0] == pytest.approx(again.epsilon, rel=0.1)
    epsilons = [column[table["own"]][0] for column in table["values"]]
    assert epsilons == sorted(epsilons, reverse=True)


def test_user_text_is_escaped(certificate):
    page = report(certificate, title=f"{EVIL}&", seed=f"</script>{EVIL}", command=f'x "{EVIL}"')
    assert EVIL not in page.html
    assert "&lt;script&gt;alert(1)" in page.html
    assert page.html.count("<script") == 3  # the forecast's numbers, the record, the page's own


def test_text_that_is_no_unicode_is_written(certificate, tmp_path):
    place = report(certificate, command="file\udcff\x00").save(tmp_path / "p.html")
    assert "\x00" not in place.read_text(encoding="utf-8")


def test_the_record_is_whole(certificate):
    record = embedded(report(certificate), "certificate-record")
    assert record == json.loads(certificate.to_json())


def test_from_a_record_there_is_no_forecast(certificate):
    read = ez.Certificate.from_json(certificate.to_json())
    page = report(read)
    assert "With 95" in page.html
    assert 'id="forecast"' not in page.html
    both = report(read, certificate.solution)
    assert 'id="forecast"' in both.html


@pytest.fixture(scope="module")
def walk():
    return ez.Samples(0.1 + 0.01 * np.cumsum(np.random.default_rng(1).normal(size=(300, 4)), axis=0))


@pytest.fixture(scope="module")
def audit(game, walk):
    return ez.audit(game, walk, budget=0.3)


@pytest.mark.long
def test_refused(game, walk, audit):
    refused = ez.certify(ez.solve(game, walk))
    page = report(refused, audit)
    assert "cannot be said" in page.html
    assert refused.reason.split(":")[0] in page.html
    assert 'type="range"' not in page.html
    assert page.html.index("✗</span> violated") < page.html.index("✓</span> holds")


def test_parts_alone_and_none(certificate, game, prices, audit):
    plan = ez.plan(game, target=1.0, samples=prices)
    assert "An answer was found from 200 samples" in report(certificate.solution, None).html
    assert "violated: " in report(audit).html
    assert "samples are enough" in report(plan).html
    assert all(f'id="{name}"' in report(plan, None, audit, certificate).html for name in ("plan", "audit", "answer"))


@pytest.mark.some(4)
@pytest.mark.parametrize("shape", ["minimisation", "dictionary", "one", "own data", "no samples", "large x"])
def test_every_shape_of_problem(shape):
    rng = np.random.default_rng(0)
    box = ez.sets.Box(0.0, 1.0)
    data = ez.Samples(rng.uniform(size=(40, 3)), support=box)
    if shape == "minimisation":
        solution = ez.solve(ez.Minimization(lambda x, xi: 0.5 * x @ x - xi @ x, ez.sets.Box(-1.0, 1.0, dim=3)), data)
        words = "above the least possible"
    elif shape == "dictionary":
        parts = {"buy": ez.sets.Box(0.0, 1.0, dim=3), "sell": ez.sets.Box(0.0, 1.0, dim=3)}
        cost = lambda own, mean, xi, p: p * own["buy"] @ own["buy"] + own["sell"] @ own["sell"] - xi @ own["buy"]  # noqa: E731
        solution = ez.solve(ez.AggregativeGame(cost, np.array([1.0, 2.0]), parts), data)
        words = "Strategies of 2 agents: buy"
    elif shape == "one":
        game = ez.models.ev_charging(vehicles=1, hours=1, need=1.0)
        solution = ez.solve(game, ez.Samples(rng.uniform(size=(2, 1)), support=box))
        words = "game of 1 agent"
    elif shape == "own data":  # of other sizes, as the strategies are
        costs = [lambda x, xi: x[0] @ x[0] - xi @ x[0], lambda x, xi: x[1] @ x[1] - xi @ x[1]]
        sets = [ez.sets.Box(-1.0, 1.0, dim=3), ez.sets.Box(-1.0, 1.0, dim=2)]
        solution = ez.solve(ez.Game(costs, sets), [data, ez.Samples(rng.uniform(size=(60, 2)), support=box)])
        words = "2 data sets of 40 to 60 samples each"
    elif shape == "no samples":
        solution = ez.solve(ez.models.zero_sum([[1.0, -1.0], [-1.0, 1.0]]))
        words = "Nothing is uncertain here"
    else:
        operator = lambda x: x - jnp.linspace(0.0, 1.0, 5000)  # noqa: E731
        solution = ez.solve(
            ez.VariationalInequality(operator, over=ez.sets.Box(0.0, 0.5, dim=5000)),
            method=ez.ForwardBackward(step=0.5),
        )
        words = "variational inequality"
    page = report(ez.certify(solution))
    assert words in page.html
    assert not re.search(r"\bnan\b", page.html, re.IGNORECASE)
    assert len(page.html) < 700_000


def test_a_record_too_large_is_left_out(certificate, monkeypatch):
    monkeypatch.setattr(sys.modules["epszero.report.report"], "LARGEST_RECORD", 10)
    page = report(certificate)
    assert "too many for this page" in page.html
    assert "certificate-record" not in page.html.split("<script>")[0]


def test_saving(certificate, tmp_path):
    page = report(certificate)
    place = page.save(tmp_path / "deep" / "page.html")
    assert place.read_text(encoding="utf-8") == page.html
    with pytest.raises(ez.InputError, match="directory"):
        page.save(tmp_path)
    with pytest.raises(ez.InputError, match="path"):
        page.save(3)
    assert [one.name for one in (tmp_path / "deep").iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    ("parts", "options", "word"),
    [((), {}, "nothing to report"), ((None,), {}, "nothing to report"), (("x",), {}, "str"),
     (("certificate",), {"title": 3.5}, "title"), (("certificate",), {"title": " "}, "title"),
     (("certificate",), {"seed": True}, "seed"), (("certificate",), {"command": b"x"}, "command"),
     (("certificate",), {"titel": "x"}, "titel")],
)  # fmt: skip
def test_bad_input(certificate, parts, options, word):
    given = [certificate if part == "certificate" else part for part in parts]
    with pytest.raises(ez.InputError, match=word):
        report(*given, **options)


def test_parts_that_do_not_belong_together(certificate, game, prices):
    other = ez.solve(game, prices[:100])
    for one in (certificate, ez.Certificate.from_json(certificate.to_json())):
        with pytest.raises(ez.InputError, match="another solution"):
            report(one, other)
    with pytest.raises(ez.InputError, match="two of the kind"):
        report(certificate, ez.certify(other))


def test_what_is_likely_is_second_and_called_so(certificate):
    html = report(certificate).html
    sure, likely = html.index("With 95\u00a0% confidence"), html.index("Likely, not sure:")
    assert sure < html.index("Verdict:") < likely
    assert "no part of the certificate" in html[likely:]
    assert f"within {number(certificate.likely, 2)} of the true one" in html[likely:]
    assert certificate.likely < certificate.distance
    assert "Likely" not in report(ez.certify(certificate.solution, likely=False)).html
    assert "Likely" not in report(ez.Certificate.from_json(certificate.to_json())).html


def test_error_bars_of_a_guess_are_not_drawn(certificate):
    guess = ez.certify(certificate.solution, using=ez.certificates.Asymptotic())
    assert guess.intervals.guess
    html = report(guess).html
    assert "No error bars: they would be guesses" in html
    assert "are certified" not in html
    assert "Likely" not in html


@pytest.mark.long
def test_a_guess_is_called_one_everywhere_and_draws_say_whose_truth_it_is():
    pool = ez.Samples(np.random.default_rng(0).uniform(size=(50, 3)))
    game = ez.models.ev_charging(vehicles=2, hours=3, need=2.0)
    guess = ez.certify(ez.solve(game, pool.take(80, seed=0)), using=ez.certificates.MeanDeviation(support="estimated"))
    assert guess.verdict == "heuristic"
    html = report(guess).html
    assert "As a guess, not a guarantee" in html
    assert "What is guessed" in html
    assert "Nobody promises that" in html
    assert "With 95" not in html
    assert "hold together, with probability at least" not in html
    assert "drawn at random from 50 rows" in html


def cells(html, caption):
    """The rows of the table of that caption, as texts."""
    table = html.split(f"<caption>{caption}</caption>")[1].split("</table>")[0]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table.split("<tbody>")[1], re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]


@pytest.fixture(scope="module")
def sellers():
    """Two markets, of which one has a cap that binds."""
    game = ez.models.cournot(firms=3, markets=2, slope=[1.0, 2.0], shared_cap=[1e3, 5.0])
    rows = np.random.default_rng(0).uniform((18, 28), (22, 32), (1000, 2))
    return ez.certify(ez.solve(game, ez.Samples(rows, support=ez.sets.Box((17.0, 27.0), (23.0, 33.0)))))


@pytest.mark.long
def test_sums_and_multipliers_have_error_bars_rounded_outward(sellers):
    html = report(sellers).html
    for caption, band in (
        ("Sum over 3 agents", sellers.aggregate),
        ("Multipliers: the prices of shared constraints", sellers.multipliers),
    ):
        rows = [[float(cell) for cell in row[1:]] for row in cells(html, caption)]
        value, low, high = np.array(rows).T
        np.testing.assert_allclose([value, low, high], [band.value, band.lower, band.upper], rtol=1e-3, atol=1e-9)
        assert (low <= band.lower).all()
        assert (high >= band.upper).all()
    assert "the truth lies within all of them at once" in html


def test_the_chart_draws_error_bars_of_the_mean(sellers):
    chart = answer.parts(sellers.solution, sellers)[0]
    drawn = next(path.d for path in chart.chart.paths if path.kind == "bars")
    assert drawn.count("V") == 2
    assert chart.heads == ["mean", "10 %", "90 %", "mean at least", "at most"]
    low, high = (float(chart.rows[0][1][k]) for k in (3, 4))
    np.testing.assert_allclose([low, high], [sellers.aggregate.lower[0] / 3, sellers.aggregate.upper[0] / 3], rtol=2e-3)
    bare = answer.parts(sellers.solution)[0]
    assert all(path.kind != "bars" for path in bare.chart.paths)


def test_the_page_says_what_the_distance_is_made_of_and_what_would_help(sellers):
    html = report(sellers).html
    made = cells(html, "Parts of the bound on the distance")
    shares = [int(re.search(r"(\d+)\u00a0% of the bound", row[1]).group(1)) for row in made[:3]]
    assert 99 <= sum(shares) <= 101
    assert "the floor" in made[3][0]
    helped = cells(html, "The distance would be about")
    assert {"twice the samples", "δ = 0.1 in place of 0.05"} <= {row[0] for row in helped}
    told = [float(re.search(r"≈\u00a0([\d.]+)", row[1]).group(1)) for row in helped]
    assert told == sorted(told)
    assert told[-1] < sellers.distance
    assert not any("distance by" in row[0] for row in cells(html, "What holds, at 95\u00a0% confidence"))


def test_where_there_are_no_error_bars_the_page_says_why(sellers):
    plain = ez.certify(sellers.solution, using=ez.certificates.MeanDeviation())
    html = report(plain).html
    assert "No error bars: they need the certified piece" in html
    assert "Sum over 3 agents" not in html
    assert "What the distance is made of" not in html
    assert "No error bars" not in report(sellers.solution).html


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", ["game", "inclusion", "one each"])
def test_entries_have_error_bars_in_every_kind_of_problem(kind):
    box = ez.sets.Box(-9.0, 9.0, dim=2)
    data = ez.Samples(np.random.default_rng(0).uniform(-1, 1, (300, 2)), support=ez.sets.Box(-1.0, 1.0))
    if kind == "game":
        costs = [lambda x, xi, i=i: x[i] @ x[i] + 0.1 * x[0] @ x[1] - xi @ x[i] for i in range(2)]
        problem = ez.Game(costs, [box, box])
    elif kind == "inclusion":
        problem = ez.Inclusion(box, lambda x, xi: x - xi)
    else:
        cost = lambda own, mean, xi, p: p * own @ own - xi[:1] @ own  # noqa: E731
        problem = ez.AggregativeGame(cost, np.array([1.0, 2.0]), ez.sets.Box(-9.0, 9.0, dim=1))
    certificate = ez.certify(ez.solve(problem, data))
    part = next(one for one in answer.parts(certificate.solution, certificate) if "at most" in one.heads)
    lower = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(certificate.intervals.lower)])
    told = [float(row[1][1].replace("−", "-")) for row in part.rows]
    np.testing.assert_allclose(told, lower, rtol=2e-3)


@pytest.mark.long
def test_a_picture_of_ones_own_need_not_know_of_certificates(prices):
    box = ez.sets.Box(-9.0, 9.0, dim=4)
    plain = ez.Game([lambda x, xi: x[0] @ x[0] - xi @ x[0]], [box], picture=lambda solution: Figure())
    assert "own picture" in report(ez.certify(ez.solve(plain, prices))).html
