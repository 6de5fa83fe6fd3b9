"""`reproduce`: from names of experiments to files, piece by piece, so that nothing finished is done twice."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import epszero as ez
from epszero.experiments import (
    convergence,
    coverage,
    dependent,
    fig1,
    fig2,
    fig3,
    fig4,
    growth,
    likely,
    references,
    splitting,
    table2,
    tightness,
)
from epszero.experiments._outcome import Experiment, Result, Setting, checked_names, written
from epszero.experiments._store import Arrays, Store

EXPERIMENTS: dict[str, Experiment] = {
    "fig1": fig1,
    "fig2": fig2,
    "fig3": fig3,
    "fig4": fig4,
    "table2": table2,
    "references": references,
    "tightness": tightness,
    "coverage": coverage,
    "convergence": convergence,
    "growth": growth,
    "dependent": dependent,
    "splitting": splitting,
    "likely": likely,
}
NAMES = tuple(EXPERIMENTS)
TITLES = {name: one.TITLE for name, one in EXPERIMENTS.items()}
Progress = Callable[[str, int, int], None]  # name, pieces finished, pieces in all


def reproduce(
    names: Sequence[str] | str,
    out: str | os.PathLike[str],
    *,
    trials: int = 50,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Result]:
    """Run experiments and write their tables, figures and comparisons into the folder `out`.

    `names`: some of `NAMES`, or "all". `trials`: data sets per setting, 50 in the paper. Everything follows from
    `seed`. What is finished is kept in `out`, whole or not at all: the same call after a kill goes on where it was.
    `progress` is called with the name, how many pieces of work are done, and how many there are.
    """
    chosen = checked_names(names, NAMES)
    place = Path(out)
    if place.exists() and not place.is_dir():
        raise ez.InputError.about("out", f"{place} is a file", "Name a folder")
    setting = Setting(_count("trials", trials, 2), _count("seed", seed, 0))
    return [_one(name, setting, place, progress or _silent) for name in chosen]


def _one(name: str, setting: Setting, out: Path, progress: Progress) -> Result:
    experiment, store = EXPERIMENTS[name], Store.within(out, setting.seed)
    pieces = experiment.pieces(setting)
    found: list[Arrays | None] = [store.find(piece) for piece in pieces]
    done = sum(one is not None for one in found)
    progress(name, done, len(pieces))
    for place, piece in enumerate(pieces):
        if found[place] is None:
            found[place] = piece.run()
            store.keep(piece, found[place] or {})
            done += 1
            progress(name, done, len(pieces))
    outcome = experiment.outcome(setting, [one for one in found if one is not None])
    return written(name, experiment.TITLE, outcome, setting, out)


def _silent(name: str, done: int, total: int) -> None:
    del name, done, total


def _count(argument: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        rule = f"must be a whole number ≥ {least}, but it is {value!r}"
        raise ez.InputError.about(argument, rule, "Pass such a number")
    return value
