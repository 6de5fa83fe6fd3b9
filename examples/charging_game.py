"""When do twenty electric vehicles charge? The paper's game on a year of day-ahead prices, solved and certified."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import epszero as ez

HOURS = [f"h{hour:02d}" for hour in range(14)]


def main() -> None:
    """Audit, solve, check, certify and print."""
    raw = ez.Samples.from_csv(Path(__file__).parent / "prices_nl_2024.csv", columns=HOURS)
    days = ez.Samples(raw.values / 1000, support=ez.sets.Box(-0.5, 4.0))  # €/kWh, within the limits of the market
    prices = days.take(3000, seed=1)  # independent draws: the law is that of a day of 2024, picked at random
    game = ez.models.ev_charging(vehicles=20, hours=len(HOURS), seed=0)
    audit, ordered = ez.audit(game, prices), ez.audit(game, days)
    solution = ez.solve(game, prices)
    check = solution.check_equilibrium()
    certificate = ez.certify(solution, delta=0.05)

    mean, demand = prices.values.mean(axis=0), solution.x.mean(axis=0)
    table = Table("hour", "mean price", "average demand", "", title=f"20 vehicles, {len(days)} days of prices")
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
    console.print("\nWhat is known of the game and its data, and on whose word?\n")
    console.print(f"{audit}", highlight=False, soft_wrap=True)
    console.print(f"\nDays in their order would not do: {ordered.assumptions['independent'].evidence}.", soft_wrap=True)
    console.print("\nHow far is the answer from the truth, the equilibrium under the law of the prices?\n")
    console.print(f"{certificate}", highlight=False, soft_wrap=True)
    record = Path("certificate.json")
    record.write_text(certificate.to_json(), encoding="utf-8")
    console.print(
        f"\nThe certificate is in {record}; recomputed from it: {ez.verify(record.read_text(), game, prices)}"
    )
    figure = Path("charging.png")
    game.plot(solution).savefig(figure, dpi=150)
    console.print(f"The picture is in {figure}.")


if __name__ == "__main__":
    main()
