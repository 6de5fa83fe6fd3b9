"""A folder with small models and data, and a way to run commands in it."""

import random
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from typer.testing import CliRunner

import epszero as ez
from epszero.cli import app

GAMES = """
import jax.numpy as jnp
import numpy as np

import epszero as ez


def cost(x, mean_x, price, wear):
    return wear * x @ x + price @ x + 0.02 * jnp.sum((mean_x - 1.0) ** 2)


strategies = ez.sets.BoxBudget(0.0, 2.5, at_least=2.0, dim=2)
game = ez.AggregativeGame(cost, np.linspace(0.05, 0.1, 3), strategies)
sure = ez.Minimization(lambda x: jnp.sum((x - 1.0) ** 2), ez.sets.Box(0.0, 2.0, dim=2))
"""
MODEL = """
from small_games import game, sure


def made():
    return game


def sized(n, m=2):
    return game


def wrong():
    return [1, 2]


def raising():
    return 1 / 0
"""


small_games = ModuleType("small_games")  # loaded once, so that it is compiled once
exec(GAMES, vars(small_games))
sys.modules["small_games"] = small_games


def rows(many=200, seed=0):
    draw = random.Random(seed)
    return "".join(f"{draw.uniform(0, 0.25)},{draw.uniform(0, 0.25)}\n" for _ in range(many))


@pytest.fixture(scope="session", autouse=True)
def _cache_of_its_own(tmp_path_factory):
    """Processes keep what they compile, but not in the folder of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with model.py and data.csv."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    Path("model.py").write_text(MODEL)
    Path("data.csv").write_text("a,b\n" + rows())
    return tmp_path


@pytest.fixture
def run(folder):
    """Run a command line in the folder."""

    def command(*words, **options):
        return CliRunner().invoke(app, [str(word) for word in words], prog_name="epszero", **options)

    return command


@pytest.fixture
def refused(run, folder):
    """Run a command line that must be refused: exit code 2, a sentence, nothing printed, nothing written."""

    def command(*words):
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        result = run(*words)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
        return result.stderr

    return command


@pytest.fixture
def reported(monkeypatch):
    """Stands in for ez.report; what it was given."""
    calls = []

    def report(*parts, **options):
        calls.append((parts, options))
        return SimpleNamespace(html="<!doctype html>")

    monkeypatch.setattr(ez, "report", report)
    return calls
