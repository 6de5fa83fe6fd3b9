"""`epszero audit`: which assumption holds, which is declared, which is violated."""

import json
from pathlib import Path
from typing import Annotated

import typer

import epszero as ez
from epszero.cli import options
from epszero.cli.data import Data
from epszero.cli.endings import refuse
from epszero.cli.model import split
from epszero.cli.output import check_places, emit, screen, show, write_all
from epszero.cli.run import problem_of

Budget = Annotated[
    float,
    typer.Option(metavar="F", help="Work for verified constants of nonlinear problems; 1 is what certify spends."),
]


def audit(  # noqa: PLR0913  (one per option)
    ctx: typer.Context,
    model: options.Model,
    *,
    samples: options.SamplesFiles = None,
    columns: options.Columns = None,
    support: options.Support = None,
    drop_missing: options.DropMissing = False,
    draws: options.Draws = None,
    budget: Budget = 1.0,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    report: options.Report = None,
) -> None:
    """Say where each constant comes from, and which assumption holds, is declared or is violated.

    An audit that finds a violation is a finished audit: its exit code is 0.

    **Examples**

    `epszero audit model.py:game --samples prices.csv --support=-0.5,4`

    `epszero audit model.py:game --samples prices.csv --json`
    """
    if not 0 < budget < float("inf"):
        refuse("--budget", f"must be a number above 0, but it is {budget:g}", "Pass 1, or more for tighter constants")
    check_places({"--report": report}, {"MODEL": split(model)[0], "--samples": samples})
    files: dict[Path, str | bytes] = {}
    with problem_of(model, "auditing", as_json=as_json) as problem:
        data = Data(samples, columns, support, drop_missing, draws, seed).read(problem)
        found = ez.audit(problem, data, budget=budget, seed=seed)
        if report is not None:
            files[report] = ez.report(found, title=model, seed=seed, command=ctx.obj).html
    write_all(files)
    if as_json:
        emit(json.loads(found.to_json()))
        return
    console = screen()
    show(console, found)
    for path in files:
        show(console, f"Written: {path}")
