"""Programs are kept on disk where that is asked for, and nothing happens where it cannot be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from epszero import _compiled

SCRIPT = """
import sys
import epszero as ez
{before}
loaded = "jax" in sys.modules
print(ez.keep_compiled({folder}))
assert ("jax" in sys.modules) == loaded
import numpy as np
solution = ez.solve(ez.VariationalInequality(lambda x: 2 * x - 1, ez.sets.Box(-1.0, 1.0, dim=2)))
np.testing.assert_allclose(solution.x, 0.5, atol=1e-8)
"""


def run(folder, before="", **environment):
    env = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")} | environment
    script = SCRIPT.format(folder=folder, before=before)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, check=True)


@pytest.mark.long
def test_programs_are_kept_and_found_again(tmp_path):
    first = run("None", XDG_CACHE_HOME=str(tmp_path))
    folder = tmp_path / "epszero" / "compiled"
    assert first.stdout.strip() == str(folder)
    kept = {path.name for path in folder.glob("jit_*-cache")}
    assert kept
    again = run("None", XDG_CACHE_HOME=str(tmp_path))
    assert {path.name for path in folder.glob("jit_*-cache")} == kept
    assert again.stderr == ""


@pytest.mark.long
def test_where_jax_is_loaded_already(tmp_path):
    """After a first compilation, in which JAX may have looked for a cache and found none."""
    before = "import jax; jax.jit(lambda v: v + 1)(1.0)"
    done = run(repr(str(tmp_path / "here")), before)
    assert done.stdout.strip() == str(tmp_path / "here")
    assert list((tmp_path / "here").glob("jit_*-cache"))


@pytest.mark.long
def test_a_folder_that_cannot_be_written_to_changes_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    done = run(repr(str(tmp_path / "file" / "below")))
    assert done.stdout.strip() == "None"
    assert done.stderr == ""


@pytest.mark.long
def test_what_was_asked_of_jax_before_stays(tmp_path):
    done = run("None", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine"), XDG_CACHE_HOME=str(tmp_path / "other"))
    assert done.stdout.strip() == str(tmp_path / "mine")
    assert not (tmp_path / "other").exists()


def test_the_oldest_go_where_the_folder_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(_compiled, "MOST", 25)
    for age, name in enumerate(("jit_new-cache", "jit_old-cache", "jit_older-cache")):
        (tmp_path / name).write_bytes(b"0" * 10)
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / "notes.txt").write_bytes(b"0" * 100)
    assert _compiled.usable(tmp_path) == tmp_path
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jit_new-cache", "jit_old-cache", "notes.txt"]


@pytest.mark.parametrize("given", ["", "relative/path"])
def test_only_an_absolute_cache_home_counts(given, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    assert Path(given or "nothing") not in _compiled.cache_folder().parents
