"""Dykstra's algorithm: the point of C_1 ∩ C_2 ∩ … nearest to v, from the projections on the members alone.

Cycle y ← P_i(x + p_i), p_i ← x + p_i − y, x ← y over the members. Throughout, v − x = Σp_i with p_i normal to C_i at
the member's last point x_i; so once all x_i agree, x is the projection, and max_i ‖x_i − x‖ is what to watch (x itself
may stand still for many cycles before it moves on). Stops when that is ≤ eps^¾·max(1, ‖x‖), about 2e-12, or rounding.

From p = 0 a far v costs cycles in proportion to its distance. So v is approached in stages v_t = c + t(v − c), t
growing tenfold from where ‖v_t − c‖ = 1, with p scaled along (it is cyclic minimisation of the dual, valid from any p);
c is near the sets. A second run from x removes what the rounding of a far v leaves outside.
Linear for polyhedra, at any distance; slower where curved members meet, in proportion to ‖v − x‖ over the radius, and
slowest where they touch at a small angle. A cycle costs all the members' projections. The derivative is that of the
cycles, which stop by x: on a kink it may be no element of the generalized Jacobian yet.
Source: Boyle & Dykstra, Advances in Order Restricted Statistical Inference (1986); on stopping, Birgin & Raydan, SIAM
J. Sci. Comput. 26 (2005).
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp

from epszero._shaped import norm
from epszero._types import Array

CYCLES = 20_000


class Common(NamedTuple):
    """What the algorithm found, per batch entry."""

    x: Array
    gap: Array  # max_i ‖x_i − x‖, how far the members' points are apart
    failed: Array  # whether the gap stayed too large for CYCLES cycles


class Split(NamedTuple):
    """v − x = Σp_i, one row for each member; p_i is normal to it at its point x_i."""

    normals: Array  # p_i
    points: Array  # x_i
    failed: Array


class _Cycle(NamedTuple):
    x: Array
    normals: tuple[Array, ...]  # p_i
    stage: Array  # t, per batch entry
    gap: Array
    points: tuple[Array, ...]  # x_i
    cycles: Array


def nearest_common(projections: Sequence[Callable[[Array], Array]], v: Array, rank: int) -> Common:
    """The projection of v on the intersection; NaN in, NaN out."""
    first, missed = _run(projections, v, rank)
    second, again = _run(projections, first.x, rank)
    return Common(second.x, jnp.maximum(first.gap, second.gap), missed | again)


def split(projections: Sequence[Callable[[Array], Array]], v: Array, rank: int) -> Split:
    """v − x in parts that are normal to the members, x the projection of v."""
    last, failed = _run(projections, v, rank)
    return Split(jnp.stack(last.normals), jnp.stack(last.points), failed)


def _run(projections: Sequence[Callable[[Array], Array]], v: Array, rank: int) -> tuple[_Cycle, Array]:
    eps = float(jnp.finfo(v.dtype).eps)
    rounding = 32 * eps * norm(v, rank)
    c = reduce(lambda x, project: project(x), projections, v)

    def allowed(x: Array) -> Array:
        return jnp.maximum(eps**0.75 * jnp.maximum(1.0, norm(x, rank)), rounding)

    def each(t: Array) -> Array:
        return jnp.expand_dims(t, tuple(range(-rank, 0)))

    def cycle(state: _Cycle) -> _Cycle:
        near = state.gap <= 1e-3 * jnp.maximum(1.0, norm(state.x, rank))
        stage = jnp.where(near, jnp.minimum(10 * state.stage, 1.0), state.stage)
        moved = each(stage != state.stage)
        normals: list[Array] = [jnp.where(moved, p_i * each(stage / state.stage), p_i) for p_i in state.normals]
        x = jnp.where(moved, c + each(stage) * (v - c) - reduce(jnp.add, normals), state.x)
        points = list[Array]()
        for i, project in enumerate(projections):
            y = project(x + normals[i])
            normals[i] = x + normals[i] - y
            points.append(y)
            x = y
        gap = reduce(jnp.maximum, [norm(x_i - x, rank) for x_i in points])
        return _Cycle(x, tuple(normals), stage, gap, tuple(points), state.cycles + 1)

    def unfinished(state: _Cycle) -> Array:
        return (state.gap > allowed(state.x)) | ((state.stage < 1) & (state.gap >= 0))

    far = norm(v - c, rank)
    stage = jnp.where(far > 1, 1 / jnp.where(far > 1, far, 1.0), 1.0)
    start = _Cycle(
        jnp.where(each(far > 1), c + each(stage) * (v - c), v),
        tuple(jnp.zeros_like(v) for _ in projections),
        stage,
        jnp.full_like(far, jnp.inf),
        tuple(v for _ in projections),
        jnp.asarray(0),
    )
    last = jax.lax.while_loop(lambda s: jnp.any(unfinished(s)) & (s.cycles < CYCLES), cycle, start)
    return last, unfinished(last)
