"""Whether sets fit together and meet: what `Intersection` and `Polyhedron` check when they are built."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from epszero._checks import InputError, first_index, label, refuse
from epszero._pytree import Node
from epszero._types import Array, FloatArray
from epszero.sets._base import Set
from epszero.sets._oracle import ConicOracle
from epszero.sets._parameters import broadcast, one_set
from epszero.sets.affine import AffineSubspace
from epszero.sets.conic import ConicForm, minimise


def agreeing(sets: Sequence[Set]) -> tuple[Set, ...]:
    """The sets, refused in a sentence when their points or batches differ in shape."""
    if not sets:
        refuse("sets", "an Intersection of no sets has no meaning", "Pass at least one set")
    members = tuple(one_set(f"sets[{i}]", member) for i, member in enumerate(sets))
    known = [(i, member) for i, member in enumerate(members) if member.point_shape is not None]
    for i, member in known[1:]:
        j, other = known[0]
        if member.point_shape != other.point_shape:
            refuse(
                f"sets[{j}], sets[{i}]",
                f"have points of shape {other.point_shape} and {member.point_shape}",
                "Intersect sets of the same dimension",
            )
    if len({member.rank for member in members}) > 1:
        refuse("sets", "mix sets of vectors with sets of matrices", "Intersect sets of the same kind")
    broadcast(**{f"sets[{i}]": member.batch_shape for i, member in enumerate(members)})
    return members


def joined(sets: Sequence[Set], shape: tuple[int, ...] | None) -> ConicOracle | None:
    """The intersection in conic form; None where there is no such form."""
    if shape is None:
        return None
    try:
        return ConicOracle(ConicForm.both([member.conic(int(np.prod(shape))) for member in sets]))
    except InputError:  # a batch, or a member without a conic form
        return None


class Inside(Node):
    """What pulls points inside an intersection."""

    equations: AffineSubspace | None  # that all its points meet
    middle: FloatArray  # a point that meets them, away from the boundaries otherwise

    def __init__(self, equations: AffineSubspace | None, middle: FloatArray) -> None:
        self.equations, self.middle = equations, middle

    def on_equations(self, x: Array) -> Array:
        """The nearest points that meet the equations, x (…, n)."""
        return x if self.equations is None else self.equations.project(x)


def well_inside(oracle: ConicOracle | None, shape: tuple[int, ...] | None) -> Inside | None:
    """None where no such point is found."""
    proofs = None if oracle is None else oracle.proofs
    middle = None if proofs is None else proofs.middle
    if proofs is None or middle is None or shape is None:
        return None
    n = proofs.form.n
    rows, levels = proofs.A[proofs.equal].toarray(), proofs.form.b[proofs.equal]
    if rows[:, n:].any():
        return None
    equations = AffineSubspace(rows[:, :n], levels) if len(rows) else None
    return Inside(equations, middle[:n].reshape(shape))


def refuse_disjoint(sets: Sequence[Set], form: ConicForm) -> None:
    """Refuse sets of which Clarabel proves that they have no point in common; `form`: that of their intersection."""
    if not _empty(form):
        return
    pairs = combinations(range(len(sets)), 2)
    which = next((pair for pair in pairs if _empty(ConicForm.both([sets[i].conic(form.n) for i in pair]))), None)
    clash = range(len(sets)) if which is None else which
    refuse(
        ", ".join(f"sets[{i}]" for i in clash),
        f"have no point in common: {' and '.join(_brief(sets[i]) for i in clash)}",
        "Enlarge one of them until they overlap",
    )


def refuse_apart(sets: Sequence[Set], gap: FloatArray, failed: object) -> None:
    """Refuse sets of which Dykstra's algorithm found no common point."""
    missed = np.asarray(failed)
    if missed.any():
        where = first_index(missed)
        refuse(
            ", ".join(f"sets[{i}]{label(where)}" for i in range(len(sets))),
            f"no common point was found: the nearest points of the members stay {np.asarray(gap)[where]:g} apart",
            "Enlarge one of the sets so that all of them overlap",
        )


def some_point(form: ConicForm, kept: Sequence[int]) -> FloatArray:
    """A point of a polyhedron, refused when Clarabel proves that there is none; `kept`: the rows of G in the form."""
    result = minimise(form, np.zeros(form.n))
    if result.status == "infeasible":
        clash, proof = _clash(form, len(kept), result.dual)
        names = [f"G[{kept[i]}]" if i < len(kept) else f"A[{i - len(kept)}]" for i in clash]
        weights = proof / np.abs(proof).max()
        refuse(
            "G, h, A, b" if any("A" in name for name in names) else "G, h",
            f"no x meets all rows: {', '.join(names)} contradict each other (times "
            f"{', '.join(f'{weight:.3g}' for weight in weights)} they add up to 0 ≤ {form.b[clash] @ weights:.3g})",
            "Relax one of these rows",
        )
    return result.x


def _empty(form: ConicForm) -> bool:
    return minimise(form, np.zeros(form.n)).status == "infeasible"


def _brief(member: Set) -> str:
    text = repr(member)
    return text if len(text) <= 160 else text[:157] + "…)"


def _clash(form: ConicForm, inequalities: int, dual: FloatArray) -> tuple[list[int], FloatArray]:
    """A few rows that contradict each other (of a longer list, each that can be spared is left out), and the proof."""
    rows = [int(i) for i in np.flatnonzero(np.abs(dual) > 1e-6 * np.abs(dual).max())]
    proof = dual[rows]
    for row in rows[:20]:
        fewer = [i for i in rows if i != row]
        above, level = [i for i in fewer if i < inequalities], [i for i in fewer if i >= inequalities]
        parts = [
            ConicForm.inequalities(form.A[above], form.b[above]),
            ConicForm.equalities(form.A[level], form.b[level]),
        ]
        result = minimise(ConicForm.both(parts), np.zeros(form.n))
        if result.status == "infeasible":
            rows, proof = fewer, result.dual
    return rows, proof
