"""Cells of notebooks: each of the five kinds, hostile text, extreme values, and nothing but markup."""

import re
from html.parser import HTMLParser

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.report.words import bound

EVIL = "<script>alert(1)</script>"
VOID = {"meta", "br", "img", "input"}


class Checker(HTMLParser):
    """Every tag is closed, none is a script, none asks for anything."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        assert tag not in {"script", "link", "img", "iframe", "object", *VOID}
        assert {name for name, _ in attrs} <= {"class", "scope", "open", "aria-hidden"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def seen(thing):
    """The text of its cell, which is checked to be whole and harmless."""
    html = thing._repr_html_()
    assert not re.search(r"https?:|url\(|@import|\bon\w+=", html)
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return re.sub(r"\s+", " ", " ".join(checker.text))


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


@pytest.mark.long
def test_a_certificate_says_its_numbers_rounded_outward(certificate):
    text = seen(certificate)
    assert "Verdict: conditional." in text
    assert f"≤\u00a0{bound(certificate.epsilon)}".replace("\u00a0", " ") in text
    assert f"≤\u00a0{bound(certificate.distance)}".replace("\u00a0", " ") in text
    assert "Likely, not sure" in text
    assert "independent samples of one law" in text


def test_a_refused_certificate_says_why(game):
    walk = ez.Samples(0.1 + 0.01 * np.cumsum(np.random.default_rng(1).normal(size=(300, 4)), axis=0))
    refused = ez.certify(ez.solve(game, walk))
    text = seen(refused)
    assert "Verdict: refused." in text
    assert "are not independent" in text
    assert 'class="epszero-cell certificate refused"' in refused._repr_html_()


def test_a_certificate_from_a_record_has_a_cell(certificate):
    assert "Verdict: conditional." in seen(ez.Certificate.from_json(certificate.to_json()))


def test_a_solution_shows_the_answer_by_names(certificate):
    text = seen(certificate.solution)
    assert EVIL in text  # as text, for `seen` refuses a script
    assert "3 × 4" not in text  # all of it is shown
    for row in certificate.solution.x:
        assert f"{row[0]:.4g}" in text
    assert "200 samples" in text


def test_a_failed_solution_is_marked():
    problem = ez.VariationalInequality(lambda x, xi: x + jnp.nan * xi, over=ez.sets.Box(0.0, 1.0, dim=2))
    (bad,) = ez.solve_many(problem, [ez.Samples(np.ones((5, 2)))])
    assert "failed" in bad._repr_html_()
    assert "did not end well" in seen(bad)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("x0", "told"),
    [
        (np.zeros(1), "x"),
        (np.zeros((30, 20)), "of 30 × 20 numbers"),
        ({"a": np.zeros(3), "b": np.zeros((2, 2))}, "b 1"),
    ],
)
def test_answers_of_any_shape(x0, told):
    over = {name: ez.sets.Box(-1.0, 1.0) for name in x0} if isinstance(x0, dict) else ez.sets.Box(-1.0, 1.0)
    problem = ez.VariationalInequality(lambda x: x, over=over)
    assert told in seen(ez.solve(problem, x0=x0))


@pytest.mark.long
def test_an_audit_and_a_plan(game, prices):
    audit = ez.audit(game, prices)
    text = seen(audit)
    assert "No assumption is violated" in text
    assert f"{audit.constants['mu'].value:.4g}" in text
    plan = ez.plan(game, target=1.0, samples=prices)
    text = seen(plan)
    assert all(row.kind in text for row in plan.rows)


def test_samples_show_their_columns_and_where_they_come_from(prices):
    text = seen(prices)
    assert "200 samples of 4 numbers each." in text
    assert EVIL in text
    assert f"{prices.values[:, 1].mean():.4g}" in text
    assert "at random from 200 rows" in seen(prices.take(50, seed=1))
    assert "values may have had a say" in seen(prices[[1, 2, 3]])
    assert "and 76 more" in seen(ez.Samples(np.zeros((2, 100))))


def test_samples_that_are_no_matrix_and_extreme_ones():
    assert "P 3" in seen(ez.Samples.from_arrays({"P": np.ones((5, 2, 2)), "q": np.zeros((5, 2))}))
    assert "∞" not in seen(ez.Samples([[1e300], [-1e-300]]))


def test_the_style_is_kept_to_the_cell(prices):
    style = re.search(r"<style>(.*?)</style>", prices._repr_html_(), re.DOTALL).group(1)
    selectors = re.findall(r"(?:^|})\s*([^{}@]+){", re.sub(r"@media[^{]*{", "}", style))
    assert len(selectors) > 10
    assert all(".epszero-cell" in one for selector in selectors for one in _listed(selector))


def _listed(selector):
    """The selectors of a list, commas within brackets left alone."""
    return re.split(r",(?![^(]*\))", selector)
