"""Answers of epszero in a form that can be compared: whatever a user can read off them, and nothing of the clock."""

import json
import warnings
from typing import Any

import numpy as np
from jax.flatten_util import ravel_pytree

import epszero as ez


def of_solution(solution: ez.Solution) -> dict[str, Any]:
    """Where the run ended and what it says of itself."""
    return {
        "x": np.asarray(ravel_pytree(solution.point)[0]).tolist(),
        "iterations": solution.iterations,
        "method": solution.method.description,
        "notes": solution.notes,
        "status": solution.status,
    }


def of_certificate(certificate: Any) -> dict[str, Any]:
    """The record, without versions, which are of the machine."""
    record = json.loads(certificate.to_json())
    del record["versions"]
    return record


def of_verification(found: Any) -> dict[str, Any]:
    return {"agrees": bool(found), "differences": found.differences}


def quietly(ask: Any) -> Any:
    """The answer, or the refusal in words; warnings are not the matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return ask()
        except (ez.InputError, ez.SolveError) as error:
            return f"{type(error).__name__}: {error}"


def difference(one: Any, other: Any, where: str = "answer") -> list[str]:
    """Where two answers part, in sentences; numbers may differ by 1e-12."""
    if isinstance(one, dict) and isinstance(other, dict):
        alone = sorted(one.keys() ^ other.keys())
        pairs = [(f"{where}.{key}", one[key], other[key]) for key in one if key in other]
        return [f"{where}.{key} is in one only" for key in alone] + _differences(pairs)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return _differences([(f"{where}[{i}]", *pair) for i, pair in enumerate(zip(one, other, strict=True))])
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    same = np.isclose(one, other, rtol=1e-12, atol=1e-12, equal_nan=True) if numbers else one == other
    return [] if same else [f"{where}: {one!r} and {other!r}"]


def _differences(pairs: list[tuple[str, Any, Any]]) -> list[str]:
    return [said for where, one, other in pairs for said in difference(one, other, where)]
