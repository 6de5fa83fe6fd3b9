"""Certificates as JSON: everything that was claimed, and all it takes to recompute it.

A record carries the point and z bit for bit, digests of the data, the kind with its settings, the run, versions and
seeds. It does not carry the data or the user's functions: `ez.verify` takes those.
"""

import base64
import dataclasses
import json
import math
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero import certificates, sets
from epszero._checks import refuse
from epszero._types import PyTree
from epszero.certificates._base import Kind, Leaning
from epszero.certificates.certificate import Certificate, Verdict
from epszero.certificates.dependent import Dependent
from epszero.certificates.mean import MeanBound
from epszero.certificates.tightest import Tightest
from epszero.constants import Provenance
from epszero.methods import Extragradient, ForwardBackward, ForwardBackwardForward, Method
from epszero.oracles import PrimalDual
from epszero.problems import Problem
from epszero.problems.backward import is_part
from epszero.samples import Samples
from epszero.solve import HOLDOUT_SEED, Solution

FORM = 1  # of the record

REBUILT = {cls.__name__: cls for cls in (ForwardBackward, ForwardBackwardForward, Extragradient)}


def record_of(certificate: Certificate) -> dict[str, Any]:
    """The record, made of plain JSON values: no infinities, no NaN."""
    solution = certificate.solution
    assert solution is not None
    claims = {name: _plain(getattr(certificate, name)) for name in (
        "epsilon", "delta", "verdict", "by", "reason", "distance", "relative_distance", "exploitability",
        "total_exploitability", "cost_gap", "notes", "terms",
    )}  # fmt: skip
    return {
        "form": FORM,
        **claims,
        "leans_on": [dataclasses.asdict(leaning) for leaning in certificate.leans_on],
        "kind": encoded(settled(certificate.using, _most(solution))),
        "data": _data(certificate),
        "declared": {name: value for name, value in vars(solution.problem.declared).items() if value},
        "run": _run(solution),
        "point": [_packed(leaf) for leaf in jax.tree.leaves(solution.point)],
        "element": [_packed(leaf) for leaf in jax.tree.leaves(solution.element)],
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("epszero", "jax", "numpy")},
        },
    }


def read_record(given: Any) -> dict[str, Any]:
    """From text, or from a dictionary that was read before."""
    if isinstance(given, Certificate):
        given = given.to_json()
    try:
        record = json.loads(given) if isinstance(given, str | bytes) else given
        form = record["form"]
    except (ValueError, TypeError, KeyError):
        refuse("certificate_json", "is not a certificate's record", "Pass what certificate.to_json() returned")
    if form != FORM:
        refuse("certificate_json", f"has the form {form!r}, but this version reads {FORM}", "Certify anew")
    return record


def certificate_from(given: Any) -> Certificate:
    """The certificate of a record, as it was claimed."""
    record = read_record(given)
    numbers = ("distance", "relative_distance", "total_exploitability", "cost_gap")
    savings = record["exploitability"]
    return Certificate(
        epsilon=math.inf if record["epsilon"] is None else record["epsilon"], delta=record["delta"],
        verdict=Verdict(record["verdict"]), by=record["by"], reason=record["reason"],
        exploitability=None if savings is None else np.array(savings, dtype=np.float64), notes=record["notes"],
        terms={name: math.inf if value is None else value for name, value in record["terms"].items()},
        leans_on=tuple(Leaning(each["what"], Provenance(each["provenance"]), each["evidence"])
                       for each in record["leans_on"]),
        using=decoded(record["kind"], {}), record=record, **{name: record[name] for name in numbers},
    )  # fmt: skip


def solution_of(record: Mapping[str, Any], problem: Problem, samples: Any, kept: Samples | None) -> Solution:
    """The solution that a record speaks of."""
    from epszero.solve.solution import Trace  # noqa: PLC0415  (only here)
    from epszero.solve.status import Status  # noqa: PLC0415

    run = record["run"]
    point, element = _nested(problem, record["point"]), _nested(problem, record["element"])
    return Solution(
        point=point, element=element, residual=math.nan, iterations=run["iterations"], status=Status(run["status"]),
        notes=tuple(run["notes"]), trace=Trace(np.array([], dtype=np.int64), np.array([])), step=None,
        problem=problem, samples=samples,
        method=_method(run, problem, point), holdout=kept, fixed_iterations=run["fixed_iterations"],
    )  # fmt: skip


# -- kinds and bounds --------------------------------------------------------------------------------------------------


def encoded(value: Any) -> Any:  # noqa: PLR0911  (one line per kind of value)
    """A kind, a bound, a set or a setting as plain JSON. Samples are in the record by their digest."""
    if isinstance(value, Samples):
        return {"samples": value.digest()}
    if isinstance(value, Kind | MeanBound):
        fields = {one.name: encoded(getattr(value, one.name)) for one in dataclasses.fields(value)}  # pyright: ignore[reportArgumentType]
        return {"class": type(value).__name__, **fields}
    if isinstance(value, sets.Set):
        return {"set": type(value).__name__, "of": {name: encoded(one) for name, one in vars(value).items()}}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, Mapping):
        return {"mapping": [[key, encoded(one)] for key, one in value.items()]}
    if isinstance(value, list | tuple):
        return [encoded(one) for one in value]
    plain = value is None or isinstance(value, str | int | float | np.generic)
    return _plain(value) if plain else {"opaque": repr(value)}


