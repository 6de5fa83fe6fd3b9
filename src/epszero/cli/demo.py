"""`epszero demo`: twenty electric vehicles, 3000 days of real prices, solved, certified, and held against the truth."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import epszero as ez
from epszero.cli.certify import leave_if_refused
from epszero.cli.output import check_folder, drawings, screen, show, table, working, write_all

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.table import Table

VEHICLES, DAYS, FLEET_SEED, DRAW_SEED = 20, 3000, 0, 1
TRIALS = 200  # data sets that are certified to see how often that is wrong

Out = Annotated[Path, typer.Option(metavar="DIR", help="The folder for report, certificate and figure.")]


def demo(ctx: typer.Context, out: Out = Path()) -> None:
    """Find when twenty electric vehicles charge, from ten years of real prices; certify the answer, draw it, report.

    The days are drawn from a pool whose law is known, so the truth is, too: it is shown beside what is likely and what
    is certified, and 200 data sets show how often a certificate is wrong.

    Writes report.html, certificate.json, charging.png and truth.png (.pdf, .svg).

    **Example**

    `epszero demo --out demo`
    """
    from epszero.cli.truth import counted, draw, truth_of  # noqa: PLC0415  (help must not load JAX)

    check_folder("--out", out)
    with working("solving and certifying"):
        days = ez.datasets.day_ahead_prices()
        prices = days.take(DAYS, seed=DRAW_SEED)  # independent draws: the law is that of a day picked at random
        game = ez.models.ev_charging(vehicles=VEHICLES, seed=FLEET_SEED)
        audit, ordered = ez.audit(game, prices), ez.audit(game, days)
        solution = ez.solve(game, prices)
        if solution.status is ez.Status.INTERRUPTED:
            raise KeyboardInterrupt
        equilibrium = solution.check_equilibrium()
        certificate = ez.certify(solution)
        record = certificate.to_json()
        page = ez.report(
            certificate, solution, audit, title=f"{VEHICLES} electric vehicles", seed=DRAW_SEED, command=ctx.obj
        )
        picture = game.plot(solution, certificate=certificate)
        files: dict[Path, str | bytes] = {out / "report.html": page.html, out / "certificate.json": record}
        files |= {out / f"charging.{form}": drawing for form, drawing in drawings(picture).items()}
        verified = ez.verify(record, game, prices)
    with working(f"certifying {TRIALS} data sets, to see how often that is wrong"):
        truth = truth_of(certificate, days)
        count = counted(game, days, DAYS, TRIALS, certificate.delta)
        files |= {out / f"truth.{form}": drawing for form, drawing in drawings(draw(truth, count)).items()}
    write_all(files)
    console = screen()
    console.print(hours_table(prices, solution.x, range(14), f"{VEHICLES} vehicles, {len(days)} days of prices"))
    show(console, saving(solution.x, prices))
    show(console, solution)
    show(console, f"Checked again from x, z and the data: {solution.check()}.")
    show(console, f"Checked by an independent solver: {equilibrium}.")
    show(console, "\nWhat is known of the game and its data, and on whose word?\n")
    show(console, audit)
    show(console, f"\nDays in their order would not do: {ordered.assumptions['independent'].evidence}.")
    show(console, "\nHow far is the answer from the truth, the equilibrium under the law of the prices?\n")
    show(console, certificate)
    show(console, f"\nRecomputed from its record: {verified}\n")
    show(console, "The days were drawn from a pool, so its law is known, and the truth can be computed:\n")
    show(console, truth)
    show(console, f"\n{count}\n")
    for path in files:
        show(console, f"Written: {path}")
    leave_if_refused(certificate)


def hours_table(prices: "ez.Samples", x: "NDArray[Any]", hours: Iterable[int], title: str) -> "Table":
    """Mean price and average demand of each hour."""
    mean, demand = prices.values.mean(axis=0), x.mean(axis=0)
    unit = 30 / max(float(demand.max()), 1e-12)
    shown = table("hour", "mean price", "average demand", "", title=title)
    for hour, price, energy in zip(hours, mean, demand, strict=True):
        shown.add_row(f"{hour:2d}:00", f"{price:.4f} €/kWh", f"{energy:5.2f} kWh", "█" * round(unit * float(energy)))
    return shown


def saving(x: "NDArray[Any]", prices: "ez.Samples") -> str:
    """What the energy costs, and what the same energy would cost if it were charged evenly."""
    mean = prices.values.mean(axis=0)
    paid, even = (x @ mean).mean(), x.sum(axis=1).mean() * mean.mean()
    return f"Energy costs {paid:.3f} € per vehicle and day; charging evenly it would be {even:.3f} €."
