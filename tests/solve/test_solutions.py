"""What `solve_many` returns: a sequence, with what its solutions have in common; and what watchers see."""

import pickle
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import epszero as ez
from epszero.solve import Solutions, progress

POOL = ez.Samples(np.random.default_rng(5).uniform(size=(400, 3)), support=ez.sets.Box(0.0, 1.0))


def doubled(x):
    return 2 * x


def negative(xi):
    return -xi


@pytest.fixture(scope="module")
def many():
    problem = ez.VariationalInequality(ez.oracles.Additive(doubled, negative), over=ez.sets.Box(0.0, 0.6, dim=3))
    return ez.solve_many(problem, [POOL.take(50, seed=seed) for seed in range(4)])


@pytest.mark.long
def test_it_is_a_sequence(many):
    assert isinstance(many, Solutions)
    assert len(many) == 4
    assert list(many) == [many[0], many[1], many[2], many[-1]]
    assert isinstance(many[1:3], Solutions)
    assert list(many[::-1]) == list(reversed(many))
    assert many.index(many[2]) == 2
    assert many[1] in many
    with pytest.raises(IndexError):
        many[4]
    assert repr(many).startswith("Solutions(4: 4 converged; residuals up to ")


def test_what_they_have_in_common(many):
    np.testing.assert_array_equal(many.x, [one.x for one in many])
    np.testing.assert_array_equal(many.residuals, [one.residual for one in many])
    assert many.statuses == [ez.Status.CONVERGED] * 4
    certificates = many.certify(0.1)
    assert [str(one) for one in certificates] == [str(one) for one in ez.certify_many(list(many), 0.1)]
    assert many[:1].certify(of="distance")[0].distance == ez.certify_many(many[:1], of="distance")[0].distance
    with pytest.raises(ez.InputError, match="delta"):
        many.certify(2.0)
    assert np.array_equal(pickle.loads(pickle.dumps(many)).x, many.x)


@pytest.mark.long
def test_answers_in_parts_are_stacked_part_by_part():
    parts = ez.VariationalInequality(lambda x, xi: {"a": x["a"] - xi}, over={"a": ez.sets.Box(0.0, 1.0, dim=3)})
    assert ez.solve_many(parts, [POOL[:5], POOL[5:10]]).x["a"].shape == (2, 3)


def watched(**options):
    slow = ez.VariationalInequality(lambda x: 0.01 * x, over=ez.sets.Box(-1.0, 1.0, dim=2))
    return ez.solve(slow, None, ez.ForwardBackward(0.1), x0=[1, 1], iterations=3000, progress=True, **options)


def test_a_log_gets_a_line_for_each_tenth(capsys):
    watched()
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert 2 <= len(lines) <= 10
    assert lines[-1].startswith("forward-backward")
    assert "3000 of at most 3000 iterations, residual 7.02e-04" in lines[-1]


def test_a_notebook_gets_one_cell_that_needs_no_widgets(monkeypatch, capsys):
    shown = []

    def display(content, *, raw, display_id):
        assert raw
        assert display_id
        shown.append(content)
        return SimpleNamespace(update=lambda content, raw: shown.append(content))

    module = ModuleType("IPython.display")
    vars(module)["display"] = display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    watched()
    assert capsys.readouterr() == ("", "")
    assert "0 of at most 3000" in shown[0]["text/plain"]
    assert "3000 of at most 3000" in shown[-1]["text/plain"]
    assert '<progress value="3000" max="3000">' in shown[-1]["text/html"]
    assert "<script" not in shown[-1]["text/html"]


def test_outside_notebooks_nothing_is_taken_for_one():
    assert not progress.in_notebook()


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    watched()
    out, err = capsys.readouterr()
    assert out == ""
    assert "3000" in err
