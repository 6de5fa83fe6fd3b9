"""`epszero doctor`: versions, cores, cache, and a test of numbers; a wrong one is told."""

import json

import pytest

from epszero.cli import doctor


@pytest.fixture(autouse=True)
def _no_cache_of_others(monkeypatch, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "jit_a").write_bytes(b"12345")
    monkeypatch.setattr(doctor.ez, "keep_compiled", lambda: kept)


def test_what_it_says(run):
    result = run("doctor")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("epszero ")
    assert any(line.startswith("packages  jax ") for line in lines)
    assert any(line.startswith("compiled  ") and "1 files, 0.0 MB" in line for line in lines)
    assert sum(line.startswith("fine") for line in lines) == 3


def test_as_json_and_where_a_number_is_wrong(run, monkeypatch):
    wrong = [{"what": "sums", "fine": False, "off": 100.0}]
    monkeypatch.setattr(doctor, "_self_test", lambda: (wrong, 0.5))
    result = run("doctor", "--json")
    record = json.loads(result.stdout)
    assert result.exit_code == 1
    assert "Numbers come out wrong on this computer" in result.stderr
    assert record["self_test"] == {"fine": False, "seconds": 0.5, "parts": wrong}
    assert record["cache"]["bytes"] == 5
    assert record["cores"]["usable"] >= 1
    assert record["packages"]["numpy"]


def test_extras_that_are_not_here_are_named(run, monkeypatch):
    monkeypatch.setattr(doctor, "_self_test", lambda: ([], 0.1))
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "fastexcel" else "1")
    assert "extra     excel: fastexcel not here; pip install 'epszero[excel]' brings it" in run("doctor").stdout
