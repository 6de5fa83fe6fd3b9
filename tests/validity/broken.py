"""Certified pieces broken on purpose, each beside its sound half: the count of misses must convict the one only.

Where there would be slack to hide a break, bounds are those that are exact for the normal law.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.stats import norm

from epszero.certificates import MeanBound, MeanSet, certified_piece, piece, sharp
from epszero.facts import Region

from .pieces import judged, normal, planted

AT_ONCE = 512


@dataclass(frozen=True)
class Exact(MeanBound):
    """The exact interval for normal samples whose support is eight standard deviations to each side."""

    title = "normal quantile"
    needs_region = True
    split: bool = True  # whether levels are those that were asked for, or those before they were split

    def around(self, X, region, delta):
        sigma = (region.upper - region.lower).max() / 16
        level = delta if self.split else delta * X.shape[0]
        radius = sigma * norm.isf(min(level, 1.0) / 2) / np.sqrt(X.shape[-2])
        return MeanSet(X.mean(axis=-2), np.full(X.shape[:-2], radius))


def exact() -> AbstractContextManager[Any]:
    """Exact bounds for the vectors on a piece."""
    return patch.object(sharp, "Swift", Exact)


@dataclass(frozen=True)
class Twin:
    """Misses of a world's certificates, with what is sound and with what is broken."""

    where: str
    delta: float
    twist: Callable[[bool], AbstractContextManager[Any]]  # whether it is broken
    of: str | None = None
    claim: str = ""  # the one that is counted; all of them unless given

    def missed(self, broken: bool, trials: int) -> int:
        world, misses = planted(self.where), 0
        for start in range(0, trials, AT_ONCE):
            solved = world.solved(np.random.default_rng([11, start]), min(AT_ONCE, trials - start))
            with self.twist(broken):
                tally = judged(world, solved, self.delta, self.of)
            misses += tally.claims[self.claim] if self.claim else tally.misses
        return misses


@contextmanager
def _unchecked(broken: bool) -> Iterator[None]:
    """Whatever piece x̂ is on is called certified."""

    def called_certified(case, features, region, C, delta):
        found = piece.piece_of(case, C)
        assert isinstance(found, piece.AffinePiece)
        mean = np.mean(features, axis=0)
        return sharp.Sharp(found, features, mean, region, np.ravel(case.x), None, None, sharp.Roots(found.T, None))

    with ExitStack() as stack:
        if broken:
            stack.enter_context(patch.object(certified_piece, "certified", called_certified))
        yield


@contextmanager
def _other_side(broken: bool) -> Iterator[None]:
    """1 + x₁ in place of 1 − x₁, which is 2 less the slack, and changes the other way."""

    def wrong(case, C):
        found = piece.piece_of(case, C)
        assert isinstance(found, piece.AffinePiece)
        rows = sum(len(block.face.slacks) for block in found.blocks)
        margins = np.concatenate([2.0 - found.margins[:rows], found.margins[rows:]])
        sensitivities = np.vstack([-found.sensitivities[:rows], found.sensitivities[rows:]])
        return replace(found, margins=margins, sensitivities=sensitivities)

    with ExitStack() as stack:
        if broken:
            stack.enter_context(patch.object(sharp, "piece_of", wrong))
        yield


@contextmanager
def _other_face(broken: bool) -> Iterator[None]:
    """As if the entry that moves most were held."""

    def wrong(case, C):
        found = piece.piece_of(case, C)
        assert isinstance(found, piece.AffinePiece)
        T = found.T.copy()
        T[np.argmax(np.abs(T).sum(axis=1))] = 0.0
        return replace(found, T=T, key=("wrong", found.key))

    with ExitStack() as stack:
        stack.enter_context(exact())
        if broken:
            stack.enter_context(patch.object(sharp, "piece_of", wrong))
        yield


def _unsplit(broken: bool) -> AbstractContextManager[Any]:
    """Every interval at the level of all of them."""
    return patch.object(sharp, "Betting", lambda: Exact(not broken))


class Reused(Twin):
    """U is aimed at the entry that stands out: in samples of its own, or in those that U is made of."""

    def missed(self, broken: bool, trials: int) -> int:
        d, misses = 20, 0
        region, rng = Region.of(normal(d).support, d), np.random.default_rng(5)
        with exact():
            for _ in range(trials):
                pilot, rest = rng.normal(size=(10, d)), rng.normal(size=(90, d))
                row = np.eye(d)[[np.argmax(np.abs(np.mean(rest if broken else pilot, axis=0)))]]
                U = sharp._Aimed.at(row, np.ones(1), rest, region, self.delta)
                misses += bool(np.linalg.norm(U.R @ np.zeros(d) - U.centre) > U.radius)
        return misses


TWINS = {
    "piece not checked": Twin("a multiplier that is nearly 0", 0.05, _unchecked),
    "slack of a wrong sign": Twin("a half-space that is hardly leant on", 0.05, _other_side),
    "T of the wrong face": Twin("normal", 0.3, _other_face, "distance"),
    "delta not split": Twin("normal, eight entries", 0.3, _unsplit, "intervals", "intervals"),
    "pilot reused": Reused("normal, twenty entries", 0.3, lambda broken: exact()),
}
