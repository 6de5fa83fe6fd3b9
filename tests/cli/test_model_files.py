"""Model files: what they may do, and how their mistakes are told."""

import os
import sys
from pathlib import Path

import pytest

import epszero as ez
from epszero.cli.endings import ModelError
from epszero.cli.model import loaded, split

DATA = ("--samples", "data.csv")


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("import epszero as ez\ngame = ez.Game([, []\n", "line 2: SyntaxError", "game = ez.Game([, []"),
        ("x = 1\n\ngame = x / 0\n", "line 3: ZeroDivisionError: division by zero", "game = x / 0"),
        ("import notthere\n", "line 1: ModuleNotFoundError", "import notthere"),
        ("import sys\nsys.exit(0)\n", "line 2: the file ends the program", "sys.exit(0)"),
        ("import epszero as ez\ngame = ez.sets.Box(1.0, 0.0)\n", "line 2: lower, upper: Box is empty", "ez.sets.Box"),
        ("def game():\n    raise ValueError('one\\ntwo')\n", "line 2: ValueError: one\n", "raise ValueError"),
        ("def game():\n    assert False\n", "line 2: AssertionError\n", "assert False"),
        ("import helper\n", "helper.py, line 1: NameError", "nonsense"),
        ("if True:\nx = 1\n", "line 2: IndentationError", "x = 1"),
        ("x = '\x00'\n", "line 1: SyntaxError", ""),
    ],
)
def test_a_mistake_is_told_with_its_line(refused, text, said, line):
    Path("bad.py").write_text(text)
    Path("helper.py").write_text("nonsense\n")
    told = refused("certify", "bad.py:game", *DATA)
    assert said in told
    assert line in told
    assert told.count("\n") <= 2


def test_a_mistake_in_a_cost_is_told_when_it_is_called(refused):
    text = """
import jax.numpy as jnp
import epszero as ez

def loss(x, xi):
    price = xi @ x
    return price[3]

problem = ez.Minimization(loss, ez.sets.Box(0.0, 1.0, dim=2))
"""
    Path("bad.py").write_text(text)
    told = refused("solve", "bad.py:problem", *DATA)
    assert told.startswith("bad.py, line 7: ")
    assert told.endswith("    return price[3]\n")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wrong", "is a list, not a problem"),
        ("sized", "needs arguments (n)"),
        ("raising", "line"),
        ("nothing", "Its problems are: game, sure"),
    ],
)
def test_a_name_that_is_no_problem(refused, name, said):
    assert said in refused("solve", f"model.py:{name}", *DATA)


def test_neighbours_are_found_and_forgotten_again(folder):
    below = folder / "below"
    below.mkdir()
    (below / "shapes.py").write_text("DIM = 2\n")
    (below / "late.py").write_text("SLOPE = 2.0\n")
    (below / "model.py").write_text(
        "import jax.numpy as jnp\nimport shapes\nimport epszero as ez\n"
        "def loss(x):\n    import late\n    return late.SLOPE * jnp.sum(x**2)\n"
        "sure = ez.Minimization(loss, ez.sets.Box(1.0, 2.0, dim=shapes.DIM))\n"
    )
    path = list(sys.path)
    with loaded("below/model.py:sure") as sure:
        assert ez.solve(sure).x.tolist() == [1.0, 1.0]
    assert sys.path == path
    assert not {"shapes", "late", "model"} & set(sys.modules)
    assert sorted(file.name for file in below.iterdir()) == ["late.py", "model.py", "shapes.py"]


def test_errors_that_are_not_of_the_model_pass(folder):
    with pytest.raises(KeyError), loaded("model.py:game"):
        raise KeyError
    with pytest.raises(ModelError, match="line 18"), loaded("model.py:raising"):
        pass


def test_sys_exit_in_a_cost_is_no_end_of_ours(folder):
    (folder / "leaving.py").write_text(
        "import sys\nimport epszero as ez\n"
        "def loss(x):\n    sys.exit(0)\n"
        "sure = ez.Minimization(loss, ez.sets.Box(1.0, 2.0, dim=2))\n"
    )
    with pytest.raises(ModelError, match="line 4: the file ends the program"), loaded("leaving.py:sure") as sure:
        ez.solve(sure)


@pytest.mark.parametrize("name", ["a[1].csv", "a{1}.csv", "a*.csv", os.fsdecode(b"od\xff.csv")])
def test_names_of_files_are_no_patterns(folder, name):
    try:
        (folder / name).write_text("a,b\n1,2\n3,4\n")
    except OSError:
        pytest.skip("the system has no such names")
    assert ez.Samples.from_csv(folder / name).values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_drive_has_a_colon_too(folder):
    with pytest.raises(ez.InputError, match=r"no file 'C:\\\\x\\\\model.py'"):
        split(r"C:\x\model.py:game")
    with pytest.raises(ez.InputError, match="MODEL.py:NAME"):
        split(r"C:\x\model.py")
    odd = folder / "odd:name.py"
    odd.write_text("")
    assert split("odd:name.py:game") == (Path("odd:name.py"), "game")
