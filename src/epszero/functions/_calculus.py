"""What functions built from a function share: a check of the inside."""

from typing import Any

from epszero._checks import refuse
from epszero.functions._base import Function
from epszero.functions.separablesum import SeparableSum


def inner_function(function: Any, outer: str) -> Function:
    """A function of arrays."""
    if not isinstance(function, Function):
        refuse(
            "function",
            f"must be a convex function, but it is a {type(function).__name__}",
            "Pass one from epszero.functions; wrap a set as Indicator(set)",
        )
    if isinstance(function, SeparableSum):
        refuse(
            "function",
            f"{outer} acts on arrays, but a SeparableSum on a pytree",
            f"Wrap the parts instead: SeparableSum([{outer}(f, …), {outer}(g, …)])",
        )
    return function