def decoded(value: Any, samples: Mapping[str, Samples]) -> Any:  # noqa: PLR0911  (one line per kind of value)
    """Back from `encoded`, with the samples found by their digests."""
    if isinstance(value, list):
        return tuple(decoded(one, samples) for one in value)
    if not isinstance(value, dict):
        return value
    if "opaque" in value:
        refuse("certificate_json", f"was made with {value['opaque'][:60]}, which a record cannot hold", "Pass using=")
    if "array" in value:
        return np.array(value["array"], dtype=np.float64)
    if "samples" in value and len(value) == 1:
        return samples.get(value["samples"])
    if "mapping" in value:
        return {key: decoded(one, samples) for key, one in value["mapping"]}
    if "set" in value:
        single = object.__new__(getattr(sets, value["set"]))
        for name, attribute in value["of"].items():
            setattr(single, name, decoded(attribute, samples))
        return single
    known = getattr(certificates, value["class"], None)
    if known is None:
        refuse("certificate_json", f"is by {value['class']}, which is not in ez.certificates", "Pass it as using=")
    return known(**{name: decoded(one, samples) for name, one in value.items() if name != "class"})


def settled(kind: Any, most: int) -> Any:
    """The kind, with a function for a rate of mixing replaced by its values."""
    if isinstance(kind, Dependent) and callable(kind.beta):
        return dataclasses.replace(kind, beta=[float(kind.beta(gap)) for gap in range(1, most + 1)])
    if isinstance(kind, Tightest):
        return dataclasses.replace(kind, kinds=[settled(one, most) for one in kind.kinds])
    return kind


def _most(solution: Solution) -> int:
    return len(solution.samples) if isinstance(solution.samples, Samples) else 1


def given_samples(kind: Any) -> list[Samples]:
    """The samples that a kind brings along."""
    if isinstance(kind, Tightest):
        return [one for inner in kind.kinds for one in given_samples(inner)]
    own = getattr(kind, "samples", None)
    return [own] if isinstance(own, Samples) else []


# -- data, run and points ----------------------------------------------------------------------------------------------


def _data(certificate: Certificate) -> dict[str, Any]:
    solution = certificate.solution
    assert solution is not None
    seen = solution.samples
    parts = [] if seen is None else list(seen) if isinstance(seen, list) else [seen]
    kept = solution.holdout
    return {
        "seen": [_brief(one) for one in parts],
        "kept_aside": None if kept is None else {**_brief(kept), "seed": HOLDOUT_SEED},
        "given": [_brief(one) for one in given_samples(certificate.using)],
    }


def _brief(samples: Samples) -> dict[str, Any]:
    return {
        "samples": len(samples),
        "digest": samples.digest(),
        "support": None if samples.support is None else repr(samples.support),
    }


def _run(solution: Solution) -> dict[str, Any]:
    sizes = getattr(getattr(solution.method, "steps", None), "sizes", None)
    return {
        "method": type(solution.method).__name__, "description": solution.method.description,
        "iterations": solution.iterations, "fixed_iterations": solution.fixed_iterations,
        "status": solution.status.value, "notes": list(solution.notes),
        "relaxation": getattr(solution.method, "relaxation", None),
        "steps": [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(sizes)] or _scheduled(solution),
    }  # fmt: skip


def _scheduled(solution: Solution) -> list[Any]:
    """The steps of a schedule, one per iteration, where each is a number."""
    schedule = getattr(getattr(solution.method, "steps", None), "schedule", None)
    if schedule is None:
        return []
    with jax.enable_x64(True):
        sizes = [np.asarray(schedule(k)) for k in range(solution.iterations + 1)]
    return [{"schedule": [float(size) for size in sizes]}] if all(size.ndim == 0 for size in sizes) else []


def _method(run: Mapping[str, Any], problem: Problem, point: PyTree) -> Method:
    """The method again, where its steps were one number, or one for each iteration."""
    cls = REBUILT.get(run["method"], ForwardBackward)
    options = {"relaxation": run["relaxation"]} if cls is ForwardBackward and run["relaxation"] is not None else {}
    given, *more = run["steps"] or [None]
    step: Any = given
    if isinstance(step, dict):
        table = np.array(step["schedule"])
        step = lambda k: jnp.asarray(table)[jnp.minimum(k, len(table) - 1)]  # noqa: E731
    if more or step is None or np.ndim(step) or run["method"] not in REBUILT:
        return cls(**options)
    with jax.enable_x64(True):
        return cls(step, **options).prepared(problem, point)


def _packed(leaf: Any) -> dict[str, Any]:
    array = np.ascontiguousarray(leaf, dtype="<f8")
    return {"shape": list(array.shape), "float64": base64.b64encode(array.tobytes()).decode()}


def _nested(problem: Problem, packed: list[dict[str, Any]]) -> PyTree:
    leaves = [np.frombuffer(base64.b64decode(one["float64"]), dtype="<f8").reshape(one["shape"]) for one in packed]
    structure = jax.tree.structure(problem.strategies.parts, is_leaf=is_part)
    wanted = structure.num_leaves + (problem.coupling is not None)
    if len(leaves) != wanted:
        refuse(
            "problem", f"has {wanted} blocks, but the record has {len(leaves)}", "Pass the problem that was certified"
        )
    if problem.coupling is None:
        return structure.unflatten(leaves)
    return PrimalDual(structure.unflatten(leaves[:-1]), leaves[-1])


def _plain(value: Any) -> Any:
    """A number that JSON knows; None for infinity."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
