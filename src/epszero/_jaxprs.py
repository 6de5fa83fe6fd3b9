"""Traced programs (jaxprs): their calls, and how to run them again with some operations replaced."""

from collections.abc import Callable, Sequence
from typing import Any

CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat": "jaxpr",
         "remat2": "jaxpr", "checkpoint": "jaxpr", "core_closed_call": "call_jaxpr"}  # fmt: skip
"""Operations that only call a program, and the parameter that holds it."""

UNTRACED = (TypeError, ValueError, NotImplementedError)
"""What JAX raises where a function cannot be traced in another way, or an operation of it has no derivative."""


def opened(inside: Any) -> tuple[Any, Sequence[Any]]:
    """A jaxpr and its constants."""
    return (inside.jaxpr, inside.consts) if hasattr(inside, "consts") else (inside, ())


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
