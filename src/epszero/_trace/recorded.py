"""A traced function in two parts: a skeleton that can be compared, and the numbers that were written into it.

Two functions with equal skeletons differ in their numbers alone, so one compiled program serves both. The skeleton is
the list of operations with all that decides about them: primitives, parameters, programs inside of these, shapes, kinds
of numbers (weak ones too), and how results are handed on. Numbers are floating-point literals, arrays that the function
closed over, where constant slices start, and which leaf of the arguments is read at each place. Calls of jitted
functions are opened. What cannot be compared (callbacks, effects, derivatives of the user's making) is not recorded.
Cost: O(operations).
"""

import functools
from collections.abc import Callable, Sequence
from enum import Enum
from types import NoneType
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from epszero._double import is_traced
from epszero._trace.programs import CALLS, applied, is_literal, opened, written_at
from epszero._trace.rolled import Rolled, rolled
from epszero._trace.steps import ARRAY, INPUT, LITERAL, SCALAR, SHARED, VALUE, Step
from epszero._types import PyTree

PLAIN = (bool, int, float, complex, str, bytes, NoneType)


class Recorded(NamedTuple):
    """A function of the leaves of its arguments."""

    skeleton: Any  # hashable; equal only where steps, literals, ends and structures are
    steps: tuple[Step | Rolled, ...]
    literals: tuple[Any, ...]  # numbers that are no floating-point ones
    ends: tuple[tuple[int, int], ...]  # what is returned, as operands
    structure: Any  # of the arguments
    shapes: tuple[tuple[int, ...], ...]  # of their leaves
    returned: Any  # what is returned, as shapes
    scalars: Any  # float64 vector
    arrays: tuple[Any, ...]
    starts: tuple[int, ...]  # of constant slices, axis by axis
    slots: tuple[int, ...]  # the leaf of the arguments that is read at each place


class Reader(Protocol):
    """Where a program finds its numbers and arguments; several at once are stacked."""

    def input(self, place: int) -> Any: ...
    def inputs(self, places: Sequence[int]) -> Any: ...
    def scalar(self, place: int) -> Any: ...
    def scalars(self, places: Sequence[int]) -> Any: ...
    def array(self, place: int) -> Any: ...
    def start(self, place: int) -> Any: ...


def run(program: Recorded, reader: Reader) -> list[Any]:
    """The leaves of what is returned."""
    values: dict[int, Any] = {}
    outer = {VALUE: values.__getitem__, SHARED: values.__getitem__, LITERAL: program.literals.__getitem__}
    outer |= {INPUT: reader.input, SCALAR: reader.scalar, ARRAY: reader.array}
    for step in program.steps:
        if isinstance(step, Rolled):
            values[step.first] = _looped(step, reader, outer)
        else:
            _made(step, outer, reader.start, values)
    return [outer[kind](place) for kind, place in program.ends]


def _made(step: Step, table: dict[int, Callable[[int], Any]], start: Callable[[int], Any], values: Any) -> None:
    operands = [table[kind](place) for kind, place in step.operands]
    if step.starts:
        results = [_sliced(operands[0], step.params, [start(place) for place in step.starts])]
    else:
        results = applied(step.primitive, operands, step.params)
    values.update(zip(range(step.first, step.first + len(results)), results, strict=True))


def _looped(loop: Rolled, reader: Reader, outer: dict[int, Callable[[int], Any]]) -> Any:
    """A body mapped over what its terms read."""
    inputs = [reader.inputs(column) for column in loop.inputs]
    scalars = [reader.scalars(column) for column in loop.scalars]
    starts = [[reader.start(place) for place in column] for column in loop.starts]
    still = [column[0] if _all_one(column) else None for column in starts]
    moving = [jnp.stack(column) for column, one in zip(starts, still, strict=True) if one is None]

    def body(inputs: Any, scalars: Any, moving: Any) -> Any:
        values: dict[int, Any] = {}
        told = iter(moving)
        begin = [next(told) if one is None else one for one in still]
        inside = {VALUE: values.__getitem__, INPUT: inputs.__getitem__, SCALAR: scalars.__getitem__}
        for step in loop.body:
            _made(step, outer | inside, begin.__getitem__, values)
        return (outer | inside)[loop.end[0]](loop.end[1])

    terms = jax.vmap(body)(inputs, scalars, moving)
    if loop.joined is None:
        return functools.reduce(jnp.add, [outer[kind](place) for kind, place in loop.rest], jnp.sum(terms, axis=0))
    how, axis = loop.joined
    there = jnp.moveaxis(terms, 0, axis)
    return there if how == "stack" else there.reshape(*there.shape[:axis], -1, *there.shape[axis + 2 :])


