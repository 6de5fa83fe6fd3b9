"""`epszero certify`: how far the answer can be from the truth behind the samples."""

import json
from pathlib import Path
from typing import Any

import typer

import epszero as ez
from epszero.cli import options
from epszero.cli.data import Data, check_delta, check_holdout
from epszero.cli.endings import REFUSED, tell
from epszero.cli.kinds import Beta, Using, kind_of
from epszero.cli.model import split
from epszero.cli.output import check_places, emit, screen, show, write_all
from epszero.cli.run import problem_of, solved


def certify(  # noqa: PLR0913  (one per option)
    ctx: typer.Context,
    model: options.Model,
    *,
    samples: options.SamplesFiles = None,
    columns: options.Columns = None,
    support: options.Support = None,
    drop_missing: options.DropMissing = False,
    draws: options.Draws = None,
    holdout: options.Holdout = None,
    delta: options.Delta = 0.05,
    using: Using = None,
    beta: Beta = None,
    iterations: options.Iterations = None,
    tol: options.Tolerance = None,
    step: options.Step = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    report: options.Report = None,
) -> None:
    """Solve a problem from samples, and certify the answer.

    **Examples**

    `epszero certify model.py:game --samples prices.csv --support=-0.5,4`

    `epszero certify model.py:game --samples days.csv --support=-0.5,4 --draws 3000 --report report.html`

    `epszero certify model.py:loss --samples data.csv --holdout 0.3 --json > certificate.json`

    `epszero certify model.py:game --samples days.csv --support=-0.5,4 --using prequential`

    `epszero certify model.py:duel --samples first.csv --samples second.csv --support=0,1`
    """
    check_delta(delta)
    kind = kind_of(using, beta)
    check_holdout(holdout)
    check_places({"--report": report}, {"MODEL": split(model)[0], "--samples": samples})
    files: dict[Path, str | bytes] = {}
    with problem_of(model, "solving and certifying", as_json=as_json) as problem:
        data = Data(samples, columns, support, drop_missing, draws, seed).read(problem)
        solution = solved(problem, data, holdout=holdout, iterations=iterations, tol=tol, step=step)
        certificate = ez.certify(solution, delta, kind)
        if report is not None:
            audit = ez.audit(problem, data, seed=seed)
            page = ez.report(certificate, solution, audit, title=model, seed=seed, command=ctx.obj)
            files[report] = page.html
    write_all(files)
    if as_json:
        emit(json.loads(certificate.to_json()))
    else:
        console = screen()
        show(console, solution)
        show(console, certificate)
        for path in files:
            show(console, f"Written: {path}")
    leave_if_refused(certificate, named=True)


def leave_if_refused(certificate: "ez.Certificate", *, named: bool = False) -> None:
    """Exit code 1 with reason and remedy, where nothing can be said. `named`: the command takes a kind by name."""
    if certificate.verdict == "refused":
        remedy = _remedy(certificate, named)
        why = certificate.reason.split(": ")[0] if remedy else certificate.reason
        tell(f"The certificate is refused: {why.rstrip('.')}. {remedy}".rstrip())
        raise typer.Exit(REFUSED)


def _remedy(certificate: Any, named: bool) -> str:
    """What options can do about it."""
    obstacle, obstacles = certificate.obstacle, ez.certificates.Obstacle
    if obstacle is obstacles.NOT_INDEPENDENT:
        kinds = (
            "--using prequential, for the average over these days of what the past promised; or --using dependent "
            "--beta C,R, if you can declare how fast they forget; or "
        )
        return (
            f"Pass {kinds if named else ''}--draws N for independent draws of the rows, if the law that is meant is "
            "that of a row of the file picked at random."
        )
    if obstacle is obstacles.NOTHING_KEPT_ASIDE:
        return "Pass --holdout 0.3, say: samples that the run never sees."
    samples = certificate.solution.samples
    sets = samples if isinstance(samples, list) else [samples]
    if (
        any(isinstance(one, ez.Samples) and one.support is None for one in sets)
        and certificate.solution.problem.oracle.uncertain
    ):
        return (
            "If you know where every possible sample lies, say so: --support=LO,HI; if not, --using estimated-support "
            "takes the range of the data, and the certificate is heuristic."
        )
    return ""
