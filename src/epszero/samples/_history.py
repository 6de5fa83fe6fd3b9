"""Which samples are whose: so that data which a solution has seen are not taken for fresh ones.

Every row gets a number when it comes in, and keeps it when rows are selected. A draw with replacement makes new rows
(independent ones of the law of the pool), but not new for the pool they were drawn from, which is remembered.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epszero._types import FloatArray

Rows = NDArray[np.int64]

TELLING = 5  # so many rows, nearly all different, that equal values cannot be chance
_next = itertools.count()


@dataclass(frozen=True, eq=False)
class History:
    """The numbers of the rows, and of the rows that they were drawn from."""

    rows: Rows
    pools: tuple[Rows, ...] = ()

    @staticmethod
    def new(length: int) -> "History":
        """Of rows that come from outside."""
        return History(np.arange(length, dtype=np.int64) + (next(_next) << 40))

    def selected(self, index: Any) -> "History":
        """Some of the rows."""
        return History(self.rows[index], self.pools)

    def drawn(self, length: int) -> "History":
        """Rows drawn at random from these."""
        return History(History.new(length).rows, (*self.pools, self.rows))

    def followed_by(self, more: "History") -> "History":
        """These rows, then others."""
        return History(np.concatenate([self.rows, more.rows]), (*self.pools, *more.pools))

    def shares(self, other: "History") -> bool:
        """Whether some row is both's, or was drawn from the other's."""
        return any(
            bool(np.isin(mine, theirs).any())
            for mine, theirs in [
                (self.rows, other.rows),
                *((self.rows, pool) for pool in other.pools),
                *((other.rows, pool) for pool in self.pools),
            ]
        )


def holds(leaves: tuple[FloatArray, ...], others: tuple[FloatArray, ...]) -> bool:
    """Whether all of the other rows are among these, and are too many and too different to be so by chance."""
    mine, theirs = (np.concatenate([leaf.reshape(len(leaf), -1) for leaf in one], axis=1) for one in (leaves, others))
    if mine.shape[1] != theirs.shape[1] or len(theirs) < TELLING:
        return False
    different = {row.tobytes() for row in theirs}
    return len(different) >= 0.9 * len(theirs) and different <= {row.tobytes() for row in mine}
