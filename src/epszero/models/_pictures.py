"""What the pictures of models share. Matplotlib is loaded with the first picture; nothing is shown or saved."""

from typing import TYPE_CHECKING, Any

import numpy as np

import epszero as ez
from epszero.models._inputs import FloatArray, refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito: told apart by colour-blind readers too
BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
GREY = "#777777"
SPREAD = (10, 90)  # percentiles between which a band lies


def figure(width: float, height: float) -> "Figure":
    """An empty figure that arranges its axes without overlaps."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (a second of loading, for those who draw)

    return Figure(figsize=(width, height), layout="constrained")


def tidy(*axes: "Axes") -> None:
    """No frame where there is no axis, and a faint grid behind the data."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", alpha=0.3, linewidth=0.6)
        ax.set_axisbelow(True)


def beside(ax: "Axes") -> None:
    """The legend, where it covers nothing."""
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)


def whole(ax: "Axes") -> None:
    """Marks at whole numbers only, for what is counted."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415  (as above)

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def strategies_of(solution: Any, shapes: list[tuple[int, ...]] | tuple[int, ...]) -> Any:
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
