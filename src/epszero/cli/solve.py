"""`epszero solve`: the solution of a user's problem."""

from pathlib import Path
from typing import Annotated

import typer

import epszero as ez
from epszero.cli import options
from epszero.cli.data import Data, check_holdout
from epszero.cli.model import split
from epszero.cli.output import check_places, emit, screen, show, write_all
from epszero.cli.run import csv_of, problem_of, record_of, show_point, solved

Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE.csv", help="Write x as CSV.", rich_help_panel=options.OUTPUT, show_default=False),
]


def solve(  # noqa: PLR0913  (one per option)
    ctx: typer.Context,
    model: options.Model,
    *,
    samples: options.SamplesFiles = None,
    columns: options.Columns = None,
    support: options.Support = None,
    drop_missing: options.DropMissing = False,
    draws: options.Draws = None,
    holdout: options.Holdout = None,
    iterations: options.Iterations = None,
    tol: options.Tolerance = None,
    step: options.Step = None,
    seed: options.Seed = 0,
    out: Out = None,
    as_json: options.Json = False,
    report: options.Report = None,
) -> None:
    """Solve a problem from samples, and check the answer.

    **Examples**

    `epszero solve model.py:game --samples prices.csv`

    `epszero solve model.py:game --samples prices.parquet --columns h00,h01,h02 --out x.csv`
    """
    check_holdout(holdout)
    check_places({"--out": out, "--report": report}, {"MODEL": split(model)[0], "--samples": samples})
    files: dict[Path, str | bytes] = {}
    with problem_of(model, "solving", as_json=as_json) as problem:
        data = Data(samples, columns, support, drop_missing, draws, seed).read(problem)
        solution = solved(problem, data, holdout=holdout, iterations=iterations, tol=tol, step=step)
        checks = [f"Checked again from x, z and the data: {solution.check()}."]
        if isinstance(problem, ez.Game | ez.AggregativeGame) and not as_json:
            checks.append(f"Checked by an independent solver: {solution.check_equilibrium()}.")
        record = record_of(solution, seed)
        if out is not None:
            files[out] = csv_of(solution.x)
        if report is not None:
            files[report] = ez.report(solution, title=model, seed=seed, command=ctx.obj).html
    write_all(files)
    if as_json:
        emit(record)
        return
    console = screen()
    for sentence in (solution, *checks):
        show(console, sentence)
    show_point(console, solution)
    for path in files:
        show(console, f"Written: {path}")
