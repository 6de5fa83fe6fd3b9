"""The house has floors: a room imports from its own floor and below, never from above (CONTRIBUTING: layers)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "epszero"

FLOORS = {
    "samples": 1,
    "sets": 2,
    "functions": 2,
    "oracles": 3,
    "problems": 4,
    "facts": 5,
    "methods": 6,
    "solve": 7,
    "certificates": 8,
    "audit": 9,
    "report": 9,
}
OUTER = {"models", "datasets", "experiments", "cli"}  # built on the public names only
TOP = {"__init__", "__main__"}  # the door and the bell: they see everything


def imports(file: Path, package: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(line, dotted name) of all that `file`, a module of `package`, imports from epszero, at the top or inside."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            names = [[*base, alias.name] for alias in node.names]
        else:
            continue
        yield from ((node.lineno, tuple(name)) for name in names if name[0] == "epszero")


def objection(room: str, target: tuple[str, ...]) -> str | None:
    """Why a file of `room` may not import `target` (dotted name behind `epszero`), None when it may."""
    first = target[0] if target else ""
    why = None
    if room in TOP or first == room:
        pass
    elif room in OUTER:
        if len(target) > 2 or any(name.startswith("_") for name in target):
            why = f"reaches past the public names ({'.'.join(target)})"
    elif first.startswith("_"):
        pass
    elif first in OUTER:
        why = f"imports {first}, an outer room"
    elif first not in FLOORS:
        why = "imports the whole of epszero, which is above it"
    elif room.startswith("_"):
        why = f"is at the bottom, but imports {first}"
    elif FLOORS[first] > FLOORS[room]:
        why = f"is on floor {FLOORS[room]}, but imports {first} on floor {FLOORS[first]}"
    elif any(name.startswith("_") for name in target[1:]):
        why = f"reaches into {first}, whose {'.'.join(target[1:])} is private"
    return why


def violations(source: Path) -> list[str]:
    """Every upward import under `source`, as sentences."""
    found: list[str] = []
    for file in sorted(source.rglob("*.py")):
        inside = file.relative_to(source).with_suffix("").parts
        room = inside[0]
        if not (room.startswith("_") or room in FLOORS or room in OUTER):
            found.append(f"{file.name}: the room {room!r} has no floor; give it one in tests/test_layers.py")
            continue
        for line, name in imports(file, ("epszero", *inside[:-1])):
            why = objection(room, name[1:])
            if why:
                found.append(f"{'/'.join(inside)}.py:{line} {why}")
    return found


@pytest.mark.long
def test_no_room_imports_from_above():
    assert violations(SOURCE) == []


def test_every_room_is_seen():
    rooms = {file.relative_to(SOURCE).parts[0] for file in SOURCE.rglob("*.py") if file.parent != SOURCE}
    assert {"samples", "sets", "functions"} <= rooms


@pytest.mark.parametrize(
    ("file", "line", "word"),
    [
        ("samples/x.py", "from epszero.sets import Box", "floor 1"),
        ("samples/x.py", "import epszero.sets.box", "floor 1"),
        ("samples/x.py", "from ..sets import Box", "floor 1"),
        ("samples/x.py", "from .. import sets", "floor 1"),
        ("samples/x.py", "def f():\n    from epszero import solve", "floor 1"),
        ("sets/x.py", "from epszero import oracles", "floor 2"),
        ("methods/x.py", "import epszero as ez", "whole of epszero"),
        ("methods/x.py", "from epszero import InputError", "whole of epszero"),
        ("solve/x.py", "from epszero.certificates import HoldOut", "floor 7"),
        ("report/x.py", "from epszero.models import ev_charging", "outer room"),
        ("_checks.py", "from epszero.samples import Samples", "at the bottom"),
        ("models/x.py", "from epszero._checks import refuse", "public names"),
        ("models/x.py", "from epszero.sets.box import Box", "public names"),
        ("cli/x.py", "from epszero.samples import _samples", "public names"),
        ("solve/x.py", "from epszero.sets._base import Set", "is private"),
        ("facts/x.py", "from epszero.problems import _base", "is private"),
        ("cellar/x.py", "", "no floor"),
    ],
)
def test_a_planted_violation_is_caught(tmp_path, file, line, word):
    planted = tmp_path / file
    planted.parent.mkdir(exist_ok=True)
    planted.write_text(line)
    (found,) = violations(tmp_path)
    assert word in found


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("__init__.py", "from epszero.solve import solve\nfrom epszero import models"),
        ("_double.py", "from epszero._types import Array"),
        ("samples/x.py", "from epszero.samples._read import read_csv\nfrom epszero._checks import refuse\nimport jax"),
        ("functions/x.py", "from epszero.sets import Box\nfrom epszero import samples"),
        ("report/x.py", "from epszero.sets.box import Box"),
        ("models/x.py", "import epszero as ez\nfrom epszero import Samples\nfrom epszero.sets import Box"),
        ("models/x.py", "from epszero.models._cars import Car"),
    ],
)
def test_downward_imports_pass(tmp_path, file, line):
    planted = tmp_path / file
    planted.parent.mkdir(exist_ok=True)
    planted.write_text(line)
    assert violations(tmp_path) == []
