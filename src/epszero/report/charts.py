"""Charts as geometry: axes with ticks, paths and dots, which the templates turn into inline SVG that follows the theme.

Points with values that are not finite, or not positive on a log axis, are left out.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from epszero._types import FloatArray

WIDTH, HEIGHT = 640.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 74.0, 16.0, 14.0, 48.0
MOST_POINTS = 300  # along an axis; beyond, neighbours are drawn together
LETTER = 7.6  # width of a letter of a tick label


@dataclass(frozen=True)
class Axis:
    """From values to places between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The place of a value, in the units of the picture."""
        low, high, here = (math.log10(one) if self.log else one for one in (self.low, self.high, value))
        return self.start + (here - low) / (high - low) * (self.end - self.start)

    def shows(self, value: float) -> bool:
        """Whether a value has a place."""
        return math.isfinite(value) and (value > 0 or not self.log)

    def ticks(self) -> list[float]:
        """Round numbers, about six."""
        if not self.log:
            raw = (self.high - self.low) / 5
            power = 10.0 ** math.floor(math.log10(raw))
            step = next(one * power for one in (1, 2, 2.5, 5, 10) if one * power >= raw * 0.999)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            return [k * step for k in range(first, last + 1)]
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        every = max(1, math.ceil((last - first) / 7))
        digits = (1, 2, 5) if last - first <= 3 else (1,)
        found = [digit * 10.0**k for k in range(first, last + 1, every) for digit in digits]
        return [one for one in found if self.low * 0.999 <= one <= self.high * 1.001]


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    place: float
    label: str


@dataclass(frozen=True)
class Path:
    """A line or a filled band; `kind` is its class in the style sheet."""

    kind: str
    d: str


@dataclass(frozen=True)
class Dot:
    """A point; `kind` is its class in the style sheet."""

    kind: str
    x: float
    y: float
    says: str


@dataclass(frozen=True)
class Chart:
    """What the template draws."""

    name: str  # for ids in the page
    title: str
    says: str  # the text alternative
    x_label: str
    y_label: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    paths: list[Path] = field(default_factory=list[Path])
    dots: list[Dot] = field(default_factory=list[Dot])
    legend: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])  # class, words
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = HEIGHT - BOTTOM


def axes(xs: Sequence[float], ys: Sequence[float], log_x: bool, log_y: bool) -> tuple[Axis, Axis]:
    """Axes that hold all of the values, with some room above and below."""
    return (
        Axis(*_range(xs, log_x, 0.0), LEFT, WIDTH - RIGHT, log_x),
        Axis(*_range(ys, log_y, 0.06), HEIGHT - BOTTOM, TOP, log_y),
    )


def _range(values: Sequence[float], log: bool, room: float) -> tuple[float, float]:
    good = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    low, high = (min(good), max(good)) if good else (1.0, 1.0)
    if log:
        low, high = (low / 2, high * 2) if high / low < 1.001 else (low, high)
        factor = (high / low) ** room
        return low / factor, high * factor
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        away = abs(high) / 2 or 1.0
        return low - away, high + away
    away = room * (high - low)
    return (0.0 if 0 <= low < away else low - away), high + away


def tick_marks(axis: Axis) -> list[Tick]:
    """Ticks with numbers."""
    return [Tick(axis.at(one), short(one)) for one in axis.ticks()]


def short(value: float) -> str:
    """A number on an axis: 0.05, 3 000, 1e-9."""
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 1e6:
        return f"{value:,.6g}".replace(",", "\u2009")
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def line(x: Axis, y: Axis, points: Sequence[tuple[float, float]]) -> str:
    """A path through the points."""
    seen = [(x.at(a), y.at(b)) for a, b in points if x.shows(a) and y.shows(b)]
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in seen) if seen else ""


def convergence(iterations: Iterable[int], residual: Iterable[float]) -> Chart | None:
    """The residual against the iteration; None where there are fewer than two points."""
    points = [(float(k) + 1, float(r)) for k, r in zip(iterations, residual, strict=True) if 0 < r < math.inf]
    if len(points) < 2:
        return None
    x, y = axes([k for k, _ in points], [r for _, r in points], True, True)
    says = (
        f"Line falling from {short(_round(points[0][1]))} after {points[0][0]:.0f} steps to "
        f"{short(_round(points[-1][1]))} after {points[-1][0]:.0f}."
    )
    if points[-1][1] > points[0][1]:
        says = says.replace("falling", "rising")
    return Chart(
        "convergence",
        "Convergence",
        says,
        "steps taken",
        "residual",
        tick_marks(x),
        tick_marks(y),
        [Path("line one", line(x, y, points))],
        [Dot("dot one", x.at(points[-1][0]), y.at(points[-1][1]), "the end")],
    )


@dataclass(frozen=True)
class Profile:
    """Rows of numbers, entry by entry: mean and the band in which most rows lie."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    names: list[str]  # of the entries, or of groups of them


