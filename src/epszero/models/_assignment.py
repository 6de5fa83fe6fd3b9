"""Traffic assignment: paths by shortest paths, flows on them by sweeps over the trips and Newton steps for all.

min Σ_e ∫₀^{v_e} t_e over v = Uᵀx, x ≥ 0, Σ x = demand for each trip, with the rows of U the paths so far. One round:
the quickest way of every trip at the times of now, which proves the relative gap
    (Σ v t − Σ demand · quickest) / Σ v t
on the whole network, and joins the paths where it is new; then the flows on these paths are equilibrated, until their
own gap is a tenth of that; paths without flow that are slower are dropped.
- Sweep: trip by trip, each path gives (c_k − c*)/(Σ t′ over the links where it differs from the quickest), at most its
  flow, to the trip's quickest path; links feel it at once.
- Newton, once the flows are near: each trip's largest path flow is written by the others,
  d = −(R S Rᵀ)⁻¹ R t with R the other paths less the largest and S = diag t′; entries that would become negative are
  put to 0 and the rest solved again. Taken only where it lowers the gap.
The length of either step is exact along the segment, so the potential, which is convex, never grows; what was reached
is told by the gap. Cost of a round: O(paths · length), a factorisation, or conjugate gradients beyond DENSE paths.
Sources: Jayakrishnan et al., "A faster path-based algorithm for traffic assignment", Transp. Res. Rec. 1443 (1994);
Bertsekas, "Projected Newton methods", SIAM J. Control Optim. 20 (1982).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array, vstack
from scipy.sparse.linalg import LinearOperator, cg

from epszero.models._inputs import FloatArray
from epszero.models._roads import IntArray, Quickest, Roads

ROUNDS = 200  # of shortest paths
SWEEPS = 10  # in a round
PATIENCE = 8  # rounds without halving the gap
ENOUGH = 0.1  # of the gap on the whole network: the paths at hand are equilibrated
NEAR = 1e-3  # of a gap, from where Newton steps are tried
DENSE = 1500  # paths with a choice up to which matrices are written out
AGAIN = 6  # solves of one Newton step
NEW = 1e-13  # of a path's time: what is not quicker by that is not new
TIED = 1e-6  # of a path's time: what is slower by that, and empty, is dropped
RIDGE = 1e-12
ROUGH, MOST_CG = 1e-3, 200  # of conjugate gradients
HALVINGS = 60
EMPTY = 1e-14  # of a demand


@dataclass(frozen=True, eq=False)
class Assignment:
    """Flows on paths, and how far they are from an equilibrium."""

    uses: csr_array  # paths × links, the paths of a trip together
    owner: IntArray  # of each path: its trip
    path_flows: FloatArray
    flows: FloatArray  # on links
    gap: float  # relative, on the whole network
    rounds: int

    def beside(self, other: "Assignment") -> "Assignment":
        """The same flows, with the paths of the other that are not among these, empty."""
        mine = set(self._keys())
        more = [path for path, key in enumerate(other._keys()) if key not in mine]
        owner = np.concatenate([self.owner, other.owner[more]])
        order = np.argsort(owner, kind="stable")
        return replace(
            self,
            uses=csr_array(vstack([self.uses, other.uses[more]], format="csr"))[order],
            owner=owner[order],
            path_flows=np.concatenate([self.path_flows, np.zeros(len(more))])[order],
        )

    def _keys(self) -> list[tuple[int, frozenset[int]]]:
        links = np.split(self.uses.indices, self.uses.indptr[1:-1])
        return [(int(trip), frozenset(path.tolist())) for trip, path in zip(self.owner, links, strict=True)]


def relative_gap(roads: Roads, flows: FloatArray, quickest: Quickest | None = None) -> float:
    """(Σ v t − Σ demand · quickest) / Σ v t; 0 where nothing takes any time."""
    times = roads.times(flows)
    total = float(flows @ times)
    if total <= 0:
        return 0.0
    return (total - float(roads.demand @ (quickest or roads.quickest(times)).lasting)) / total


def assign(roads: Roads, tol: float, start: Assignment | None = None) -> Assignment:
    """Flows with a relative gap of at most `tol`, or where rounding or patience ended it; `.gap` tells."""
    flows = _Flows(roads, start)
    least, waited, rounds = np.inf, 0, 0
    while True:
        quickest = roads.quickest(roads.times(flows.v))
        gap = relative_gap(roads, flows.v, quickest)
        waited = 0 if gap < 0.5 * least else waited + 1
        least = min(gap, least)
        if gap <= tol or rounds == ROUNDS or waited > PATIENCE:
            return Assignment(flows.uses, flows.owner, flows.x, flows.v, gap, rounds)
        rounds += 1
        flows.join(quickest)
        flows.equilibrate(ENOUGH * gap)
        flows.drop()


class _Choice(NamedTuple):
    """A trip with several paths."""

    first: int  # of its paths
    last: int  # the one after
    links: IntArray  # that some of its paths use, but not all
    uses: FloatArray  # its paths × these links


class _Flows:
    """Path flows that move."""

    def __init__(self, roads: Roads, start: Assignment | None) -> None:
        self.roads = roads
        if start is None:
            self.owner: IntArray = np.arange(len(roads.trips))
            self.uses = roads.quickest(roads.free).ways(self.owner)
            self.x: FloatArray = roads.demand.copy()
        else:
            self.uses, self.owner, self.x = start.uses, start.owner, start.path_flows.copy()
        self.v: FloatArray = self.uses.T @ self.x

    # -- paths ---------------------------------------------------------------------------------------------------------

    @property
    def starts(self) -> IntArray:
        """Of each trip: its first path."""
        return np.searchsorted(self.owner, np.arange(len(self.roads.trips)))

    def best(self, cost: FloatArray) -> FloatArray:
        """Of each trip: the time of its quickest path so far."""
        return np.minimum.reduceat(cost, self.starts)

    def join(self, quickest: Quickest) -> None:
        """Take in the quickest ways that are not there yet."""
        new = np.flatnonzero(quickest.lasting < self.best(self.uses @ quickest.times) * (1 - NEW))
        if len(new):
            owner = np.concatenate([self.owner, new])
            order = np.argsort(owner, kind="stable")
            self.uses = csr_array(vstack([self.uses, quickest.ways(new)], format="csr"))[order]
            self.x, self.owner = np.concatenate([self.x, np.zeros(len(new))])[order], owner[order]

    def drop(self) -> None:
        """Leave out paths without flow that are slower than the trip's best."""
        cost = self.uses @ self.roads.times(self.v)
        keep = (self.x > 0) | (cost <= self.best(cost)[self.owner] * (1 + TIED))
        if not keep.all():
            self.uses, self.owner, self.x = self.uses[keep], self.owner[keep], self.x[keep]

    def choices(self) -> list[_Choice]:
        found: list[_Choice] = []
        links, rows, starts = self.uses.indices, self.uses.indptr, self.starts
        ends = np.append(starts[1:], len(self.x))
        for i in np.flatnonzero(ends - starts > 1):
            a, b = int(starts[i]), int(ends[i])
            own, place = np.unique(links[rows[a] : rows[b]], return_inverse=True)
            uses = np.zeros((b - a, len(own)))
            uses[np.repeat(np.arange(b - a), np.diff(rows[a : b + 1])), place] = 1.0
            differs = uses.sum(axis=0) < b - a
            found.append(_Choice(a, b, own[differs].astype(np.int64), uses[:, differs]))
        return found

    # -- flows ---------------------------------------------------------------------------------------------------------

    def own_gap(self) -> float:
        """The relative gap on the paths so far."""
        t = self.roads.times(self.v)
        cost = self.uses @ t
        total = float(self.v @ t)
        return float(self.x @ (cost - self.best(cost)[self.owner])) / total if total > 0 else 0.0

    def equilibrate(self, wanted: float) -> None:
        """Sweeps and Newton steps, until the gap on the paths so far is as wanted."""
        choices = self.choices()
        for _ in range(SWEEPS):
            self.sweep(choices)
            gap = self.own_gap()
            if gap <= wanted:
                return
            if gap <= NEAR:
                before = self.x, self.v
                self.newton()
                reached = self.own_gap()
                if reached >= gap:
                    self.x, self.v = before
                elif reached <= wanted:
                    return

    def sweep(self, choices: list[_Choice]) -> None:
        free, slope, power = self.roads.free, self.roads.slope, self.roads.power
        x, v = self.x.copy(), self.v.copy()
        for first, last, links, uses in choices:
            w, raised = v[links], power[links]
            steep = slope[links] * w ** (raised - 1.0)
            cost = uses @ (free[links] + steep * w)
            quickest = int(cost.argmin())
            later = cost - cost[quickest]
            own = x[first:last]
            if not (later * own).any():
                continue
            curved = np.abs(uses - uses[quickest]) @ (raised * steep)
            given = np.minimum(own, later / np.maximum(curved, 1e-300))
            given[quickest] = 0.0
            given[quickest] = -given.sum()
            own -= given
            v[links] = np.maximum(w - given @ uses, 0.0)
        self._go(x - self.x)

    def newton(self) -> None:
        cost = self.uses @ self.roads.times(self.v)
        largest = np.lexsort((-self.x, self.owner))[self.starts]
        main = largest[self.owner]
        slower = cost - cost[main]
        free = np.flatnonzero((main != np.arange(len(self.x))) & ((self.x > 0) | (slower < 0)))
        if not len(free):
            return
        apart = csr_array(self.uses[free] - self.uses[main[free]])
        steep = self.roads.steepness(self.v)
        d = _newton(apart, steep, slower[free], self.x[free])
        self._go(self._change(free, largest, d))

    def _change(self, free: IntArray, largest: IntArray, d: FloatArray) -> FloatArray:
        """Of all path flows: those that are free move by d, cut so that the largest do not become negative."""
        trips, owner = len(self.roads.trips), self.owner[free]
        gain = np.bincount(owner, weights=d, minlength=trips)
        grown = np.bincount(owner, weights=np.maximum(d, 0.0), minlength=trips)
        room = self.x[largest]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(gain > room, (room + grown - gain) / grown, 1.0)  # of what grows
        d = np.where(d > 0, d * share[owner], d)
        change = np.zeros(len(self.x))
        change[free] = d
        change[largest] -= np.bincount(owner, weights=d, minlength=trips)
        return change

    def _go(self, change: FloatArray) -> None:
        """As far along the change as the potential falls, at most all of it."""
        along = self.uses.T @ change

        def rises(share: float) -> bool:
            return float(self.roads.times(np.maximum(self.v + share * along, 0.0)) @ along) > 0

        low, high = 0.0, 1.0
        if rises(1.0):
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                low, high = (low, middle) if rises(middle) else (middle, high)
        x = self.x + high * change
        x[x < EMPTY * self.roads.demand[self.owner]] = 0.0
        totals = np.bincount(self.owner, weights=x, minlength=len(self.roads.trips))
        self.x = x * (self.roads.demand / totals)[self.owner]
        self.v = self.uses.T @ self.x


