"""List the collection and check it: planted solutions against the judge, monotonicity between random points."""

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.collection import CASES, Posed

PAIRS = 200


def slope(posed: Posed) -> float:
    """The least ⟨F(x) − F(y), x − y⟩/‖x − y‖² over random points of [0.05, 1.95]ⁿ, where all F here are defined."""
    assert posed.F is not None
    rng = np.random.default_rng(0)
    least = np.inf
    for _ in range(PAIRS):
        x, y = rng.uniform(0.05, 1.95, (2, posed.size))
        least = min(least, float((posed.F(x) - posed.F(y)) @ (x - y) / ((x - y) @ (x - y))))
    return least


def main() -> None:
    table = Table("family", "problem", "entries", "planted: residual / 1e-8 scale", "least slope seen")
    wrong = []
    for case in CASES.values():
        posed = case.build()
        n = posed.size
        planted = None if posed.planted is None else posed.residual(posed.planted) / (1e-8 * posed.scale)
        least = None if posed.F is None else slope(posed)
        if (planted is not None and planted > 0.1) or (case.monotone and least is not None and least < -1e-9):
            wrong.append(case.name)
        table.add_row(case.family, case.name, str(n), "" if planted is None else f"{planted:.1e}",
                      "" if least is None else f"{least:.2g}")  # fmt: skip
    Console(width=140).print(table)
    print(f"{len(CASES)} problems, {len(wrong)} of them wrong: {', '.join(wrong)}" if wrong else
          f"{len(CASES)} problems, none of them wrong")  # fmt: skip


main()
