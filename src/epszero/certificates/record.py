"""Certificates as JSON: everything that was claimed, and all it takes to recompute it.

A record carries the point and z bit for bit, digests of the data, the kind with its settings, the run (what was asked
for, and where it started), versions and seeds. It does not carry the data or the user's functions: `ez.verify` takes
those. Which samples are kept aside is drawn with one seed for everyone, HOLDOUT_SEED: nobody can try several and keep
the best. That rows were put in another order, or left out, before they were passed to `ez.solve`, no record can show.
"""

import base64
import dataclasses
import math
import platform
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from epszero._checks import InputError, refuse
from epszero._types import FloatArray, PyTree
from epszero.certificates._base import Leaning, Obstacle
from epszero.certificates.bands import Image
from epszero.certificates.certificate import Certificate, Verdict
from epszero.certificates.encoding import CannotRebuild, encoded, plain, rebuilt, words_of
from epszero.certificates.reading import check_whole, read_record
from epszero.facts import Provenance
from epszero.oracles import PrimalDual
from epszero.problems import Problem
from epszero.problems.backward import is_part
from epszero.samples import Samples
from epszero.solve import HOLDOUT_SEED, Solution

FORM = 2  # of the record
CLAIMS = (
    "epsilon",
    "delta",
    "verdict",
    "by",
    "reason",
    "distance",
    "relative_distance",
    "exploitability",
    "total_exploitability",
    "cost_gap",
    "notes",
    "terms",
    "obstacle",
)


def record_of(certificate: Certificate) -> dict[str, Any]:
    """The record, made of plain JSON values: no infinities, no NaN."""
    solution = certificate.solution
    assert solution is not None
    seen = solution.samples
    most = len(seen) if isinstance(seen, Samples) else 1
    return {
        "form": FORM,
        **claims_of(certificate, solution.problem),
        "kind": encoded(certificate.using.recordable(most)),
        "data": _data(certificate, solution),
        "run": run_of(solution),
        "point": packed(solution.point),
        "element": packed(solution.element),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("epszero", "jax", "numpy")},
        },
    }


def claims_of(certificate: Certificate, problem: Problem) -> dict[str, Any]:
    """What a certificate says: all of it is compared when it is verified."""
    return {
        **{name: plain(getattr(certificate, name)) for name in CLAIMS},
        **({} if certificate.image is None else {"image": _image(certificate.image)}),
        "leans_on": [dataclasses.asdict(leaning) for leaning in certificate.leans_on],
        "declared": {name: encoded(value) for name, value in vars(problem.declared).items() if _said(value)},
    }


def _image(image: Image) -> dict[str, Any]:
    """A linear image: its matrix bit for bit, and what is claimed of it."""
    claimed = {name: plain(getattr(image, name)) for name in ("distance", "lower", "upper", "because")}
    return {"rows": packed(image.rows), **claimed}


def image_from(record: dict[str, Any], n: int) -> FloatArray | None:
    """The matrix of a record's image, for points of n entries; None where there is no image."""
    if "image" not in record:
        return None
    rows = _array(record["image"]["rows"][0])
    if rows.ndim != 2 or rows.shape[1] != n or not np.isfinite(rows).all():
        refuse("certificate_json", f"has an image that is no finite matrix with {n} columns", "Certify anew")
    return rows


def _said(value: Any) -> bool:
    return value is not None and value is not False


def certificate_from(given: Any) -> Certificate:
    """The certificate of a record, as it was claimed."""
    record = read_record(given)
    check_whole(record)
    savings, total, obstacle = record["exploitability"], record["total_exploitability"], record.get("obstacle")
    leans_on = tuple(
        Leaning(each["what"], Provenance(each["provenance"]), each["evidence"]) for each in record["leans_on"]
    )
    try:
        kind = rebuilt(record["kind"], {})
    except CannotRebuild as error:
        refuse("certificate_json", str(error).rstrip("."), "Pass a record of a kind in ez.certificates")
    return Certificate(
        epsilon=_from(record["epsilon"]),
        delta=float(record["delta"]),
        verdict=Verdict(record["verdict"]),
        by=record["by"],
        reason=record["reason"],
        exploitability=None if savings is None else np.array([_from(one) for one in savings]),
        total_exploitability=None if savings is None else _from(total),
        notes=record["notes"],
        terms={name: _from(value) for name, value in record["terms"].items()},
        leans_on=leans_on,
        using=kind,
        obstacle=None if obstacle is None else Obstacle(obstacle),
        record=record,
        image=_read_image(record),
        **{name: record[name] for name in ("distance", "relative_distance", "cost_gap")},
    )


