"""The templates in CONTRIBUTING.md are real code: they run, and they do what the text says of them."""

import json
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import epszero as ez
from epszero import InputError
from test_layers import FLOORS

TEXT = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
RNG = np.random.default_rng(0)


def template(title: str) -> dict[str, Any]:
    """The names that the block marked `title` defines."""
    (block,) = re.findall(rf"^```python {title}\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "template"}
    exec(compile(block, f"CONTRIBUTING.md: {title}", "exec"), names)  # our own text
    return names


def test_every_code_block_is_run_by_a_test():
    assert re.findall(r"^```python ?(.*)$", TEXT, flags=re.MULTILINE) == [
        "set", "function", "method", "model", "command",
    ]  # fmt: skip


def test_the_template_of_a_set():
    disc = template("set")["Disc"]([1.0, -1.0, 0.5], 2.0)
    points = RNG.normal(scale=4.0, size=(50, 3))
    nearest = disc.project(points)
    assert disc.contains(nearest).all()
    np.testing.assert_allclose(disc.project(nearest), nearest, atol=1e-12)
    away = points - nearest  # in the normal cone: ⟨away, y − nearest⟩ ≤ 0 for all y of the set
    assert (disc.support(away) <= np.sum(away * nearest, axis=-1) + 1e-9).all()
    looped = np.stack([disc.project(point) for point in points])
    np.testing.assert_allclose(nearest, looped, atol=1e-14)
    np.testing.assert_allclose(jax.jit(disc.project)(points), nearest, atol=1e-5)  # in the user's float32
    assert disc.diameter() == 4.0
    several = type(disc)(np.zeros((2, 3)), [1.0, 2.0])
    np.testing.assert_allclose(np.linalg.norm(several.project(np.full((2, 3), 9.0)), axis=-1), [1.0, 2.0])
    np.testing.assert_array_equal(several.diameter(), [2.0, 4.0])
    with pytest.raises(InputError, match="radius"):
        type(disc)([0.0], -1.0)
    with pytest.raises(TypeError, match="Did you mean 'radius'"):
        type(disc)([0.0], radios=1.0)


def test_the_template_of_a_function():
    f = template("function")["PositivePart"](0.5)
    v, step = RNG.normal(size=(50, 4)), 0.7
    x = f.prox(v, step)
    z = (v - x) / step  # in the subdifferential at x: Fenchel–Young holds with equality
    np.testing.assert_allclose(f(x) + f.conjugate(z), np.sum(x * z, axis=-1), atol=1e-12)
    assert (np.linalg.norm(x[1:] - x[:-1], axis=-1) <= np.linalg.norm(v[1:] - v[:-1], axis=-1) + 1e-12).all()
    np.testing.assert_allclose(np.stack([f.prox(one, step) for one in v]), x, atol=1e-14)
    with pytest.raises(InputError, match="weight"):
        type(f)(-1.0)


@pytest.mark.long
def test_the_template_of_a_method():
    plain = template("method")["PlainForwardBackward"]
    samples = ez.Samples(RNG.normal(size=(20, 3)))
    problem = ez.Inclusion(ez.functions.L1(0.1), lambda x, xi: 2 * x - xi)
    for K in (0, 4, 30):
        ours = ez.solve(problem, samples, plain(0.3), x0=np.ones(3), iterations=K)
        known = ez.solve(problem, samples, ez.ForwardBackward(0.3), x0=np.ones(3), iterations=K)
        np.testing.assert_allclose(ours.x, known.x, atol=1e-14)
        assert abs(ours.check().gap) < 1e-9
    with pytest.raises(InputError, match="gamma"):
        plain(-1.0)


@pytest.mark.long
def test_the_template_of_a_model():
    fishing = template("model")["fishing"]
    prices = ez.Samples(RNG.uniform(2.0, 4.0, size=(40, 1)), support=ez.sets.Box(2.0, 4.0, dim=1))
    game = fishing(fishers=3, quota=50.0)
    x = ez.solve(game, prices).x[:, 0]
    own = game.parameters["effort"] * x + x.mean() + x / 3  # the derivative of the own cost, without the price
    np.testing.assert_allclose(own, prices.values.mean(), atol=1e-8)
    assert (x > 0).all()
    assert ez.certify(ez.solve(game, prices)).exploitability is not None
    with pytest.raises(InputError, match="fishers"):
        fishing(0)


def test_the_template_of_a_command(tmp_path):
    app = typer.Typer()
    app.command()(template("command")["residual"])
    model = tmp_path / "model.py"
    stated = "ez.VariationalInequality(lambda x: 2 * x - 1, ez.sets.Box(0.0, 1.0, dim=2))"
    model.write_text(f"import epszero as ez\nproblem = {stated}\n")
    plain, machine = (CliRunner().invoke(app, [f"{model}:problem", *more]) for more in ([], ["--json"]))
    assert plain.exit_code == machine.exit_code == 0, plain.output
    assert float(plain.stdout) <= 1e-8
    assert json.loads(machine.stdout)["residual"] <= 1e-8


def test_the_floors_are_those_of_the_house():
    """What the text says of layers is what `tests/test_layers.py` checks."""
    (said,) = re.findall(r"\*\*Layers\.\*\*(.*?)\. A room", TEXT, flags=re.DOTALL)
    found = {}
    for rooms, floor in re.findall(r"((?:`\w+`(?: and )?)+)\s+(\d+)", said):
        found |= dict.fromkeys(re.findall(r"`(\w+)`", rooms), int(floor))
    assert found == FLOORS
