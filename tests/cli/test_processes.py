"""The command as a process of its own: in a pipe, interrupted, and what it loads; what `import epszero` loads."""

import ast
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

import epszero as ez

COMMAND = (sys.executable, "-m", "epszero")


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.some(3)
@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
@pytest.mark.parametrize(("wait", "again"), [(0.5, False), (1.0, True), (1.8, True)])
def test_ctrl_c_in_the_first_seconds_ends_with_130_and_one_line(folder, wait, again):
    """While Python loads JAX, and whatever else takes seconds; pressed twice, too."""
    words = (*COMMAND, "demo", "--out", "made")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(wait)
        for _ in range(1 + again):
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "Interrupted.\n")
    assert sorted(os.listdir()) == ["data.csv", "model.py"]


SURE = (
    "import jax.numpy as jnp\nimport epszero as ez\n"
    "sure = ez.Minimization(lambda x: jnp.sum((x - 1.0) ** 2), ez.sets.Box(0.0, 2.0, dim=2))\n"
)
LONG = "import jax\ndef slow(x):\n    return jax.lax.fori_loop(0, 10**9, lambda _, s: s + jnp.sum(jnp.sin(x)), 0.0)\n"


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_ctrl_c_inside_a_compiled_program_ends_it_at_once(folder):
    """The main thread hears of nothing while a program runs: somebody else must listen."""
    call = "print('running', flush=True)\njax.jit(slow)(jnp.ones(2)).block_until_ready()\n"
    Path("model.py").write_text(SURE + LONG + call)
    words = (*COMMAND, "solve", "model.py:sure")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "running\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "Interrupted.\n")


@pytest.mark.some(3)
@pytest.mark.skipif(os.name == "nt", reason="pipes of another kind")
@pytest.mark.parametrize("words", [("--help",), ("solve", "model.py:sure"), ("solve", "model.py:sure", "--json")])
def test_a_pipe_that_nobody_reads_ends_it_without_a_word(folder, words):
    Path("model.py").write_text(SURE)
    ear, mouth = os.pipe()
    os.close(ear)
    ended = subprocess.run((*COMMAND, *words), stdout=mouth, stderr=subprocess.PIPE, check=False)
    os.close(mouth)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.some(2)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
@pytest.mark.parametrize("words", [("--version",), ("solve", "model.py:sure")])
def test_a_full_disk_behind_stdout_has_a_sentence(folder, words):
    Path("model.py").write_text(SURE)
    with open("/dev/full", "wb") as full:
        ended = subprocess.run((*COMMAND, *words), stdout=full, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (2, b"stdout: No space left on device.\n")


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="a shell of another kind")
def test_closed_streams_are_nobody_s(folder):
    """With stdout closed, the next file that is opened would be taken for it."""
    Path("model.py").write_text(SURE)
    line = f"exec {sys.executable} -m epszero solve model.py:sure --out x.csv <&- >&- 2>&-"
    assert subprocess.run(("sh", "-c", line), check=False).returncode == 0
    assert Path("x.csv").read_text().startswith("x0,x1\n")


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="names of another kind")
def test_reports_go_through_links_and_into_devices(folder):
    Path("model.py").write_text(SURE)
    Path("page.html").symlink_to("target.html")
    words = (*COMMAND, "solve", "model.py:sure", "--report")
    linked = subprocess.run((*words, "page.html"), capture_output=True, check=True)
    assert Path("page.html").is_symlink()
    assert "<!doctype html>" in Path("target.html").read_text()
    assert b"Written: page.html" in linked.stdout
    printed = subprocess.run((*words, "/dev/stdout"), capture_output=True, check=True)
    assert printed.stdout.startswith(b"<!doctype html>")


def python(*words):
    """A Python of its own; what it prints."""
    return subprocess.run((sys.executable, *words), capture_output=True, check=True, text=True).stdout


@pytest.mark.some(3)
@pytest.mark.parametrize("words", [("--help",), ("--version",), ("solve", "--help"), ("ev", "--help")])
def test_help_and_version_load_no_jax(words):
    line = f"import sys; sys.argv = {['epszero', *words]!r}\nfrom epszero.cli import main\ntry:\n    main()\nfinally:\n"
    told = python("-c", f"{line}    print('jax' in sys.modules, 'numpy' in sys.modules)")
    assert told.splitlines()[-1] == "False False"


SHELLS = {  # what the scripts of Typer hand over
    "bash": {"COMP_WORDS": "{}", "COMP_CWORD": "{at}"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "{}"},
    "fish": {"_TYPER_COMPLETE_ARGS": "{}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.some(4)
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("epszero cert", "certify"),
        ("epszero certify --hold", "--holdout"),
        ("epszero certify --using preq", "prequential"),
    ],
)
def test_shells_complete_without_jax(shell, line, word):
    at = len(line.split()) - 1
    told = {name: value.format(line, at=at) for name, value in SHELLS[shell].items()}
    code = "import atexit, sys\nfrom epszero.cli import main\n"
    code += "atexit.register(lambda: print('jax' in sys.modules, 'numpy' in sys.modules, file=sys.stderr))\nmain()"
    ended = subprocess.run(
        (sys.executable, "-c", code),
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "_EPSZERO_COMPLETE": f"complete_{shell}", **told},
    )
    assert word in ended.stdout
    assert ended.stderr == "False False\n"


def test_import_epszero_loads_none_of_the_large_libraries():
    large = ("jax", "scipy.stats", "polars", "matplotlib", "clarabel", "rich", "jinja2")
    told = python("-c", f"import sys, epszero\nprint([name for name in {large!r} if name in sys.modules])")
    assert told == "[]\n"


def test_names_are_those_that_type_checkers_see():
    block = next(node for node in ast.parse(Path(ez.__file__).read_text()).body if isinstance(node, ast.If))
    lines = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in lines for alias in node.names}
    assert len(seen) == len(lines)
    names = {name for name in dir(ez) if not name.startswith("_")}
    assert names - set(seen) == {"facts", "problems", "samples"}  # rooms, for those who look around
    assert set(seen) <= names
    for name, room in seen.items():
        home = import_module(room if room != "epszero" else f"epszero.{name}")
        assert getattr(ez, name) is (home if room == "epszero" else getattr(home, name))


@pytest.mark.long
def test_every_name_is_there_whatever_was_loaded_before():
    rooms = "import epszero.certificates, epszero.report\nimport epszero as ez\n"
    told = python("-c", f"{rooms}print(*(type(one).__name__ for one in (ez.solve, ez.audit, ez.report)))")
    assert told == "function function function\n"
    assert all(hasattr(ez, name) for name in dir(ez))


@pytest.mark.parametrize(("name", "nearest"), [("sovle", "solve"), ("Box", "epszero.sets.Box"), ("Gaem", "Game")])
def test_a_name_that_is_not_there_is_answered_with_the_nearest(name, nearest):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'. Did you mean '{nearest}'"):
        getattr(ez, name)
    with pytest.raises(ImportError, match=f"cannot import name '{name}'"):
        exec(f"from epszero import {name}")
