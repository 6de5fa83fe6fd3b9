"""`Samples`: what is known of the law of ξ. One row per sample, read-only, finite, float64.

Data that is not a matrix (say, a matrix P and a vector q per sample) is a pytree whose leaves share the leading sample
axis. A support is a set that is known to hold every possible sample: bounds rest on it, so each sample is checked
against it. One data set per agent is a list of `Samples`. Which rows are whose, and which were drawn at random, is kept
in their history (samples/_history.py); an array of `values` has none, and new `Samples` of it are the user's word.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

import jax
import numpy as np
from numpy.typing import NDArray

from epszero._checks import InputError, count, known_arguments, one_of, real_array, refuse
from epszero._doors import html_of
from epszero._frames import Library, framed
from epszero._points import entries
from epszero._types import FloatArray, PyTree, Real, Support
from epszero.samples._arrays import (
    Missing,
    PathLike,
    Table,
    checked_leaves,
    checked_matrix,
    frozen,
    numbers,
    shortened,
)
from epszero.samples._frames import frame_of, read_frame
from epszero.samples._history import History
from epszero.samples._inside import inside_support
from epszero.samples._rows import checked_rows
from epszero.samples._streams import drawn_by, generator
from epszero.samples._values import shared_values


class Checked(NamedTuple):
    """Data that were checked when they came in: what `Samples` are made of."""

    leaves: tuple[FloatArray, ...]  # read-only arrays with one entry per sample along their first axis
    structure: Any  # how the leaves make up `values`
    history: History  # which rows these are
    columns: tuple[str, ...] | None = None
    support: Support | None = None
    dropped: int = 0


@final
class Samples:
    """s samples of d numbers each, immutable, with optional column names and an optional known support.

    A table (a DataFrame of pandas or Polars, a DataArray or Dataset of xarray) brings the names of its columns along;
    `columns` then chooses some of them.

    Examples:
        >>> prices = Samples([[0.1, 0.2], [0.3, 0.1]], columns=["night", "day"])
        >>> len(prices), prices.dim
        (2, 2)
    """

    columns: tuple[str, ...] | None
    support: Support | None
    dropped: int  # rows with missing values that a loader left out
    _checked: Checked

    @known_arguments
    def __init__(
        self, values: Real | Checked, support: Support | None = None, columns: Sequence[str] | None = None
    ) -> None:
        checked = values if isinstance(values, Checked) else _checked(values, support, columns)
        self.__dict__.update(
            columns=checked.columns, support=checked.support, dropped=checked.dropped, _checked=checked
        )

    @staticmethod
    @known_arguments
    def from_csv(
        path: PathLike, columns: Sequence[str] | None = None, missing: Missing = "error", support: Support | None = None
    ) -> "Samples":
        """The columns of a CSV file (all of them unless chosen). A missing value is an error, or drops its row."""
        from epszero.samples._read import read_csv  # noqa: PLC0415  (Polars takes a while to import)

        return Samples(_from_table(read_csv(path, columns, _checked_missing(missing)), support))

    @staticmethod
    @known_arguments
    def from_parquet(
        path: PathLike, columns: Sequence[str] | None = None, missing: Missing = "error", support: Support | None = None
    ) -> "Samples":
        """The columns of a Parquet file (all of them unless chosen). A missing value is an error, or drops its row."""
        from epszero.samples._read import read_parquet  # noqa: PLC0415  (Polars takes a while to import)

        return Samples(_from_table(read_parquet(path, columns, _checked_missing(missing)), support))

    @staticmethod
    @known_arguments
    def from_arrays(tree: PyTree, support: Support | None = None) -> "Samples":
        """Arrays nested in lists, tuples and dictionaries; the first axis of each counts the samples."""
        leaves, structure = checked_leaves(tree)
        return Samples(_within_support(Checked(leaves, structure, History.new(leaves), None, support)))

    @property
    def values(self) -> Any:
        """The s × d matrix, or the pytree given to `from_arrays`. Its arrays are read-only."""
        return jax.tree.unflatten(self._checked.structure, self._checked.leaves)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns, as `columns` has them; None where there are none."""
        return self.columns

    def called(self, entry: int) -> str:
        """A number of a sample as messages call it: "column 'price'", or "entry 3" where it has no name."""
        return f"entry {entry}" if self.columns is None else f"column {self.columns[entry]!r}"

    @known_arguments
    def to_frame(self, library: Library = "polars") -> Any:
        """A DataFrame with a row per sample and a column per number, by its name, or else by its place in a sample."""
        columns: dict[str, FloatArray] = {}
        for path, leaf in jax.tree.leaves_with_path(self.values):
            part, rows = jax.tree_util.keystr(path, simple=True, separator="."), leaf.reshape(len(self), -1)
            names = self.columns or [str(place) for place in range(rows.shape[1])]
            alone = bool(part) and rows.shape[1] == 1
            columns |= {
                part if alone else ".".join(filter(None, (part, name))): rows[:, place]
                for place, name in enumerate(names)
            }
        return framed(columns, library)

    @property
    def dim(self) -> int:
        """How many numbers one sample has."""
        return entries(self[0])

    @known_arguments
    def take(self, n: int, seed: int | np.random.Generator, replace: bool = True) -> "Samples":
        """n samples drawn at random, with replacement (then they are iid from this pool) or without."""
        n, history = count("n", n, least=1), self._checked.history
        rng = generator(seed)
        if replace:
            rows, stream = drawn_by(rng, lambda rng: rng.integers(len(self), size=n))
            return self._rows(rows, history.drawn(n, stream))
        if n > len(self):
            refuse("n", f"is {n}, but there are only {len(self)} samples to draw without replacement", "Draw fewer")
        order, stream = drawn_by(rng, lambda rng: rng.permutation(len(self)))
        return self._rows(order[:n], history.shuffled(order[:n], stream))

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
        order, stream = drawn_by(generator(seed), lambda rng: rng.permutation(len(self)))
        parts = [np.sort(order[:first]), np.sort(order[first:])]
        one, other = (self._rows(rows, self._checked.history.shuffled(rows, stream)) for rows in parts)
        return one, other

    def digest(self) -> str:
        """SHA-256 of the values (and of how they are laid out): equal for equal data, on any machine."""
        text = hashlib.sha256()
        for path, leaf in jax.tree.leaves_with_path(self.values):
            text.update(f"{jax.tree_util.keystr(path)} {leaf.shape}\n".encode())
            text.update(np.ascontiguousarray(leaf, dtype="<f8").data)
        return text.hexdigest()

    @known_arguments
    def followed_by(self, more: "Samples") -> "Samples":
        """These samples, then more of the same kind. A support must hold the new ones too."""
        mine, theirs = self._checked, _required_samples("more", more)._checked
        shapes = [[leaf.shape[1:] for leaf in one.leaves] for one in (mine, theirs)]
        if mine.structure != theirs.structure or shapes[0] != shapes[1]:
            refuse(
                "more", f"has samples of shape {shapes[1]}, but these have {shapes[0]}", "Pass data of the same kind"
            )
        if None not in (mine.columns, theirs.columns) and mine.columns != theirs.columns:
            said = f"has the columns {shortened(theirs.columns or ())}, but these have {shortened(mine.columns or ())}"
            refuse("more", said, "Pass the same columns in the same order")
        leaves = tuple(frozen(np.concatenate(pair)) for pair in zip(mine.leaves, theirs.leaves, strict=True))
        history = mine.history.followed_by(theirs.history)
        return Samples(_within_support(mine._replace(leaves=leaves, history=history)))

    @property
    def repeated(self) -> int:
        """How many rows are here again, though not drawn again: a row selected twice is one sample, not two.

        So are rows next to what they were drawn from, and two draws with the same seed.
        """
        return self._checked.history.repeated

    @property
    def drawn_from(self) -> int | None:
        """Of how many rows these are random draws with replacement, so that their law is that of such a row.

        None where values may have had a say in which rows are here: see `chosen`.
        """
        return self._checked.history.pool

    @property
    def chosen(self) -> bool:
        """Whether values may have had a say in which rows are here: rows picked by a mask or by a list of numbers.

        Slices, `split` and `take` look at no values, unless they use the random numbers that drew the rows. Joining
        stretches of a draw that leave others out is picking, too. Draws from chosen rows are random draws of these.
        """
        return self._checked.history.chosen

    def overlaps(self, other: "Samples") -> bool:
        """Whether some of these samples are the other's, as far as their history or their values tell.

        Rows of one data set overlap where they share a row, also if the data were read twice; a random draw with
        replacement is new data, but not for the data it was drawn from, nor for draws or parts made with the same
        random numbers, of whatever data: these depend on each other. Data of different origin overlap where so many
        values of one are among the other's that it cannot be chance.
        """
        mine, theirs = self._checked, other._checked
        if mine.history.shares(theirs.history):
            return True
        return _recognised(mine, theirs) or _recognised(theirs, mine)

    def __len__(self) -> int:
        return len(self._checked.leaves[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, index: "int | slice | Sequence[int] | NDArray[Any]") -> Any:
        """A row for an integer; `Samples` for a slice, an array of integers or an array of booleans."""
        history = self._checked.history
        if isinstance(index, slice):
            return self._rows(index, history.sliced(index))
        rows = checked_rows(index, len(self))
        if rows.ndim:
            return self._rows(rows, history.picked(rows))
        return jax.tree.unflatten(self._checked.structure, [leaf[int(rows)] for leaf in self._checked.leaves])

    def _rows(self, rows: "slice | NDArray[Any]", history: History) -> "Samples":
        """Some rows, with what is known of them; they were checked when they came in."""
        leaves = tuple(leaf[rows] for leaf in self._checked.leaves)
        if len(leaves[0]) == 0:
            refuse("index", f"selects none of the {len(self)} samples", "Select at least one")
        for leaf in leaves:
            leaf.flags.writeable = False
        return Samples(self._checked._replace(leaves=leaves, history=history))

    _repr_html_ = html_of

    def __repr__(self) -> str:
        checked = self._checked
        shapes = jax.tree.unflatten(checked.structure, [Shape(leaf.shape[1:]) for leaf in checked.leaves])
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
        return _restored, (self.values, self._checked.history, self.columns, self.support, self.dropped)


class Shape(tuple[int, ...]):
    """A shape as a repr shows it: 14, 3 × 3, or 'number' for a scalar."""

    def __repr__(self) -> str:
        return " × ".join(str(length) for length in self) or "number"


def _checked(values: Any, support: Support | None, columns: Sequence[str] | None) -> Checked:
    """A matrix with one row per sample, as a user passes it."""
    frame = frame_of(values)
    given, columns = (numbers("values", values), columns) if frame is None else read_frame(frame, columns)
    matrix, names = checked_matrix(given, columns)
    return _within_support(Checked((matrix,), jax.tree.structure(0), History.new((matrix,)), names, support))


def _restored(values: PyTree, history: History, *others: Any) -> Samples:
    """Back from a pickle, where arrays lose their read-only mark."""
    leaves, structure = jax.tree.flatten(values)
    return Samples(Checked(tuple(frozen(leaf) for leaf in leaves), structure, history, *others))


def _recognised(mine: Checked, theirs: Checked) -> bool:
    """Whether rows of theirs are among these by their values, where nothing else relates them."""
    strangers = theirs.history.strangers(mine.history)
    return bool(strangers.any()) and shared_values(mine.leaves, tuple(leaf[strangers] for leaf in theirs.leaves))


def _from_table(table: Table, support: Support | None) -> Checked:
    values, names, dropped = table
    return _checked(values, support, names)._replace(dropped=dropped)


def _required_samples(argument: str, given: Any) -> Samples:
    if not isinstance(given, Samples):
        refuse(argument, f"must be ez.Samples, but it is a {type(given).__name__}", "Wrap the data in ez.Samples")
    return given


def _checked_missing(missing: Any) -> Missing:
    one_of("missing", missing, ("error", "drop"), "Pass one of the two")
    return missing


def _within_support(given: Checked) -> Checked:
    """The data; refused where the support holds not all, naming the first row outside. All are tested at once."""
    support, s = given.support, len(given.leaves[0])
    if support is None:
        return given
    samples = Samples(given)
    if not callable(getattr(support, "contains", None)):
        refuse("support", f"must be a set with contains(v, tol), but it is {support!r}", "Pass for instance a sets.Box")
    if getattr(support, "batch_shape", ()) != ():
        refuse("support", "must be one set for all samples, but it is a batch of sets", "Pass a single set")
    try:
        inside = inside_support(support, samples.values)
    except InputError as error:
        raise InputError.about("support", "does not fit the samples", str(error)) from error
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
            f"row {outside[0]} lies outside the support{_farthest(samples, int(outside[0]))} "
            f"({outside.size} of {s} rows do): {_brief(samples[outside[0]])}",
            "Widen the support to all that can happen, or mend the data",
        )
    return given


def _farthest(samples: Samples, row: int) -> str:
    """In which column, where columns have names and the set says what is nearest."""
    project = getattr(samples.support, "project", None)
    if samples.columns is None or not callable(project):
        return ""
    away = np.abs(samples[row] - np.asarray(project(samples[row])))
    return f", by {np.max(away):.3g} in {samples.called(int(np.argmax(away)))}"


def _brief(row: Any) -> str:
    text = " ".join(str(row).split())
    return text if len(text) <= 100 else f"{text[:99]}…"
