"""Link flows of the true equilibrium, between bounds that hold for all links at once with probability 1 − δ.

Samples make the mean times uncertain: t_e(w; m) with one unknown mean m_e per link, between t_lo and t_hi for m in a
box that holds it with probability 1 − δ (box betting). For flows v̂ with times t̂ at the sample average and the absolute
gap G = Σ v̂ t̂ − Σ demand · quickest of the *whole network*, and for a true equilibrium v*:
    t*(v*)·(v̂ − v*) ≥ 0,    t̂·(v̂ − v*) ≤ G − Σ s_e v*_e,
s_e ≥ 0 the least detour over link e from any origin. Subtracted, Σ g_e(v*_e) ≤ G on that event, with
    g_e(w) = (w − v̂_e)(t_lo(w) − t̂_e) + s_e w for w ≥ v̂_e,    (v̂_e − w)(t̂_e − t_hi(w)) + s_e w for w < v̂_e,
so g_e(v*_e) ≤ G − Σ_{j≠e} min g_j. The minima and the sets where that holds are taken over cells by intervals, outward.
Neither the paths nor how v̂ was found matter. v* is any equilibrium without cycles, so 0 ≤ v*_e ≤ total demand; it is
unique on links whose time grows. Cost: CELLS numbers per link.
"""

from dataclasses import dataclass

import numpy as np

import epszero as ez
from epszero.models._inputs import FloatArray
from epszero.models._roads import Roads

CELLS = 1500  # on each side of v̂
FINEST = 1e-10  # of the total demand: the cell nearest v̂
ROUNDING = 1e-11


@dataclass(frozen=True, eq=False)
class LinkBands:
    """lower ≤ v* ≤ upper for the flow of every link, all at once, with probability 1 − δ."""

    flows: FloatArray  # v̂
    lower: FloatArray
    upper: FloatArray
    delta: float
    verdict: ez.certificates.Verdict
    leans_on: tuple[ez.certificates.Leaning, ...]  # at most: those of the certificate of the same samples

    def __str__(self) -> str:
        width = float(np.max(self.upper - self.lower))
        lines = [
            f"link flows within bands at most {width:.4g} wide, {100 * (1 - self.delta):g} % confidence; {self.verdict}"
        ]
        return "\n".join([*lines, *(f"  leans on  {leaning}" for leaning in self.leans_on)])


def bands(roads: Roads, low: Roads, high: Roads, flows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """From the network at the sample average, and at the ends of the box of possible means."""
    times = roads.times(flows)
    quickest = roads.quickest(times)
    total = float(flows @ times)
    gap = max(total - float(roads.demand @ quickest.lasting), 0.0) + ROUNDING * total
    detour = quickest.detours() * (1 - ROUNDING) - ROUNDING * times
    detour = np.maximum(detour, 0.0)
    most = float(roads.demand.sum()) * (1 + ROUNDING)
    apart = np.concatenate([[0.0], most * np.geomspace(FINEST, 1.0, CELLS)])[:, None]  # ends of cells, seen from v̂
    above, below = np.minimum(flows + apart, most), np.maximum(flows - apart, 0.0)
    rises = _least(above - flows, low.times(above) - times, times) + detour * above[:-1]
    falls = _least(flows - below, times - high.times(below), times) + detour * below[1:]
    least = np.minimum(rises.min(axis=0), falls.min(axis=0))
    budget = gap - (least.sum() - least)
    upper = np.max(np.where(rises <= budget, above[1:], flows), axis=0)
    lower = np.min(np.where(falls <= budget, below[1:], flows), axis=0)
    return lower, upper


def _least(away: FloatArray, later: FloatArray, times: FloatArray) -> FloatArray:
    """At most the least of away · later on each cell: `away` grows from end to end, and so does `later`."""
    first = later[:-1] - ROUNDING * times
    return np.where(first >= 0, away[:-1], away[1:]) * first
