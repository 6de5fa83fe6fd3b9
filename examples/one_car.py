"""When should one car charge? A small problem from data: a year of day-ahead prices, 15 kWh needed by 14:00."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import epszero as ez

HOURS = [f"h{hour:02d}" for hour in range(14)]
NEED, CAP = 15.0, 2.5  # kWh in all, kWh in an hour
WEAR, FEE = 0.005, 0.05  # EUR per kWh² and per kWh: what charging does to the battery


def cost(x: jnp.ndarray, price: jnp.ndarray) -> jnp.ndarray:
    """What a day costs at prices in EUR/MWh: wear, a fee, and the energy."""
    return WEAR * x @ x + FEE * jnp.sum(x) + price @ x / 1000


def main() -> None:
    """Solve and print."""
    prices = ez.Samples.from_csv(Path(__file__).parent / "prices_nl_2024.csv", columns=HOURS)
    schedules = ez.sets.BoxBudget(0.0, CAP, at_least=NEED, dim=len(HOURS))
    problem = ez.Minimization(cost, schedules, declared=ez.declare(mu=2 * WEAR, kappa=2 * WEAR))
    solution = ez.solve(problem, prices)

    table = Table(
        "hour", "mean price", "charge", "", title=f"One car, {NEED:g} kWh by 14:00, {len(prices)} days of prices"
    )
    for hour, price, energy in zip(HOURS, prices.values.mean(axis=0), solution.x, strict=True):
        table.add_row(f"{int(hour[1:]):2d}:00", f"{price:6.2f} €/MWh", f"{energy:5.2f} kWh", "█" * round(8 * energy))
    flat = np.full(len(HOURS), NEED / len(HOURS))
    days = prices.values / 1000
    saving = np.mean(days @ (flat - solution.x))
    console = Console()
    console.print(table)
    console.print(f"Energy costs {np.mean(days @ solution.x):.3f} € a day, {saving:.3f} € less than charging evenly.")
    console.print(f"{solution}")
    console.print(f"Checked again from x, z and the data: {solution.check()}.")


if __name__ == "__main__":
    main()
