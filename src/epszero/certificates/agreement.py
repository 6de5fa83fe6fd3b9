"""Whether what a record claims is what was found: numbers relative to themselves, words letter by letter.

A number agrees where it is within AGREE of the one found, relatively: other versions of libraries explain that much. A
number that is a difference of larger ones, such as an empirical residual at the level of rounding, has more room: as
much as it moves by itself when x, z and the data are moved by a few units in their last place. That room is worked out
only where it is needed, and it is nothing where the number is well conditioned, however small it is.
How many boxes a proof by branch and bound took is no claim, and is not compared.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from epszero._types import PyTree
from epszero.samples import Samples

AGREE = 1e-7  # relative difference that other versions of libraries explain
ULPS = 4  # by which inputs are moved, in units of 2^-52
TIMES = 8  # as much room as the numbers were seen to move
NUMBERS = (
    "epsilon",
    "distance",
    "relative_distance",
    "exploitability",
    "total_exploitability",
    "cost_gap",
    "terms",
    "image",
)
WORDS = ("verdict", "by", "reason", "notes", "leans_on", "declared", "obstacle", "kind")
BOXES = re.compile(r"\b\d+ box(es)?\b")

Claims = dict[str, Any]


def differences(old: Claims, new: Claims, moved: Callable[[], Sequence[Claims]]) -> list[str]:
    """Every claim that is not what was found, in a sentence. `moved`: what is found from inputs a few units away."""
    numbers = [name for name in NUMBERS if name in old or name in new]
    wrong = [name for name in numbers if not _alike(old.get(name), new.get(name), [])]
    words = [name for name in WORDS if name in old and _letters(old[name]) != _letters(new[name])]
    if wrong and not words:
        others = moved()
        wrong = [name for name in wrong if not _alike(old.get(name), new.get(name), [one.get(name) for one in others])]
    return [f"{name}: {_shown(old.get(name), new.get(name))}." for name in (*wrong, *words)]


def nudged(tree: PyTree, seed: int) -> PyTree:
    """Every number moved by a few units in its last place, up or down."""
    rng = np.random.default_rng(seed)

    def move(leaf: Any) -> Any:
        array = np.asarray(leaf, dtype=np.float64)
        return array * (1 + ULPS * np.finfo(float).eps * rng.choice([-1.0, 1.0], size=array.shape))

    return jax.tree.map(move, tree)


def nudged_samples(given: Any, seed: int) -> Any:
    """The same for one data set, one per agent, or none."""
    if isinstance(given, list):
        return [nudged_samples(one, seed + place) for place, one in enumerate(given)]
    return None if given is None else Samples.from_arrays(nudged(given.values, seed), given.support)


def _alike(a: Any, b: Any, others: Sequence[Any]) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        within = [one for one in others if isinstance(one, dict) and one.keys() == b.keys()]
        return a.keys() == b.keys() and all(_alike(a[key], b[key], [one[key] for one in within]) for key in b)
    if isinstance(a, list) and isinstance(b, list):
        within = [one for one in others if isinstance(one, list) and len(one) == len(b)]
        return len(a) == len(b) and all(_alike(a[i], b[i], [one[i] for one in within]) for i in range(len(b)))
    if not _is_number(a) or not _is_number(b):
        return type(a) is type(b) and a == b
    room = TIMES * max((abs(one - b) for one in others if _is_number(one)), default=0.0)
    return bool(abs(a - b) <= max(AGREE * abs(b), room))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _letters(value: Any) -> Any:
    """Words as they are compared."""
    if isinstance(value, str):
        return BOXES.sub("boxes", value)
    if isinstance(value, dict):
        return {key: _letters(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_letters(one) for one in value]
    return (type(value) is bool, value)  # JSON tells true from 1


def _shown(old: Any, new: Any) -> str:
    if isinstance(old, dict | list):
        return "what is recorded is not what is found"
    return f"recorded {old}, found {new}"
