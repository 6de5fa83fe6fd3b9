"""What the pictures of models ask of a solution; how they draw error bars is that of all pictures (report)."""

from typing import Any

import numpy as np

import epszero as ez
from epszero.models._inputs import FloatArray, refuse
from epszero.report import error_bars
from epszero.report import note as note
from epszero.report import with_bands as with_bands

bars = error_bars


def strategies_of(solution: object, shapes: list[tuple[int, ...]] | tuple[int, ...]) -> Any:
    """solution.x, refused where it cannot belong to the game of these shapes."""
    if not isinstance(solution, ez.Solution):
        refuse("solution", f"must come from ez.solve, but it is a {type(solution).__name__}", "Pass what it returned")
    x = solution.x
    found = [np.shape(one) for one in x] if isinstance(x, list) else np.shape(x)
    if found != shapes:
        refuse("solution", f"has strategies of shape {found}, but this game's are {shapes}", "Pass a solution of it")
    return x


def sample_rows(solution: ez.Solution, width: int) -> FloatArray:
    """All samples that the solution was made of, one per row."""
    samples = solution.samples
    if samples is None:
        refuse("solution", "was found without samples, but this game has them", "Pass a solution of it")
    sets = samples if isinstance(samples, list) else [samples]
    return np.concatenate([np.reshape(one.values, (-1, width)) for one in sets])
