"""`epszero plan`: how many samples it takes, or what so many will give."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import epszero as ez
from epszero.cli import options
from epszero.cli.data import Data, box, check_delta
from epszero.cli.endings import REFUSED, refuse, tell
from epszero.cli.model import split
from epszero.cli.output import check_places, emit, screen, show, write_all
from epszero.cli.run import problem_of

OPTIONS = {  # of `epszero certify --using`
    "MeanDeviation(Hoeffding())": "hoeffding",
    "MeanDeviation(McDiarmid())": "mcdiarmid",
    "Anytime(Hoeffding())": "anytime-hoeffding",
    "VectorStability()": "vector-stability",
}


class Measure(StrEnum):
    """What a target speaks of."""

    RESIDUAL = "residual"
    DISTANCE = "distance"
    EXPLOITABILITY = "exploitability"
    COST_GAP = "cost-gap"


Target = Annotated[float | None, typer.Option(metavar="EPS", help="The bound that is wanted.", show_default=False)]
Size = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Instead: what will so many give?", show_default=False)
]
Of = Annotated[Measure, typer.Option(help="What the bound is of.")]
Dim = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        rich_help_panel=options.DATA,
        show_default=False,
        help="Numbers in a sample, where there is no file yet but a --support.",
    ),
]


def plan(  # noqa: PLR0913  (one per option)
    ctx: typer.Context,
    model: options.Model,
    *,
    target: Target = None,
    size: Size = None,
    of: Of = Measure.RESIDUAL,
    delta: options.Delta = 0.05,
    samples: options.SamplesFiles = None,
    columns: options.Columns = None,
    support: options.Support = None,
    dim: Dim = None,
    drop_missing: options.DropMissing = False,
    draws: options.Draws = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    report: options.Report = None,
) -> None:
    """Say how many samples a bound takes, before there are any.

    --samples is a pilot, with its --support: it says what the usual certificate will need. Without one, --support and
    --dim say what is enough whatever the data.

    **Examples**

    `epszero plan model.py:game --samples pilot.csv --support=-0.5,4 --target 0.2 --of distance`

    `epszero plan model.py:game --support 0,0.5 --dim 14 --size 3000`
    """
    check_delta(delta)
    if (target is None) == (size is None):
        refuse("--target, --size", "exactly one of them must be given", "Pass --target 0.1, or --size 3000")
    if target is not None and not 0 < target < float("inf"):
        refuse("--target", f"must be a number above 0, but it is {target:g}", "Pass 0.1, say")
    if dim is not None and (samples or not support):
        refuse("--dim", "is for a --support without --samples", "Leave it out, or pass --support=LO,HI alone")
    check_places({"--report": report}, {"MODEL": split(model)[0], "--samples": samples})
    files: dict[Path, str | bytes] = {}
    with problem_of(model, "planning", as_json=as_json) as problem:
        if not samples and support and problem.oracle.uncertain:
            data = _known_range(support[0], dim)
        else:
            data = Data(samples, columns, support, drop_missing, draws, seed).read(problem)
        made = ez.plan(problem, target, delta, of=of.replace("-", " "), samples=data, size=size)
        if report is not None:
            files[report] = ez.report(made, title=model, seed=seed, command=ctx.obj).html
    write_all(files)
    some = bool(made.advice)
    if as_json:
        sure, rows = made.promised, [_told(row) for row in made.rows]
        best, promised = _told(made.best) if some else None, _told(sure[0]) if sure else None
        emit({"question": made.question, "best": best, "promised": promised, "rows": rows, "advice": made.advice})
    else:
        console = screen()
        show(console, made)
        if some:
            show(console, _option(made))
        for path in files:
            show(console, f"Written: {path}")
    if not some:
        tell("No kind of certificate can say that. Pass a --support, declare constants in the model, or ask less.")
        raise typer.Exit(REFUSED)


def _told(row: Any) -> dict[str, object]:
    """A row for scripts: `call` is what to run; `using` is null for the default certificate, which promises nothing."""
    told = {"kind": row.kind, "answer": row.answer, "promised": row.promised}
    return {**told, "using": row.written, "call": row.call, "note": row.note}


def _option(made: "ez.certificates.Plan") -> str:
    """How to say `best.call` at the command line."""
    written = made.best.written
    if written is None:
        return "At the command line: epszero certify, without --using."
    option = f"epszero certify --using {OPTIONS[written]}" if written in OPTIONS else "there is no option for it"
    return f"At the command line: {option}."


def _known_range(support: str, dim: int | None) -> "ez.sets.Box":
    if dim is None and ":" not in support:
        refuse("--dim", "is needed: without --samples nothing says how many numbers a sample has", "Pass --dim 14, say")
    return box(support, dim)
