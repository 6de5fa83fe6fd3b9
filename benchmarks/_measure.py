"""Timing: the best of several runs, after a first one that compiles."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table: what we take, what the peer takes, and what the ratio should be."""

    what: str
    ours: float
    peer: float
    ratio: float
    target: str
    met: bool
    unit: str = "s"

    def cells(self) -> tuple[str, ...]:
        """As text."""
        sizes = (shown(self.ours, self.unit), shown(self.peer, self.unit))
        return (self.what, *sizes, f"{self.ratio:.3g}", self.target, "yes" if self.met else "NO")


def best_of(runs: int, call: Callable[[], Any]) -> float:
    """Seconds of the fastest of `runs` calls; one call before that warms up."""
    call()
    times = []
    for _ in range(runs):
        started = perf_counter()
        call()
        times.append(perf_counter() - started)
    return min(times)


def timed(call: Callable[[], Any]) -> float:
    """Seconds of one call, without a first one that warms up."""
    started = perf_counter()
    call()
    return perf_counter() - started


def shown(value: float, unit: str) -> str:
    """With a prefix that suits."""
    if unit != "s":
        return f"{value:.3g} {unit}".rstrip()
    for name, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value / 1e-9:.3g} ns"
