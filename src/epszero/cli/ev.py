"""`epszero ev`: the charging game for those who write no Python."""

import csv
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import epszero as ez
from epszero.cli import options
from epszero.cli import prices as reading
from epszero.cli.certify import leave_if_refused
from epszero.cli.data import check_delta
from epszero.cli.demo import hours_table, saving
from epszero.cli.endings import named, refuse, spelt, tell
from epszero.cli.output import check_places, emit, screen, show, working, write_all
from epszero.cli.run import solved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from epszero.cli.fleet import FleetFile

OPTIONS = {
    **reading.OPTIONS,
    "hours": "--hours",
    "start": "--start",
    "end": "--end",
    "support": "--limits",
    "file_unit": "--unit",
    "zone": "--zone",
    "area": "--zone",
    "country": "--zone",
    "time_zone": "--time-zone",
}
REMEDIES = {  # where that of the library speaks of sets
    "support": "Check the unit; else pass --limits=LO,HI that hold every price that can occur",
    "values": "Widen --limits to all that can happen, or mend the data",
}
CAP = 2.5  # kWh an hour, where a fleet does not say: the paper's

PricesFile = Annotated[
    Path,
    typer.Option(
        "--prices",
        metavar="FILE",
        help="CSV with hourly prices: ENTSO-E or Ember exports, or your own.",
        show_default=False,
    ),
]
FleetOption = Annotated[
    Path,
    typer.Option(
        "--fleet",
        metavar="FILE",
        show_default=False,
        help="CSV with a row per vehicle: need (kWh), and if you like cap (kWh an hour), wear (€/kWh²), "
        "fee (€/kWh) and id or name. What it lacks is the paper's: cap 2.5, the others drawn with --seed.",
    ),
]
Hours = Annotated[str, typer.Option(metavar="A-B", help="Hours of the day, 0-13 say, or 0-5,22,23.")]
First = Annotated[
    str | None,
    typer.Option(metavar="DAY", help="First day, as in 2024-01-31.", rich_help_panel=options.DATA, show_default=False),
]
Last = Annotated[
    str | None, typer.Option(metavar="DAY", help="Last day.", rich_help_panel=options.DATA, show_default=False)
]
Zone = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Area or country, where the file has several.",
        rich_help_panel=options.DATA,
        show_default=False,
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        metavar="UNIT",
        rich_help_panel=options.DATA,
        show_default=False,
        help="Of a file with a row per day: EUR/MWh unless told, EUR/kWh or ct/kWh.",
    ),
]
TimeZone = Annotated[
    str, typer.Option(metavar="NAME", help="Whose clock days and hours follow.", rich_help_panel=options.DATA)
]
Limits = Annotated[
    str | None,
    typer.Option(
        metavar="LO,HI",
        rich_help_panel=options.DATA,
        show_default=False,
        help="Where every possible price lies, in EUR/MWh; unless told the limits of the market, -500,4000.",
    ),
]
Capacity = Annotated[
    float | None,
    typer.Option(metavar="KWH", help="What all vehicles together may draw in an hour.", show_default=False),
]
Reference = Annotated[
    float | None,
    typer.Option(
        metavar="KWH",
        show_default=False,
        min=0.0,
        help="What the average vehicle should draw in an hour; unless told their mean need, spread evenly.",
    ),
]
Weight = Annotated[
    float,
    typer.Option(
        metavar="W",
        min=0.0,
        help="What leaving that costs everyone: W times the squared difference, summed over the hours, in €.",
    ),
]
Out = Annotated[
    Path, typer.Option(metavar="FILE.csv", help="A row per vehicle, a column per hour.", rich_help_panel=options.OUTPUT)
]


