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

TELLING = 3  # so many equal rows,
MANY = 0.45  # and such a share of all, are not there by chance
ROOT = 40  # bits that count the rows of one data set; those above count data sets
_next = itertools.count()


@dataclass(frozen=True, eq=False)
class History:
    """The numbers of the rows, and of the rows that they were drawn from."""

    rows: Rows
    pools: tuple[Rows, ...] = ()

    @staticmethod
    def new(length: int) -> "History":
        """Of rows that come from outside."""
        return History(np.arange(length, dtype=np.int64) + (next(_next) << ROOT))

    @property
    def repeated(self) -> int:
        """How many rows are there again."""
        if np.all(self.rows[1:] > self.rows[:-1]):  # as they are, unless rows were selected out of order
            return 0
        return len(self.rows) - len(np.unique(self.rows))

    @property
    def pool(self) -> int | None:
        """Of how many rows these are random draws; None where they are not, or not all from one pool."""
        one_draw = len(np.unique(self.rows >> ROOT)) == 1 and len({id(pool) for pool in self.pools}) == 1
        return len(self.pools[0]) if one_draw else None

    def selected(self, index: Any) -> "History":
        """Some of the rows."""
        return History(self.rows[index], self.pools)

    def drawn(self, length: int) -> "History":
        """Rows drawn at random from these."""
        return History(History.new(length).rows, (*self.pools, self.rows))

    def followed_by(self, more: "History") -> "History":
        """These rows, then others."""
        return History(np.concatenate([self.rows, more.rows]), (*self.pools, *more.pools))

    def same_origin(self, other: "History") -> bool:
        """Whether both are rows of one data set, or drawn from one pool: then equal values are no sign of anything."""
        if set(np.unique(self.rows >> ROOT)) & set(np.unique(other.rows >> ROOT)):
            return True
        return any(mine is theirs or np.array_equal(mine, theirs) for mine in self.pools for theirs in other.pools)

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


def shared_values(leaves: tuple[FloatArray, ...], others: tuple[FloatArray, ...]) -> bool:
    """Whether so many of the other rows are among these, to seven digits, that it cannot be chance.

    Where most rows are repetitions, as with few outcomes, equal values tell nothing.
    """
    mine, theirs = (np.concatenate([leaf.reshape(len(leaf), -1) for leaf in one], axis=1) for one in (leaves, others))
    if mine.shape[1] != theirs.shape[1]:
        return False
    with np.errstate(all="ignore"):
        rows, known = ([row.tobytes() for row in one.astype(np.float32)] for one in (theirs, mine))
    telling = len(set(rows)) >= len(rows) / 2 and len(set(known)) >= len(known) / 2
    among = set(known)
    found = sum(row in among for row in rows)
    return telling and found >= max(TELLING, MANY * len(rows))
