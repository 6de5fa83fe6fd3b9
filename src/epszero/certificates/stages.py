"""The noise at x̂ where O is affine in x: points that earlier samples fix, nearer and nearer to x̂.

Claim: let p = p_0 < p_1 < … < p_K = s, x̃_k a function of the first p_k samples, and X_i = O(x̃_k, ξ_i) for the samples
i = p_k + 1 … p_{k+1}. Given the samples before, X_i has the mean B(x̃_k) and O(·, ξ_i) is new, so the vector empirical
Bernstein bound (mean/empirical_bernstein.py, whose proof takes one conditional mean after another) says of the
r = s − p samples, for W and w that the pilot fixes, c_k ≥ sup_ξ ‖W(O(x̃_k, ξ) − m_k)‖ and centres m_k that the first
p_k samples fix, with probability ≥ 1 − δ_W
    ‖W(X̄ − (1/r) Σ B(x̃_k(i)))‖ ≤ (ln(2/δ_W) + Σ_k ψ(c_k w)V_k/c_k²)/(rw),   V_k = Σ_{i of k} ‖W(X_i − m_k)‖².
B is affine, so the mean of B(x̃_k(i)) is B(x̄), x̄ the mean of x̃_k(i), and
    e = z + B(x̂) = z + X̄ + Ĥ(x̂ − x̄) + (B(x̄) − X̄) + (H − Ĥ)(x̂ − x̄):
the last term is a bound on the mean of H(ξ) (truth.py) times ‖x̂ − x̄‖, which is about a third of ‖x̂ − x̃_0‖.
Assumes what AtTheTruth assumes. Source: docs/theory.md, section 9. Cost: K solves.
"""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from epszero._points import flat_of
from epszero._trace.intervals import Interval
from epszero._types import FloatArray, PyTree
from epszero.certificates.case import Case
from epszero.certificates.local import farthest
from epszero.certificates.mean.empirical_bernstein import LARGEST
from epszero.certificates.pilot import local_of
from epszero.certificates.truth import Aim, Ground
from epszero.problems import ConvexityWarning
from epszero.samples import Samples
from epszero.solve import solve

GROWTH = 2  # p_{k+1}/p_k


class Stage(NamedTuple):
    """Samples that meet one point."""

    x: FloatArray  # x̃_k
    around: Interval | None  # O(x̃_k, ξ) over the support
    centre: FloatArray  # m_k
    values: FloatArray  # X_i


@dataclass(frozen=True, eq=False)
class Stages:
    """All of them."""

    every: list[Stage]

    @property
    def many(self) -> int:
        """r."""
        return sum(len(stage.values) for stage in self.every)

    @property
    def x(self) -> FloatArray:
        """x̄."""
        return sum((len(stage.values) * stage.x for stage in self.every), np.zeros_like(self.every[0].x)) / self.many

    @property
    def mean(self) -> FloatArray:
        """X̄."""
        return np.mean(np.concatenate([stage.values for stage in self.every]), axis=0)

    def radius(self, aim: Aim) -> float:
        """Of W(X̄ − B(x̄))."""
        return aim.over(self.many, [_moments(stage, aim.W) for stage in self.every])


def _moments(stage: Stage, W: FloatArray) -> tuple[float, float]:
    c = np.inf if stage.around is None else farthest(stage.around, stage.centre, W)
    return c, float(np.sum(((stage.values - stage.centre) @ W.T) ** 2))


def stages_of(case: Case, samples: Samples, ground: Ground, x: PyTree, aims: list[Aim]) -> Stages:
    """From the pilot's solution x on; `ground`: the pilot and the other samples about x̂."""
    both = [(ground.pilot.values, ground.local.values), (ground.pilot.slopes, ground.local.slopes)]
    values, slopes = (np.concatenate(parts) for parts in both)
    p, s = len(ground.pilot.rows), len(values)
    found: list[Stage] = []
    while p < s:
        after = min(GROWTH * p, s)

        def at(x: PyTree, p: int = p, after: int = after) -> Stage:
            local = local_of(case, x, samples[:1])
            moved = values[:after] + slopes[:after] @ (local.flat - flat_of(case.x))
            return Stage(local.flat, local.over_support, np.mean(moved[:p], axis=0), moved[p:])

        nearer = _solved(case, samples[:p], x) if found else x
        stage = at(nearer)
        if found and any(_moments(stage, aim.W)[0] * aim.w >= LARGEST for aim in aims):
            nearer, stage = x, at(x)  # the range at the new point is too wide for the weights
        x = nearer
        found.append(stage)
        p = after
    return Stages(found)


def _solved(case: Case, samples: Samples, x: PyTree) -> PyTree:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexityWarning)
        return solve(case.problem, samples, x0=x, throw=False).x