def _newton(apart: csr_array, steep: FloatArray, slower: FloatArray, x: FloatArray) -> FloatArray:
    """Where the quadratic model is least, with x + d ≥ 0."""
    diagonal = abs(apart) @ steep
    diagonal += RIDGE * max(float(diagonal.max()), 1e-300)
    d = np.zeros(len(x))
    held = np.zeros(len(x), dtype=bool)
    for _ in range(AGAIN):
        rows = np.flatnonzero(~held)
        if not len(rows):
            break
        inside = apart[rows]
        pushed = inside @ (steep * (apart[held].T @ d[held])) if held.any() else 0.0
        d[rows] = _solved(inside, steep, diagonal[rows], -slower[rows] - pushed)
        below = ~held & (x + d < 0)
        if not below.any():
            break
        d[below] = -x[below]
        held |= below
    return np.maximum(d, -x)


def _solved(inside: csr_array, steep: FloatArray, diagonal: FloatArray, right: FloatArray) -> FloatArray:
    if len(right) <= DENSE:
        matrix = (inside @ diags_array(steep) @ inside.T).toarray()
        matrix[np.diag_indices_from(matrix)] += RIDGE * diagonal
        try:
            return np.asarray(cho_solve(cho_factor(matrix, overwrite_a=True), right))
        except np.linalg.LinAlgError:  # singular to rounding
            pass
    back, many = csr_array(inside.T), len(right)
    product = _operator(many, lambda d: inside @ (steep * (back @ d)) + RIDGE * diagonal * d)
    return np.asarray(cg(product, right, rtol=ROUGH, maxiter=MOST_CG, M=_operator(many, lambda d: d / diagonal))[0])


def _operator(many: int, product: Callable[[FloatArray], FloatArray]) -> Any:
    operator: Any = LinearOperator  # whose stubs know another constructor
    return operator((many, many), matvec=product, dtype=np.float64)
