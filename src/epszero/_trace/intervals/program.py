"""A jaxpr written out as a list of steps on intervals.

Calls are written out, loops unrolled, and what does not depend on the inputs is computed there and then, so that what
is left to be done for each box is arithmetic in NumPy. A step that nothing depends on is left out.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from epszero._trace.intervals import sums as sums
from epszero._trace.intervals.arithmetic import Interval, NoEnclosure, hull
from epszero._trace.intervals.moves import IDENTITIES, MOVED, SCATTERED, VIEWS, bound, plain_array, sources
from epszero._trace.intervals.rules import (
    BASIC,
    ROUNDLESS,
    RULES,
    Strict,
    Truth,
    Value,
    away_from_zero,
    decided,
    lifted,
    rounded_to,
    varies,
)
from epszero._trace.programs import CALLS, CUSTOM, opened

LONGEST = 10000  # turns of a loop
STEPS: dict[str, Any] = {"sign": np.sign, "floor": np.floor, "ceil": np.ceil}
DECIDING = {"select_n": (0,), "div": (1,)}  # operands that may make it jump, where these are not all
COMPARISONS, LOGIC = ("lt", "le", "gt", "ge", "eq", "ne"), ("and", "or", "xor")
WHOLE = frozenset({"convert_element_type", "clamp", "max", "min", "select_n", "reduce_max", "reduce_min", "cond",
                   "while", "row", "stack", "concatenate", "split", "scatter", *VIEWS, *IDENTITIES,
                   *MOVED})  # fmt: skip


class Slot(NamedTuple):
    """Where a value that depends on the inputs is to be found."""

    place: int


class Step(NamedTuple):
    """An operation to be done for each box."""

    name: str
    params: dict[str, Any]
    operands: tuple[Slot | Any, ...]
    outputs: tuple[Slot, ...]
    avals: tuple[Any, ...]


class Program:
    """A jaxpr written out in steps, of which each input is a value that varies (None) or a constant."""

    def __init__(self, closed: Any, given: Sequence[Any]) -> None:
        self.steps: list[Step] = []
        self.slots = 0
        self._made: dict[Slot, Step] = {}
        inputs = [self._slot() if value is None else value for value in given]
        self.inputs = [atom for atom in inputs if isinstance(atom, Slot)]
        self.outputs = self._through(*opened(closed), inputs)
        self.steps = _alive(self.steps, self.outputs)
        for step in self.steps:
            _supported(step)

    def run(
        self, values: Sequence[Value], strict: int = Strict.NOTHING, moving: Sequence[bool] | None = None
    ) -> list[Value]:
        """The outputs for values of the inputs that vary. `moving`: the inputs in which jumps are asked for, or all."""
        known: list[Any] = [None] * self.slots
        for slot, value in zip(self.inputs, values, strict=True):
            known[slot.place] = value
        moved = {slot for place, slot in enumerate(self.inputs) if moving is None or moving[place]}
        for step in self.steps:
            operands = [known[atom.place] if isinstance(atom, Slot) else atom for atom in step.operands]
            if any(isinstance(atom, Slot) and atom in moved for atom in step.operands):
                moved.update(step.outputs)
            asked = strict if moved.intersection(_deciding(step)) else min(strict, Strict.UNDEFINED)
            results = RULES[step.name](step.params, operands, asked)
            for slot, result, aval in zip(step.outputs, results, step.avals, strict=True):
                if asked >= Strict.JUMPS and aval.dtype.kind == "f" and aval.dtype.itemsize < 8:
                    raise NoEnclosure(f"jumps where it is rounded to {aval.dtype}")
                known[slot.place] = _in_precision(step.name, lifted(result), aval)
        return [known[atom.place] if isinstance(atom, Slot) else atom for atom in self.outputs]

    def _slot(self) -> Slot:
        self.slots += 1
        return Slot(self.slots - 1)

    def _emit(self, name: str, params: dict[str, Any], operands: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
        slots = tuple(self._slot() for _ in avals)
        self.steps.append(Step(name, params, tuple(operands), slots, tuple(avals)))
        self._made.update(dict.fromkeys(slots, self.steps[-1]))
        return list(slots)

    def _through(self, jaxpr: Any, consts: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, map(plain_array, consts), strict=True))
        known.update(zip(jaxpr.invars, given, strict=True))

        def of(atom: Any) -> Any:
            return np.asarray(atom.val, dtype=atom.aval.dtype) if hasattr(atom, "val") else known[atom]

        for equation in jaxpr.eqns:
            if equation.outvars:
                operands = [of(atom) for atom in equation.invars]
                known.update(zip(equation.outvars, self._equation(equation, operands), strict=True))
        return [of(atom) for atom in jaxpr.outvars]

    def _equation(self, equation: Any, operands: list[Any]) -> list[Any]:
        name: str = equation.primitive.name
        params: dict[str, Any] = equation.params
        inside = {**CALLS, **CUSTOM}.get(name)
        if inside is not None and inside in params:
            return self._through(*opened(params[inside]), operands)
        if not any(isinstance(atom, Slot) for atom in operands):
            return bound(equation.primitive, operands, params)
        if name == "scan":
            return self._scan(params, operands)
        if name == "while":
            return self._while(equation, operands)
        if name == "cond":
            if not isinstance(operands[0], Slot):
                branch = params["branches"][int(np.clip(operands[0], 0, len(params["branches"]) - 1))]
                return self._through(*opened(branch), operands[1:])
            given = [None if isinstance(atom, Slot) else atom for atom in operands[1:]]
            params = {"programs": [Program(branch, given) for branch in params["branches"]]}
        avals = [variable.aval for variable in equation.outvars]
        known = prepared(equation, operands, params)
        if name == "reduce_sum" and self._counts_extremes(operands[0], equation.invars[0].aval.shape, params["axes"]):
            known["at_least"] = 1.0
        return self._emit(name, known, operands, avals)

    def _counts_extremes(self, atom: Any, shape: tuple[int, ...], axes: Sequence[int]) -> bool:
        """Whether a sum counts the entries that equal the largest (or least) one, of which there always is one.

        The derivative of a maximum divides by this number.
        """
        converted = self._made.get(atom)
        equal = (
            self._made.get(converted.operands[0]) if converted and converted.name == "convert_element_type" else None
        )
        if equal is None or equal.name != "eq" or not all(isinstance(part, Slot) for part in equal.operands):
            return False
        kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
        column = tuple(1 if axis in axes else length for axis, length in enumerate(shape))
        for x, y in (equal.operands, equal.operands[::-1]):
            spread = self._made.get(y)
            if spread is None or spread.avals[0].shape not in (column, shape):
                continue
            extreme = self._made.get(spread.operands[0])
            if extreme is None or extreme.name not in ("reduce_max", "reduce_min") or extreme.operands[0] != x:
                continue
            placed = tuple(map(int, spread.params.get("broadcast_dimensions", ()))) == kept
            aligned = spread.name == "reshape" and spread.avals[0].shape == column
            if aligned or (spread.name == "broadcast_in_dim" and placed):
                return set(extreme.params["axes"]) == set(axes)
        return False

    def _scan(self, params: Any, operands: list[Any]) -> list[Any]:
        """Unrolled."""
        if params["length"] > LONGEST:
            raise NoEnclosure(f"scan of {params['length']} turns")
        jaxpr, consts = opened(params["jaxpr"])
        fixed, carried = params["num_consts"], params["num_carry"]
        carry, rows = operands[fixed : fixed + carried], operands[fixed + carried :]
        turns = range(params["length"])
        collected: list[list[Any]] = []
        for index in reversed(turns) if params["reverse"] else turns:
            avals = [variable.aval for variable in jaxpr.invars[fixed + carried :]]
            current = [self._row(row, index, aval) for row, aval in zip(rows, avals, strict=True)]
            results = self._through(jaxpr, consts, [*operands[:fixed], *carry, *current])
            carry = results[:carried]
            collected.append(results[carried:])
        if params["reverse"]:
            collected.reverse()
        stacked: list[Any] = []
        for place, variable in enumerate(jaxpr.outvars[carried:]):
            parts = [results[place] for results in collected]
            if any(isinstance(part, Slot) for part in parts):
                stacked += self._emit("stack", {}, parts, [variable.aval])
            else:
                empty = np.zeros((0, *variable.aval.shape), variable.aval.dtype)
                stacked.append(np.stack(parts) if parts else empty)
        return [*carry, *stacked]

    def _row(self, rows: Any, index: int, aval: Any) -> Any:
        if isinstance(rows, Slot):
            return self._emit("row", {"view": VIEWS["row"]({"index": index})}, [rows], [aval])[0]
        return np.asarray(rows[index])

    def _while(self, equation: Any, operands: list[Any]) -> list[Any]:
        """Unrolled as far as the condition does not depend on the inputs."""
        params = equation.params
        (test, test_consts), (body, body_consts) = opened(params["cond_jaxpr"]), opened(params["body_jaxpr"])
        first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        carry = operands[second:]
        for _ in range(LONGEST):
            goes_on = self._through(test, test_consts, [*operands[:first], *carry])[0]
            if isinstance(goes_on, Slot):
                avals = [variable.aval for variable in equation.outvars]
                return self._emit("while", dict(params), [*operands[:second], *carry], avals)
            if not goes_on:
                return carry
            carry = self._through(body, body_consts, [*operands[first:second], *carry])
        raise NoEnclosure(f"while of more than {LONGEST} turns")


def _deciding(step: Step) -> list[Slot]:
    """The operands whose moving may make a step jump."""
    places = DECIDING.get(step.name)
    chosen = step.operands if places is None else [step.operands[place] for place in places]
    return [atom for atom in chosen if isinstance(atom, Slot)]


def _alive(steps: list[Step], outputs: Sequence[Any]) -> list[Step]:
    """The steps that something depends on."""
    needed = {atom for atom in outputs if isinstance(atom, Slot)}
    kept: list[Step] = []
    for step in reversed(steps):
        if needed.intersection(step.outputs):
            needed.update(atom for atom in step.operands if isinstance(atom, Slot))
            kept.append(step)
    return kept[::-1]


def _supported(step: Step) -> None:
    if step.name not in RULES:
        raise NoEnclosure(f"{step.name} has no rule")
    if "refused" in step.params:
        raise step.params["refused"]
    for aval in step.avals:
        kind, size = aval.dtype.kind, aval.dtype.itemsize
        if kind in "iu" and step.name not in WHOLE:
            raise NoEnclosure(f"{step.name} of whole numbers that depend on the point")
        if kind not in "iubf":
            raise NoEnclosure(f"{step.name} of {aval.dtype}")
        if kind == "f" and size < 8 and step.name not in BASIC | ROUNDLESS:
            raise NoEnclosure(f"{step.name} in {aval.dtype}")


def prepared(equation: Any, operands: list[Any], params: Any) -> dict[str, Any]:
    """The parameters of a step, with what its rule needs to know besides."""
    name, shapes = equation.primitive.name, [atom.aval.shape for atom in equation.invars]
    known = {**params, "name": name}
    try:
        if name in VIEWS:
            known["view"] = VIEWS[name](params)
        elif name in COMPARISONS:
            known["comparison"] = name
        elif name in LOGIC:
            known["logic"] = name
        elif name in STEPS:
            known["step"] = STEPS[name]
        elif name == "round":
            known["step"] = np.round if int(params["rounding_method"]) == 1 else away_from_zero
        elif name == "convert_element_type":
            known["old_dtype"] = equation.invars[0].aval.dtype
        elif name in MOVED or name in SCATTERED:
            start = MOVED.get(name, 1)
            if any(isinstance(atom, Slot) for atom in (operands[1:2] if name in SCATTERED else operands[start:])):
                raise NoEnclosure(f"{name} at places that depend on the point")
            if name in MOVED or name == "scatter":
                known["sources"] = sources(equation.primitive, operands, params, shapes)
            known.update(primitive=equation.primitive, given=params)
    except NoEnclosure as refused:  # it may turn out that nothing depends on it
        known["refused"] = refused
    return known


def _in_precision(name: str, value: Value, aval: Any) -> Value:
    rounds = name in BASIC or name == "convert_element_type"
    if isinstance(value, Interval) and rounds and aval.dtype.kind == "f" and aval.dtype.itemsize < 8:
        return rounded_to(value, aval.dtype)
    return value


def _cond(params: Any, operands: list[Value], strict: int) -> list[Value]:
    programs: list[Program] = params["programs"]
    which, varying = operands[0], [value for value in operands[1:] if varies(value)]
    low, high = (int(np.clip(end, 0, len(programs) - 1)) for end in which)
    if low != high and strict >= Strict.JUMPS:
        raise NoEnclosure("jumps at a branch that depends on the point")
    results = [program.run(varying, strict) for program in programs[low : high + 1]]
    return [_hull(list(parts)) for parts in zip(*results, strict=True)]


def _hull(parts: list[Value]) -> Value:
    values = [lifted(part) for part in parts]
    if len(values) == 1:
        return values[0]
    if isinstance(values[0], Truth):
        lower, upper = (np.stack(ends) for ends in zip(*values, strict=True))
        return Truth(np.asarray(lower.all(axis=0)), np.asarray(upper.any(axis=0)))
    return hull(values)


def _loop(params: Any, operands: list[Value], strict: int) -> list[Value]:
    """As long as every turn is decided."""
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    carry = operands[second:]

    def turned(closed: Any, values: list[Value]) -> list[Value]:
        program = Program(closed, [None if varies(value) else value for value in values])
        return program.run([value for value in values if varies(value)], strict)

    for _ in range(LONGEST):
        goes_on = lifted(turned(params["cond_jaxpr"], [*operands[:first], *carry])[0])
        if not decided(goes_on):
            raise NoEnclosure("while: how often depends on the point")
        if not np.all(goes_on.lower):
            return carry
        carry = turned(params["body_jaxpr"], [*operands[first:second], *carry])
    raise NoEnclosure(f"while of more than {LONGEST} turns")


RULES.update({"cond": _cond, "while": _loop})
