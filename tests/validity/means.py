"""The study of confidence sets for a mean: every law, every bound, several sample sizes and levels."""

import math
from collections.abc import Sequence

from .coverage import CONTENDERS, Contender, Question, Row, ask, quantile
from .laws import LAWS, Law

DELTAS = (0.3, 0.1, 0.05, 0.01)
SIZES = (1, 2, 10, 100, 1000)
SHOWN = (100, 1000)  # the sizes whose widths are shown, at δ = 0.05
FEW = 100  # trials that give a mean width where misses would take too long to count
ROOM, ROOM_DEAR = 20_000, 2_000  # numbers per trial; a dear bound takes twenty times as long for one
FINE = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16, 20, 24, 31, 32, 45, 63, 64, 90, 127, 128, 181, 255, 256)
COARSE = (1, 2, 4, 8, 16, 32, 64, 128)


def _rows(
    study: str,
    law: Law,
    contenders: Sequence[Contender],
    sizes: Sequence[int],
    deltas: Sequence[float],
    trials: int,
    errors_of: int = 0,
) -> list[Row]:
    """One row per contender and δ; the true quantile is from `errors_of` trials, when these are more."""
    questions, named = [], []
    for contender in contenders:
        bound = contender.bound(law)
        assert bound is not None
        questions += [Question(bound, contender.region(law), delta) for delta in deltas]
        named += [(contender.name, delta) for delta in deltas]
    tallies, errors = ask(law, questions, sizes, trials, seed=2024)
    if errors_of > trials:
        errors = ask(law, [], sizes, errors_of, seed=2025)[1]
    size = str(sizes[0]) if len(sizes) == 1 else f"1 … {sizes[-1]}"
    rows = []
    for (name, delta), tally in zip(named, tallies, strict=True):
        truth = quantile(errors, delta)
        ratio = tally.width / truth if truth > 1e-12 * law.size else math.nan
        rows.append(Row(study, name, law.name, size, delta, tally.misses, trials, ratio))
    return rows


def _known(contender: Contender, law: Law) -> bool:
    return contender.applies(law)


class Means:
    """At a sample size chosen beforehand."""

    name = "at one sample size"

    def tasks(self) -> list[tuple[str, int]]:
        pairs = [(law.name, m) for law in LAWS.values() for m in SIZES]
        return sorted(pairs, key=lambda pair: -min(pair[1] * LAWS[pair[0]].dim, ROOM_DEAR))

    def run(self, task: tuple[str, int], trials: int) -> list[Row]:
        law, m = LAWS[task[0]], task[1]
        counted, shown = [], []
        for contender in CONTENDERS.values():
            bound = contender.bound(law)
            if not _known(contender, law) or bound is None or bound.least(min(DELTAS)) > m:
                continue
            fits = m * law.dim <= (ROOM_DEAR if contender.dear else ROOM) and not contender.anytime
            (counted if fits else shown).append(contender)
        rows = _rows(self.name, law, counted, [m], DELTAS, trials) if counted else []
        if m in SHOWN and shown:
            rows += _rows(self.name, law, shown, [m], [0.05], FEW, errors_of=trials)
        return rows


class Anytime:
    """At every size of a growing sample: a trial misses when the mean is outside at any of them."""

    name = "at every sample size at once"

    def tasks(self) -> list[tuple[str, str]]:
        streams = [c for c in CONTENDERS.values() if c.anytime]
        return [(c.name, law.name) for c in streams for law in LAWS.values() if _known(c, law)]

    def run(self, task: tuple[str, str], trials: int) -> list[Row]:
        contender, law = CONTENDERS[task[0]], LAWS[task[1]]
        sizes = FINE if sum(FINE) * law.dim <= (3_000 if contender.dear else 30_000) else COARSE
        while sum(sizes) * law.dim > ROOM:
            sizes = sizes[:-1]
        while contender.dear and sizes is not FINE and sum(sizes) * law.dim > ROOM_DEAR:
            sizes = sizes[:-1]
        return _rows(self.name, law, [contender], sizes, DELTAS, trials)
