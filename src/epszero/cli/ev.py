"""`epszero ev`: when the vehicles of a fleet charge, and what it costs; for those who write no Python."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import typer

import epszero as ez
from epszero.cli import ev_options as own
from epszero.cli import options
from epszero.cli import prices as reading
from epszero.cli.data import check_delta
from epszero.cli.endings import REFUSED, named, refuse, spelt, tell
from epszero.cli.output import check_places, emit, screen, working, write_all

if TYPE_CHECKING:
    from epszero.certificates import Kind
    from epszero.cli.ev_plan import Answer, Setting
    from epszero.cli.ev_words import Told
    from epszero.cli.windows import Span

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
}


class Form(NamedTuple):
    """How a file of prices is written, where it does not say so itself; arguments of `ez.datasets.read_prices`."""

    zone: str | None
    file_unit: str | None
    time_column: str | None
    price_column: str | None
    hour_labels: str | None


@dataclass(frozen=True)
class Costs:
    """How costs are made, as options say."""

    cap: float
    capacity: float | None
    reference: float | None
    weight: float


def ev(  # noqa: PLR0913  (one per option)
    ctx: typer.Context,
    prices: own.PricesFile = None,
    fleet: own.FleetOption = None,
    *,
    tomorrow: own.Tomorrow = None,
    hours: own.Hours = "0-23",
    start: own.First = None,
    end: own.Last = None,
    zone: own.Zone = None,
    unit: own.Unit = None,
    time_zone: own.TimeZone = "Europe/Amsterdam",
    time_column: reading.TimeColumn = None,
    price_column: reading.PriceColumn = None,
    hour_ending: reading.HourEnding = None,
    limits: own.Limits = None,
    cap: own.Cap = 2.5,
    capacity: own.Capacity = None,
    reference: own.Reference = None,
    weight: own.Weight = 0.0,
    delta: options.Delta = 0.05,
    mixing: own.Mixing = None,
    draws: own.Draws = None,
    seed: options.Seed = 0,
    out: own.Out = Path("schedules.csv"),
    as_json: options.Json = False,
    report: options.Report = None,
) -> None:
    """Say when the vehicles of a fleet charge and what it costs, from a file of prices. No Python needed.

    One plan for an average day: the cheapest schedules over all days of the file, in € against charging evenly and
    against charging at once. Then how sure that is: for these days (exact), likely for days like these, and sure.
    With --tomorrow the prices of one day are given, and the plan is for that day.

    Only prices, and the fees and wear that the fleet file has, count; --weight flattens the demand.

    **Examples**

    `epszero ev --prices prices.csv --fleet fleet.csv`

    `epszero ev --prices prices.csv --fleet fleet.csv --hours 22-5 --out plan.xlsx --report report.html`

    `epszero ev --tomorrow prices_tomorrow.csv --fleet fleet.csv`
    """
    from epszero.cli import ev_plan, ev_words  # noqa: PLC0415  (load Polars)
    from epszero.cli.ev_files import as_csv, as_workbook, check_form, record  # noqa: PLC0415
    from epszero.cli.windows import span_of  # noqa: PLC0415

    check_delta(delta)
    span, support = span_of(hours), _limits(limits)
    source = _source(prices, tomorrow, {"--draws": draws, "--mixing": mixing})
    kind = _kind(mixing, draws)
    for option, value in {"--cap": cap, "--capacity": capacity, "--reference": reference, "--weight": weight}.items():
        _refuse_amount(option, value)
    costs = Costs(cap, capacity, reference, weight)
    if fleet is None:
        refuse("--fleet", "is missing", "Pass a file with a row per vehicle: --fleet fleet.csv")
    check_places({"--out": out, "--report": report}, {"--prices": prices, "--tomorrow": tomorrow, "--fleet": fleet})
    check_form(out)
    files: dict[Path, str | bytes] = {}
    shown = unit or "EUR/MWh"
    with working("planning", as_json=as_json):
        asked: ez.datasets.Options = {"start": start, "end": end, "support": support, "time_zone": time_zone}
        form = Form(zone, unit, time_column, price_column, reading.labels(hour_ending))
        setting = _setting(fleet, span, costs, lambda: _read(source, form, span, asked), time_zone)
        if tomorrow is not None:
            _refuse_several(setting)
        seen = setting.days.samples if draws is None else setting.days.samples.take(draws, seed=seed)
        how = ev_words.How(draws, mixing, ev_words.limits_said(limits))
        answer = ev_plan.planned(setting, seen)
        if tomorrow is None:
            answer = ev_plan.with_likely(answer, delta, seed)
            answer = ev_plan.with_sure(answer, delta, kind)
        told = ev_words.how_sure(answer, how, tomorrow=tomorrow is not None)
        assumed = ev_words.assumed(answer, how, told_reference=reference is not None, tomorrow=tomorrow is not None)
        used = ev_words.prices_used(setting, shown)
        workbook = out.suffix.lower() == ".xlsx"
        files[out] = as_workbook(answer, told, assumed, used) if workbook else as_csv(answer)
        if report is not None:
            from epszero.cli.ev_page import page  # noqa: PLC0415  (for those who want one)

            audit = None if tomorrow is not None else ez.audit(answer.solution.problem, seen, seed=seed)
            files[report] = page(answer, told, assumed, used, unit=shown, audit=audit, command=ctx.obj, seed=seed)
    write_all(files)
    if as_json:
        emit({**record(answer, how, assumed, "\n".join(used), told), "seed": seed, "written": [str(p) for p in files]})
    else:
        from epszero.cli.ev_screen import printed  # noqa: PLC0415  (loads Rich)

        printed(screen(), answer, told, assumed, used, unit=shown, average=tomorrow is None)
        for path in files:
            typer.echo(f"Written: {path}")
    _leave_if_refused(answer, told)


def _leave_if_refused(answer: "Answer", told: "list[Told]") -> None:
    """Exit code 1 where nothing is sure; the schedules are written all the same."""
    if answer.certificate is not None and answer.sure is None:
        tell(f"Sure: {told[-1].says}")
        raise typer.Exit(REFUSED)


def _setting(
    fleet: Path, span: "Span", costs: Costs, read: "Callable[[], ez.datasets.Prices]", time_zone: str
) -> "Setting":
    """The fleet and the prices, with whatever cannot be refused."""
    import numpy as np  # noqa: PLC0415  (this file is loaded for --help)

    from epszero.cli.ev_plan import Setting  # noqa: PLC0415
    from epszero.cli.fleet import read_fleet  # noqa: PLC0415
    from epszero.cli.windows import presence, refuse_unreachable, stays  # noqa: PLC0415

    cars = read_fleet(fleet)
    many = len(cars.vehicles)
    own_caps = cars.columns.get("cap", np.full(many, costs.cap))
    where = stays(cars, _known_zone(time_zone))
    present = presence(cars, where, span)
    refuse_unreachable(cars, where, own_caps[:, None] * present, span)
    even = float(cars.columns["need"].mean()) / len(span.hours)
    setting = Setting(
        cars,
        span,
        where,
        present,
        own_caps,
        cars.columns.get("wear", np.zeros(many)),
        cars.columns.get("fee", np.zeros(many)),
        costs.weight,
        even if costs.reference is None else costs.reference,
        costs.capacity,
        read(),
    )
    if costs.capacity is not None:
        wanted = float(setting.need.sum())
        most = ez.models.most_together(setting.caps, setting.need, costs.capacity)
        if most < wanted * (1 - 1e-9):
            refuse(
                "--capacity",
                f"within {costs.capacity:g} kWh an hour all vehicles together can charge {most:.4g} kWh while they are "
                f"there, but they need {wanted:g}",
                "Raise it, lower needs, or let vehicles stay longer",
            )
    return setting


def _known_zone(name: str) -> str:
    """A time zone, refused in the words of the reader of prices."""
    import zoneinfo  # noqa: PLC0415

    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        refuse("--time-zone", f"there is no time zone {name!r}", "Pass a name such as Europe/Amsterdam")
    return name


def _source(prices: Path | None, tomorrow: Path | None, others: dict[str, object]) -> tuple[str, Path]:
    """The option that brings the prices, and its file."""
    if prices is not None and tomorrow is not None:
        refuse("--tomorrow", "is given beside --prices", "Pass --prices for an average day, or --tomorrow for one day")
    if tomorrow is not None:
        for name, value in others.items():
            if value is not None:
                refuse(name, "says how sure a plan is, and with --tomorrow nothing is uncertain", "Leave it out")
        return "--tomorrow", tomorrow
    if prices is None:
        refuse("--prices", "is missing", "Pass a file of prices: --prices prices.csv, or --tomorrow FILE for one day")
    return "--prices", prices


def _read(source: tuple[str, Path], form: Form, span: "Span", asked: "ez.datasets.Options") -> "ez.datasets.Prices":
    option, path = source
    options_: ez.datasets.Options = {**asked, "hours": span.hours, "overnight": span.overnight}
    try:
        return ez.datasets.read_prices(path, **form._asdict(), **options_)
    except ez.InputError as error:
        if error.rule is None or error.remedy is None:
            raise
        name = named(error)
        if name == "values" and isinstance(asked.get("support"), ez.sets.Box):
            rule, remedy = "the file has prices outside of them", "Widen them to all that can happen, or mend the data"
            raise ez.InputError.about("--limits", rule, remedy) from error
        remedy = REMEDIES.get(name, spelt(error.remedy, OPTIONS))
        raise ez.InputError.about(OPTIONS.get(name, option), error.rule, remedy) from error


def _refuse_several(setting: "Setting") -> None:
    days, what = setting.days, "nights" if setting.span.overnight else "days"
    many = len(days.samples)
    if many > 1:
        which = f", from {days.days[0]} to {days.days[-1]}" if days.days else ""
        how = f"Choose one, as in --start {days.days[-1]} --end {days.days[-1]}" if days.days else "Keep one row"
        refuse("--tomorrow", f"the file has {many} {what}{which}, and a plan is for one", how)


def _kind(mixing: str | None, draws: int | None) -> "Kind | None":
    """What certifies: days in their order, unless told."""
    if draws is not None and draws < 1:
        refuse("--draws", f"must be a whole number of days, at least 1, but it is {draws}", "Pass 3000, say")
    if mixing is None:
        return ez.certificates.Prequential() if draws is None else None
    if draws is not None:
        refuse("--mixing", "is given beside --draws, whose days are independent", "Leave one of them out")
    try:
        c, r = (float(word) for word in mixing.split(","))
    except ValueError:
        c, r = -1.0, -1.0
    if not (0 <= c < float("inf") and 0 <= r < 1):
        refuse(
            "--mixing",
            f"must be two numbers C,R with C ≥ 0 and 0 ≤ R < 1, but it is {mixing!r}",
            "Write --mixing 2,0.9 if days a apart depend on each other by at most 2 · 0.9^a, or leave it out",
        )
    return ez.certificates.Dependent(beta=lambda gap: c * r**gap)


def _refuse_amount(option: str, value: float | None) -> None:
    if value is not None and not 0 <= value < float("inf"):
        refuse(option, f"must be a number, at least 0, but it is {value:g}", "Pass such a number")


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
