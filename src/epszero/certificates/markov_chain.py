"""Samples along a Markov chain with finitely many states: how fast it forgets is bounded from the path itself.

Declared: the labels are a Markov chain on d states, with one transition matrix P, which nobody knows; given the labels,
samples are independent, each of a law that its own label chooses. For oracles that are affine in features.
Claim: with τ(Q) = max_ij TV(Q_i, Q_j) (Dobrushin), S ≥ Σ_{k≥0} τ(Pᵏ) and R the diameter of the features' support,
    ‖φ̄ − Eφ‖ ≤ R S (√(2 ln(2/δ₂)/s) + 1/s)  with probability ≥ 1 − δ₂,
Eφ the mean under the stationary law, from whatever state the chain starts.
S from the path, with probability ≥ 1 − δ₁: P̂_i the shares of what followed state i, seen n_i times,
    TV(P̂_i, P_i) ≤ r_i = √(ln(d(2^d − 2)(s − 1)/δ₁)/(2n_i)),  r = max r_i,
    τ(Pᵏ) ≤ T_k = min{τ(P̂ᵏ) + 2r Σ_{m<k} τ(P̂ᵐ), T_a T_{k−a}},  Σ_{k≥1} τ(Pᵏ) ≤ Σ_{k≤K} T_k/(1 − T_K) for any T_K < 1.
δ₁ = δ/4, δ₂ = 3δ/4. Both events hold together with probability ≥ 1 − δ, and the radius grows with S: nothing is chosen
by looking. Proofs: docs/theory.md#chain. That the labels are a chain, and that samples depend on each other through
them alone, is the user's word; where the path contradicts it (p ≤ 10⁻⁴), nothing is said.
Source: the stack of transitions, Billingsley (1961); confidence from one path: Hsu, Kontorovich & Szepesvári (2015),
Wolfer & Kontorovich (2019), by contraction Wolfer (2020). Cost: O(s + K d³ + K²).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtrc

from epszero._checks import count, refuse
from epszero._types import FloatArray
from epszero.certificates._base import Finding, Kind, Leaning, Obstacle, cannot
from epszero.certificates._inputs import GivenSupport, checked_support
from epszero.certificates.case import Case
from epszero.certificates.evidence import Evidence, examined
from epszero.certificates.mean import MeanBound, Region
from epszero.certificates.mean._base import bounded, log_of
from epszero.certificates.prequential import in_order
from epszero.facts import Provenance
from epszero.samples.independence import LEVEL, Places, quick

SHARE = 0.25  # of δ, for the transition matrix
LONGEST = 512  # powers of P̂ that are looked at
MOST = 200  # states
THROUGH = "labels that are a Markov chain, and samples that depend on each other through them alone"


@dataclass(frozen=True, eq=False)
class MarkovChain(Kind):
    """All samples, along a chain of labels that are seen; nothing is declared of how fast it forgets.

    `labels`: one for each sample, in their order: whole numbers or words. `states`: how many the chain has; unless told
    those that occur, which is then your word, too: no path tells of states that it did not reach. Labels that are all
    alike say nothing of P, so `states=1` has to be told. `support`: as in MeanDeviation, but never "estimated".
    """

    labels: Sequence[int | str]
    states: int | None = None
    support: GivenSupport = None

    def __post_init__(self) -> None:
        checked_support(self.support)
        if isinstance(self.support, str):
            refuse("support", "an estimated range promises nothing", "Give a set")
        object.__setattr__(self, "labels", _checked_labels(self.labels))
        if self.states is not None and count("states", self.states, least=1) < len(set(self.labels)):
            said = f"is {self.states}, but {len(set(self.labels))} different labels occur"
            refuse("states", said, "Pass the number of states that the chain can be in, or leave it out")
        if (self.states or len(set(self.labels))) > MOST:
            refuse("labels", f"are of more than {MOST} states, of which no path tells enough", "Join states")

    @property
    def title(self) -> str:
        return "samples along a Markov chain"

    def examine(self, case: Case, delta: float) -> Finding:
        samples = in_order(case)
        if len(self.labels) != len(samples):
            said = f"are {len(self.labels)}, but there are {len(samples)} samples"
            refuse("labels", said, "Pass one for each, in the order of the samples")
        evidence = Evidence(case, case.samples, self.support, independent=False)
        kinds, path = np.unique(np.asarray(self.labels), return_inverse=True)
        d = self.states or len(kinds)
        if d == 1 and self.states is None:
            cannot("all labels are alike, and no path tells of states that it did not reach: pass states=, how many")
        self._check(path, evidence.rows[0])
        total = forgetting(path, d, SHARE * delta)
        if not math.isfinite(total):
            n = np.bincount(path[:-1], minlength=d)
            cannot(
                f"the path does not show that the chain forgets: one of its {d} states was left {n.min()} times only. "
                "Take more samples, or fewer states"
            )
        only = "as many as occur: states= was not given" if self.states is None else "by states="
        said = Leaning(
            THROUGH, Provenance.DECLARED, f"no more than {d} states, {only}; the path does not contradict it"
        )
        finding = examined(evidence, AlongAChain(total), (1 - SHARE) * delta, self.title, said)
        finding.terms.update(states=float(d), forgetting=total, delta_left=(1 - SHARE) * delta)
        return finding

    @staticmethod
    def _check(path: Places, rows: FloatArray) -> None:
        """Refused where the path contradicts what is declared."""
        further = second_order(path)
        apart = rows - _means(path, rows)[path]
        rest = quick(apart) if np.ptp(apart, axis=0).max(initial=0.0) > 0 else 1.0
        doubts = {
            "the next label depends on more than the last one": further,
            "samples of neighbours are alike, or unlike, beyond what their labels say": rest,
        }
        for what, p in doubts.items():
            if p <= LEVEL:
                said = f"p = {max(p, 1e-300):.1g}"
                cannot(
                    f"the labels are not such a chain: {what} ({said}). ez.certificates.Prequential() takes any "
                    "dependence",
                    Leaning(THROUGH, Provenance.VIOLATED, said),
                    obstacle=Obstacle.NOT_INDEPENDENT,
                )


def _checked_labels(given: Any) -> tuple[int | str, ...]:
    """Whole numbers, or words, of a list, an array or a column of a table."""
    try:
        labels: Any = np.asarray(given, dtype=object)
    except ValueError:  # ragged
        labels = np.zeros((0, 0))
    each = labels.tolist() if labels.ndim == 1 else []
    found = tuple(one.item() if isinstance(one, np.generic) else one for one in each)
    if not found or not any(all(isinstance(one, kind) for one in found) for kind in (int, str)):
        refuse("labels", "must be one whole number or word for each sample, in order", "Pass a list of states")
    return found


@dataclass(frozen=True)
class AlongAChain(MeanBound):
    """The ball R S (√(2 ln(2/δ)/s) + 1/s); `total` is S."""

    title: ClassVar[str] = "Pinelis' inequality for a chain"
    total: float

    def radius(self, m: int, dim: int, region: Region | None, delta: float) -> float:
        return bounded(region).diameter * self.total * (math.sqrt(2 * log_of(2, delta) / m) + 1 / m)


def forgetting(path: Places, d: int, delta: float) -> float:
    """S ≥ Σ_{k≥0} τ(Pᵏ) with probability ≥ 1 − δ; ∞ where the path does not tell."""
    if d == 1:
        return 1.0
    counts = transitions(path, d)
    n = counts.sum(axis=1)
    if not n.min() > 0:
        return math.inf
    subsets = d * math.log(2) + math.log1p(-(2.0 ** (1 - d)))  # ln(2^d − 2)
    logs = subsets + math.log(d) + math.log(len(path) - 1) + log_of(1, delta)
    return summed(counts / n[:, None], math.sqrt(logs / (2 * n.min())))


def summed(P: FloatArray, r: float) -> float:
    """At least Σ_{k≥0} τ(Qᵏ), for every Q whose rows are within r of those of P in total variation."""
    T: list[float] = []
    power, so_far, total, least = np.eye(len(P)), 1.0, 0.0, math.inf  # so_far: Σ_{m<k} τ(Pᵐ)
    for k in range(1, LONGEST + 1):
        power = power @ P
        own = contraction(power)
        known = [own + 2 * r * so_far, *(T[a] * T[k - 2 - a] for a in range(k // 2)), *T[-1:]]
        T.append(min(known))
        so_far += own
        total += T[-1]
        if T[-1] < 1:
            found = total / (1 - T[-1])
            if found >= least and T[-1] < 0.5:  # halves of what is left are not worth the length
                break
            least = min(least, found)
    return 1 + least if math.isfinite(least) else math.inf


def contraction(P: FloatArray) -> float:
    """τ(P) = max_ij TV(P_i, P_j)."""
    return float(max(np.abs(P - row).sum(axis=1).max() for row in P) / 2)


def transitions(path: Places, d: int) -> FloatArray:
    """How often each state was followed by each."""
    return np.bincount(path[:-1] * d + path[1:], minlength=d * d).reshape(d, d).astype(float)


def second_order(path: Places) -> float:
    """p-value of the likelihood ratio: does the label before the last one tell anything of the next?"""
    d = int(path.max()) + 1
    if len(path) < 3 or d < 2:
        return 1.0
    triples = np.bincount((path[:-2] * d + path[1:-1]) * d + path[2:], minlength=d**3).reshape(d, d, d).astype(float)
    pairs, left = triples.sum(axis=0), triples.sum(axis=2)  # (last, next), (before, last)
    expected = left[:, :, None] * (pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1.0))[None]
    seen = triples > 0
    statistic = 2 * float(np.sum(triples[seen] * np.log(triples[seen] / expected[seen])))
    freedom = sum(max(int((left[:, j] > 0).sum()) - 1, 0) * max(int((pairs[j] > 0).sum()) - 1, 0) for j in range(d))
    return float(chdtrc(freedom, max(statistic, 0.0))) if freedom else 1.0


def _means(path: Places, rows: FloatArray) -> FloatArray:
    """Of the rows of each label."""
    n = np.bincount(path)
    return np.stack([np.bincount(path, column) for column in rows.T], axis=1) / n[:, None]
