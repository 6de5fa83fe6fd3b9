"""Samples as plain JSON and arrays, and back: values, names, and their history, so that what is repeated stays so.

Nothing that is read is executed: arrays are numbers, random numbers come from NumPy's own bit generators by name. Data
nested in classes of the user's, and bit generators of others, have no record: they are to be passed again.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epszero._types import Support
from epszero.samples._arrays import checked_leaves, frozen
from epszero.samples._history import Draw, History
from epszero.samples._samples import Checked, Samples
from epszero.samples._streams import Stream

Put = Callable[[NDArray[Any]], int]  # keeps an array, and says under which number
Get = Callable[[int], NDArray[Any]]
GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


class NoRecord(Exception):
    """Something that no record can hold: the message says what."""


def samples_record(samples: Samples, put: Put) -> dict[str, Any]:
    """All but the support; raises `NoRecord`."""
    history = samples._checked.history  # pyright: ignore[reportPrivateUsage]  (one room)
    return {
        "values": _written(samples.values, put),
        "columns": None if samples.columns is None else list(samples.columns),
        "dropped": samples.dropped,
        "rows": put(history.rows),
        "origins": [[first, None if draw is None else _draw(draw, put)] for first, draw in history.origins.items()],
        "choices": [_stream(one, put) for one in history.choices],
        "chosen": history.chosen,
    }


def samples_from(record: dict[str, Any], support: Support | None, get: Get) -> Samples:
    """The samples that `samples_record` was called on, whose values were checked when they first came in."""
    leaves, structure = checked_leaves(_read(record["values"], get))
    origins = {int(first): None if draw is None else _drawn(draw, get) for first, draw in record["origins"]}
    rows = np.asarray(get(record["rows"]), dtype=np.int64)
    if rows.shape != (len(leaves[0]),):
        raise ValueError("rows and values are not alike")
    history = History(rows, origins, tuple(_streamed(one, get) for one in record["choices"]), bool(record["chosen"]))
    columns = None if record["columns"] is None else tuple(map(str, record["columns"]))
    return Samples(Checked(tuple(map(frozen, leaves)), structure, history, columns, support, int(record["dropped"])))


def _draw(draw: Draw, put: Put) -> dict[str, Any]:
    return {
        "size": draw.size,
        "sources": [put(one) for one in draw.sources],
        "stream": _stream(draw.stream, put),
        "before": [_stream(one, put) for one in draw.before],
    }


def _drawn(record: dict[str, Any], get: Get) -> Draw:
    sources = tuple(np.asarray(get(one), dtype=np.int64) for one in record["sources"])
    before = tuple(_streamed(one, get) for one in record["before"])
    return Draw(int(record["size"]), sources, _streamed(record["stream"], get), before)


def _stream(stream: Stream, put: Put) -> dict[str, Any]:
    kind = type(stream.start).__name__
    if kind not in GENERATORS:
        raise NoRecord(f"the samples were drawn by {kind}, which is not a bit generator of NumPy")
    return {"used": stream.used, "generator": kind, "state": _written(stream.start.state, put)}


def _streamed(record: dict[str, Any], get: Get) -> Stream:
    if record["generator"] not in GENERATORS:
        raise ValueError(f"{record['generator']} is no bit generator")
    start = getattr(np.random, record["generator"])(0)
    start.state = _read(record["state"], get)
    return Stream(start, int(record["used"]))


def _written(tree: Any, put: Put) -> Any:
    """Arrays, numbers and words in dictionaries, lists and tuples."""
    if isinstance(tree, np.ndarray):
        return {"array": put(tree)}
    if type(tree) is dict and all(isinstance(key, str) for key in tree):
        return {"of": {key: _written(one, put) for key, one in tree.items()}}
    if type(tree) in (list, tuple):
        return {type(tree).__name__: [_written(one, put) for one in tree]}
    if isinstance(tree, int | float | str | np.generic):
        return tree.item() if isinstance(tree, np.generic) else tree
    raise NoRecord(f"the samples are nested in a {type(tree).__name__}")


def _read(record: Any, get: Get) -> Any:
    if not isinstance(record, dict):
        return record
    ((what, inner),) = record.items()
    if what == "array":
        return get(inner)
    if what == "of":
        return {key: _read(one, get) for key, one in inner.items()}
    listed = [_read(one, get) for one in inner]
    return {"list": listed, "tuple": tuple(listed)}[what]
