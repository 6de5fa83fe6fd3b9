"""`reproduce`: pieces are kept, found again after a kill, and never done twice; files are whole; input is checked."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import epszero as ez
from epszero.experiments import _run
from epszero.experiments._outcome import Comparison, Outcome, Setting
from epszero.experiments._store import Piece, Store
from epszero.report import figure

SCRIPT = """
import sys, time
import numpy as np
import polars as pl
import epszero as ez
from epszero.experiments import _run
from epszero.experiments._outcome import Outcome
from epszero.experiments._store import Piece

class Slow:
    TITLE = "slow"
    def pieces(self, setting):
        return [Piece(f"piece{k}", lambda k=k: self.work(setting, k)) for k in range(6)]
    def work(self, setting, k):
        print(f"begins {k}", flush=True)
        time.sleep(float(sys.argv[2]))
        return {"value": setting.generator(k).normal(size=3)}
    def outcome(self, setting, found):
        return Outcome(pl.DataFrame({"value": np.concatenate([one["value"] for one in found])}), ())

_run.EXPERIMENTS = {"slow": Slow()}
_run.NAMES = ("slow",)
ez.experiments.reproduce("slow", sys.argv[1], trials=2, progress=lambda *said: print(*said, flush=True))
"""


class Tiny:
    """Draws numbers; counts how often it was asked to."""

    TITLE = "Tiny | with a pipe"

    def __init__(self):
        self.runs = []

    def pieces(self, setting):
        return [Piece(f"tiny{k}", lambda k=k: self.work(setting, k)) for k in range(4)]

    def work(self, setting, k):
        self.runs.append(k)
        return {"value": setting.generator(k).normal(size=setting.trials), "word": np.array("µ ≤ 1")}

    def outcome(self, setting, found):
        assert all(str(one["word"]) == "µ ≤ 1" for one in found)
        values = np.array([one["value"].mean() for one in found])
        table = pl.DataFrame({"k": range(4), "mean": values, "bound": [np.inf, 1.0, 2.0, 3.0]})
        sheet = figure(3.0, 2.0)
        sheet.subplots().plot(values)
        said = (Comparison("mean", "0", f"{values.mean():.3g}", "chance"),)
        return Outcome(table, said, sheet, data=table, text="below")


@pytest.fixture
def tiny(monkeypatch):
    one = Tiny()
    monkeypatch.setattr(_run, "EXPERIMENTS", {"tiny": one})
    monkeypatch.setattr(_run, "NAMES", ("tiny",))
    return one


def test_results_are_written_whole_in_every_form(tiny, tmp_path):
    (result,) = ez.experiments.reproduce("all", tmp_path / "out", trials=3)
    names = {file.name for file in result.files}
    assert names == {"tiny.csv", "tiny-trials.csv", "tiny.png", "tiny.pdf", "tiny.svg", "tiny.json", "tiny.md"}
    assert all(file.stat().st_size for file in result.files)
    record = json.loads((tmp_path / "out" / "tiny.json").read_text(encoding="utf-8"))
    assert record["table"][0]["bound"] is None  # JSON knows no infinity
    (said,) = record["comparisons"]
    assert said == {"what": "mean", "paper": "0", "ours": result.comparisons[0].ours, "reason": "chance"}
    assert pl.read_csv(tmp_path / "out" / "tiny.csv").equals(result.table)
    text = (tmp_path / "out" / "tiny.md").read_text(encoding="utf-8")
    assert "| mean | 0 |" in text
    assert "below" in text
    assert not list(tmp_path.rglob("*.part"))


def test_equal_seeds_give_equal_bytes_and_other_seeds_other_numbers(tiny, tmp_path):
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        ez.experiments.reproduce(["tiny"], tmp_path / folder, trials=3, seed=seed)
    first, second, other = ({file.name: file.read_bytes() for file in (tmp_path / name).iterdir() if file.is_file()}
                            for name in "abc")  # fmt: skip
    assert first == second
    assert first["tiny.csv"] != other["tiny.csv"]


def test_finished_pieces_are_not_done_again_and_spoilt_ones_are(tiny, tmp_path):
    heard = []
    ez.experiments.reproduce("tiny", tmp_path, trials=3, progress=lambda *said: heard.append(said))
    assert heard == [("tiny", done, 4) for done in range(5)]
    kept = sorted(tmp_path.rglob("*.npz"))
    assert len(kept) == 4
    before = (tmp_path / "tiny.csv").read_bytes()
    whole = kept[1].read_bytes()
    kept[1].write_bytes(whole[:60] + bytes(40) + whole[100:])  # spoilt
    kept[2].unlink()
    heard.clear()
    ez.experiments.reproduce("tiny", tmp_path, trials=3, progress=lambda *said: heard.append(said))
    assert tiny.runs == [0, 1, 2, 3, 1, 2]
    assert heard == [("tiny", done, 4) for done in (2, 3, 4)]
    assert (tmp_path / "tiny.csv").read_bytes() == before


def test_other_numbers_of_trials_are_other_work(tmp_path):
    assert [list(batch) for batch in Setting(trials=5).batches(2)] == [[0, 1], [2, 3], [4]]
    store = Store.within(tmp_path, 0)
    assert store.find(Piece("nothing", dict)) is None
    assert Store.within(tmp_path, 1) != store


def started(folder, pause):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), str(pause)], stdout=subprocess.PIPE, text=True,
                            env=os.environ | {"PYTHONUNBUFFERED": "1"})  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path):
    with started(tmp_path / "killed", 0.3) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.startswith("begins 3"):
                time.sleep(0.05)  # in the midst of the fourth piece
                run.send_signal(signal.SIGKILL)
                break
    assert run.returncode == -signal.SIGKILL
    kept = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "killed").rglob("*.npz")}
    assert sorted(kept) == ["piece0.npz", "piece1.npz", "piece2.npz"]
    assert not (tmp_path / "killed" / "slow.csv").exists()
    said, _ = started(tmp_path / "killed", 0.0).communicate(timeout=120)
    assert said.splitlines()[0] == "slow 3 6"
    assert [line for line in said.splitlines() if "begins" in line] == ["begins 3", "begins 4", "begins 5"]
    after = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "killed").rglob("*.npz")}
    assert {name: after[name] for name in kept} == kept
    expected = np.concatenate([Setting(2).generator(k).normal(size=3) for k in range(6)])
    assert pl.read_csv(tmp_path / "killed" / "slow.csv")["value"].to_list() == expected.tolist()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"names": "fig9"}, "fig9"),
        ({"names": []}, "none is given"),
        ({"names": ["fig1", "tabel2"]}, "tabel2"),
        ({"trials": 1}, "trials"),
        ({"trials": 2.5}, "trials"),
        ({"seed": -1}, "seed"),
        ({"seed": True}, "seed"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(tmp_path, options, word):
    with pytest.raises(ez.InputError, match=word):
        ez.experiments.reproduce(**({"names": "fig1", "out": tmp_path / "out"} | options))
    assert not list(tmp_path.iterdir())


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ez.InputError, match="is a file"):
        ez.experiments.reproduce("fig1", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"
