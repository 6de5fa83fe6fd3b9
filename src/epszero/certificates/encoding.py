"""Settings of kinds and bounds as plain JSON, and back. Samples stand in a record by their digest.

What is read is made by the constructors, which check it as they check what users pass: a set, a bound or a kind that
nobody can make comes out of no record either.
"""

import dataclasses
import inspect
import math
import re
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from epszero import certificates, sets
from epszero._checks import InputError, refuse
from epszero.certificates._base import Kind
from epszero.certificates.mean import MeanBound
from epszero.samples import Samples

REMEDY = "Pass what certificate.to_json() returned"
FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
DEEPEST = 40  # levels of settings within settings


class CannotRebuild(Exception):
    """A record speaks of something that it cannot hold: the message says what, and what would help."""


def encoded(value: Any, *, exact: bool = False) -> Any:  # noqa: PLR0911  (one line per kind of value)
    """A kind, a bound, a set or a setting as plain JSON; `exact` tells lists from tuples, as in sets."""
    if isinstance(value, Samples):
        return {"samples": value.digest()}
    if isinstance(value, Kind | MeanBound):
        names = [one.name for one in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
        return {"class": type(value).__name__, **{name: encoded(getattr(value, name)) for name in names}}
    if isinstance(value, sets.Set):
        return {
            "set": type(value).__name__,
            "of": {name: encoded(one, exact=True) for name, one in vars(value).items()},
        }
    if isinstance(value, np.ndarray | jax.Array):
        return {"array": _listed(np.asarray(value).tolist())}
    if isinstance(value, Mapping):
        return {"mapping": [[plain(key), encoded(one, exact=exact)] for key, one in value.items()]}
    if isinstance(value, list | tuple):
        listed = [encoded(one, exact=exact) for one in value]
        return {"tuple": listed} if exact and isinstance(value, tuple) else listed
    if isinstance(value, float | np.floating) and not math.isfinite(value):
        return {"number": str(float(value))}
    simple = value is None or isinstance(value, str | int | float | np.generic)
    return plain(value) if simple else {"opaque": words_of(value)}


def words_of(value: Any) -> str:
    """What an object says of itself, without its place in memory, which is another in every process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def rebuilt(value: Any, samples: Mapping[str, Samples]) -> Kind:
    """The kind of a record, with the samples found by their digests; refused where it cannot be one."""
    try:
        kind = _decoded(value, samples)
    except FAULTS as error:
        sentence = f"the record is damaged: its kind cannot be made ({_first_line(error)})"
        raise InputError.about("certificate_json", sentence, REMEDY) from error
    if not isinstance(kind, Kind):
        refuse("certificate_json", "the record is damaged: its kind is not a kind of certificate", REMEDY)
    return kind


def decoded(value: Any) -> Any:
    """A set or a setting as `encoded` was given it; raises `CannotRebuild`, or one of FAULTS."""
    return _decoded(value, {})


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _decoded(value: Any, samples: Mapping[str, Samples], depth: int = 0) -> Any:  # noqa: PLR0911  (one line per kind of value)
    """Back from `encoded`."""
    if depth > DEEPEST:
        raise RecursionError("it is nested too deeply")

    def inner(one: Any) -> Any:
        return _decoded(one, samples, depth + 1)

    if isinstance(value, list):
        return [inner(one) for one in value]
    if not isinstance(value, dict):
        return value
    if "class" in value:
        return _made(value, inner)
    if "set" in value:
        _only(value, "set", "of")
        return _set(value["set"], {name: inner(one) for name, one in value["of"].items()})
    (what,) = value
    given = value[what]
    if what == "opaque":
        raise CannotRebuild(f"It was made with {given[:60]}, which a record cannot hold: pass using=.")
    if what == "array":
        return np.array(given, dtype=np.float64)
    if what == "number":
        return float(given)
    if what == "samples":
        return samples.get(given)
    if what == "tuple":
        return tuple(inner(one) for one in given)
    if what == "mapping":
        return {key: inner(one) for key, one in given}
    raise ValueError(f"{what!r} is not known")


def _made(value: dict[str, Any], inner: Any) -> Kind | MeanBound:
    known = getattr(certificates, value["class"], None)
    if not (isinstance(known, type) and issubclass(known, Kind | MeanBound)):
        raise CannotRebuild(f"It is by {value['class'][:60]}, which is not in ez.certificates: pass using=.")
    names = {one.name for one in dataclasses.fields(known)} if dataclasses.is_dataclass(known) else set[str]()
    _only(value, "class", *names)
    return known(**{name: inner(one) for name, one in value.items() if name != "class"})


def _only(value: dict[str, Any], *names: str) -> None:
    """These keys and no others."""
    if value.keys() != set(names):
        raise ValueError(f"it must have {', '.join(names)}, and has {', '.join(map(str, value))[:200]}")


def _set(name: str, attributes: dict[str, Any]) -> sets.Set:
    """By the constructor, where the attributes are its arguments; else as they were."""
    cls = getattr(sets, name, None)
    if not (isinstance(cls, type) and issubclass(cls, sets.Set)) or inspect.isabstract(cls):
        refuse("certificate_json", f"speaks of a set {name!r}, which is not in ez.sets", REMEDY)
    if attributes.keys() <= inspect.signature(cls).parameters.keys():
        return cls(**attributes)
    return cls.holding().replaced(**attributes)


def _listed(value: Any) -> Any:
    """Numbers in lists, infinite ones by name."""
    if isinstance(value, list):
        return [_listed(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def plain(value: Any) -> Any:
    """A number that JSON knows; None for infinity."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
