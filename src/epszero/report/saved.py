"""Solutions in one file: `solution.save(path)` writes it, `ez.load(path, problem)` reads it.

A zip of JSON and of arrays as NumPy writes them, without pickles: reading it executes nothing. It carries the point and
z bit for bit, the run, and the samples with their history; the problem, which is made of functions, it does not carry.
That the right one is passed again is checked: by its kind and shapes, what is declared, the values of B near x for the
first and the last sample, and where A takes points nearby and further away. Equal solutions give equal files.
"""

import io
import json
import os
import platform
import zipfile
import zlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from epszero._checks import InputError, known_arguments, refuse
from epszero._double import double, to_numpy
from epszero._points import flat_of
from epszero._types import FloatArray, PyTree
from epszero.certificates.encoding import FAULTS, CannotRebuild, decoded, encoded
from epszero.certificates.record import nested, run_of
from epszero.methods import Method
from epszero.methods.record import read, written
from epszero.problems import Problem
from epszero.report.files import checked_place, write_file
from epszero.samples import Samples
from epszero.samples.record import NoRecord, samples_from, samples_record
from epszero.solve import HOLDOUT_SEED, Solution, Status
from epszero.solve.attempt import settled_again
from epszero.solve.setup import GivenSamples, check_shapes, checked_samples, values_of
from epszero.solve.solution import Trace

FORM = 1
KIND = "epszero solution"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the time of every part: equal solutions give equal files
ALIKE = 1e-9  # relative: what another machine may compute differently
TEXT = "solution.json"
POINTS = ("point", "element", "start", "subgradient")  # nested like x, the last three perhaps None
AGAIN = "Save the solution again"
UNREADABLE = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, OSError, EOFError, RuntimeError)  # what zips raise


def save(solution: Solution, path: object, data: object) -> Path:
    """Write the file, whole or not at all; its name."""
    place = checked_place(path, "solution.npz")
    if not isinstance(data, bool):
        refuse("data", f"must be True or False, but it is {data!r}", "Pass False to leave the samples out")
    arrays: list[NDArray[Any]] = []

    def put(array: NDArray[Any]) -> int:
        arrays.append(np.asarray(array))
        return len(arrays) - 1

    sets = _listed(solution.samples)
    record = {
        "kind": KIND,
        "form": FORM,
        "points": {name: _put(getattr(solution, name), put) for name in POINTS},
        "problem": _fingerprint(solution.problem, solution.samples, solution.point, put),
        "run": run_of(solution),
        "residual": repr(solution.residual),
        "step": written(solution.step),
        "trace": [put(solution.trace.iterations), put(solution.trace.residual)],
        "finished": solution.finished,
        "exact": solution.exact,
        "each": isinstance(solution.samples, list),
        "samples": [_samples(one, put, data) for one in sets],
        "holdout": None if solution.holdout is None else _samples(solution.holdout, put, data),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("epszero", "jax")}},
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        _add(file, TEXT, json.dumps(record, ensure_ascii=False, allow_nan=False, indent=1).encode())
        for number, array in enumerate(arrays):
            one = io.BytesIO()
            np.lib.format.write_array(one, array, allow_pickle=False)
            _add(file, f"{number}.npy", one.getvalue())
    return write_file(place, packed.getvalue())


@known_arguments
def load(
    path: str | os.PathLike[str], problem: Problem, samples: GivenSamples = None, method: Method | None = None
) -> Solution:
    """The solution that `solution.save(path)` wrote, of the same problem.

    `samples`: the data again, as they were given to `ez.solve`; where they are left out those in the file are taken. A
    problem or samples that are not those of the file are refused. `method`: the one that was asked for, where a file
    cannot hold it (one of your own, or with a step that is a function of k).
    """
    name = os.fspath(checked_place(path, "solution.npz"))
    record, arrays = _opened(name)
    _require_problem(problem)
    try:
        with double():
            return _loaded(record, arrays, problem, (samples, method), name)
    except (InputError, MemoryError):
        raise
    except FAULTS as error:
        what = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise InputError.about("path", f"{name!r} is damaged ({what})", AGAIN) from error


