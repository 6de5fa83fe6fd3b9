"""How O depends on x and on ξ, as far as it is proved by following its operations."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from epszero._points import as_data
from epszero._trace.degrees import Degree, degrees
from epszero._types import PyTree
from epszero.facts.affine import affine_in_features, noise_is_additive, oracle_at
from epszero.oracles import Agents
from epszero.problems import Problem

NOTHING, ADDITIVE, AFFINE, FEATURES, GENERAL = "none", "additive", "affine", "affine in features", "general"


@dataclass(frozen=True)
class Structure:
    """What is proved of O; what could not be proved counts as nonlinear and general."""

    in_x: str  # "affine" or "nonlinear"
    in_xi: str  # "none" (no ξ), "additive", "affine", "affine in features" or "general"
    features: int | None  # how many numbers φ(ξ) has; None where O is not known to be affine in any
    own_features: bool  # φ(ξ) = ξ
    jacobian: str  # of O in x: "constant", "depends on ξ", "depends on x", "depends on x and ξ"
    entries: int  # of x
    agents: int | None  # of an aggregative game, whose Jacobian is blocks and a matrix of low rank
    declared: bool  # that O is affine in features is the user's word, not proved
    degree: Degree  # in x and ξ
    symmetric: bool | None = None  # the Jacobian, where it is constant; None where it is not known

    @property
    def affine(self) -> bool:
        """In x."""
        return self.in_x == "affine"

    @property
    def constant_jacobian(self) -> bool:
        """Whether J depends on neither x nor ξ."""
        return self.jacobian == "constant"

    @property
    def form(self) -> str:
        """In symbols."""
        phi = "ξ" if self.own_features else "φ(ξ)"
        known = {"constant": "Jx + h", "depends on ξ": "H(ξ)x"}.get(self.jacobian, "G(x)")
        if self.in_xi == NOTHING:
            return f"B(x) = {known}"
        if self.jacobian == "depends on ξ":
            phi = "ξ" if self.own_features else f"{self.features} feature{'s' * (self.features != 1)} of ξ"
            affine = f", affine in {phi}" if self.in_xi in (AFFINE, FEATURES) else ""
            return f"O(x, ξ) = H(ξ)x + h(ξ){affine}"
        if self.in_xi == ADDITIVE:
            return f"O(x, ξ) = {known} + C{phi}" if self.features is not None else f"O(x, ξ) = {known} + c(ξ)"
        return f"O(x, ξ) = G(x) + C(x){phi}" if self.in_xi in (AFFINE, FEATURES) else "O(x, ξ), nothing proved"

    def __str__(self) -> str:
        kind = {True: ", symmetric", False: ", not symmetric", None: ""}[self.symmetric]
        agents = f" of {self.agents} agents" if self.agents is not None else ""
        return f"{self.form}   ({self.entries} entries of x{agents}; the Jacobian: {self.jacobian}{kind})"

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "form": self.form,
            "in x": self.in_x,
            "in ξ": self.in_xi,
            "features": self.features,
            "Jacobian": self.jacobian,
            "symmetric": self.symmetric,
            "entries of x": self.entries,
            "agents": self.agents,
            "affine in features": "declared" if self.declared else "proved" if self.features else None,
        }


def structure_of(problem: Problem, row: PyTree, x: PyTree) -> Structure:
    """Of the strategies' oracle; `row` is one sample, None where nothing is uncertain."""
    oracle = oracle_at(problem, x, row)
    degree = degrees(oracle, x, () if row is None else row)
    sides = [name for name, there in (("x", degree.u > 1), ("ξ", degree.mixed)) if there]
    entries = sum(np.size(leaf) for leaf in jax.tree.leaves(x))
    agents = oracle.count if isinstance(oracle, Agents) else None
    jacobian = f"depends on {' and '.join(sides)}" if sides else "constant"
    in_x = "nonlinear" if degree.u > 1 else "affine"
    if row is None or degree.v == 0:
        return Structure(in_x, NOTHING if row is None else ADDITIVE, 0, True, jacobian, entries, agents, False, degree)
    collapsed = oracle.collapsed(as_data(row), x)
    if collapsed is None:
        kind = GENERAL if degree.mixed else ADDITIVE
        return Structure(in_x, kind, None, False, jacobian, entries, agents, False, degree)
    kind = ADDITIVE if noise_is_additive(collapsed, x) else AFFINE if collapsed.own else FEATURES
    many = sum(rows.shape[1] for rows in collapsed.features)
    word = not affine_in_features(collapsed, x)
    return Structure(in_x, kind, many, collapsed.own, jacobian, entries, agents, word, degree)
