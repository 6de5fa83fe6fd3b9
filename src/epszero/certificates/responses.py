"""Best responses of agents on their faces: what an agent could save alone, to the second order.

Agent i's cost is quadratic in its own strategy with Hessian M_i, and at x̂ its gradient is −z_i + ê_i under the samples'
law, −z_i + v under the truth, v = C_i(m − m̂) + ê_i. On the face of x̂_i, with the basis Z_i, its best response is
x̂_i − S_iv, S_i = Z_i(Z_iᵀ(M_i + Q_i)Z_i)⁻¹Z_iᵀ, and its saving ½vᵀS_iv, as long as no multiplier that holds the face
changes sign; they are affine in m. Where a slack does, the saving is less: constraints that x̂_i does not touch take
strategies away, and add none. A minimisation is a game of one agent.
Source: docs/theory.md, section 6, exploitability.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from epszero._lazy import sp
from epszero._memory import remembered
from epszero._types import FloatArray
from epszero.certificates.case import Case
from epszero.certificates.faces import Block
from epszero.certificates.piece import AffinePiece, spread
from epszero.facts import OwnHessians, places_of

FLAT = 1e-12  # of the largest: a Hessian flatter than this on the face has no S


@dataclass(frozen=True, eq=False)
class Responses:
    """Of all agents."""

    grams: FloatArray  # C_iᵀS_iC_i, (agents, d, d)
    fixed: FloatArray  # √(ê_iᵀS_iê_i)
    margins: FloatArray  # of all agents, at m̂
    sensitivities: FloatArray
    places: list[slice]  # which of the margins are an agent's


def responses_of(case: Case, piece: AffinePiece, C: FloatArray) -> Responses | None:
    """None where own Hessians are not known, or agents share constraints, within which they would respond."""
    hessians = case.facts.own_hessians
    if case.problem.coupling is not None or not isinstance(hessians, OwnHessians):
        return None
    key = "responses", case.facts.shapes, piece.key
    maps = remembered(case.problem, key, lambda: _maps(case, piece.blocks, hessians, C))
    if maps is None:
        return None
    blocks = piece.blocks
    e = case.empirical + spread([block.face.mended for block in blocks], blocks)
    values = np.concatenate([blocks[b].face.values for b in maps.blocks])
    parts = e[maps.entries]  # one agent after another
    bent = parts * (maps.S @ parts)
    fixed = np.sqrt(np.maximum(np.add.reduceat(bent, maps.starts), 0.0))
    return Responses(maps.grams, fixed, values + maps.by_duals @ parts, maps.sensitivities, maps.places)


class _Agent(NamedTuple):
    """One agent on its face."""

    entries: Any
    blocks: list[int]  # its points
    S: FloatArray
    by_duals: FloatArray  # how the values that hold the face move with v


class _Maps(NamedTuple):
    """What depends on the piece alone, agent after agent."""

    entries: Any
    starts: Any  # the first of them, for each agent
    blocks: list[int]
    S: Any  # of all agents, sparse
    by_duals: Any  # the same
    grams: FloatArray
    sensitivities: FloatArray
    places: list[slice]


def _maps(case: Case, blocks: list[Block], hessians: OwnHessians, C: FloatArray) -> _Maps | None:
    places = places_of(case.problem, case.x)
    owner = np.empty(sum(len(entries) for entries in places), dtype=int)
    for agent, entries in enumerate(places):
        owner[entries] = agent
    mine: list[list[int]] = [[] for _ in places]
    for number, block in enumerate(blocks):
        mine[int(owner[block.entries[0]])].append(number)
    found = [_agent(blocks, own, at, M) for own, at, M in zip(mine, places, hessians.matrices, strict=True)]
    agents = [one for one in found if one is not None]
    if len(agents) < len(found):
        return None
    grams = np.stack([C[one.entries].T @ one.S @ C[one.entries] for one in agents])
    sensitivities = [one.by_duals @ C[one.entries] for one in agents]
    ends = np.cumsum([0, *(len(rows) for rows in sensitivities)])
    slices = [slice(int(a), int(b)) for a, b in pairwise(ends)]
    entries, numbers = np.concatenate([one.entries for one in agents]), [b for one in agents for b in one.blocks]
    starts = np.cumsum([0, *(len(one.entries) for one in agents)])[:-1]
    S, by_duals = (sp.block_diag([getattr(one, name) for one in agents], format="csr") for name in ("S", "by_duals"))
    symmetric, rows = (grams + np.swapaxes(grams, 1, 2)) / 2, np.vstack(sensitivities)
    return _Maps(entries, starts, numbers, S, by_duals, symmetric, rows, slices)


def _agent(blocks: list[Block], own: list[int], entries: Any, M: FloatArray) -> _Agent | None:
    """S_i, and how its multipliers follow from v; None where M_i is flat on the face."""
    t = len(entries)
    local = {int(entry): place for place, entry in enumerate(entries)}
    inside = [np.array([local[int(entry)] for entry in blocks[b].entries]) for b in own]
    Z, Q, column = np.zeros((t, sum(blocks[b].basis.shape[1] for b in own))), np.zeros(t), 0
    for b, at in zip(own, inside, strict=True):
        width = blocks[b].basis.shape[1]
        Z[np.ix_(at, np.arange(column, column + width))] = blocks[b].basis
        Q[at] = blocks[b].face.curvature
        column += width
    bent = Z.T @ (M @ Z + Q[:, None] * Z)
    values = np.linalg.eigvalsh((bent + bent.T) / 2) if len(bent) else np.ones(1)
    if not values[0] > FLAT * max(float(values[-1]), 1e-300):
        return None
    S = Z @ np.linalg.solve(bent, Z.T)  # 0 on a face of one point
    turned = M @ S - np.eye(t)
    by_duals = [blocks[b].face.duals @ turned[at] for b, at in zip(own, inside, strict=True)]
    return _Agent(entries, own, S, np.vstack(by_duals))
