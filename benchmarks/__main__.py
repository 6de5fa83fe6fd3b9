"""`python -m benchmarks [suite …]`, all suites where none is named: measure and print; nothing is asserted."""

import sys

from rich.console import Console
from rich.table import Table

from benchmarks import (
    audit,
    certificates,
    charging,
    everyday,
    games,
    memory,
    methods,
    million,
    mpi_sppy,
    overhead,
    pieces,
    profile,
    traffic,
    worst_case,
)

SUITES = {
    "charging": charging.rows, "games": games.rows, "million": million.rows, "memory": memory.rows,
    "certificates": certificates.rows, "audit": audit.rows, "overhead": overhead.rows, "hard": profile.rows,
    "pieces": pieces.rows, "traffic": traffic.rows, "everyday": everyday.rows, "methods": methods.rows,
    "mpi-sppy": mpi_sppy.rows, "worst-case": worst_case.rows,
}  # fmt: skip


def main() -> None:
    table = Table("measured", "ours", "peer", "ratio", "target", "met", title="epszero, side by side in one run")
    for name in sys.argv[1:] or SUITES:
        for row in SUITES[name]():
            table.add_row(*row.cells())
    Console(width=140).print(table)


main()