def _require_problem(problem: object) -> None:
    if not isinstance(problem, Problem):
        refuse("problem", f"must be the problem that was solved, but it is a {type(problem).__name__}", "Pass it")


def _loaded(
    record: dict[str, Any], arrays: list[NDArray[Any]], problem: Problem, given: tuple[Any, Any], name: str
) -> Solution:
    found, kept = _data(record, arrays, problem, given[0], name)
    point, element, start, subgradient = (
        None if record["points"][one] is None else nested(problem, [arrays[i] for i in record["points"][one]])
        for one in POINTS
    )
    check_shapes(problem, found, point)
    _check_problem(record["problem"], arrays, problem, found, point)
    run = record["run"]
    asked = given[1]
    if asked is None and run["asked"] is not None:
        try:
            asked = Method.from_record(run["asked"], point)
        except LookupError as error:
            raise InputError.about("method", f"is not in {name!r}: {error.args[0]}", "Pass method= again") from error
    steps = run["iterations"] if run["fixed_iterations"] else None
    settled = settled_again(problem, (found, kept), start, (asked, steps), (run["method"], run["description"]))
    if settled is None:
        refuse("problem", f"leads to another method than {run['description']!r}, which {name!r} has", "Pass that one")
    return Solution(
        point=point,
        element=element,
        residual=float(record["residual"]),
        iterations=int(run["iterations"]),
        status=Status(run["status"]),
        notes=tuple(map(str, run["notes"])),
        trace=Trace(*(arrays[i] for i in record["trace"])),
        step=read(record["step"], point),
        problem=problem,
        samples=found,
        method=settled,
        holdout=kept,
        fixed_iterations=bool(run["fixed_iterations"]),
        start=start,
        asked=asked,
        finished=str(record["finished"]),
        exact=bool(record["exact"]),
        subgradient=subgradient,
    )


# -- the file ----------------------------------------------------------------------------------------------------------


