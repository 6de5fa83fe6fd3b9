"""Looking for trouble: pairs of points, and samples, at which O is least monotone or steepest.

What is found is attained, so it refutes whatever it contradicts: that is a witness. What is not found proves nothing:
the extremes are *estimated*. Gradient ascent on ⟨O(x, ξ) − O(y, ξ), x − y⟩/‖x − y‖² and its like, over pairs of points
of the domain, from random starts, for some of the samples, those of extreme size among them.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._double import to_numpy
from epszero._points import pick, shaped_like
from epszero._trace.programs import UNTRACED
from epszero._types import FloatArray, PyTree
from epszero.facts.affine import oracle_at
from epszero.facts.domains import Bounds, domain_box, nearest
from epszero.oracles import OwnData
from epszero.problems import Problem
from epszero.problems.backward import is_part
from epszero.sets import Set

PAIRS = 32
RANDOM = 512  # pairs where they are only looked at
NEAR = 0.05
SAMPLES = 256  # looked at for sizes
STEPS = 60
NUMBERS = 4_000_000  # entries of all pairs together
SAME = 1e-12  # relative: points that differ by rounding only
CLOSEST = 1e-4  # pairs are kept this far apart, relative to the domain: rounding must not look like a slope


@dataclass(frozen=True, eq=False)
class Witness:
    """Two points of the domain, and a sample, at which something is so."""

    x: PyTree
    y: PyTree
    sample: int | None  # its place among the samples; None where nothing is uncertain, or all are alike
    value: float

    def __str__(self) -> str:
        at = "" if self.sample is None else f", sample {self.sample}"
        return f"{self.value:.4g} between x = {in_few_words(self.x)} and y = {in_few_words(self.y)}{at}"


class Extremes(NamedTuple):
    """The least slope, the steepest one, and the least cocoercivity that were found."""

    slope: Witness
    steepness: Witness
    cocoercivity: Witness


def between(problem: Problem, x: PyTree, directions: FloatArray, row: PyTree, sample: int | None) -> Witness | None:
    """The least slope of O(·, ξ) between points of the domain on both sides of x along each direction."""
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(x)])
    directions = np.reshape(directions, (-1, len(flat)))
    sizes = (1 + np.abs(flat).max(initial=0.0)) * np.array([0.1, 1.0, 10.0])
    units = directions / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-300)
    ends = np.concatenate([flat + size * sign * units for size in sizes for sign in (1, -1)])
    points = nearest(problem.strategies, x, ends).reshape(len(sizes), 2, len(directions), -1)
    best: Witness | None = None
    for pair in np.moveaxis(points, 1, 2).reshape(-1, 2, len(flat)):
        u, v = (shaped_like(x, end) for end in pair)
        if np.linalg.norm(pair[0] - pair[1]) <= SAME * np.abs(pair).max(initial=1e-300):
            continue
        slope = float(_slope(oracle_at(problem, x, row), u, v, row))
        if best is None or slope < best.value:
            best = Witness(u, v, sample, slope)
    return best


@eqx.filter_jit
def _slope(oracle: Any, u: PyTree, v: PyTree, row: PyTree) -> Any:
    values = ravel_pytree(oracle(u, row))[0], ravel_pytree(oracle(v, row))[0]
    d = ravel_pytree(u)[0] - ravel_pytree(v)[0]
    slope = jnp.vdot(values[0] - values[1], d) / jnp.vdot(d, d)
    rounding = 1e-13 * jnp.vdot(jnp.abs(values[0]) + jnp.abs(values[1]), jnp.abs(d)) / jnp.vdot(d, d)
    return jnp.where(jnp.abs(slope) > rounding, slope, 0.0)


def extremes(problem: Problem, data: PyTree, x: PyTree, seed: int = 0, steps: int = STEPS) -> Extremes:
    """The worst that a search finds; with `steps=1`, among random pairs."""
    starts, width, picked = _starts(problem, data, x, seed, PAIRS if steps > 1 else RANDOM)
    rows = _rows(data, picked)
    given = oracle_at(problem, x, _one(rows)), problem.strategies.parts, x, rows, starts, width
    try:
        every = to_numpy(_climb(*given, steps))
    except UNTRACED:  # it has no gradient, as a loop of open length has none
        every = to_numpy(_climb(*given, 1))
    found: list[Witness] = []
    for kind, (ends, values) in enumerate(zip(zip(*every[0], strict=True), every[1], strict=True)):
        finite = np.where(np.isfinite(values), values, np.inf)  # what overflows says nothing
        best = int(np.argmin(finite))
        value = float(finite[best]) if kind != 1 else -float(finite[best])
        u, v = (shaped_like(x, end[best]) for end in ends)
        found.append(Witness(u, v, None if data is None else int(picked[best]), value))
    return Extremes(*found)


def sizes(problem: Problem, data: PyTree, x: PyTree, seed: int = 0) -> tuple[Witness, Witness]:
    """The largest ‖O(x, ξ)‖ and the largest ‖O(x, ξ) − O(x, ξ′)‖ at random points, over some of the samples."""
    starts, _, _ = _starts(problem, data, x, seed)
    picked = _picked(data, int(np.clip(NUMBERS // starts.shape[-1], 4, SAMPLES)))
    points = starts.reshape(-1, starts.shape[-1])
    rows = np.zeros(1) if data is None else _rows(data, picked)
    size, apart = to_numpy(_sizes(oracle_at(problem, x, _one(None if data is None else rows)), x, rows, points))
    found: list[Witness] = []
    for every in (size, apart):
        values = np.where(np.isfinite(every), every, -np.inf)  # what overflows says nothing
        place, j = np.unravel_index(int(np.argmax(values)), values.shape)
        point = shaped_like(x, points[place])
        found.append(Witness(point, point, None if data is None else int(picked[j]), float(values[place, j])))
    return found[0], found[1]


def _starts(
    problem: Problem, data: PyTree, x: PyTree, seed: int, many: int = PAIRS
) -> tuple[FloatArray, FloatArray, Any]:
    """Pairs of points of the domain, its widths, and a sample for each pair."""
    n = sum(np.size(leaf) for leaf in jax.tree.leaves(x))
    pairs = int(np.clip(NUMBERS // n, 2, many))
    box = domain_box(problem.strategies, x)
    width = _widths(box, x)
    points = _random(np.random.default_rng(seed), box, width, x, 2 * pairs)
    u, v = nearest(problem.strategies, x, points).reshape(2, pairs, n)
    near = np.arange(pairs)[:, None] % 2 == 1  # every other pair is close, where slopes are more extreme
    return np.stack([u, np.where(near, u + NEAR * (v - u), v)]), width, _picked(data, pairs)


def _random(rng: np.random.Generator, box: Bounds, width: FloatArray, x: PyTree, many: int) -> FloatArray:
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(x)])
    low, high = np.maximum(box.lower, flat - width), np.minimum(box.upper, flat + width)
    points = rng.uniform(low, high, size=(many, len(flat)))
    corners = np.where(rng.random(points.shape) < 0.5, low, high)
    return np.where(rng.random((many, 1)) < 0.3, corners, points)


def _widths(box: Bounds, x: PyTree) -> FloatArray:
    """How far to look in each direction: all of the domain where it is bounded."""
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(x)])
    with np.errstate(invalid="ignore"):
        full = box.upper - box.lower
    return np.where(np.isfinite(full), full, 10.0 * (1 + np.abs(flat)))


def _picked(data: PyTree, many: int) -> Any:
    """Samples to look at: the least and the largest, and others spread between."""
    if data is None:
        return np.zeros(many, dtype=int)
    sets = list(data) if isinstance(data, OwnData) else [data]
    leaves = [np.reshape(leaf, (len(leaf), -1)) for own in sets for leaf in jax.tree.leaves(own)]
    s = min(len(leaf) for leaf in leaves)
    sizes = np.sum([np.linalg.norm(leaf[:s], axis=1) for leaf in leaves], axis=0)
    order = np.argsort(sizes)
    return order[np.linspace(0, s - 1, many).round().astype(int)]


def _rows(data: PyTree, picked: Any) -> PyTree:
    if data is None:
        return None
    if isinstance(data, OwnData):
        return OwnData(_rows(own, picked) for own in data)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[picked], data)


def _one(rows: PyTree) -> PyTree:
    return None if rows is None else pick(rows, 0)


@eqx.filter_jit
def _climb(oracle: Any, parts: PyTree, x: PyTree, rows: PyTree, starts: Any, width: Any, steps: int) -> Any:
    """Pairs moved so that the value falls: 0 the slope, 1 minus the steepness, 2 the cocoercivity."""
    _, unravel = ravel_pytree(x)
    side = _side(parts)
    scale = jnp.linalg.norm(width)

    def value(u: Any, v: Any, row: PyTree, kind: Any) -> Any:
        Ou, Ov = (ravel_pytree(oracle(unravel(w), row))[0] for w in (u, v))
        change, d = Ou - Ov, u - v
        length = jnp.maximum(jnp.vdot(d, d), (CLOSEST * scale) ** 2 * 1e-4)
        size = jnp.vdot(change, change)
        along = jnp.vdot(change, d)
        same = size <= 1e-20 * (jnp.vdot(Ou, Ou) + jnp.vdot(Ov, Ov))  # 0 ≥ θ·0, beyond rounding
        share = jnp.where(same, jnp.inf, along / jnp.where(same, 1.0, size))
        return jnp.stack([along / length, -jnp.sqrt(size / length), share])[kind]

    def into(u: Any) -> Any:
        return ravel_pytree(side(unravel(u)))[0]

    def one(u: Any, v: Any, row: PyTree, kind: Any) -> Any:
        def turn(state: Any, k: Any) -> tuple[Any, None]:
            u, v, best, ends = state
            if steps == 1:
                now, gu, gv = value(u, v, row, kind), jnp.zeros_like(u), jnp.zeros_like(v)
            else:
                now, (gu, gv) = jax.value_and_grad(value, argnums=(0, 1))(u, v, row, kind)
            far = jnp.linalg.norm(u - v) >= CLOSEST * scale
            better = far & (now < best)
            ends = jax.tree.map(lambda a, b: jnp.where(better, a, b), (u, v), ends)
            size = jnp.sqrt(jnp.vdot(gu, gu) + jnp.vdot(gv, gv))
            step = 0.2 * scale * 0.93**k / jnp.where(size > 0, size, 1.0)
            move = jnp.isfinite(size)
            u, v = (into(jnp.where(move, w - step * g, w)) for w, g in ((u, gu), (v, gv)))
            return (u, v, jnp.where(better, now, best), ends), None

        first = (u, v, jnp.asarray(jnp.inf), (u, v))
        (_, _, best, ends), _ = jax.lax.scan(turn, first, jnp.arange(steps))
        return ends, best

    each = jax.vmap(one, in_axes=(0, 0, None if rows is None else 0, None))
    return jax.vmap(each, in_axes=(None, None, None, 0))(starts[0], starts[1], rows, jnp.arange(3))


@eqx.filter_jit
def _sizes(oracle: Any, x: PyTree, rows: PyTree, points: Any) -> Any:
    _, unravel = ravel_pytree(x)

    def at(point: Any) -> tuple[Any, Any]:
        values = jax.vmap(lambda row: ravel_pytree(oracle(unravel(point), row))[0])(rows)
        return jnp.linalg.norm(values, axis=1), jnp.linalg.norm(values - values[0], axis=1)

    return jax.lax.map(at, points)


def _side(parts: PyTree) -> Any:
    def project(part: Any, leaf: Any) -> Any:
        if not isinstance(part, Set):
            return leaf
        return jnp.reshape(part.project(jnp.reshape(leaf, (1,)) if jnp.ndim(leaf) == 0 else leaf), jnp.shape(leaf))

    def below(part: Any, tree: PyTree) -> PyTree:
        return jax.tree.map(lambda leaf: project(part, leaf), tree)

    return lambda x: jax.tree.map(below, parts, x, is_leaf=is_part)


def in_few_words(x: PyTree) -> str:
    """The first entries of a point."""
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(x)])
    shown = ", ".join(f"{value:.3g}" for value in flat[:4])
    return f"[{shown}{', …' * (len(flat) > 4)}]"
