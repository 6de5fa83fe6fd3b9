"""`epszero watch`: a file that grows, an alarm, and files that do not merely grow."""

import json
from pathlib import Path

import numpy as np
import pytest

from epszero.cli.data import Data
from epszero.cli.model import loaded
from epszero.cli.watch import _Follower

WORDS = ("watch", "model.py:game", "--certificate", "c.json", "--samples", "grown.csv", "--support", "0,0.5", "--once")


@pytest.fixture
def certified(run):
    result = run("certify", "model.py:game", "--samples", "data.csv", "--support", "0,0.5", "--json")
    Path("c.json").write_text(result.stdout, encoding="utf-8")
    Path("grown.csv").write_text(Path("data.csv").read_text())
    return run


def grow(scale, many=150, seed=3):
    drawn = scale * np.random.default_rng(seed).uniform(0, 0.25, size=(many, 2))
    with Path("grown.csv").open("a") as file:
        file.writelines(f"{a},{b}\n" for a, b in drawn)


def test_what_was_certified_is_left_out_and_what_is_new_is_watched(certified):
    nothing = certified(*WORDS)
    assert nothing.exit_code == 0
    assert "No new samples" in nothing.stdout
    grow(1.0)
    calm = certified(*WORDS, "--json")
    assert calm.exit_code == 0
    assert json.loads(calm.stdout)["seen"] == 150
    assert json.loads(calm.stdout)["alarm"] is None
    grow(1.9, many=300, seed=4)
    told = certified(*WORDS)
    assert told.exit_code == 1
    assert "Alarm" in told.stdout


def test_a_line_that_is_still_written_is_left_for_later(certified):
    with Path("grown.csv").open("a") as file:
        file.write("0.1,0.2\n0.1,0.")
    assert json.loads(certified(*WORDS, "--json").stdout)["seen"] == 1


def test_wrong_files(certified):
    grow(1.0)
    without = certified(*WORDS[:-3], "--once")
    assert without.exit_code == 2
    assert "support" in without.stderr
    wrong = list(WORDS)
    wrong[5] = "grown.parquet"
    assert "CSV" in certified(*wrong).stderr
    assert certified(*WORDS, "--delta", "2").exit_code == 2


def test_rows_that_change_are_refused(certified):
    with loaded("model.py:game") as problem:
        follower = _Follower(Data([Path("grown.csv")], None, None, False, None, 0), problem, {})
        assert len(follower.new_rows()) == 200
        assert follower.new_rows() is None
        lines = Path("grown.csv").read_text().splitlines(keepends=True)
        Path("grown.csv").write_text("".join([lines[0], *lines[2:]]))
        with pytest.raises(Exception, match="gone"):
            follower.new_rows()
