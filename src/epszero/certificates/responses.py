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
from typing import Any

import numpy as np

from epszero._types import FloatArray
from epszero.certificates.case import Case
from epszero.certificates.piece import AffinePiece, Block
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
    agents = places_of(case.problem, case.x)
    owner = np.empty(len(piece.T), dtype=int)
    for agent, entries in enumerate(agents):
        owner[entries] = agent
    blocks: list[list[Block]] = [[] for _ in agents]
    for block in piece.blocks:
        blocks[int(owner[block.entries[0]])].append(block)
    found = [
        _response(own, entries, M, C, case.empirical)
        for own, entries, M in zip(blocks, agents, hessians.matrices, strict=True)
    ]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    grams, fixed, margins, sensitivities = zip(*known, strict=True)
    ends = np.cumsum([0, *(len(one) for one in margins)])
    places = [slice(int(a), int(b)) for a, b in pairwise(ends)]
    return Responses(np.stack(grams), np.array(fixed), np.concatenate(margins), np.vstack(sensitivities), places)


def _response(
    blocks: list[Block], entries: Any, M: FloatArray, C: FloatArray, e: FloatArray
) -> tuple[FloatArray, float, FloatArray, FloatArray] | None:
    """C_iᵀS_iC_i, √(êᵀSê), and the margins of the face with their sensitivities."""
    t = len(entries)
    local = {int(entry): place for place, entry in enumerate(entries)}
    Q = np.zeros(t)
    inside = [np.array([local[int(entry)] for entry in block.entries]) for block in blocks]
    Z = np.zeros((t, sum(block.basis.shape[1] for block in blocks)))
    column = 0
    for block, own in zip(blocks, inside, strict=True):
        Z[np.ix_(own, np.arange(column, column + block.basis.shape[1]))] = block.basis
        Q[own] = block.face.curvature
        column += block.basis.shape[1]
    bent = Z.T @ (M @ Z + Q[:, None] * Z)
    values = np.linalg.eigvalsh((bent + bent.T) / 2) if len(bent) else np.ones(1)
    if not values[0] > FLAT * max(float(values[-1]), 1e-300):
        return None
    S = Z @ np.linalg.solve(bent, Z.T)  # 0 on a face of one point
    own_noise, own_e = C[entries], e[entries]
    for block, own in zip(blocks, inside, strict=True):
        own_e[own] += block.face.mended
    turned = M @ S - np.eye(t)
    margins, sensitivities = [np.zeros(0)], [np.zeros((0, C.shape[1]))]
    for block, own in zip(blocks, inside, strict=True):
        face = block.face
        by_duals = face.duals @ turned[own]
        margins.append(face.values + by_duals @ own_e)
        sensitivities.append(by_duals @ own_noise)
    gram = own_noise.T @ S @ own_noise
    fixed = float(np.sqrt(max(own_e @ S @ own_e, 0.0)))
    return (gram + gram.T) / 2, fixed, np.concatenate(margins), np.vstack(sensitivities)
