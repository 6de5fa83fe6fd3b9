"""`Solution`: a point, an element of A there, and how they were found."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from epszero._checks import known_arguments
from epszero._doors import html_of, saved
from epszero._double import double, to_numpy
from epszero._frames import Library, framed
from epszero._points import add, flat_of, norm
from epszero._types import FloatArray, PyTree
from epszero.methods import Method
from epszero.oracles import PrimalDual
from epszero.problems import Problem
from epszero.samples import Samples
from epszero.solve.equilibrium import EquilibriumCheck, equilibrium_check
from epszero.solve.labels import listed, named_rows, table
from epszero.solve.recognised import subgradient_near
from epszero.solve.setup import averaged, values_of
from epszero.solve.status import Status


@dataclass(frozen=True)
class Trace:
    """The residual at chosen iterations."""

    iterations: "np.ndarray[Any, np.dtype[np.int64]]"
    residual: FloatArray

    def __len__(self) -> int:
        return len(self.iterations)


@dataclass(frozen=True)
class Check:
    """A solution looked at again, from x, z and the samples alone."""

    in_domain: bool  # x ∈ dom A
    gap: float  # how far z is from A(x): 0 when z ∈ A(x), up to rounding
    residual: float  # ‖z + B̂(x)‖, recomputed

    def __str__(self) -> str:
        where = "in" if self.in_domain else "NOT in"
        return f"x {where} the domain, z in A(x) up to {abs(self.gap):.1e}, residual {self.residual:.3e}"


@dataclass(frozen=True, eq=False)
class Solution:
    """x ∈ dom A, z ∈ A(x), and the residual ‖z + B̂(x)‖; with shared constraints also their multipliers."""

    point: PyTree = field(repr=False)  # x; with shared constraints (x, multipliers), which x0= takes as it is
    element: PyTree = field(repr=False)  # of A at that point
    residual: float
    iterations: int  # K: the output is x^{K+1}, as in the paper
    status: Status
    notes: tuple[str, ...]  # what a user should know: x0 was projected, ...
    trace: Trace
    step: Any  # the step sizes of the last iteration
    problem: Problem = field(repr=False)
    samples: Samples | list[Samples] | None = field(repr=False)
    method: Method = field(repr=False)
    holdout: Samples | None = field(default=None, repr=False)
    fixed_iterations: bool = False  # exactly K iterations were asked for, whatever the data
    start: PyTree = field(default=None, repr=False)  # x⁰, with multipliers where constraints are shared
    asked: Method | None = field(default=None, repr=False)  # the method as the user gave it; None where it was chosen
    finished: str = ""  # by what the run was finished, where it was not by the method alone (solve/newton.py)
    exact: bool = False  # B̂ affine over polyhedra, and finished so that the residual is of rounding size
    subgradient: PyTree = field(default=None, repr=False)  # of f̂ at x where the loss has kinks: B̂(x) in the residual

    @property
    def x(self) -> PyTree:
        """The answer: strategies, or whatever the problem asks for."""
        return self.point.x if isinstance(self.point, PrimalDual) else self.point

    @property
    def z(self) -> PyTree:
        """An element of A(x): of the normal cone or subdifferential there."""
        return self.element.x if isinstance(self.element, PrimalDual) else self.element

    @property
    def multipliers(self) -> FloatArray | None:
        """λ ≥ 0, one per shared constraint; None where there are none."""
        return self.point.multipliers if isinstance(self.point, PrimalDual) else None

    @property
    def message(self) -> str:
        """The status in a sentence, with its remedy and the notes."""
        residual = f", residual {self.residual:.3e}" if np.isfinite(self.residual) else ""
        head = f"{self.status.value} at iteration {self.iterations}{residual}"
        finished = f", finished by {self.finished}" if self.finished else ""
        finished += ": exact to rounding" if self.exact else ""
        sentences = (f"{head} ({self.method.description}{finished}).", self.status.remedy, *self.notes)
        return " ".join(sentence for sentence in sentences if sentence)

    def check(self) -> Check:
        """Recompute from x, z and the samples: is x in the domain, is z in A(x), how large is the residual."""
        A = self.problem.A
        with double():
            residual = float(norm(add(self.element, self._slope())))
            return Check(A.in_domain(self.point), A.gap(self.point, self.element), residual)

    def _slope(self) -> PyTree:
        """B̂(x); where the loss has kinks, the element of ∂f̂(x) nearest the one that is given."""
        data = values_of(self.samples)
        if self.subgradient is not None:
            return subgradient_near(self.problem, data, self.point, self.subgradient)
        return to_numpy(averaged(self.problem, self.samples, self.point)(self.point))

    @known_arguments
    def check_equilibrium(self, agents: Sequence[int] | None = None) -> EquilibriumCheck:
        """What each agent could save by deviating alone, found by an independent solver, under the samples' law.

        `agents`: which ones; by default all of them, or in a game with more than a thousand the hundred with the
        largest bound on their saving. With shared constraints an agent deviates within them, the others' strategies
        held still.
        """
        return equilibrium_check(self.problem, values_of(self.samples), self.point, agents)

    @known_arguments
    def to_frame(self, agents: Sequence[str] | None = None, library: Library = "polars") -> Any:
        """The answer as a DataFrame, of Polars or pandas.

        Of agents alike, and of one array with several axes: a line for each agent or row, a column for each entry. Of
        all else: a line for each entry, with the agent or part that it belongs to. Entries have the names of the
        columns of the samples where a strategy has as many. `agents`: names for the agents.
        """
        wide = table(self.problem, self.x, self.samples)
        values = {"x": flat_of(self.x)} if wide is None else {}
        columns = listed(self.problem, self.x, self.samples) if wide is None else wide
        return framed(named_rows(columns, agents) | values, library)

    @known_arguments
    def save(self, path: str | os.PathLike[str], data: bool = True) -> Path:
        """Write it to one file, from which `ez.load(path, problem)` reads it again; gives the name.

        The samples go with it, unless `data=False`: then `ez.load` wants them again. Nothing in it can be executed.
        """
        return saved(self, path, data)

    _repr_html_ = html_of

    def __str__(self) -> str:
        return self.message