def _all_one(starts: list[Any]) -> bool:
    return all(isinstance(start, int) and start == starts[0] for start in starts)


def _sliced(operand: Any, params: dict[str, Any], starts: list[Any]) -> Any:
    sizes = np.subtract(params["limit_indices"], params["start_indices"])
    if all(isinstance(start, int) for start in starts):
        return jax.lax.slice(operand, starts, [int(end) for end in np.add(starts, sizes)])
    return jax.lax.dynamic_slice(operand, starts, sizes)


class Incomparable(Exception):
    """There is something in a program of which it cannot be said whether it equals something else."""


def recorded(function: Callable[..., Any], *examples: PyTree) -> Recorded | None:
    """`function` at arguments shaped like the examples; None where it cannot be compared."""

    def once(*arguments: PyTree) -> Any:  # JAX keeps what it traced as long as the function lives
        return function(*arguments)

    closed, returned = jax.make_jaxpr(once, return_shape=True)(*examples)
    if closed.jaxpr.effects:
        return None
    try:
        return _Recorder().record(closed, jax.tree.structure(examples), returned)
    except Incomparable:
        return None


class _Recorder:
    """Writes down one program."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.keys: list[Any] = []
        self.literals: list[Any] = []
        self.scalars: list[float] = []
        self.arrays: list[Any] = []
        self.starts: list[int] = []
        self.slots: list[int] = []
        self.inputs: list[Any] = []  # avals, where they are read
        self.values = 0
        self._placed: dict[int, tuple[int, int]] = {}  # arrays by identity

    def record(self, closed: Any, structure: Any, returned: Any) -> Recorded:
        given = [("leaf", place, _aval(variable.aval)) for place, variable in enumerate(closed.jaxpr.invars)]
        ends = tuple(self._operand(atom) for atom in self._through(closed.jaxpr, closed.consts, given))
        steps, keys = rolled(self.steps, self.keys, ends, self.inputs)
        arrays = tuple((np.shape(array), str(array.dtype)) for array in self.arrays)
        literals = tuple((np.shape(value), str(value.dtype), value.tobytes()) for value in self.literals)
        made = jax.tree.structure(returned)
        skeleton = tuple(keys), literals, ends, structure, made, arrays, len(self.scalars), tuple(self.inputs)
        return Recorded(
            skeleton,
            tuple(steps),
            tuple(self.literals),
            ends,
            structure,
            tuple(variable.aval.shape for variable in closed.jaxpr.invars),
            returned,
            np.array(self.scalars, dtype=np.float64),
            tuple(self.arrays),
            tuple(self.starts),
            tuple(self.slots),
        )

    def _through(self, jaxpr: Any, consts: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, map(self._constant, consts), strict=True))
        known.update(zip(jaxpr.invars, given, strict=True))

        def of(atom: Any) -> Any:
            return self._literal(atom) if is_literal(atom) else known[atom]

        for equation in jaxpr.eqns:
            name = equation.primitive.name
            if name in CALLS and CALLS[name] in equation.params and not name.startswith(("remat", "checkpoint")):
                inside, constants = opened(equation.params[CALLS[name]])
                results = self._through(inside, constants, [of(atom) for atom in equation.invars])
            else:
                results = self._step(equation, [of(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results, strict=True))
        return [of(atom) for atom in jaxpr.outvars]

    def _step(self, equation: Any, operands: list[Any]) -> list[Any]:
        primitive, params = equation.primitive, equation.params
        if equation.effects:
            raise Incomparable
        refs = tuple(self._operand(operand) for operand in operands)
        first, starts = len(self.starts), ()
        told = params
        if primitive.name == "slice" and params["strides"] is None:
            self.starts += map(int, params["start_indices"])
            starts = tuple(range(first, len(self.starts)))
            sizes = np.subtract(params["limit_indices"], params["start_indices"])
            told = {"sizes": tuple(map(int, sizes))}
        outputs = equation.outvars
        made = tuple(_aval(variable.aval) for variable in outputs)
        weak = tuple(getattr(atom.aval, "weak_type", False) for atom in equation.invars)
        self.keys.append((primitive, refs, _params_key(primitive.name, told), made, weak))
        self.steps.append(Step(primitive, params, refs, made, self.values, starts))
        places = range(self.values, self.values + len(outputs))
        self.values += len(outputs)
        return [(VALUE, place) for place in places]

    def _operand(self, atom: Any) -> tuple[int, int]:
        if atom[0] != "leaf":
            return atom
        self.slots.append(atom[1])  # every place that reads an argument may read another leaf
        self.inputs.append(atom[2])
        return INPUT, len(self.slots) - 1

    def _constant(self, value: Any) -> tuple[int, int]:
        if id(value) not in self._placed:
            if not isinstance(getattr(value, "dtype", np.dtype(float)), np.dtype):  # such as keys of random numbers
                raise Incomparable
            self._placed[id(value)] = ARRAY, len(self.arrays)
            self.arrays.append(np.array(value))  # a copy: the user may write into it later
        return self._placed[id(value)]

    def _literal(self, atom: Any) -> tuple[int, int]:
        value = np.asarray(atom.val, dtype=atom.aval.dtype)
        if value.dtype == np.float64 and value.shape == ():
            self.scalars.append(float(value))
            return SCALAR, len(self.scalars) - 1
        self.literals.append(value)
        return LITERAL, len(self.literals) - 1


def _aval(aval: Any) -> Any:
    kind = getattr(aval, "dtype", None)
    if kind is None or not isinstance(kind, np.dtype):
        raise Incomparable
    return aval.shape, kind, bool(getattr(aval, "weak_type", False))


def _params_key(name: str, params: dict[str, Any]) -> Any:
    if name == "custom_jvp_call":
        return _custom_key(params)
    return tuple((key, _key(params[key])) for key in sorted(params))


def _custom_key(params: dict[str, Any]) -> Any:
    """JAX's own derivatives beside functions (relu, logaddexp ...) belong to the place where these are written."""
    call, _ = opened(params["call_jaxpr"])
    where = written_at(call)
    if "/jax/_src/" not in where or params["symbolic_zeros"]:
        raise Incomparable
    return where, _key(params["call_jaxpr"]), params["num_consts"]


