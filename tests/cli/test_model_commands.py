"""solve, certify, audit and plan on a user's model: what they print, write and answer to scripts."""

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import epszero as ez
from epszero.cli.model import loaded
from epszero.cli.run import blocks, csv_of, plain

GAME = ("model.py:game", "--samples", "data.csv")
KNOWN = (*GAME, "--support", "0,0.5")


@pytest.mark.long
def test_solve_prints_the_solution_and_writes_it(run):
    result = run("solve", *GAME, "--out", "x.csv")
    assert result.exit_code == 0
    assert "converged" in result.stdout
    assert "Checked by an independent solver" in result.stdout
    x = pl.read_csv("x.csv")
    assert x.shape == (3, 2)
    assert f"{x[0, 0]:.4g}" in result.stdout
    assert (x.sum_horizontal() >= 2.0 - 1e-9).all()


def test_solve_as_json_is_one_document(run):
    Path("model.py").write_text(Path("model.py").read_text() + "\nprint('hello from the model')\n")
    result = run("solve", *GAME, "--json")
    record = json.loads(result.stdout)
    assert result.exit_code == 0
    assert record["status"] == "converged"
    assert np.shape(record["x"]) == (3, 2)
    assert record["samples"]["digest"] == ez.Samples.from_csv("data.csv").digest()
    assert "hello from the model" in result.stderr


DUEL = """
import jax.numpy as jnp
import epszero as ez


def first(x, price):
    return jnp.sum((x[0] - price) ** 2)


def second(x, price):
    return jnp.sum((x[1] - price) ** 2)


duel = ez.Game([first, second], [ez.sets.Box(0.0, 1.0, dim=1)] * 2)
"""


@pytest.mark.long
def test_each_agent_may_have_its_own_data(run, refused):
    Path("duel.py").write_text(DUEL)
    for name, mean in (("first", 0.25), ("second", 0.75)):
        Path(f"{name}.csv").write_text("price,other\n" + "".join(f"{mean + step},9\n" for step in (-0.1, 0.1) * 20))
    words = ("duel.py:duel", "--samples", "first.csv", "--samples", "second.csv", "--columns", "price")
    record = json.loads(run("solve", *words, "--json").stdout)
    assert np.allclose(np.ravel(record["x"]), [0.25, 0.75])
    assert [one["rows"] for one in record["samples"]] == [40, 40]
    certified = run("certify", *words, "--support", "0,1", "--support", "0:1", "--draws", "50", "--json")
    assert certified.exit_code == 0, certified.stderr
    assert json.loads(certified.stdout)["verdict"] == "conditional"
    for wrong, said in (
        ((*words, "--samples", "first.csv"), "--samples: is given 3 times, for 2 agents"),
        (
            (*words, "--support", "0,1", "--support", "0,1", "--support", "0,1"),
            "--support: is given 3 times, for 2 files",
        ),
        ((*words, "--report", "second.csv"), "--report: 'second.csv' is also given as --samples"),
    ):
        assert said in refused("solve", *wrong)


@pytest.mark.long
def test_a_problem_without_uncertainty_needs_no_samples(run):
    record = json.loads(run("solve", "model.py:sure", "--json").stdout)
    assert np.allclose(record["x"], 1.0)
    result = run("certify", "model.py:sure")
    assert result.exit_code == 0
    assert "verdict: guaranteed" in result.stdout


@pytest.mark.long
def test_certify_as_json_is_a_record_that_verifies(run, reported):
    result = run(
        "certify", "model.py:made", "--samples", "data.csv", "--support=-0.5,4", "--json", "--report", "p.html"
    )
    assert result.exit_code == 0
    claimed = ez.Certificate.from_json(result.stdout)
    assert claimed.verdict == "conditional"
    assert claimed.delta == 0.05
    ((parts, options),) = reported
    assert [type(part) for part in parts] == [ez.Certificate, ez.Solution, ez.Audit]
    assert options["command"].startswith("epszero certify model.py:made --samples data.csv --support=-0.5,4")
    samples = ez.Samples.from_csv("data.csv", support=ez.sets.Box(-0.5, 4.0))
    assert ez.verify(result.stdout, parts[1].problem, samples)
    assert Path("p.html").read_text() == "<!doctype html>"


@pytest.mark.long
def test_without_a_support_the_certificate_is_refused_with_the_remedy(run, reported):
    result = run("certify", *GAME, "--report", "p.html")
    assert result.exit_code == 1
    assert "verdict: refused" in result.stdout
    assert "--support=LO,HI" in result.stderr
    assert Path("p.html").exists()
    heuristic = run("certify", *GAME, "--using", "estimated-support", "--delta", "0.1")
    assert heuristic.exit_code == 0
    assert "90 % confidence" in heuristic.stdout
    assert "verdict: heuristic" in heuristic.stdout


def test_dependent_rows_need_draws(run):
    days = 0.1 + 0.1 * np.sin(np.arange(400) / 40)
    pl.DataFrame({"a": days, "b": days[::-1]}).write_parquet("days.parquet")
    words = ("certify", "model.py:game", "--samples", "days.parquet", "--support", "0:0.5,0:0.5")
    ordered = run(*words)
    assert ordered.exit_code == 1
    places = [ordered.stderr.index(word) for word in ("--using prequential", "--using dependent", "--draws")]
    assert places == sorted(places)
    promised = run(*words, "--using", "prequential", "--json")
    assert json.loads(promised.stdout)["kind"]["class"] == "Prequential"
    declared = run(*words, "--using", "dependent", "--beta", "1,0.5")
    assert declared.exit_code == 0
    assert "β-mixing" in declared.stdout
    first, again, other = (run(*words, "--draws", 300, "--seed", seed, "--json") for seed in (1, 1, 2))
    assert first.exit_code == 0
    assert first.stdout == again.stdout
    assert json.loads(first.stdout)["point"] != json.loads(other.stdout)["point"]