def ev(  # noqa: PLR0913  (one per option)
    ctx: typer.Context,
    prices: PricesFile,
    fleet: FleetOption,
    *,
    hours: Hours = "0-13",
    start: First = None,
    end: Last = None,
    zone: Zone = None,
    unit: Unit = None,
    time_zone: TimeZone = "Europe/Amsterdam",
    time_column: reading.TimeColumn = None,
    price_column: reading.PriceColumn = None,
    hour_ending: reading.HourEnding = None,
    limits: Limits = None,
    capacity: Capacity = None,
    reference: Reference = None,
    weight: Weight = 1.0,
    delta: options.Delta = 0.05,
    draws: options.Draws = None,
    seed: options.Seed = 0,
    out: Out = Path("schedules.csv"),
    as_json: options.Json = False,
    report: options.Report = None,
) -> None:
    """Say when the vehicles of a fleet charge, from a file of prices; certify the answer. No Python needed.

    Each vehicle pays for its energy, for wear and fee, and for its part in the total: the average demand should stay
    near --reference, which costs everyone --weight times the squared difference. Weight 0 leaves prices alone.

    Days that follow each other are seldom independent. Where their order shows it, the certificate is refused (exit
    code 1), and the schedules are written all the same; where it does not, the certificate leans on it. With --draws it
    speaks of a day of the file picked at random.

    **Examples**

    `epszero ev --prices prices.csv --fleet fleet.csv --draws 3000`

    `epszero ev --prices prices.csv --fleet fleet.csv --hours 0-6 --capacity 40 --report report.html`
    """
    from epszero.cli.fleet import read_fleet, refuse_unreachable  # noqa: PLC0415  (loads Polars)

    check_delta(delta)
    chosen, support = _hours(hours), _limits(limits)
    if capacity is not None and not 0 <= capacity < float("inf"):
        refuse("--capacity", f"must be kWh, at least 0, but it is {capacity:g}", "Pass a number of kWh")
    check_places({"--out": out, "--report": report}, {"--prices": prices, "--fleet": fleet})
    files: dict[Path, str | bytes] = {}
    with working("solving and certifying", as_json=as_json):
        cars = read_fleet(fleet)
        refuse_unreachable(cars, CAP, len(chosen))
        columns = (time_column, price_column, reading.labels(hour_ending))
        asked: ez.datasets.Options = {"hours": chosen, "start": start, "end": end}
        asked |= {"support": support, "time_zone": time_zone}
        days = _read(prices, zone, unit, columns, asked)
        samples = days.samples if draws is None else days.samples.take(draws, seed=seed)
        even = float(cars.columns["need"].mean()) / len(chosen) if reference is None else reference
        game = ez.models.ev_charging(
            fleet=cars.columns, cap=CAP, hours=len(chosen), seed=seed, capacity=capacity, reference=even, weight=weight
        )
        solution = solved(game, samples)
        equilibrium = None if as_json else solution.check_equilibrium()
        certificate = ez.certify(solution, delta)
        files[out] = schedules(cars, solution.x, chosen)
        if report is not None:
            page = ez.report(
                certificate,
                solution,
                ez.audit(game, samples, seed=seed),
                seed=seed,
                command=ctx.obj,
                title=f"{len(cars.vehicles)} electric vehicles",
            )
            files[report] = page.html
    write_all(files)
    if as_json:
        emit(
            {
                "vehicles": cars.vehicles,
                "hours": list(chosen),
                "schedules": solution.x.tolist(),
                "multipliers": None if solution.multipliers is None else solution.multipliers.tolist(),
                "prices": str(days),
                "seed": seed,
                "written": [str(path) for path in files],
                "certificate": json.loads(certificate.to_json()),
            }
        )
    else:
        console = screen()
        show(console, days)
        for note in cars.notes:
            show(console, note)
        console.print(hours_table(samples, solution.x, chosen, f"{len(cars.vehicles)} vehicles"))
        show(console, saving(solution.x, samples))
        show(console, f"Checked by an independent solver: {equilibrium}.")
        if weight > 0:
            why = ", an even load for their needs" if reference is None else ""
            show(
                console,
                f"Average demand is drawn towards {even:.4g} kWh an hour{why}, with weight {weight:g} "
                "(--reference, --weight).",
            )
        for note in _drawn(cars, seed):
            show(console, note)
        show(console, certificate)
        for path in files:
            show(console, f"Written: {path}")
    if draws is None and days.days and certificate.verdict != "refused":
        tell(
            "The certificate takes the days for independent: their order does not contradict it, but days in a row "
            "seldom are. With --draws N it speaks of a day of the file picked at random."
        )
    leave_if_refused(certificate)


def schedules(cars: "FleetFile", x: "NDArray[Any]", hours: tuple[int, ...]) -> str:
    """CSV: a row per vehicle, a column per hour, kWh."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([cars.label, *(f"{hour:02d}:00" for hour in hours)])
    for name, row in zip(cars.vehicles, x, strict=True):
        writer.writerow([name, *(f"{max(float(energy), 0.0)!r}" for energy in row)])
    return text.getvalue()


def _read(
    path: Path,
    zone: str | None,
    file_unit: str | None,
    columns: tuple[str | None, str | None, str | None],
    asked: "ez.datasets.Options",
) -> "ez.datasets.Prices":
    times, prices, labels = columns
    try:
        return ez.datasets.read_prices(
            path, zone, file_unit, time_column=times, price_column=prices, hour_labels=labels, **asked
        )
    except ez.InputError as error:
        if error.rule is None or error.remedy is None:
            raise
        name = named(error)
        remedy = REMEDIES.get(name, spelt(error.remedy, OPTIONS))
        raise ez.InputError.about(OPTIONS.get(name, "--prices"), error.rule, remedy) from error


def _drawn(cars: "FleetFile", seed: int) -> list[str]:
    """What was not in the file."""
    lacking = [name for name in ("wear", "fee") if name not in cars.columns]
    notes = [f"The fleet says nothing of {' and '.join(lacking)}: drawn as in the paper, with seed {seed}."]
    caps = [f"The fleet says nothing of cap: {CAP:g} kWh an hour for all."]
    return (notes if lacking else []) + ([] if "cap" in cars.columns else caps)


def _hours(text: str) -> tuple[int, ...]:
    """`0-13`, `7`, or several of these: the hours they name, none of them twice."""
    parts = [re.fullmatch(r"\s*(\d{1,2})\s*(?:-\s*(\d{1,2})\s*)?", part) for part in text.split(",")]
    spans = [range(int(part[1]), int(part[2] or part[1]) + 1) for part in parts if part]
    chosen = [hour for span in spans for hour in span]
    if len(spans) < len(parts) or not all(spans) or max(chosen) > 23 or len(set(chosen)) < len(chosen):
        refuse("--hours", f"{text!r} is not a list of different hours from 0 to 23", "Write --hours 0-13, or 0-5,22,23")
    return tuple(chosen)


def _limits(text: str | None) -> "Literal['market'] | ez.sets.Box":
    """Every possible price, as the reader wants it."""
    if text is None:
        return "market"
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        refuse("--limits", f"{text!r} is not two numbers LO,HI", "Write --limits=-500,4000")
    if not -float("inf") < low < high < float("inf"):
        refuse("--limits", f"no price lies between {low:g} and {high:g}", "Write the lower one first, as in -500,4000")
    return ez.sets.Box(low / 1000, high / 1000)  # EUR/MWh in EUR/kWh
