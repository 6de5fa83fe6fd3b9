"""Kinds of certificate by name, as `--using` takes them."""

import difflib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

import epszero as ez
from epszero.cli.endings import refuse

if TYPE_CHECKING:
    from epszero.certificates import Kind

CLASSES = {  # name: of which class, by name, so that completion and --help load none of them
    "mean-deviation": "MeanDeviation",
    "certified-piece": "CertifiedPiece",
    "at-the-truth": "AtTheTruth",
    "hold-out": "HoldOut",
    "vector-stability": "VectorStability",
    "anytime": "Anytime",
    "prequential": "Prequential",
    "asymptotic": "Asymptotic",
    "bootstrap": "Bootstrap",
    "multiple-replications": "MultipleReplications",
    "two-replications": "TwoReplications",
    "bagging": "Bagging",
    "repaired-stability": "RepairedStability",
    "uniform-stability": "UniformStability",
    "known": "Known",
}
OTHERS: "dict[str, Callable[[], Kind]]" = {  # with arguments
    "estimated-support": lambda: ez.certificates.MeanDeviation(support="estimated"),
    "hoeffding": lambda: ez.certificates.MeanDeviation(ez.certificates.Hoeffding()),
    "mcdiarmid": lambda: ez.certificates.MeanDeviation(ez.certificates.McDiarmid()),
    "anytime-hoeffding": lambda: ez.certificates.Anytime(ez.certificates.Hoeffding()),
}
DEPENDENT = "dependent"
NAMES = (*CLASSES, *OTHERS, DEPENDENT)


def _completed(incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in NAMES if name.startswith(last)]


Beta = Annotated[
    str | None,
    typer.Option(
        metavar="C,R",
        help="For --using dependent: samples a apart depend on each other by at most β(a) = C·R^a. Your word.",
        show_default=False,
    ),
]
Using = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help=f"The kind of certificate; by default the one that suits the problem. One of {', '.join(NAMES)}; or "
        "several with commas between: the tightest of them, delta split among them.",
        autocompletion=_completed,
        show_default=False,
    ),
]


def kind_of(using: str | None, beta: str | None) -> "Kind | None":
    """The object that `ez.certify(using=…)` takes; `beta`: how fast samples forget, for dependent ones."""
    if using is None:
        if beta is not None:
            refuse("--beta", "is given without --using dependent", "Pass both, or neither")
        return None
    names = [name.strip().lower() for name in using.split(",")]
    for name in names:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            refuse("--using", f"there is no kind {name!r} of certificate", f"{hint}There are: {', '.join(NAMES)}")
        if names.count(name) > 1:
            refuse("--using", f"names {name} more than once", "Name each kind once")
    if beta is not None and DEPENDENT not in names:
        refuse("--beta", f"is a rate of mixing, and {using} knows of none", "Pass --using dependent with it")
    made = [_made(name, beta) for name in names]
    return made[0] if len(made) == 1 else ez.certificates.Tightest(made)


def _made(name: str, beta: str | None) -> "Kind":
    if name == DEPENDENT:
        return ez.certificates.Dependent(beta=_rate(beta))
    return OTHERS[name]() if name in OTHERS else getattr(ez.certificates, CLASSES[name])()


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
