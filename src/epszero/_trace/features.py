"""How a function f(x, ξ) is made of features of ξ: f(x, ξ) = h(x, φ(ξ)) with h(x, ·) affine, found from its operations.

What is computed of ξ alone, before x comes in, are the features: (ξ², eˣ) in x·ξ² + e^ξ, say. They are drawn as close
to ξ as h stays affine in them, so that prices which are only multiplied and spread over agents are their own features.
Where ξ comes in again after x, as in a(aᵀx − b), products are taken apart (separated.py). That h is affine in the
features is proved by degrees (degrees.py) in either case; what cannot be proved is left alone.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from epszero._points import entries
from epszero._trace.degrees import Degree, degrees, equation_degrees
from epszero._trace.programs import CALLS, applied, is_literal, opened, rerun
from epszero._trace.separated import Separated, separated
from epszero._types import PyTree


class Recovered(NamedTuple):
    """f(x, ξ) = joint(x, features(ξ))."""

    features: Callable[[PyTree], PyTree] | None  # None: ξ itself
    joint: Callable[[PyTree, PyTree], PyTree]
    degree: Degree  # of `joint` in x and in the features


def recovered(function: Callable[[PyTree, PyTree], PyTree], x: PyTree, xi: PyTree) -> Recovered | None:
    """The features of ξ in which `function` is affine, for arguments shaped like these; None where none are found."""
    degree = degrees(function, x, xi)
    if degree.v <= 1:
        return Recovered(None, function, degree)
    divided = _proved(_divided(_flat(function), x, xi), x, xi)
    if divided is not None and _many(divided, xi) <= entries(xi):
        return divided
    apart = _proved(separated(function, x, xi), x, xi)
    if divided is None or apart is None:
        return divided or apart
    return min(divided, apart, key=lambda one: _many(one, xi))


def _proved(found: "_Divided | Separated | None", x: PyTree, xi: PyTree) -> Recovered | None:
    """What is affine in its features."""
    if found is None:
        return None
    degree = degrees(found.joint, x, jax.eval_shape(found.features, xi))
    return Recovered(found.features, found.joint, degree) if degree.v <= 1 else None


def _many(found: Recovered, xi: PyTree) -> int:
    assert found.features is not None
    return entries(jax.eval_shape(found.features, xi))


class _Divided(NamedTuple):
    features: Callable[[PyTree], PyTree]
    joint: Callable[[PyTree, PyTree], PyTree]


def _divided(function: Callable[..., PyTree], x: PyTree, xi: PyTree) -> _Divided | None:
    """The traced program in two halves: what needs ξ alone, and the rest. None where nothing nonlinear is in ξ alone"""
    closed, returned = jax.make_jaxpr(function, return_shape=True)(x, xi)
    jaxpr, first = closed.jaxpr, len(jax.tree.leaves(x))
    given, data = jaxpr.invars[:first], jaxpr.invars[first:]
    if jaxpr.effects:
        return None
    equations, alias = _distinct(jaxpr)
    outputs = [alias.get(atom, atom) for atom in jaxpr.outvars if not is_literal(atom)]
    with_x, with_xi, maker = _dependence(equations, given, data)
    pure = with_xi - with_x
    later = [equation for equation in equations if with_x.intersection(equation.outvars)]
    used = [atom for equation in later for atom in equation.invars if not is_literal(atom)]
    frontier = {atom: None for atom in (*used, *outputs) if atom in pure}  # an ordered set
    frontier, moved = _drawn_back(list(frontier), maker, pure)
    if not frontier or set(frontier) <= set(data):
        return None
    if any(str(value.aval.dtype) != "float64" for value in frontier):  # whose mean would be rounded
        return None
    kept = [equation for equation in equations if pure.intersection(equation.outvars)]
    fixed = [equation for equation in equations if not (with_x | pure).intersection(equation.outvars)]
    after = [equation for equation in equations if equation in moved or with_x.intersection(equation.outvars)]
    before = _program(closed, data, list(frontier), [*fixed, *kept])
    ends = [atom if is_literal(atom) else alias.get(atom, atom) for atom in jaxpr.outvars]
    rest = _program(closed, [*given, *frontier], ends, [*fixed, *after])
    structure = jax.tree.structure(returned)

    def joint(x: PyTree, features: PyTree) -> PyTree:
        return structure.unflatten(rest(*jax.tree.leaves(x), *features))

    return _Divided(lambda xi: list(before(*jax.tree.leaves(xi))), joint)


def _program(closed: Any, inputs: list[Any], outputs: list[Any], equations: list[Any]) -> Callable[..., Any]:
    names = closed.jaxpr.debug_info._replace(arg_names=("",) * len(inputs), result_paths=("",) * len(outputs))
    part = closed.jaxpr.replace(invars=inputs, outvars=outputs, eqns=equations, debug_info=names)
    return jaxpr_as_fun(ClosedJaxpr(part, closed.consts))


def _dependence(equations: list[Any], given: list[Any], data: list[Any]) -> tuple[set[Any], set[Any], dict[Any, Any]]:
    """The values that depend on x, those that depend on ξ, and which equation makes each value."""
    with_x, with_xi, maker = set(given), set(data), dict[Any, Any]()
    for equation in equations:
        inputs = [atom for atom in equation.invars if not is_literal(atom)]
        for known in (with_x, with_xi):
            if known.intersection(inputs):
                known.update(equation.outvars)
        maker.update(dict.fromkeys(equation.outvars, equation))
    return with_x, with_xi, maker


def _drawn_back(frontier: list[Any], maker: dict[Any, Any], pure: set[Any]) -> tuple[list[Any], list[Any]]:
    """Features replaced by those they are affine in, where these are not more numbers; the equations between."""
    moved: list[Any] = []
    changed = True
    while changed:
        changed = False
        for value in frontier:
            equation = maker.get(value)
            if equation is None or len(equation.outvars) != 1:
                continue
            sources = list(dict.fromkeys(atom for atom in equation.invars if not is_literal(atom) and atom in pure))
            parts = [Degree(v=1) if not is_literal(atom) and atom in pure else Degree() for atom in equation.invars]
            new = [source for source in sources if source not in frontier]
            whole = all(source.aval.dtype == value.aval.dtype for source in sources)  # no rounding in between
            if whole and equation_degrees(equation, parts)[0].v <= 1 and sum(map(_size, new)) <= _size(value):
                frontier = [one for one in frontier if one is not value] + new
                moved.append(equation)
                changed = True
                break
    return frontier, moved


def _distinct(jaxpr: Any) -> tuple[list[Any], dict[Any, Any]]:
    """The equations without repetitions of one computation, and which values stand for which."""
    alias: dict[Any, Any] = {}
    seen: dict[Any, Any] = {}
    kept: list[Any] = []
    for given in jaxpr.eqns:
        equation = given.replace(invars=[atom if is_literal(atom) else alias.get(atom, atom) for atom in given.invars])
        key = _same(equation)
        if key is not None and key in seen:
            alias.update(zip(equation.outvars, seen[key], strict=True))
            continue
        if key is not None:
            seen[key] = equation.outvars
        kept.append(equation)
    return kept, alias


def _same(equation: Any) -> Any:
    """A key that equations share only where they compute the same; None where it is not known."""
    inputs = tuple(
        (str(atom.aval), np.asarray(atom.val).tobytes()) if is_literal(atom) else atom for atom in equation.invars
    )
    key = equation.primitive, inputs, tuple(sorted((name, _hashable(value)) for name, value in equation.params.items()))
    try:
        hash(key)
    except TypeError:
        return None
    return None if equation.effects else key


def _hashable(value: Any) -> Any:
    return f"{type(value).__name__} {value!r}" if isinstance(value, int | float | str | tuple | None) else id(value)


def _size(atom: Any) -> int:
    return int(np.prod(atom.aval.shape))


def _flat(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """The same values without calls of jitted functions, whose insides would be hidden."""

    def inlined(*arguments: PyTree) -> PyTree:
        closed, returned = jax.make_jaxpr(function, return_shape=True)(*arguments)
        values = rerun(closed.jaxpr, closed.consts, jax.tree.leaves(arguments), _inline)
        return jax.tree.structure(returned).unflatten(values)

    return functools.wraps(function)(inlined) if hasattr(function, "__name__") else inlined


def _inline(_: Any, equation: Any, operands: list[Any]) -> list[Any]:
    """What an operation makes; of a call, what is inside."""
    inside = equation.params.get(CALLS.get(equation.primitive.name, ""))
    if inside is None or equation.effects:
        return applied(equation.primitive, operands, equation.params)
    return rerun(*opened(inside), operands, _inline)
