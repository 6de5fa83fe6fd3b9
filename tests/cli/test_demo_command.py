"""`epszero demo`, on a smaller fleet and fewer days than it takes by itself."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

import epszero as ez
from epszero.report import FORMS, drawn

demo = import_module("epszero.cli.demo")


@pytest.mark.long
def test_it_prints_and_writes_everything(run, reported, monkeypatch):
    monkeypatch.setattr(demo, "VEHICLES", 2)
    monkeypatch.setattr(demo, "DAYS", 300)
    monkeypatch.setattr(demo, "TRIALS", 3)
    found = SimpleNamespace(assumptions={"independent": SimpleNamespace(evidence="days are alike")})
    monkeypatch.setattr(ez, "audit", lambda *_: found)  # slow, and tested elsewhere
    result = run("demo", "--out", "new/demo")
    assert result.exit_code == 0, result.output
    for word in ("13:00", "€/kWh", "independent solver", "days are alike", "verdict: conditional", "holds up",
                 "3 data sets", "exact binomial limit", "largest saving"):  # fmt: skip
        assert word in result.stdout
    written = sorted(path.name for path in Path("new/demo").iterdir())
    pictures = [f"{name}.{form}" for name in ("charging", "truth") for form in ("pdf", "png", "svg")]
    assert written == sorted(["certificate.json", "report.html", *pictures])
    assert Path("new/demo/charging.png").read_bytes()[:4] == b"\x89PNG"
    assert ez.Certificate.from_json(Path("new/demo/certificate.json").read_text()).verdict == "conditional"
    ((_, options),) = reported
    assert options["command"] == "epszero demo --out new/demo"
    certificate = reported[0][0][0]
    picture = certificate.solution.problem.plot(certificate.solution, certificate=certificate)
    for form in FORMS:
        assert drawn(picture, form) == Path(f"new/demo/charging.{form}").read_bytes(), form
