"""The study of days in their order: laws that the past chooses, and the monitor of streams.

A law gives days one at a time, each with its conditional mean given those before; so the average of what the past
promised is known exactly. Twins: betting and weights that move, read as if they spoke of the plain average; for the
monitor bets that know their day, and an ε that is forgotten.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epszero.certificates import Betting, EmpiricalBernstein, MeanBound, Region
from epszero.certificates import e_process as process
from epszero.certificates.prequential import EqualWeights

from .coverage import Row

DELTAS = (0.3, 0.05)
DIM = 3
SIZES = (20, 200)
LONG = 400  # samples of a stream, every one of which may be its last
AT_ONCE = 500
Step = Callable[[np.random.Generator, np.ndarray, int], tuple[np.ndarray, np.ndarray]]


def _sticky(rng, past, s):
    """Stays for about twenty days, or goes to a corner."""
    t, i = past.shape[0], past.shape[1]
    if i == 0:
        mean = np.full((t, DIM), 0.5)
        return rng.integers(0, 2, size=(t, DIM)).astype(float), mean
    stays = 0.95 * past[:, -1] + 0.05 * 0.5
    moved = rng.random((t, 1)) < 0.05
    return np.where(moved, rng.integers(0, 2, size=(t, DIM)), past[:, -1]), stays


def _pushing(rng, past, s):
    """Conditional means that follow the sum so far: variance where it hurts, and none where it does not."""
    t, i = past.shape[0], past.shape[1]
    ahead = past.sum(axis=1)[:, :1] - 0.5 * i if i else np.zeros((t, 1))
    p = np.where(np.abs(ahead) > 0.5 * math.sqrt(s), 0.02, 0.5) * np.ones((t, DIM))
    return (rng.random((t, DIM)) < p).astype(float), p


def _rare(rng, past, s):
    """Nothing, nothing, and once in a while all; more often after long silence."""
    t, i = past.shape[0], past.shape[1]
    silent = np.ones((t, 1)) if i == 0 else (past[:, -20:].max(axis=(1, 2)) == 0)[:, None].astype(float)
    p = 0.002 + 0.02 * silent
    return np.repeat((rng.random((t, 1)) < p).astype(float), DIM, axis=1), np.repeat(p, DIM, axis=1)


def _trend(rng, past, s):
    """Means that climb from 0 to 1, without noise at both ends."""
    t, p = past.shape[0], np.clip((past.shape[1] - 0.25 * s) / (0.5 * s), 0.0, 1.0)
    return np.repeat((rng.random((t, 1)) < p).astype(float), DIM, axis=1), np.full((t, DIM), p)


LAWS: dict[str, Step] = {"sticky": _sticky, "pushing": _pushing, "rare": _rare, "trend": _trend}
SOUND = "prequential"


@dataclass(frozen=True)
class Contender:
    bound: MeanBound
    broken: tuple[tuple[str, int], ...] = ()  # where the count must convict it


CONTENDERS = {
    SOUND: Contender(EqualWeights()),
    "twin: betting": Contender(Betting(), (("trend", 200),)),
    "twin: weights that move": Contender(EmpiricalBernstein(), (("trend", 200),)),
}


def drawn(law: str, s: int, trials: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Days, and the average of what the past promised."""
    X, promised = np.empty((trials, s, DIM)), np.zeros((trials, DIM))
    for i in range(s):
        X[:, i], mean = LAWS[law](rng, X[:, :i], s)
        promised += mean / s
    return X, promised


def days_missed(name: str, law: str, s: int, delta: float, trials: int) -> tuple[int, float]:
    """Misses, and the mean radius over the true quantile."""
    rng, region = np.random.default_rng([17, s, list(LAWS).index(law)]), Region.box(np.zeros(DIM), np.ones(DIM))
    misses, widths, errors = 0, [], []
    for start in range(0, trials, AT_ONCE):
        X, promised = drawn(law, s, min(AT_ONCE, trials - start), rng)
        found = CONTENDERS[name].bound.around(X, region, delta)
        misses += int(np.sum(~found.contains(promised)))
        widths.append(found.norm_from(found.centre))
        errors.append(np.linalg.norm(X.mean(axis=1) - promised, axis=1))
    truth = float(np.quantile(np.concatenate(errors), 1 - delta))
    return misses, float(np.mean(np.concatenate(widths))) / truth if truth > 1e-9 else math.nan


