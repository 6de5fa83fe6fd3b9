"""`Samples`: what is known of the law of ξ. One row per sample, read-only, finite, float64.

Data that is not a matrix (say, a matrix P and a vector q per sample) is a pytree whose leaves share the leading sample
axis. A support is a set that is known to hold every possible sample: bounds rest on it, so each sample is checked
against it. One data set per agent is a list of `Samples`.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, final

import jax
import numpy as np
from numpy.typing import NDArray

from epszero._checks import InputError, count, known_arguments, real_array, refuse
from epszero._types import FloatArray, PyTree, Support
from epszero.samples._arrays import checked_leaves, checked_matrix, frozen, shortened
from epszero.samples._history import History, shared_values
from epszero.samples._read import Missing, PathLike, Table, read_csv, read_parquet

SUPPORT_TOLERANCE = 1e-9  # relative distance from the support that rounding explains
SEED_REMEDY = "Pass seed=0, or numpy.random.default_rng(0)"


class RowIndexError(InputError, IndexError):
    """A row that is not there."""


@final
class Samples:
    """s samples of d numbers each, immutable, with optional column names and an optional known support.

    Examples:
        >>> prices = Samples([[0.1, 0.2], [0.3, 0.1]], columns=["night", "day"])
        >>> len(prices), prices.dim
        (2, 2)
    """

    columns: tuple[str, ...] | None
    support: Support | None
    dropped: int  # rows with missing values that a loader left out
    _leaves: tuple[FloatArray, ...]  # arrays with one entry per sample along their first axis
    _structure: Any  # how the leaves make up `values`
    _history: History  # which rows these are

    @known_arguments
    def __init__(self, values: Any, support: Support | None = None, columns: Sequence[str] | None = None) -> None:
        matrix, names = checked_matrix(values, columns)
        _fill(self, (matrix,), jax.tree.structure(0), names, support, 0)
        _check_support(self)

    @staticmethod
    @known_arguments
    def from_csv(
        path: PathLike, columns: Sequence[str] | None = None, missing: Missing = "error", support: Support | None = None
    ) -> "Samples":
        """The columns of a CSV file (all of them unless chosen). A missing value is an error, or drops its row."""
        return _from_table(read_csv(path, columns, _checked_missing(missing)), support)

    @staticmethod
    @known_arguments
    def from_parquet(
        path: PathLike, columns: Sequence[str] | None = None, missing: Missing = "error", support: Support | None = None
    ) -> "Samples":
        """The columns of a Parquet file (all of them unless chosen). A missing value is an error, or drops its row."""
        return _from_table(read_parquet(path, columns, _checked_missing(missing)), support)

    @staticmethod
    @known_arguments
    def from_arrays(tree: PyTree, support: Support | None = None) -> "Samples":
        """Arrays nested in lists, tuples and dictionaries; the first axis of each counts the samples."""
        leaves, structure = checked_leaves(tree)
        samples = _fill(object.__new__(Samples), leaves, structure, None, support, 0)
        _check_support(samples)
        return samples

    @property
    def values(self) -> Any:
        """The s × d matrix, or the pytree given to `from_arrays`. Its arrays are read-only."""
        return jax.tree.unflatten(self._structure, self._leaves)

    @property
    def dim(self) -> int:
        """How many numbers one sample has."""
        return sum(leaf[0].size for leaf in self._leaves)

    @known_arguments
    def take(self, n: int, seed: int | np.random.Generator, replace: bool = True) -> "Samples":
        """n samples drawn at random, with replacement (then they are iid from this pool) or without."""
        n = count("n", n, least=1)
        rng = _generator(seed)
        if replace:
            drawn = self._rows(rng.integers(len(self), size=n))
            drawn.__dict__["_history"] = self._history.drawn(n)
            return drawn
        if n > len(self):
            refuse("n", f"is {n}, but there are only {len(self)} samples to draw without replacement", "Draw fewer")
        return self._rows(rng.permutation(len(self))[:n])

    @known_arguments
    def split(self, fraction: float, seed: int | np.random.Generator) -> tuple["Samples", "Samples"]:
        """Two disjoint parts, drawn at random, each in the order of the data; the first has round(fraction · s)."""
        share = real_array("fraction", fraction)
        if share.ndim or not 0 < share < 1:
            refuse("fraction", f"must be a number between 0 and 1, but it is {fraction}", "Pass for instance 0.5")
        first = round(float(share) * len(self))
        if not 0 < first < len(self):
            refuse(
                "fraction",
                f"{fraction} of {len(self)} samples leaves a part with none ({first} and {len(self) - first})",
                "Pass a fraction that gives both parts at least one sample",
            )
        order = _generator(seed).permutation(len(self))
        return self._rows(np.sort(order[:first])), self._rows(np.sort(order[first:]))

    def digest(self) -> str:
        """SHA-256 of the values (and of how they are laid out): equal for equal data, on any machine."""
        text = hashlib.sha256()
        for path, leaf in jax.tree.leaves_with_path(self.values):
            text.update(f"{jax.tree_util.keystr(path)} {leaf.shape}\n".encode())
            text.update(np.ascontiguousarray(leaf, dtype="<f8").data)
        return text.hexdigest()

    @known_arguments
    def followed_by(self, more: Any) -> "Samples":
        """These samples, then more of the same kind. A support must hold the new ones too."""
        if not isinstance(more, Samples):
            refuse("more", f"must be ez.Samples, but it is a {type(more).__name__}", "Wrap the data in ez.Samples")
        shapes = [[leaf.shape[1:] for leaf in one._leaves] for one in (self, more)]
        if self._structure != more._structure or shapes[0] != shapes[1]:
            refuse(
                "more", f"has samples of shape {shapes[1]}, but these have {shapes[0]}", "Pass data of the same kind"
            )
        leaves = tuple(frozen(np.concatenate(pair)) for pair in zip(self._leaves, more._leaves, strict=True))
        joined = _fill(object.__new__(Samples), leaves, self._structure, self.columns, self.support, self.dropped)
        _check_support(joined)
        joined.__dict__["_history"] = self._history.followed_by(more._history)
        return joined

    @property
    def repeated(self) -> int:
        """How many rows are here again, though not drawn again: a row selected twice is one sample, not two."""
        return self._history.repeated

    @property
    def drawn_from(self) -> int | None:
        """Of how many rows these are random draws with replacement, so that their law is that of such a row."""
        return self._history.pool

    def overlaps(self, other: "Samples") -> bool:
        """Whether some of these samples are the other's, as far as their history or their values tell.

        Rows of one data set overlap where they share a row; a random draw with replacement is new data, but not for the
        data it was drawn from. Data of different origin overlap where so many values of one are among the other's that
        it cannot be chance.
        """
        if self._history.shares(other._history):
            return True
        if self._history.same_origin(other._history):
            return False
        return shared_values(self._leaves, other._leaves) or shared_values(other._leaves, self._leaves)

    def __len__(self) -> int:
        return len(self._leaves[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        """A row for an integer; `Samples` for a slice, an array of integers or an array of booleans."""
        if isinstance(index, slice):
            return self._rows(index)
        rows = _checked_rows(index, len(self))
        if rows.ndim:
            return self._rows(rows)
        return jax.tree.unflatten(self._structure, [leaf[int(rows)] for leaf in self._leaves])

    def _rows(self, rows: "slice | NDArray[Any]") -> "Samples":
        """The chosen rows, with what is known of them; they were checked when they came in."""
        leaves = tuple(leaf[rows] for leaf in self._leaves)
        if len(leaves[0]) == 0:
            refuse("index", f"selects none of the {len(self)} samples", "Select at least one")
        for leaf in leaves:
            leaf.flags.writeable = False
        chosen = _fill(object.__new__(Samples), leaves, self._structure, self.columns, self.support, self.dropped)
        chosen.__dict__["_history"] = self._history.selected(rows)
        return chosen

    def __repr__(self) -> str:
        shapes = jax.tree.unflatten(self._structure, [Shape(leaf.shape[1:]) for leaf in self._leaves])
        parts = [f"{len(self)} × {shapes}"]
        if self.columns is not None:
            parts.append(f"columns=[{shortened(self.columns)}]")
        if self.support is not None:
            parts.append(f"support={self.support!r}")
        if self.dropped:
            parts.append(f"dropped={self.dropped}")
        return f"Samples({', '.join(parts)})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Samples are immutable: build new ones instead of setting {name!r}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Samples are immutable: {name!r} cannot be deleted.")

    def __copy__(self) -> "Samples":
        return self

    def __deepcopy__(self, memo: Any) -> "Samples":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.values, self.columns, self.support, self.dropped)


class Shape(tuple[int, ...]):
    """A shape as a repr shows it: 14, 3 × 3, or 'number' for a scalar."""

    def __repr__(self) -> str:
        return " × ".join(str(length) for length in self) or "number"


def _fill(
    samples: Samples,
    leaves: tuple[FloatArray, ...],
    structure: Any,
    columns: tuple[str, ...] | None,
    support: Support | None,
    dropped: int,
) -> Samples:
    samples.__dict__.update(_leaves=leaves, _structure=structure, columns=columns, support=support, dropped=dropped,
                            _history=History.new(len(leaves[0])))  # fmt: skip
    return samples


def _restored(values: PyTree, columns: tuple[str, ...] | None, support: Support | None, dropped: int) -> Samples:
    """Back from a pickle, where arrays lose their read-only mark."""
    leaves, structure = jax.tree.flatten(values)
    return _fill(object.__new__(Samples), tuple(frozen(leaf) for leaf in leaves), structure, columns, support, dropped)


def _from_table(table: Table, support: Support | None) -> Samples:
    values, names, dropped = table
    samples = Samples(values, support, names)
    samples.__dict__["dropped"] = dropped
    return samples


def _checked_missing(missing: Any) -> Missing:
    if missing not in ("error", "drop"):
        refuse("missing", f'must be "error" or "drop", but it is {missing!r}', "Pass one of the two")
    return missing


def _checked_rows(index: Any, length: int) -> "NDArray[Any]":
    """An integer, or integers or booleans in one axis, all within range."""
    try:
        rows = np.asarray(index)
    except ValueError:
        rows = np.empty((0, 0))
    if rows.ndim == 1 and rows.dtype == bool and len(rows) != length:
        refuse("index", f"has {len(rows)} booleans for {length} samples", "Give one boolean per sample")
    if isinstance(index, tuple) or not (
        (rows.ndim == 1 and (rows.dtype.kind in "biu" or rows.size == 0))
        or (rows.ndim == 0 and rows.dtype.kind in "iu")
    ):
        refuse(
            "index",
            f"must be an integer, a slice, or a list of integers or booleans, but it is {index!r}",
            "Select rows here, and columns by .values[:, j] or when the data are read",
        )
    if rows.dtype == bool:
        return rows
    out = (rows < -length) | (rows >= length)
    if out.any():
        raise RowIndexError(
            f"index: there is no row {np.atleast_1d(rows)[np.atleast_1d(out)][0]} among {length} samples. "
            f"Rows count from 0 to {length - 1}."
        )
    return rows.astype(np.intp)


def _generator(seed: Any) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        refuse("seed", f"must be an integer ≥ 0 or a numpy Generator, but it is {seed!r}", SEED_REMEDY)
    return np.random.default_rng(int(seed))


def _check_support(samples: Samples) -> None:
    """Refuse a support that holds not all samples, naming the first row outside; all rows are tested at once."""
    support, s = samples.support, len(samples)
    if support is None:
        return
    if not callable(getattr(support, "contains", None)):
        refuse("support", f"must be a set with contains(v, tol), but it is {support!r}", "Pass for instance a sets.Box")
    if getattr(support, "batch_shape", ()) != ():
        refuse("support", "must be one set for all samples, but it is a batch of sets", "Pass a single set")
    try:
        inside = inside_support(support, samples.values)
    except InputError as error:
        raise InputError(f"support: does not fit the samples. {error}") from error
    if inside.shape != (s,):
        refuse(
            "support",
            f"must answer once per sample, but contains() gave shape {inside.shape} for {s} samples",
            "Use a set whose points have the shape of one sample",
        )
    outside = np.flatnonzero(~inside.astype(bool))
    if outside.size:
        refuse(
            f"values[{outside[0]}]",
            f"row {outside[0]} lies outside the support ({outside.size} of {s} rows do): {_brief(samples[outside[0]])}",
            "Widen the support to all that can happen, or mend the data",
        )


def inside_support(support: Any, values: Any) -> NDArray[Any]:
    """For every sample whether it lies in the support; a product of sets is asked row by row."""
    if getattr(support, "rank", 1):
        return np.asarray(support.contains(values, SUPPORT_TOLERANCE))
    with jax.enable_x64(True):
        return np.asarray(jax.vmap(lambda row: support.contains(row, SUPPORT_TOLERANCE))(values))


def _brief(row: Any) -> str:
    text = " ".join(str(row).split())
    return text if len(text) <= 100 else f"{text[:99]}…"
