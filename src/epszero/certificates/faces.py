"""The faces that x̂ lies on, point by point and part by part (sets/faces.py); a set that is no polyhedron has one where
it does not press, z = 0: the whole space, which is right inside of it, and a guess on its boundary.

Certified pieces ask for polyhedral parts first (certificates/piece.py), so that only guesses see the latter.
Cost: a small factorisation for each point, and one for all of them where sets are alike.
"""

from functools import cached_property
from typing import Any

import jax
import numpy as np

from epszero._memory import remembered
from epszero._types import FloatArray
from epszero.certificates.case import Case
from epszero.facts import Unknown
from epszero.functions import Function
from epszero.oracles import PrimalDual
from epszero.problems.backward import is_part
from epszero.sets import Set
from epszero.sets.faces import Alike, Face


class Block:
    """One point of one part: its entries and its face."""

    def __init__(self, entries: Any, face: Face) -> None:
        self.entries = entries
        self.face = face

    @cached_property
    def basis(self) -> FloatArray:
        """Z."""
        N = self.face.normals
        t = len(self.entries)
        return np.linalg.svd(N, full_matrices=True)[2][len(N) :].T if len(N) else np.eye(t)


def faces_of(case: Case) -> list[Block] | Unknown:
    """Of every point of every part, or why one has none."""
    x, z = (tree.x if isinstance(tree, PrimalDual) else tree for tree in (case.point, case.element))
    parts = case.problem.strategies
    found: list[Block] = []
    start = 0
    for part, xs, zs in zip(
        jax.tree.leaves(parts.parts, is_leaf=is_part), *(_below(parts.parts, tree) for tree in (x, z)), strict=True
    ):
        if not isinstance(part, Set | Function):
            return Unknown("A is known by its resolvent alone")
        for leaf, element in zip(jax.tree.leaves(xs), jax.tree.leaves(zs), strict=True):
            rows, normals = np.atleast_1d(leaf), np.atleast_1d(element)
            t = rows.shape[-1]
            for k, face in enumerate(_each_face(part, rows, normals)):
                if face is None:
                    return Unknown(f"the face of {type(part).__name__} at x is not unique, or z is not normal there")
                found.append(Block(np.arange(start + k * t, start + (k + 1) * t), face))
            start += rows.size
    return found


def _below(parts: Any, tree: Any) -> list[Any]:
    return jax.tree.structure(parts, is_leaf=is_part).flatten_up_to(tree)


def _each_face(part: Any, x: FloatArray, z: FloatArray) -> list[Face | None]:
    """At every point of a batch."""
    members, t = _members(part, x.shape[:-1]), x.shape[-1]
    X, Z = (np.asarray(rows, dtype=np.float64).reshape(-1, t) for rows in (x, z))
    alike = None
    if isinstance(part, Set) and not part.polyhedral and not np.any(z):
        nothing = np.zeros((0, t))
        return [Face(nothing, np.zeros(0), nothing, np.zeros(0), nothing, np.zeros(0))] * len(X)
    if isinstance(part, Set):
        key = "alike", x.shape
        alike = remembered(part, key, lambda: Alike.of([member.linear_rows(t) for member in members]))
    if alike is not None:
        return alike.faces(X, Z)
    return [one.face(row, normal) for one, row, normal in zip(members, X, Z, strict=True)]


def _members(part: Any, batch: tuple[int, ...]) -> list[Any]:
    """The single set or function of each point."""
    own = part.batch_shape
    if not own:
        return [part] * int(np.prod(batch, dtype=int))

    def each() -> list[Any]:
        places = [index[len(batch) - len(own) :] for index in np.ndindex(batch)]
        return [part.member(tuple(i if n > 1 else 0 for i, n in zip(p, own, strict=True))) for p in places]

    return remembered(part, ("members", batch), each)
