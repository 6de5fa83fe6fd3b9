"""When vehicles charge for given prices: the cheapest schedules, and the two that need no thought.

Vehicle i charges exactly need_i kWh, at most caps[i, h] in hour h; 0 where it is not there.
- cheapest: min Σ_i priceᵀx_i. Without a capacity each vehicle by itself, from its cheapest hour on (exact,
  O(NT log T)); of hours with one price the earlier is taken. With a capacity one linear programme (HiGHS, a vertex).
- even: x_ih = need_i caps_ih / Σ_h caps_ih, so the same in every hour that it is there.
- at once: at full cap from the first hour that it is there.
"""

import numpy as np
from numpy.typing import ArrayLike

from epszero.models._inputs import FloatArray, each, numbers, refuse

SLACK = 1e-9  # relative: what may be lacking by rounding


def cheapest_charging(
    price: ArrayLike, caps: ArrayLike, need: ArrayLike, capacity: ArrayLike | None = None
) -> FloatArray:
    """The cheapest schedules, vehicles × hours; of equal hours the earlier.

    `price`: one per hour, or a row for each of several days, whose axis then comes first in the answer. `caps`: kWh,
    vehicles × hours. `need`: kWh of each vehicle. `capacity`: kWh that all together may draw in an hour.
    """
    most, total = _fleet(caps, need)
    rows = numbers("price", price)
    if rows.ndim not in (1, 2) or rows.shape[-1] != most.shape[1]:
        refuse("price", f"must have {most.shape[1]} hours, but its shape is {rows.shape}", "Pass one price per hour")
    if capacity is None:
        order = np.argsort(rows, axis=-1, kind="stable")  # (…, T)
        sorted_caps = np.moveaxis(most[:, order], 0, -2)  # (…, N, T)
        before = np.cumsum(sorted_caps, axis=-1) - sorted_caps
        found = np.clip(total[:, None] - before, 0.0, sorted_caps)
        back = np.argsort(order, axis=-1)[..., None, :]
        return np.take_along_axis(found, np.broadcast_to(back, found.shape), axis=-1)
    limit = each("capacity", capacity, most.shape[1], "hour", least=0.0)
    if rows.ndim == 2:
        return np.stack([_with_capacity(one, most, total, limit) for one in rows])
    return _with_capacity(rows, most, total, limit)


def even_charging(caps: ArrayLike, need: ArrayLike) -> FloatArray:
    """The same in every hour that a vehicle is there, vehicles × hours."""
    most, total = _fleet(caps, need)
    there = most.sum(axis=1)
    return most * (total / np.where(there > 0, there, 1.0))[:, None]


def charging_at_once(caps: ArrayLike, need: ArrayLike) -> FloatArray:
    """At full cap from the first hour that a vehicle is there, until it has what it needs; vehicles × hours."""
    most, total = _fleet(caps, need)
    return np.clip(total[:, None] - (np.cumsum(most, axis=1) - most), 0.0, most)


def equally_cheap(price: ArrayLike, caps: ArrayLike, need: ArrayLike) -> FloatArray:
    """kWh of each vehicle that could as well be charged in another hour of the same price; 0 where nothing is open."""
    most, total = _fleet(caps, need)
    level = each("price", price, most.shape[1], "hour")
    x = cheapest_charging(level, most, total)
    tolerance = 1e-12 * max(float(np.abs(level).max()), 1e-300)
    marginal = np.max(np.where(x > 0, level, -np.inf), axis=1, initial=-np.inf)
    same = (np.abs(level - marginal[:, None]) <= tolerance) & (most > 0)
    there, room = np.where(same, x, 0.0).sum(axis=1), np.where(same, most - x, 0.0).sum(axis=1)
    shared = (same.sum(axis=1) > 1) & (room > SLACK * np.maximum(there, 1e-300))
    return np.where(shared, np.minimum(there, room), 0.0)


def most_together(caps: ArrayLike, need: ArrayLike, capacity: ArrayLike) -> float:
    """kWh that all vehicles together can charge within a capacity, no vehicle more than it needs."""
    most, total = _fleet(caps, need)
    limit = each("capacity", capacity, most.shape[1], "hour", least=0.0)
    return float(_programme(-np.ones(most.shape[1]), most, total, limit, exactly=False).sum())


def _fleet(caps: ArrayLike, need: ArrayLike) -> tuple[FloatArray, FloatArray]:
    most = numbers("caps", caps, least=0.0)
    if most.ndim != 2:
        refuse("caps", f"must be vehicles × hours, but its shape is {most.shape}", "Pass a row per vehicle")
    total = each("need", need, len(most), "vehicle", least=0.0)
    short = np.flatnonzero(total > most.sum(axis=1) * (1 + SLACK))
    if len(short):
        i = int(short[0])
        refuse(
            f"need[{i}]",
            f"vehicle {i} needs {total[i]:g} kWh, but its caps sum to {most[i].sum():g}",
            "Lower its need, or raise its caps",
        )
    return most, np.minimum(total, most.sum(axis=1))


def _with_capacity(price: FloatArray, most: FloatArray, total: FloatArray, limit: FloatArray) -> FloatArray:
    return _programme(price, most, total, limit, exactly=True)


def _programme(
    price: FloatArray, most: FloatArray, total: FloatArray, limit: FloatArray, *, exactly: bool
) -> FloatArray:
    """min Σ priceᵀx_i over the caps, the needs and the capacity."""
    import scipy.sparse as sp  # noqa: PLC0415  (for those who have a capacity)
    from scipy.optimize import linprog  # noqa: PLC0415

    vehicles, hours = most.shape
    own = sp.kron(sp.identity(vehicles), np.ones((1, hours)), format="csr")
    every = sp.kron(np.ones((1, vehicles)), sp.identity(hours), format="csr")
    rows = sp.vstack([every] if exactly else [every, own], format="csr")
    ends = limit if exactly else np.concatenate([limit, total])
    bounds = np.stack([np.zeros(most.size), most.ravel()], axis=1)
    needs = {"A_eq": own, "b_eq": total} if exactly else {}
    found = linprog(np.tile(price, vehicles), A_ub=rows, b_ub=ends, bounds=bounds, method="highs", **needs)
    if found.x is None:
        refuse(
            "capacity",
            f"is too little: within it not all of the {total.sum():g} kWh can be charged",
            "Raise it, or lower need",
        )
    return np.clip(found.x.reshape(vehicles, hours), 0.0, most)