# -- the monitor -------------------------------------------------------------------------------------------------------

EPSILON = 0.1
FRAME = process.Frame(np.zeros(DIM), None, np.zeros(DIM), np.ones(DIM))


def _edge(rng, past):
    """‖E g‖ = ε always, in one direction."""
    del past
    return lambda t: np.where(rng.random((t, DIM)) < 0.5 * (1 + EPSILON * np.eye(DIM)[0]), 1.0, -1.0)


def _turning(rng, past):
    """‖E g‖ = ε, in the direction in which the sum so far points."""
    total = past.sum(axis=1)
    size = np.linalg.norm(total, axis=1, keepdims=True)
    towards = np.where(size > 0, total / np.maximum(size, 1e-9), np.eye(DIM)[0])
    return lambda t: np.where(rng.random((t, DIM)) < 0.5 * (1 + EPSILON * towards), 1.0, -1.0)


def _seldom(rng, past):
    """Mostly −ε/10, seldom 1: with mean ε."""
    del past

    def draw(t):
        low, g = -EPSILON / 10, np.zeros((t, DIM))
        g[:, 0] = np.where(rng.random(t) < (EPSILON - low) / (1 - low), 1.0, low)
        return g

    return draw


STREAMS: dict[str, Any] = {"at the edge": _edge, "turning": _turning, "seldom": _seldom}
WATCHES = ("monitor", "twin: bets that know their day", "twin: ε forgotten")


def false_alarms(watch: str, stream: str, delta: float, trials: int, long: int = LONG) -> int:
    """How many streams raise an alarm at any of their samples, though x is an ε-zero throughout."""
    rng, alarms = np.random.default_rng([18, list(STREAMS).index(stream)]), 0
    allowed = 0.0 if watch == WATCHES[2] else EPSILON
    for start in range(0, trials, AT_ONCE):
        t = min(AT_ONCE, trials - start)
        state, told, past = process.State.start(t, DIM), np.zeros(t, bool), np.zeros((t, 0, DIM))
        for _ in range(long):
            g = STREAMS[stream](rng, past)(t)
            if watch == WATCHES[1]:
                peeked = process.advanced(state, FRAME, g, allowed)
                state = peeked._replace(n=state.n, S=state.S)
                after = process.advanced(state, FRAME, g, allowed)
                state = peeked._replace(S=after.S)
            else:
                state = process.advanced(state, FRAME, g, allowed)
            told |= state.e >= 1 / delta
            past = np.concatenate([past.sum(axis=1, keepdims=True), g[:, None]], axis=1)
        alarms += int(told.sum())
    return alarms


def delays(shift: float, trials: int, calm: int = 200, long: int = 2000) -> np.ndarray:
    """After how many samples a drift by `shift` beyond ε is told, that begins after `calm` samples; ∞ where never."""
    rng, state = np.random.default_rng(19), process.State.start(trials, DIM)
    found = np.full(trials, np.inf)
    for n in range(calm + long):
        lean = (0.0 if n < calm else EPSILON + shift) * np.eye(DIM)[0]
        g = np.where(rng.random((trials, DIM)) < 0.5 * (1 + lean), 1.0, -1.0)
        state = process.advanced(state, FRAME, g, EPSILON)
        found = np.where((state.e >= 20) & np.isinf(found), n + 1 - calm, found)
    return found


class Days:
    """Prequential certificates, and monitors of streams."""

    name = "of days in their order"

    def tasks(self) -> list[tuple[str, str, int]]:
        laws = [(name, law, s) for name, one in CONTENDERS.items() for law in LAWS for s in SIZES
                if name == SOUND or (law, s) in one.broken]  # fmt: skip
        return [*laws, *((watch, stream, LONG) for watch in WATCHES for stream in STREAMS)]

    def run(self, task: tuple[str, str, int], trials: int) -> list[Row]:
        name, law, s = task
        rows = []
        for delta in DELTAS:
            if name in CONTENDERS:
                misses, ratio = days_missed(name, law, s, delta, trials)
                size, broken = str(s), name != SOUND
            else:
                misses, ratio = false_alarms(name, law, delta, trials), math.nan
                size, broken = f"1 … {s}", name != WATCHES[0]
            rows.append(Row(self.name, name, law, size, delta, misses, trials, ratio, broken=broken))
        return rows
