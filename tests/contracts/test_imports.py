"""What sets, functions and samples load when they are imported: nothing that is slow and that only some calls need."""

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "epszero"

PROGRAM = """
import importlib, sys, types
package = types.ModuleType("epszero")  # not the whole of it, which loads every room
package.__path__ = [sys.argv[1]]
sys.modules["epszero"] = package
for room in ("sets", "functions", "samples", "samples.independence"):
    importlib.import_module(f"epszero.{room}")
print(*[name for name in ("polars", "clarabel", "cvxpy", "scipy.stats", "scipy.fft") if name in sys.modules])
"""


def test_slow_packages_are_loaded_when_they_are_needed():
    run = subprocess.run([sys.executable, "-c", PROGRAM, str(SOURCE)], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
