"""From what a user wrote to an oracle: by its class, or by the number of its arguments.

f(x) is known, f(x, ξ) is general, and a list or dictionary of them has one for each block of x. Structure is declared
(`Additive`, `Affine`, `AffineInFeatures`), or found later, once the shapes of x and ξ are known: `found_features` in
oracles/features.py follows the operations of a general function, and tells in which features of ξ it is affine.
"""

import inspect
from collections.abc import Callable
from typing import Any

import jax

from epszero._checks import refuse
from epszero._types import PyTree
from epszero.oracles._base import Oracle
from epszero.oracles.blocks import Blocks
from epszero.oracles.exact import Exact
from epszero.oracles.general import General


def as_oracle(argument: str, given: PyTree) -> Oracle:
    """An oracle as it is; f(x) as known; f(x, ξ) as general; a list or dictionary of these as blocks."""
    if isinstance(given, Oracle):
        return given
    if isinstance(given, list | tuple | dict):
        if not given:
            refuse(argument, "has no block", "Give one function per block of x")
        return Blocks(jax.tree.map(lambda part: as_oracle(argument, part), given, is_leaf=_is_part))
    if not callable(given):
        refuse(
            argument,
            f"must be a function of x, or of x and a sample, but it is a {type(given).__name__}",
            "Pass a function, an oracle, or a list of them",
        )
    arguments = required_arguments(given)
    if arguments not in (1, 2):
        refuse(
            argument,
            f"must take x, or x and a sample, but it takes {arguments} arguments",
            "Write it as f(x) or f(x, xi); bind other parameters with functools.partial",
        )
    return Exact(given) if arguments == 1 else General(given)


def required_arguments(function: Callable[..., Any], unknown: int = 2) -> int:
    """How many positional arguments must be given (`unknown` where Python cannot tell)."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return unknown
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return unknown
    return len([p for p in positional if p.default is p.empty])


def _is_part(leaf: Any) -> bool:
    return callable(leaf) or isinstance(leaf, Oracle)