def _add(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(entry, content)


def _opened(name: str) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    remedy = "Pass a file that solution.save(path) wrote"
    if not os.path.isfile(name):
        refuse("path", f"there is no file {name!r}", "Check the name and the working directory")
    try:
        with zipfile.ZipFile(name) as file:
            record = json.loads(file.read(TEXT))
            if not isinstance(record, dict) or record.get("kind") != KIND:
                refuse("path", f"{name!r} is not a saved solution", remedy)
            if record.get("form") != FORM:
                refuse("path", f"{name!r} was written by another version of epszero", AGAIN)
            many = len(file.namelist()) - 1
            arrays = [_array(file.read(f"{number}.npy")) for number in range(many)]
    except UNREADABLE as error:
        raise InputError.about("path", f"{name!r} is not a saved solution, or damaged ({error})", remedy) from error
    return record, arrays


def _array(content: bytes) -> NDArray[Any]:
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def _put(tree: PyTree, put: Any) -> list[int] | None:
    return None if tree is None else [put(np.asarray(leaf, dtype=np.float64)) for leaf in jax.tree.leaves(tree)]


# -- the data ----------------------------------------------------------------------------------------------------------


def _listed(samples: Samples | list[Samples] | None) -> list[Samples]:
    return samples if isinstance(samples, list) else [] if samples is None else [samples]


def _samples(samples: Samples, put: Any, data: bool) -> dict[str, Any]:
    """Size and digest, and all of it where it can be written and is wanted."""
    whole: dict[str, Any] | None = None
    why = "its samples were left out"
    if data:
        try:
            whole = samples_record(samples, put)
        except NoRecord as error:
            why = str(error)
    return {
        "samples": len(samples),
        "digest": samples.digest(),
        "support": encoded(samples.support),
        "whole": whole,
        "why": "" if whole else why,
    }


def _data(
    record: dict[str, Any], arrays: list[NDArray[Any]], problem: Problem, given: Any, name: str
) -> tuple[Samples | list[Samples] | None, Samples | None]:
    """The data that the run saw and those kept aside, as given again or from the file."""
    parts, aside = record["samples"], record["holdout"]
    if given is None:
        kept = None if aside is None else _from_file(aside, arrays, name)
        found = [_from_file(one, arrays, name) for one in parts]
        return (found if record["each"] else found[0] if found else None), kept
    data = checked_samples(problem, given)
    if aside is not None and isinstance(data, Samples) and len(data) == parts[0]["samples"] + aside["samples"]:
        data, kept = data.split(parts[0]["samples"] / len(data), seed=HOLDOUT_SEED)
    else:
        kept = None if aside is None else _from_file(aside, arrays, name)
    found, wanted = [*_listed(data), *_listed(kept)], [*parts, *([] if aside is None else [aside])]
    if [one.digest() for one in found] != [one["digest"] for one in wanted]:
        sizes = f"{sum(len(one) for one in found)} samples, and the file speaks of "
        sizes += f"{sum(one['samples'] for one in wanted)}" if found else "none"
        refuse("samples", f"are not those that {name!r} was found with ({sizes})", "Pass the same, or leave them out")
    return data, kept


def _from_file(part: dict[str, Any], arrays: list[NDArray[Any]], name: str) -> Samples:
    if part["whole"] is None:
        refuse("samples", f"are not in {name!r}: {part['why']}", "Pass samples= as they were given to ez.solve")
    try:
        support = decoded(part["support"])
    except CannotRebuild:
        refuse("samples", f"have a support that {name!r} cannot hold", "Pass samples= as they were given to ez.solve")
    samples = samples_from(part["whole"], support, lambda number: arrays[number])
    if samples.digest() != part["digest"]:
        refuse("path", f"{name!r} is damaged: its samples are not those that it speaks of", AGAIN)
    return samples


# -- the problem -------------------------------------------------------------------------------------------------------


def _fingerprint(problem: Problem, samples: Samples | list[Samples] | None, point: PyTree, put: Any) -> dict[str, Any]:
    """What tells a problem from others: words, and numbers near the point."""
    with double():
        numbers = [put(one) for one in _probed(problem, samples, point)]
    return {"words": _words(problem, point), "numbers": numbers}


def _words(problem: Problem, point: PyTree) -> dict[str, Any]:
    said = {name: encoded(one) for name, one in vars(problem.declared).items() if one is not None and one is not False}
    return {
        "a problem of another kind": type(problem).__name__,
        "points of another shape": str(jax.tree.map(np.shape, point)),
        "other declared constants": json.loads(json.dumps(said)),
    }


def _probed(problem: Problem, samples: Samples | list[Samples] | None, point: PyTree) -> list[FloatArray]:
    """O at x and beside it, for the first and the last sample, then where A takes points nearby and further away."""
    values = values_of(samples)
    rows = [None] if values is None else [jax.tree.map(lambda leaf, i=i: leaf[i], values) for i in (0, -1)]

    def moved(leaf: Any, by: float) -> Any:
        return leaf + by * (1 + np.abs(leaf)) * np.cos(np.arange(np.size(leaf))).reshape(np.shape(leaf))

    beside, away = (jax.tree.map(lambda leaf, by=by: np.asarray(moved(leaf, by)), point) for by in (0.1, 10.0))
    found = [problem.oracle(x, row) for x in (point, beside) for row in rows]
    found += [problem.A.resolvent(x, np.asarray(1.0)) for x in (beside, away)]
    return [flat_of(to_numpy(one)) for one in found]


def _check_problem(
    said: dict[str, Any], arrays: Sequence[NDArray[Any]], problem: Problem, samples: Any, point: PyTree
) -> None:
    for what, expected in said["words"].items():
        if _words(problem, point).get(what) != expected:
            refuse("problem", f"is not the one that was saved: it has {what}".replace("has a ", "is a "), "Pass that")
    found = _probed(problem, samples, point)
    for place, (number, value) in enumerate(zip(said["numbers"], found, strict=True)):
        expected = arrays[number]
        scale = float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected)))
        if not np.allclose(value, expected, rtol=ALIKE, atol=ALIKE * scale, equal_nan=True):
            side = "its sets or functions are others" if place >= len(found) - 2 else (
                f"its {problem.uncertain_side} has other values near x")  # fmt: skip
            refuse("problem", f"is not the one that was saved: {side}", "Pass that one")
