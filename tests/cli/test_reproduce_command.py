"""`epszero reproduce`: names, progress and what is shown; the experiments themselves are tested in their room."""

from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from rich.console import Console

import epszero as ez
from epszero.cli import reproduce as command


@pytest.fixture
def experiments(monkeypatch):
    """Experiments that take no time; the calls that were made."""
    calls = []

    def reproduce(names, out, *, trials=50, seed=0, progress):
        calls.append((names, out, trials, seed))
        for name in names:
            for done in range(3, 21):
                progress(name, done, 20)
        table = pl.DataFrame({"s": [100, 500], "error": [0.123456, None], "kind": ["[bold]a", "b"]})
        side = SimpleNamespace(what="largest error", paper="30 %", ours="12 %", reason="another law")
        shown = {"table": table, "comparisons": (side,), "text": "what stands below"}
        return [
            SimpleNamespace(name=name, title=f"Title of {name}", files=(Path(f"{name}.csv"),), **shown)
            for name in names
        ]

    room = SimpleNamespace(NAMES=command.NAMES, reproduce=reproduce)
    monkeypatch.setattr(ez, "experiments", room, raising=False)
    return calls


def test_named_experiments_are_shown_beside_the_paper(run, experiments):
    result = run("reproduce", "table2", "fig1", "fig1", "--out", "here", "--trials", 3, "--seed", 5)
    assert result.exit_code == 0
    assert experiments == [(["table2", "fig1"], Path("here"), 3, 5)]
    for word in ("Title of fig1", "0.1235", "—", "[bold]a", "largest error", "30 %", "another law", "table2.csv"):
        assert word in result.stdout
    lines = result.stderr.splitlines()
    assert lines[0] == "table2: 3 of 20"
    assert lines[-1] == "fig1: 20 of 20"
    assert len(lines) == 20


@pytest.mark.parametrize("words", [(), ("all",), ("fig1", "all")])
def test_all_of_them(run, experiments, words):
    assert run("reproduce", *words).exit_code == 0
    assert experiments[0][0] == list(command.NAMES)


def test_bars_on_a_terminal(run, experiments, monkeypatch):
    real = command.screen

    def terminal(*, stderr=False):
        console = real(stderr=stderr)
        return Console(stderr=True, force_terminal=True, width=100) if stderr else console

    monkeypatch.setattr(command, "screen", terminal)
    result = run("reproduce", "fig1")
    assert "fig1" in result.stderr
    assert "20/20" in result.stderr
    assert "left" in result.stderr


def test_completion_knows_the_names(run):
    asked = {"_EPSZERO_COMPLETE": "complete_bash", "COMP_WORDS": "epszero reproduce t", "COMP_CWORD": "2"}
    assert run(env=asked).stdout.split() == ["table2", "tightness"]


def test_the_names_are_those_of_the_experiments():
    assert command.NAMES == ez.experiments.NAMES


def test_a_wide_table_is_turned_rather_than_cut(run, experiments):
    result = run("reproduce", "fig1", env={"COLUMNS": "24"})
    assert "0.1235" in result.stdout
    assert result.stdout.index("error") > result.stdout.index("100")
