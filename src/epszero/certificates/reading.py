"""Records as they come in: JSON that anyone may have written, so every key, type and range is looked at first.

What passes is a record that some certificate could have; whether it is true is for `ez.verify` to say. What is refused
is refused in a sentence that names the place: keys that are missing, unknown or there twice, numbers that are NaN,
infinite or out of range, words where numbers belong, verdicts that do not follow from what is leant on.
"""

import base64
import binascii
import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from epszero._checks import refuse
from epszero.certificates._base import Leaning, Obstacle
from epszero.certificates.certificate import Certificate, Verdict, verdict_of
from epszero.certificates.encoding import DEEPEST, REMEDY
from epszero.facts import Provenance
from epszero.problems.declared import Declared
from epszero.solve import Status

READ = (1, 2)  # forms; 1 says neither where the run started nor which settings of its method were asked for
MOST = 2**53  # iterations, samples, seeds: whole numbers that every reader of JSON knows
MEANINGS = ("distance", "relative_distance", "total_exploitability", "cost_gap")
DIGEST = re.compile(r"[0-9a-f]{64}")

Look = Callable[[str, Any], None]  # at the value of a place; refuses what cannot be there


def read_record(given: Any) -> dict[str, Any]:
    """From text, or from a dictionary that was read before: a record that a certificate could have."""
    if isinstance(given, Certificate):
        given = given.to_json()
    try:
        if isinstance(given, Mapping):
            given = json.dumps(dict(given), allow_nan=False)
        record = json.loads(given, object_pairs_hook=_pairs, parse_float=_finite, parse_constant=_finite)
        form = record["form"]
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError) as error:
        why = f" ({error})" if isinstance(error, _Damaged) else ""
        refuse("certificate_json", f"is not a certificate's record{why}", REMEDY)
    if type(form) is not int or form not in READ:
        refuse("certificate_json", f"has the form {form!r}, but this version reads {READ}", "Certify anew")
    _look_at(record, form)
    if form == 1:
        record["notes"]["stationary"] = ""  # nothing was called so then
    return record