def _key(value: Any) -> Any:  # noqa: PLR0911  (one line per kind)
    """Hashable, and equal for equal values only."""
    if isinstance(value, PLAIN):
        return type(value), repr(value) if isinstance(value, float | complex) else value
    if isinstance(value, tuple | list):
        return type(value), tuple(map(_key, value))
    if isinstance(value, dict):
        return dict, tuple((_key(name), _key(part)) for name, part in value.items())
    if isinstance(value, np.dtype | Enum | type | jax.sharding.Sharding):
        return value
    if isinstance(value, np.generic | np.ndarray) and value.dtype != object:
        return type(value), value.shape, str(value.dtype), value.tobytes()
    if hasattr(value, "eqns") or hasattr(value, "jaxpr"):
        return _program_key(*opened(value))
    if isinstance(value, jax.Array) and not is_traced(value):
        return _key(np.asarray(value))
    if type(value).__name__ == "TypedNdArray":
        return _key(np.asarray(value))
    if type(value).__name__ in ("ShapedArray", "ShapeDtypeStruct"):
        return _aval(value)
    raise Incomparable


def _program_key(jaxpr: Any, consts: Sequence[Any]) -> Any:
    """Of a program inside of an operation: every number of it counts."""
    if jaxpr.effects:
        raise Incomparable
    places: dict[Any, int] = {variable: place for place, variable in enumerate((*jaxpr.constvars, *jaxpr.invars))}
    inputs = tuple(_aval(variable.aval) for variable in places)

    def of(atom: Any) -> Any:
        return (_aval(atom.aval), _key(np.asarray(atom.val))) if is_literal(atom) else places[atom]

    equations: list[Any] = []
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        called = equation.params.get(CALLS.get(name, ""))
        told = _params_key(name, equation.params) if called is None else _key(called)
        key = equation.primitive, tuple(map(of, equation.invars)), told
        equations.append((key, tuple(_aval(variable.aval) for variable in equation.outvars)))
        for variable in equation.outvars:
            places[variable] = len(places)
    held = tuple(_key(np.asarray(value)) for value in consts)
    return len(jaxpr.constvars), inputs, tuple(equations), tuple(map(of, jaxpr.outvars)), held
