"""The command as a process of its own: in a pipe, and interrupted."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-m", "epszero")


def test_in_a_pipe_there_are_no_colours_and_no_bars(folder):
    Path("model.py").write_text(
        "import jax.numpy as jnp\nimport epszero as ez\n"
        "sure = ez.Minimization(lambda x: jnp.sum((x - 1.0) ** 2), ez.sets.Box(0.0, 2.0, dim=2))\n"
    )
    words = (*COMMAND, "solve", "model.py:sure")
    ended = subprocess.run(words, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert ended.returncode == 0
    assert b"converged" in ended.stdout
    assert b"\x1b" not in ended.stdout + ended.stderr
    assert ended.stderr == b""
    assert sorted(os.listdir()) == ["data.csv", "model.py"]


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_ctrl_c_ends_with_130_and_one_line(folder):
    Path("model.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(60)\n")
    words = (*COMMAND, "certify", "model.py:game", "--samples", "data.csv", "--report", "page.html")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert err == "Interrupted.\n"
    assert sorted(os.listdir()) == ["data.csv", "model.py"]