@dataclass(frozen=True)
class Ends:
    """Of error bars, one per entry."""

    lower: FloatArray
    upper: FloatArray


def profile(rows: FloatArray, names: Sequence[str], spread: tuple[int, int]) -> Profile:
    """Of the rows of a matrix; where there are too many columns, of neighbouring ones together."""
    many = rows.shape[1]
    if many > MOST_POINTS:
        edges = np.linspace(0, many, MOST_POINTS + 1).round().astype(int)
        groups = [rows[:, a:b].ravel() for a, b in pairwise(edges.tolist())]
        bands = np.array([np.percentile(group, spread) for group in groups])
        mean = np.array([group.mean() for group in groups])
        return Profile(mean, bands[:, 0], bands[:, 1], [str(names[a]) for a in edges[:-1].tolist()])
    low, high = np.percentile(rows, spread, axis=0)
    return Profile(rows.mean(axis=0), low, high, list(names))


def stairs(
    name: str, title: str, labels: tuple[str, str], found: Profile, kind: str, band: str, ends: Ends | None = None
) -> Chart:
    """A step per entry, with the band behind it and error bars; `band`: what it is, empty where there is none."""
    many = len(found.mean)
    x = Axis(0.0, float(many), LEFT, WIDTH - RIGHT)
    values = [found.mean, found.low, found.high] if band else [found.mean]
    values += [] if ends is None else [ends.lower, ends.upper]
    _, y = axes([0.0], [0.0, *np.concatenate(values).tolist()], False, False)
    longest = max(len(_brief(name)) for name in found.names)
    every = math.ceil(many * (longest + 2) * LETTER / (WIDTH - LEFT - RIGHT))
    ticks = [Tick(x.at(i + 0.5), _brief(found.names[i])) for i in range(0, many, every)]
    paths = [Path(f"line {kind}", _steps(x, y, found.mean))]
    if band:
        back = _steps(x, y, found.low, reverse=True)
        paths.insert(0, Path(f"band {kind}", f"{_steps(x, y, found.high)}L{back[1:]}Z"))
    if ends is not None:
        paths.append(Path("bars", _bars(x, y, ends)))
    top, least = int(np.argmax(found.mean)), int(np.argmin(found.mean))
    says = (
        f"{many} steps; the largest mean is {short(_round(found.mean[top]))} at {found.names[top]}, the least "
        f"{short(_round(found.mean[least]))} at {found.names[least]}."
    )
    legend = [(f"line {kind}", "mean" if band else "value")] + ([(f"band {kind}", band)] if band else [])
    if ends is not None:
        says += f" Error bars, the longest of {short(_round(float(np.max(ends.upper - ends.lower))))}."
        legend.append(("bars", f"error bars of the {'mean' if band else 'value'}"))
    return Chart(name, title, says, *labels, ticks, tick_marks(y), paths, legend=legend)


def _steps(x: Axis, y: Axis, values: FloatArray, reverse: bool = False) -> str:
    corners = [point for i, v in enumerate(values.tolist()) for point in ((i, v), (i + 1, v))]
    return line(x, y, corners[::-1] if reverse else corners)


def _bars(x: Axis, y: Axis, ends: Ends) -> str:
    """A vertical line per entry, with ends."""
    half = min(4.0, 0.3 * (x.at(1.0) - x.at(0.0)))
    drawn: list[str] = []
    for i, (low, high) in enumerate(zip(ends.lower.tolist(), ends.upper.tolist(), strict=True)):
        if y.shows(low) and y.shows(high):
            at, down, up = x.at(i + 0.5), y.at(low), y.at(high)
            drawn.append(f"M{at:.1f} {down:.1f}V{up:.1f}")
            drawn += [f"M{at - half:.1f} {end:.1f}h{2 * half:.1f}" for end in (down, up)]
    return "".join(drawn)


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def _brief(text: str) -> str:
    return text if len(text) <= 8 else f"{text[:7]}…"
