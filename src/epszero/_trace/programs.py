"""Traced programs (jaxprs): their calls, and how to run them again with some operations replaced."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from epszero._types import PyTree

CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat": "jaxpr",
         "remat2": "jaxpr", "checkpoint": "jaxpr", "core_closed_call": "call_jaxpr"}  # fmt: skip
"""Operations that only call a program, and the parameter that holds it."""

CUSTOM = {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr"}
"""The same, with a derivative written down beside it."""

UNTRACED = (TypeError, ValueError, NotImplementedError)
"""What JAX raises where a function cannot be traced in another way, or an operation of it has no derivative."""


def opened(inside: Any) -> tuple[Any, Sequence[Any]]:
    """A jaxpr and its constants."""
    return (inside.jaxpr, inside.consts) if hasattr(inside, "consts") else (inside, ())


def call_of(equation: Any) -> tuple[Any, Sequence[Any]] | None:
    """What a call is a call of; None for an operation of its own."""
    inside = {**CALLS, **CUSTOM}.get(equation.primitive.name)
    return opened(equation.params[inside]) if inside is not None and inside in equation.params else None


def inner_programs(params: Any) -> list[Any]:
    """The jaxprs among the parameters of a primitive."""
    parts = [part for value in params.values() for part in (value if isinstance(value, (tuple, list)) else [value])]
    return [opened(part)[0] for part in parts if hasattr(part, "eqns") or hasattr(part, "jaxpr")]


def equations_in(jaxpr: Any, primitive: str) -> list[Any]:
    """The operations of that name, in the program and in all that it calls."""
    below = [
        one
        for equation in jaxpr.eqns
        for part in inner_programs(equation.params)
        for one in equations_in(part, primitive)
    ]
    return [*(equation for equation in jaxpr.eqns if equation.primitive.name == primitive), *below]


def written_at(jaxpr: Any) -> str:
    """The name and the place of the function that was traced."""
    return str(jaxpr.debug_info.func_src_info).replace("\\", "/")


def line_of(equation: Any) -> str:
    """Where an operation was written, outside of JAX and of this library: file, line and function; empty if unknown."""
    frames = getattr(equation.source_info.traceback, "frames", ())
    for frame in frames:
        path = str(frame.file_name).replace("\\", "/")
        if not any(package in path for package in ("/jax/", "/jaxlib/", "/epszero/_", "/epszero/problems/")):
            return f"{path.rsplit('/', 1)[-1]}:{frame.line_num}, {frame.function_name.rsplit('.', 1)[-1]}"
    return ""


def applied(primitive: Any, operands: Sequence[Any], params: Any) -> list[Any]:
    """What a primitive of a jaxpr makes of arrays, which may be traced."""
    prepared = primitive.get_bind_params(params)
    functions, params = prepared if isinstance(prepared, tuple) else ((), prepared)  # a pair before JAX 0.10.2
    result = primitive.bind(*functions, *operands, **params)
    return list(result) if primitive.multiple_results else [result]


def rerun(
    jaxpr: Any, consts: Sequence[Any], given: Sequence[Any], made: Callable[[Any, Any, list[Any]], list[Any]]
) -> list[Any]:
    """The outputs for given inputs, where `made(jaxpr, equation, operands)` says what each operation makes."""
    known: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *given], strict=True))

    def value(atom: Any) -> Any:
        return atom.val if is_literal(atom) else known[atom]

    for equation in jaxpr.eqns:
        results = made(jaxpr, equation, [value(atom) for atom in equation.invars])
        known.update(zip(equation.outvars, results, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def is_literal(atom: Any) -> bool:
    """Whether it is a number written into the program."""
    return hasattr(atom, "val")


def forwards(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same values, with a derivative forwards where one for backwards only was written down (`jax.custom_vjp`).

    It is that of the values. What does not enter them is left out: it may have no derivative at all.
    """

    def plain(*arguments: PyTree) -> PyTree:
        closed, returned = jax.make_jaxpr(function, return_shape=True)(*arguments)
        values = _forwards(closed.jaxpr, closed.consts, jax.tree.leaves(arguments))
        return jax.tree.unflatten(jax.tree.structure(returned), values)

    return plain


def _forwards(jaxpr: Any, consts: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    wanted, kept = {atom for atom in jaxpr.outvars if not is_literal(atom)}, list[Any]()
    for equation in reversed(jaxpr.eqns):
        if equation.effects or wanted.intersection(equation.outvars):
            kept.append(equation)
            wanted.update(atom for atom in equation.invars if not is_literal(atom))
    return rerun(jaxpr.replace(eqns=kept[::-1]), consts, given, _turned)


def _turned(_: Any, equation: Any, operands: list[Any]) -> list[Any]:
    if not (_is_backwards(equation) or any(_has_backwards(part) for part in inner_programs(equation.params))):
        return applied(equation.primitive, operands, equation.params)
    inside = call_of(equation)
    if inside is not None:
        return _forwards(*inside, operands)
    params = {name: _turned_inside(value) for name, value in equation.params.items()}
    return applied(equation.primitive, operands, params)


def _turned_inside(value: Any) -> Any:
    """A program among the parameters of a loop or a branch."""
    if isinstance(value, tuple):
        return tuple(_turned_inside(part) for part in value)
    if not (hasattr(value, "consts") and hasattr(value, "in_avals")):
        return value
    return jax.make_jaxpr(lambda *given: _forwards(value.jaxpr, value.consts, given))(*value.in_avals)


def _has_backwards(jaxpr: Any) -> bool:
    return any(
        _is_backwards(equation) or any(_has_backwards(part) for part in inner_programs(equation.params))
        for equation in jaxpr.eqns
    )


def _is_backwards(equation: Any) -> bool:
    return equation.primitive.name.startswith("custom_vjp_call")
