"""`Solutions`: what `solve_many` returns, a sequence of solutions of one problem, with what they have in common."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final, overload

import jax
import numpy as np

from epszero._checks import known_arguments
from epszero._doors import certified
from epszero._types import FloatArray, PyTree
from epszero.solve.solution import Solution
from epszero.solve.status import Status


@final
class Solutions(Sequence[Solution]):
    """Solutions of one problem from several data sets, in their order; a slice is such a sequence, too."""

    def __init__(self, solutions: Iterable[Solution]) -> None:
        self._solutions = tuple(solutions)

    @overload
    def __getitem__(self, index: int) -> Solution: ...
    @overload
    def __getitem__(self, index: slice) -> "Solutions": ...
    def __getitem__(self, index: int | slice) -> "Solution | Solutions":
        found = self._solutions[index]
        return Solutions(found) if isinstance(found, tuple) else found

    def __len__(self) -> int:
        return len(self._solutions)

    def __iter__(self) -> Iterator[Solution]:
        return iter(self._solutions)

    @property
    def x(self) -> PyTree:
        """All answers, stacked along a new first axis."""
        return jax.tree.map(lambda *leaves: np.stack(leaves), *(one.x for one in self))

    @property
    def residuals(self) -> FloatArray:
        """‖z + B̂(x)‖ of each."""
        return np.array([one.residual for one in self])

    @property
    def statuses(self) -> list[Status]:
        """How each run ended."""
        return [one.status for one in self]

    @known_arguments
    def certify(self, delta: float = 0.05, using: Any = None, of: str | None = None) -> list[Any]:
        """A certificate for each, at level δ each: `ez.certify_many`, whose arguments these are."""
        return certified(self, delta, using, of)

    def __repr__(self) -> str:
        ended = ", ".join(f"{many} {status.value}" for status, many in Counter(self.statuses).items())
        worst = f"; residuals up to {np.max(self.residuals):.3g}" if len(self) else ""
        return f"Solutions({len(self)}: {ended or 'none'}{worst})"
