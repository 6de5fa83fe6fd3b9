"""`Solution`: a point, an element of A there, and how they were found."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from epszero._double import to_numpy
from epszero._points import add, norm
from epszero._types import FloatArray, PyTree
from epszero.methods import Method
from epszero.problems import Problem
from epszero.samples import Samples
from epszero.solve.setup import averaged
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
    """x ∈ dom A, z ∈ A(x), and the residual ‖z + B̂(x)‖."""

    x: PyTree
    z: PyTree
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

    @property
    def message(self) -> str:
        """The status in a sentence, with its remedy and the notes."""
        head = f"{self.status.value} at iteration {self.iterations}, residual {self.residual:.3e}"
        sentences = (f"{head} ({self.method.description}).", self.status.remedy, *self.notes)
        return " ".join(sentence for sentence in sentences if sentence)

    def check(self) -> Check:
        """Recompute from x, z and the samples: is x in the domain, is z in A(x), how large is the residual."""
        with jax.enable_x64(True):
            mean = averaged(self.problem, self.samples, self.x)
            residual = float(norm(add(self.z, to_numpy(mean(self.x)))))
            return Check(self.problem.A.in_domain(self.x), self.problem.A.gap(self.x, self.z), residual)

    def __str__(self) -> str:
        return self.message
