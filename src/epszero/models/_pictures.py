"""What the pictures of models ask of a solution and of its certificate, and how they draw error bars."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

import epszero as ez
from epszero.models._inputs import FloatArray, refuse
from epszero.report import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

LETTERS = 13.0  # of a note on an inch
BARS = "black"


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


def with_bands(certificate: object, solution: ez.Solution) -> "ez.Certificate | None":
    """The certificate, where it has error bars for the picture; refused where it is of another solution."""
    if certificate is None:
        return None
    if not isinstance(certificate, ez.Certificate):
        kind = type(certificate).__name__
        refuse(
            "certificate", f"must come from ez.certify, but it is a {kind}", "Pass what it returned, or leave it out"
        )
    other = certificate.solution
    if other is not None and other is not solution and not _same(other.x, solution.x):
        refuse("certificate", "speaks of another solution", "Pass the certificate of this solution")
    return None if certificate.without_intervals else certificate


def _same(one: Any, other: Any) -> bool:
    left, right = (list(x) if isinstance(x, list) else [x] for x in (one, other))
    return len(left) == len(right) and all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def bars(
    ax: "Axes", places: "ArrayLike", lower: FloatArray, upper: FloatArray, label: str = "", thick: float = 1.4
) -> None:
    """From lower to upper; thick ones with ends, which are seen where the rest is short."""
    ax.vlines(places, lower, upper, color=BARS, linewidth=thick, zorder=5, label=label or "_nolegend_")
    for ends in (lower, upper) if thick > 1 else ():
        ax.plot(places, ends, "_", color=BARS, markersize=2.5 + 2.5 * thick, markeredgewidth=thick, zorder=5)


def note(sheet: "Figure", certificate: "ez.Certificate | None") -> None:
    """Below the figure: how sure its error bars are, or why there are none."""
    if certificate is None:
        return
    why = certificate.without_intervals
    guess = ", as a guess," if certificate.verdict == "heuristic" else ""
    sure = f"error bars: with {100 * (1 - certificate.delta):.6g} %{guess} all hold together, with the certificate"
    text = f"without error bars: {why}" if why else sure
    letters = int(LETTERS * sheet.get_figwidth())
    sheet.supxlabel(textwrap.fill(text, letters), fontsize=8, color=GREY, x=0.01, ha="left")