@pytest.mark.long
def test_kinds_of_certificate(run):
    held = run("certify", *KNOWN, "--holdout", "0.5", "--using", "hold-out")
    assert held.exit_code == 0
    assert "hold-out" in held.stdout
    published = run("certify", *KNOWN, "--using", "uniform-stability", "--iterations", 20, "--step", 2)
    assert published.exit_code == 0
    assert "as published" in published.stdout


def test_columns_are_chosen_by_name(run):
    Path("wide.csv").write_text("day,b,a\nmon,0.1,0.2\ntue,0.2,\nwed,0.3,0.1\n")
    result = run("solve", "model.py:game", "--samples", "wide.csv", "--columns", "a, b", "--drop-missing", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["samples"]["rows"] == 2


def test_audit_in_words_and_as_json(run, reported):
    result = run("audit", *KNOWN, "--report", "p.html")
    assert result.exit_code == 0
    assert "assumptions" in result.stdout
    assert Path("p.html").exists()
    record = json.loads(run("audit", *KNOWN, "--json").stdout)
    assert record["constants"]["mu"]["provenance"] == "exact"


def test_plan_by_target_and_by_size(run):
    result = run("plan", *KNOWN, "--target", "0.1", "--json")
    record = json.loads(result.stdout)
    assert result.exit_code == 0
    needed = ez.plan(_game(), target=0.1, samples=ez.Samples.from_csv("data.csv", support=ez.sets.Box(0.0, 0.5)))
    assert record["best"]["answer"] == needed.samples
    assert not record["best"]["promised"]
    assert record["best"]["call"] == "ez.certify(solution)"
    assert record["promised"]["promised"]
    assert record["promised"]["using"] == "MeanDeviation(Hoeffding())"
    assert record["promised"]["answer"] > record["best"]["answer"]
    assert record["advice"].startswith(f"Collect {needed.samples:,} samples")
    before = run("plan", "model.py:game", "--support", "0,0.5", "--dim", 2, "--size", 3000, "--of", "distance")
    assert before.exit_code == 0
    assert "distance that 3000 samples give" in before.stdout
    assert "--using hoeffding" in before.stdout
    assert run("certify", *KNOWN, "--using", "hoeffding").exit_code == 0
    hopeless = run("plan", *GAME, "--target", "0.1")
    assert hopeless.exit_code == 1
    assert "--support" in hopeless.stderr


def _game():
    with loaded("model.py:game") as game:
        return game


@pytest.mark.long
def test_a_run_that_does_not_converge_is_no_answer(run):
    result = run("solve", *GAME, "--iterations", 2, "--tol", "1e-30", "--out", "x.csv")
    assert result.exit_code == 1
    assert "iterations used up" in result.stderr
    assert not Path("x.csv").exists()


def test_an_interrupted_run_ends_the_command(run, monkeypatch):
    monkeypatch.setattr(ez, "solve", lambda *_, **__: SimpleNamespace(status=ez.Status.INTERRUPTED))
    result = run("solve", *GAME, "--out", "x.csv")
    assert result.exit_code == 130
    assert result.stderr == "Interrupted.\n"
    assert not Path("x.csv").exists()


def test_a_fault_of_the_library_keeps_its_traceback(run, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("lost")

    monkeypatch.setattr(ez, "solve", broken)
    result = run("solve", *GAME)
    assert result.exit_code == 3
    assert "RuntimeError: lost" in result.stderr
    assert "report it" in result.stderr


def test_when_one_file_cannot_be_written_none_is_left(run, reported, monkeypatch):
    files = import_module("epszero.report")
    real = files.write_file

    def full(path, content):
        if Path(path).suffix == ".html":
            raise OSError(28, "No space left on device", str(path))
        return real(path, content)

    monkeypatch.setattr(files, "write_file", full)
    result = run("solve", *GAME, "--out", "x.csv", "--report", "p.html")
    assert result.exit_code == 2
    assert result.stderr == "p.html: No space left on device.\n"
    assert not Path("x.csv").exists()
    Path("x.csv").write_text("old")
    run("solve", *GAME, "--out", "x.csv", "--report", "p.html")
    assert Path("x.csv").read_text() == "old"


def test_points_of_any_shape_become_tables():
    point = {"left": [np.array([1.0, 2.0]), np.array(3.0)], "right": np.ones((2, 3))}
    assert [name for name, _ in blocks(point)] == ["x['left'][0]", "x['left'][1]", "x['right']"]
    assert csv_of(point).splitlines()[1] == "x['left'][0],1.0,2.0,"
    assert json.dumps(plain(point))


@pytest.mark.parametrize("command", ["solve", "certify", "audit", "plan", "ev", "reproduce", "demo"])
def test_help_has_examples_and_exit_codes(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"epszero {command}" in result.stdout.split("Example")[1]
    assert "130 interrupted" in " ".join(result.stdout.split())