class _Damaged(ValueError):
    """Text that JSON's standard or ours does not allow."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Damaged("a key is there twice")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Damaged(f"{text[:40]} is not a number that a record can hold")
    return value


def _damaged(place: str, rule: str) -> NoReturn:
    refuse("certificate_json", f"the record is damaged: {place} {rule}", REMEDY)


NOTES = ("distance", "exploitability", "total", "cost_gap")


# -- the whole ---------------------------------------------------------------------------------------------------------


def _look_at(record: dict[str, Any], form: int) -> None:
    looks: dict[str, Look] = {
        "form": _anything,
        "epsilon": _or_none(_number),
        "delta": _share,
        "verdict": _one_of(Verdict),
        "by": _text,
        "reason": _text,
        **{name: _or_none(_number) for name in MEANINGS},
        "exploitability": _or_none(_listed(_or_none(_number), least=1)),
        "notes": _keys(
            {name: _text for name in (*NOTES, *(["stationary"] if form > 1 else []))},
            {"truth": _text} if form > 1 else {},
        ),
        "terms": _table(_or_none(_signed)),
        "leans_on": _listed(_keys({"what": _text, "provenance": _one_of(Provenance), "evidence": _text})),
        "declared": _declared,
        "kind": _settings("class"),
        "data": _data,
        "run": _keys(_run(form)),
        "point": _points,
        "element": _points,
        "versions": _keys({name: _text for name in ("python", "epszero", "jax", "numpy")}),
    }
    if form > 1:
        looks["obstacle"] = _or_none(_one_of(Obstacle))
    _keys(looks, {"image": _image} if form > 1 else {})("it", record)


def check_whole(record: dict[str, Any]) -> None:
    """Refuse a record in which one claim contradicts another; where all are worked out again, that says so itself."""
    leans_on = tuple(Leaning(one["what"], Provenance(one["provenance"])) for one in record["leans_on"])
    epsilon = math.inf if record["epsilon"] is None else record["epsilon"]
    follows = verdict_of(epsilon, leans_on)
    if follows != record["verdict"]:
        _damaged("verdict", f"is {record['verdict']}, but by epsilon and what is leant on it is {follows}")
    if record["epsilon"] is None:
        said = [name for name in (*MEANINGS, "exploitability") if record[name] is not None]
        if said:
            _damaged(said[0], "is there, but epsilon is not")
    if record["distance"] is None and record["relative_distance"] is not None:
        _damaged("relative_distance", "is there, but distance is not")
    if record["exploitability"] is None and record["total_exploitability"] is not None:
        _damaged("total_exploitability", "is there, but exploitability is not")


def _image(place: str, value: Any) -> None:
    ends = _or_none(_listed(_signed, least=1))
    _keys({"rows": _points, "distance": _or_none(_number), "lower": ends, "upper": ends, "because": _text})(
        place, value
    )
    if len(value["rows"]) != 1 or len(value["rows"][0]["shape"]) != 2:
        _damaged(f"{place}.rows", "must be one matrix")
    many = value["rows"][0]["shape"][0]
    for name in ("lower", "upper"):
        if (value[name] is None) != (value["distance"] is None) or len(value[name] or [0] * many) != many:
            _damaged(f"{place}.{name}", "does not fit the matrix, or the distance")


def _declared(place: str, value: Any) -> None:
    _table(_settings())(place, value)
    known = {one.name for one in dataclasses.fields(Declared)}
    if not value.keys() <= known:
        _damaged(place, f"has {', '.join(sorted(value.keys() - known))[:80]}, which nobody can declare")


def _data(place: str, value: Any) -> None:
    brief: dict[str, Look] = {"samples": _count(1), "digest": _digest, "support": _or_none(_text)}
    aside: dict[str, Look] = {**brief, "seed": _count(0)}
    looks = {"seen": _listed(_keys(brief)), "kept_aside": _or_none(_keys(aside)), "given": _listed(_keys(brief))}
    _keys(looks)(place, value)


def _run(form: int) -> dict[str, Look]:
    shared: dict[str, Look] = {
        "method": _text,
        "description": _text,
        "iterations": _count(0),
        "fixed_iterations": _truth,
        "status": _one_of(Status),
        "notes": _listed(_text),
    }
    if form == 1:
        return {**shared, "relaxation": _or_none(_signed), "steps": _settings()}
    return {**shared, "asked": _or_none(_settings("method")), "start": _points}


# -- its parts ---------------------------------------------------------------------------------------------------------


def _anything(place: str, value: Any) -> None:
    del place, value


def _or_none(look: Look) -> Look:
    return lambda place, value: None if value is None else look(place, value)


def _keys(looks: Mapping[str, Look], others: Mapping[str, Look] = MappingProxyType({})) -> Look:
    """All of these keys, and some of the others."""

    def look(place: str, value: Any) -> None:
        if not isinstance(value, dict):
            _damaged(place, "must be an object with keys")
        missing, more = sorted(looks.keys() - value.keys()), sorted(value.keys() - looks.keys() - others.keys())
        if missing:
            _damaged(place, f"lacks {missing[0]}")
        if more:
            _damaged(place, f"has {more[0][:40]!r}, which no record has")
        for name, one in (*looks.items(), *((name, one) for name, one in others.items() if name in value)):
            one(name if place == "it" else f"{place}.{name}", value[name])

    return look


def _table(look: Look) -> Look:
    def every(place: str, value: Any) -> None:
        if not isinstance(value, dict):
            _damaged(place, "must be an object with keys")
        for name, one in value.items():
            look(f"{place}.{name[:60]}", one)

    return every


def _listed(look: Look, least: int = 0) -> Look:
    def every(place: str, value: Any) -> None:
        if not isinstance(value, list) or len(value) < least:
            _damaged(place, "must be a list" + (" with something in it" if least else ""))
        for i, one in enumerate(value):
            look(f"{place}[{i}]", one)

    return every


def _text(place: str, value: Any) -> None:
    if not isinstance(value, str):
        _damaged(place, f"must be text, but it is {_shown(value)}")


def _truth(place: str, value: Any) -> None:
    if not isinstance(value, bool):
        _damaged(place, f"must be true or false, but it is {_shown(value)}")


def _one_of(words: Any) -> Look:
    known = [word.value for word in words]

    def look(place: str, value: Any) -> None:
        if not isinstance(value, str) or value not in known:
            _damaged(place, f"must be one of {', '.join(known)}, but it is {_shown(value)}")

    return look


def _signed(place: str, value: Any) -> None:
    try:
        fine = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        fine = False
    if not fine:
        _damaged(place, f"must be a number, but it is {_shown(value)}")


def _number(place: str, value: Any) -> None:
    _signed(place, value)
    if value < 0:
        _damaged(place, f"must be at least 0, but it is {value:g}")


def _share(place: str, value: Any) -> None:
    _signed(place, value)
    if not 0 < value < 1:
        _damaged(place, f"is a probability of failure, between 0 and 1, but it is {value:g}")


def _count(least: int) -> Look:
    def look(place: str, value: Any) -> None:
        if type(value) is not int or not least <= value <= MOST:
            _damaged(place, f"must be a whole number from {least} to {MOST}, but it is {_shown(value)}")

    return look


def _digest(place: str, value: Any) -> None:
    if not isinstance(value, str) or not DIGEST.fullmatch(value):
        _damaged(place, f"must be a SHA-256 in hexadecimal, but it is {_shown(value)}")


def _settings(needed: str | None = None) -> Look:
    """Plain JSON of any kind, not too deep; with a key `needed` that holds a word."""

    def look(place: str, value: Any) -> None:
        _shallow(place, value, 4 * DEEPEST)
        if needed is not None and not (isinstance(value, dict) and isinstance(value.get(needed), str)):
            _damaged(place, f"must have a word for {needed!r}")

    return look


def _shallow(place: str, value: Any, levels: int) -> None:
    if levels == 0:
        _damaged(place, "is nested too deeply")
    if isinstance(value, int) and not isinstance(value, bool):
        _signed(place, value)
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _shallow(place, one, levels - 1)


def _points(place: str, value: Any) -> None:
    _listed(_keys({"shape": _listed(_count(0)), "float64": _text}))(place, value)
    for i, leaf in enumerate(value):
        try:
            raw = base64.b64decode(leaf["float64"], validate=True)
        except (binascii.Error, ValueError):
            _damaged(f"{place}[{i}]", "is not written in base 64")
        if len(raw) != 8 * math.prod(leaf["shape"]):
            _damaged(f"{place}[{i}]", f"has {len(raw) / 8:g} numbers, which do not fill the shape {leaf['shape'][:9]}")


def _shown(value: Any) -> str:
    """A few letters of anything."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**40:
        return "too large a number"
    return repr(value)[:60]