def _read_image(record: dict[str, Any]) -> Image | None:
    said = record.get("image")
    if said is None:
        return None
    x = np.concatenate([_array(part).ravel() for part in record["point"]])
    rows = _array(said["rows"][0])
    lower, upper = (
        None if said[name] is None else np.array(said[name], dtype=np.float64) for name in ("lower", "upper")
    )
    return Image(rows, rows @ x[: rows.shape[1]], said["distance"], lower, upper, said["because"])


def _array(part: dict[str, Any]) -> FloatArray:
    return np.frombuffer(base64.b64decode(part["float64"]), dtype="<f8").astype(np.float64).reshape(part["shape"])


def _from(number: float | None) -> float:
    """None stands for infinity."""
    return math.inf if number is None else float(number)


# -- data, run and points ----------------------------------------------------------------------------------------------


def _data(certificate: Certificate, solution: Solution) -> dict[str, Any]:
    seen, kept = solution.samples, solution.holdout
    parts = [] if seen is None else list(seen) if isinstance(seen, list) else [seen]
    return {
        "seen": [brief(one) for one in parts],
        "kept_aside": None if kept is None else {**brief(kept), "seed": HOLDOUT_SEED},
        "given": [brief(one) for one in certificate.using.brought],
    }


def brief(samples: Samples) -> dict[str, Any]:
    """What a record says of one data set."""
    return {
        "samples": len(samples),
        "digest": samples.digest(),
        "support": None if samples.support is None else words_of(samples.support),
    }


def run_of(solution: Solution) -> dict[str, Any]:
    """What was asked for, and how it ended. A step that is a function of k is written down by its values."""
    asked = solution.asked
    return {
        "asked": None if asked is None else asked.to_record(_schedule(solution)),
        "method": type(solution.method).__name__,
        "description": solution.method.description,
        "iterations": solution.iterations,
        "fixed_iterations": solution.fixed_iterations,
        "status": solution.status.value,
        "notes": list(solution.notes),
        "start": packed(solution.start),
    }


def _schedule(solution: Solution) -> list[PyTree] | None:
    """The steps of a schedule, one for each iteration of a run of fixed length."""
    schedule = getattr(getattr(solution.asked, "steps", None), "schedule", None)
    if schedule is None or not solution.fixed_iterations:
        return None
    with jax.enable_x64(True):
        return [jax.tree.map(np.asarray, schedule(k)) for k in range(solution.iterations + 1)]


def packed(tree: PyTree) -> list[dict[str, Any]]:
    """Every leaf, bit for bit."""
    return [_packed(leaf) for leaf in jax.tree.leaves(tree)]


def _packed(leaf: Any) -> dict[str, Any]:
    array = np.ascontiguousarray(leaf, dtype="<f8")
    return {"shape": list(array.shape), "float64": base64.b64encode(array.tobytes()).decode()}


def unpacked(problem: Problem, given: list[dict[str, Any]]) -> PyTree:
    """A point of the problem again."""
    return nested(problem, [_array(part) for part in given])


def nested(problem: Problem, leaves: list[Any]) -> PyTree:
    """A point of the problem from its leaves, refused where they do not fit."""
    structure = jax.tree.structure(problem.strategies.parts, is_leaf=is_part)
    wanted = structure.num_leaves + (problem.coupling is not None)
    if len(leaves) != wanted:
        refuse(
            "problem", f"has {wanted} blocks, but the record has {len(leaves)}", "Pass the problem that was certified"
        )
    x = structure.unflatten(leaves[:wanted] if problem.coupling is None else leaves[:-1])
    try:
        problem.check_point("x", x)
    except InputError as error:
        rule = f"does not fit the points of the record: {error.rule or error}"
        raise InputError.about("problem", rule, "Pass the problem that was certified") from error
    return x if problem.coupling is None else PrimalDual(x, leaves[-1])
