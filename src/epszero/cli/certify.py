"""`epszero certify`: how far the answer can be from the truth behind the samples."""

import json
import math
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import epszero as ez
from epszero.cli import options
from epszero.cli.data import Data, check_delta, check_holdout
from epszero.cli.endings import REFUSED, refuse, tell
from epszero.cli.model import split
from epszero.cli.output import check_places, emit, screen, show, write_all
from epszero.cli.run import problem_of, solved

if TYPE_CHECKING:
    from epszero.certificates import Kind


class KindName(StrEnum):
    """Kinds of certificate by name."""

    MEAN_DEVIATION = "mean-deviation"
    HOLD_OUT = "hold-out"
    VECTOR_STABILITY = "vector-stability"
    ANYTIME = "anytime"
    PREQUENTIAL = "prequential"
    DEPENDENT = "dependent"
    ESTIMATED = "estimated-support"
    ASYMPTOTIC = "asymptotic"
    BOOTSTRAP = "bootstrap"
    MULTIPLE = "multiple-replications"
    TWO = "two-replications"
    BAGGING = "bagging"
    REPAIRED = "repaired-stability"
    UNIFORM = "uniform-stability"
    HOEFFDING = "hoeffding"
    MCDIARMID = "mcdiarmid"
    ANYTIME_HOEFFDING = "anytime-hoeffding"

    def made(self, beta: str | None = None) -> "Kind":
        """The object that `ez.certify(using=…)` takes; `beta`: how fast samples forget, for dependent ones."""
        kinds = ez.certificates
        if self is KindName.DEPENDENT:
            return kinds.Dependent(beta=_rate(beta))
        if beta is not None:
            refuse("--beta", f"is a rate of mixing, and {self.value} knows of none", "Pass --using dependent with it")
        return {
            KindName.MEAN_DEVIATION: kinds.MeanDeviation,
            KindName.HOLD_OUT: kinds.HoldOut,
            KindName.VECTOR_STABILITY: kinds.VectorStability,
            KindName.ANYTIME: kinds.Anytime,
            KindName.PREQUENTIAL: kinds.Prequential,
            KindName.ESTIMATED: lambda: kinds.MeanDeviation(support="estimated"),
            KindName.ASYMPTOTIC: kinds.Asymptotic,
            KindName.BOOTSTRAP: kinds.Bootstrap,
            KindName.MULTIPLE: kinds.MultipleReplications,
            KindName.TWO: kinds.TwoReplications,
            KindName.BAGGING: kinds.Bagging,
            KindName.REPAIRED: kinds.RepairedStability,
            KindName.UNIFORM: kinds.UniformStability,
            KindName.HOEFFDING: lambda: kinds.MeanDeviation(kinds.Hoeffding()),
            KindName.MCDIARMID: lambda: kinds.MeanDeviation(kinds.McDiarmid()),
            KindName.ANYTIME_HOEFFDING: lambda: kinds.Anytime(kinds.Hoeffding()),
        }[self]()


def _rate(beta: str | None) -> Callable[[int], float]:
    """β(a) = C·R^a from "C,R"."""
    try:
        c, r = (float(word) for word in (beta or "").split(","))
    except ValueError:
        c, r = math.nan, math.nan
    if not (0 <= c < math.inf and 0 <= r < 1):
        shown = (
            "is missing" if beta is None else f"must be two numbers C,R with C ≥ 0 and 0 ≤ R < 1, but it is {beta!r}"
        )
        refuse("--beta", shown, "Pass --beta 2,0.9 if β(a) ≤ 2 · 0.9^a; --using prequential needs none")
    return lambda gap: c * r**gap


Beta = Annotated[
    str | None,
    typer.Option(
        metavar="C,R",
        help="For --using dependent: samples a apart depend on each other by at most β(a) = C·R^a. Your word.",
        show_default=False,
    ),
]
Using = Annotated[
    KindName | None,
    typer.Option(help="The kind of certificate; by default the one that suits the problem.", show_default=False),
]


def certify(  # noqa: PLR0913  (one per option)
    ctx: typer.Context,
    model: options.Model,
    *,
    samples: options.SamplesFile = None,
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
    """
    check_delta(delta)
    kind = _kind(using, beta)
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


def _kind(using: KindName | None, beta: str | None) -> "Kind | None":
    if using is None and beta is not None:
        refuse("--beta", "is given without --using dependent", "Pass both, or neither")
    return None if using is None else using.made(beta)


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
    if isinstance(samples, ez.Samples) and samples.support is None and certificate.solution.problem.oracle.uncertain:
        return (
            "If you know where every possible sample lies, say so: --support=LO,HI; if not, --using estimated-support "
            "takes the range of the data, and the certificate is heuristic."
        )
    return ""
