"""Primitives that only move numbers about, on intervals; and sums into places.

Where NumPy has a view for it, that is taken. Otherwise the primitive itself is applied, once, to the positions of the
numbers instead of the numbers: this says where each of its outputs comes from.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from epszero._trace.intervals import arithmetic as arithmetic
from epszero._trace.intervals.arithmetic import NoEnclosure
from epszero._trace.intervals.rules import RULES, Value, interval, lifted
from epszero._trace.programs import applied

MOVED = {"gather": 1, "dynamic_slice": 1, "dynamic_update_slice": 2, "pad": 2}  # the operands before the places
SCATTERED = ("scatter", "scatter-add", "scatter_add")  # operand, places, updates


def bound(primitive: Any, operands: Sequence[Any], params: Any) -> list[Any]:
    """What a primitive makes of NumPy arrays, in float64, even in the midst of a user's own trace."""
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        return [plain_array(part) for part in applied(primitive, operands, params)]


def plain_array(value: Any) -> Any:
    """As NumPy, unless it is a key for random numbers, which is not."""
    return value if jax.numpy.issubdtype(jax.typeof(value).dtype, jax.dtypes.extended) else np.asarray(value)


def each(value: Value, function: Callable[[Any], Any]) -> Any:
    """The same done to both ends."""
    value = lifted(value)
    lower = function(value.lower)
    return type(value)(lower, lower if value.lower is value.upper else function(value.upper))


def _broadcast(params: Any) -> Callable[[Any], Any]:
    shape, places = tuple(params["shape"]), [int(place) for place in params["broadcast_dimensions"]]

    def view(v: Any) -> Any:
        lengths = [1] * len(shape)
        for axis, place in enumerate(places):
            lengths[place] = v.shape[axis]
        return np.broadcast_to(v.reshape(lengths), shape)

    return view


def _slice(params: Any) -> Callable[[Any], Any]:
    strides = params["strides"] or [1] * len(params["start_indices"])
    place = tuple(map(slice, params["start_indices"], params["limit_indices"], strides))
    return lambda v: v[place]


def _reshape(params: Any) -> Callable[[Any], Any]:
    if params.get("dimensions") is not None:
        raise NoEnclosure("reshape with an order of its own")
    return lambda v: v.reshape([int(length) for length in params["new_sizes"]])


VIEWS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "reshape": _reshape,
    "broadcast_in_dim": _broadcast,
    "transpose": lambda params: lambda v: np.transpose(v, params["permutation"]),
    "squeeze": lambda params: lambda v: np.squeeze(v, axis=tuple(int(axis) for axis in params["dimensions"])),
    "expand_dims": lambda params: lambda v: np.expand_dims(v, tuple(int(axis) for axis in params["dimensions"])),
    "slice": _slice,
    "rev": lambda params: lambda v: np.flip(v, tuple(int(axis) for axis in params["dimensions"])),
    "tile": lambda params: lambda v: np.tile(v, params["reps"]),
    "row": lambda params: lambda v: v[params["index"]],
}
IDENTITIES = ("copy", "copy_p", "stop_gradient", "device_put", "optimization_barrier", "sharding_constraint")

for _name in VIEWS:
    RULES[_name] = lambda params, operands, _: [each(operands[0], params["view"])]
for _name in IDENTITIES:
    RULES[_name] = lambda _, operands, __: [lifted(operand) for operand in operands]


def _joined(operands: list[Value], join: Callable[[list[Any]], Any]) -> Any:
    values = [lifted(operand) for operand in operands]
    return type(values[0])(join([value.lower for value in values]), join([value.upper for value in values]))


def _concatenate(params: Any, operands: list[Value], _: int) -> list[Value]:
    return [_joined(operands, lambda parts: np.concatenate(parts, axis=params["dimension"]))]


def _stack(params: Any, operands: list[Value], _: int) -> list[Value]:
    return [_joined(operands, lambda parts: np.stack(parts, axis=params.get("axis", 0)))]


def _split(params: Any, operands: list[Value], _: int) -> list[Value]:
    cuts, axis = np.cumsum([int(size) for size in params["sizes"]])[:-1], int(params["axis"])
    value = lifted(operands[0])
    pairs = zip(np.split(value.lower, cuts, axis), np.split(value.upper, cuts, axis), strict=True)
    return [type(value)(*pair) for pair in pairs]


def sources(primitive: Any, operands: list[Any], params: Any, shapes: list[tuple[int, ...]]) -> Any:
    """Of each output its position among all moved operands, one after the other; −1 where nothing is moved to."""
    name = primitive.name
    moved = [0, 2] if name in SCATTERED else range(MOVED[name])
    if name == "scatter" and params.get("update_jaxpr") is not None:
        raise NoEnclosure("scatter with a function of its own")
    places, start = list(operands), 0
    for place in moved:
        size = int(np.prod(shapes[place], dtype=np.int64))
        places[place] = np.arange(start, start + size, dtype=np.int64).reshape(shapes[place])
        start += size
    changed = {**params, "fill_value": -1} if name == "gather" else params
    result = bound(primitive, places, changed)[0]
    fill = params.get("fill_value")
    if (result < 0).any() and (fill is None or np.isnan(fill)):
        raise NoEnclosure(f"{name} reaches beyond the ends of an array")
    return result


def _move(params: Any, operands: list[Value], _: int) -> list[Value]:
    name, places = params["name"], params["sources"]
    moved = [operands[0], operands[2]] if name in SCATTERED else operands[: MOVED[name]]
    if params.get("fill_value") is not None:  # the last number, which is where position −1 is
        moved = [*moved, np.asarray(params["fill_value"])]
    return [_joined(moved, lambda parts: np.concatenate([part.reshape(-1) for part in parts])[places])]


def _scatter_add(params: Any, operands: list[Value], _: int) -> list[Value]:
    """A sum into places, in an order of which nothing is known."""
    into, updates, places = interval(operands[0]), interval(operands[2]), operands[1]
    both = _joined([into, updates], lambda parts: np.concatenate([part.reshape(-1) for part in parts]))
    size = into.lower.size

    def add_up(flat: Any) -> Any:
        parts = flat[:size].reshape(into.lower.shape), flat[size:].reshape(updates.lower.shape)
        return bound(params["primitive"], [parts[0], places, parts[1]], params["given"])[0]

    return [arithmetic.summed(both, add_up)]


RULES.update(dict.fromkeys([*MOVED, "scatter"], _move))
RULES.update(dict.fromkeys(["scatter-add", "scatter_add"], _scatter_add))
RULES.update(concatenate=_concatenate, stack=_stack, split=_split)
