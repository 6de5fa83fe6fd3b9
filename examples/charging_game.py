"""When do twenty electric vehicles charge? The paper's game on a year of day-ahead prices, solved and checked."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import epszero as ez

HOURS = [f"h{hour:02d}" for hour in range(14)]


def main() -> None:
    """Solve, check and print."""
    raw = ez.Samples.from_csv(Path(__file__).parent / "prices_nl_2024.csv", columns=HOURS)
    prices = ez.Samples(raw.values / 1000)  # €/kWh
    game = ez.models.ev_charging(vehicles=20, hours=len(HOURS), seed=0)
    solution = ez.solve(game, prices)
    check = solution.check_equilibrium()

    mean, demand = prices.values.mean(axis=0), solution.x.mean(axis=0)
    table = Table("hour", "mean price", "average demand", "", title=f"20 vehicles, {len(prices)} days of prices")
    for hour, price, energy in zip(HOURS, mean, demand, strict=True):
        table.add_row(f"{int(hour[1:]):2d}:00", f"{price:.4f} €/kWh", f"{energy:5.2f} kWh", "█" * round(12 * energy))
    flat = np.outer(game.parameters.need, np.full(len(HOURS), 1 / len(HOURS)))
    console = Console()
    console.print(table)
    console.print(f"Energy costs {np.mean(solution.x @ mean):.3f} € per vehicle and day; "
                  f"charging evenly it would be {np.mean(flat @ mean):.3f} €.")  # fmt: skip
    console.print(f"{solution}")
    console.print(f"Checked again from x, z and the data: {solution.check()}.")
    console.print(f"Checked by an independent solver: {check}.")
    figure = Path("charging.png")
    game.plot(solution).savefig(figure, dpi=150)
    console.print(f"The picture is in {figure}.")


if __name__ == "__main__":
    main()
