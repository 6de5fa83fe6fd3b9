"""Whether what a user gives as A can be what it is taken for. A contradiction found is a proof; none found is not.

A resolvent J_s = (Id + sA)⁻¹ gives points of the graph of A: u = J_s(v), w = (v − u)/s. If A is monotone, all of them,
for all v and s, have ⟨w − w′, u − u′⟩ ≥ 0, and u = J_t(u + t·w) for every other step t, as A is one operator. Where A
is to be a subdifferential, also ⟨w, u − u′⟩ + ⟨w′, u′ − u″⟩ + ⟨w″, u″ − u⟩ ≥ 0 for any three. Points where J jumps are
searched for by halving segments. Projections and proxes are resolvents, and more: of a set, P(P(v)) = P(v) ∈ C,
⟨d, P(v)⟩ ≤ σ(d) with equality for d = v − P(v), and no two points further apart than the diameter; of a function,
f(u′) ≥ f(u) + ⟨w, u′ − u⟩, f(u) + f*(w) = ⟨u, w⟩ and f(u′) + f*(w) ≥ ⟨u′, w⟩.
Around x and z, around x and around 0, at scales from a thousandth to a hundred times 1 + ‖x‖; seeded. What is missed by
less than 1e-6 of the sizes may be a solver's doing, and is let pass.
Source: Bauschke & Combettes, Props. 4.4, 20.2, 22.14, 23.2, 23.31.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from epszero._memory import key_of, remembered
from epszero._points import flat_of, shaped_like
from epszero._types import FloatArray, PyTree
from epszero.functions import Function, Indicator
from epszero.problems._base import Problem
from epszero.problems.aggregative import AggregativeGame
from epszero.problems.backward import Backward, is_part
from epszero.problems.game import Game
from epszero.problems.minimization import Minimization
from epszero.sets import Set

LOOSE = 1e-6
SCALES = (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 100.0)
STEPS = (1.0, 0.3, 4.0)
LARGE = 20_000  # entries beyond which fewer points are looked at
TOO_SMALL = "its support is too small: ⟨d, x⟩ exceeds σ(d) for a point x of its own"
SEGMENTS, HALVINGS = 5, 30

Map = Callable[[FloatArray, float], FloatArray]


class _Pair(NamedTuple):
    """Of the graph: u = J_s(v), w = (v − u)/s."""

    u: FloatArray
    w: FloatArray
    v: FloatArray
    step: float


def contradicted(problem: Problem, x: PyTree, z: PyTree) -> str:
    """The contradiction that is found near x and z, remembered; empty where there is none, or the library vouches."""
    if not problem.A.unvouched:
        return ""
    convex = isinstance(problem, Minimization | Game | AggregativeGame)
    key = "contradiction", key_of((x, z))
    return remembered(problem, key, lambda: contradiction(problem.A, x, z, convex))


def contradiction(A: Backward, x: PyTree, z: PyTree, subdifferential: bool) -> str:
    """What shows that a part of A is not monotone, or not what it says; empty where nothing does."""
    for part, at, element in _users(A, x, z):
        found = _of_part(part, at, element, subdifferential)
        if found:
            name = type(part).__name__ if isinstance(part, Set | Function) else repr(part.of)
            return found if len(jax.tree.leaves(A.parts, is_leaf=is_part)) == 1 else f"{name}: {found}"
    return ""


def roughness(problem: Problem, x: PyTree, z: PyTree) -> float:
    """How inaccurate the resolvents of the user's own seem to be near x and z, relative to the points.

    (‖Δu‖² − ⟨Δu, Δv⟩)/(‖Δu‖ + ‖Δv‖) ≤ 0 for exact ones, and ‖J_t(u + t·w) − u‖ = 0; only bare resolvents, and sets or
    functions that say that they are exact, are asked.
    """
    asked = [one for one in _users(problem.A, x, z) if not isinstance(one[0], Set | Function) or one[0].exact]
    key = "roughness", key_of((x, z))
    return remembered(problem, key, lambda: max((_roughness(*one) for one in asked), default=0.0))


def _roughness(part: Any, x: PyTree, z: PyTree) -> float:
    resolvent, rng, at, element = _flat(part, x), np.random.default_rng(3), flat_of(x), flat_of(z)
    step = (1 + float(np.linalg.norm(at))) / (1 + float(np.linalg.norm(element)))
    v = at + step * element
    size, u, worst = 1 + float(np.linalg.norm(v)), resolvent(v, step), 0.0
    for exponent in range(2, 13):
        for _ in range(2):
            dv = size * 10.0**-exponent * _unit(rng, len(v))
            du = resolvent(v + dv, step) - u
            lengths = float(np.linalg.norm(du)) + float(np.linalg.norm(dv))
            worst = np.fmax(worst, float(du @ du - du @ dv) / lengths)
    for factor in (0.05, 0.4, 3.0, 50.0):
        other = factor * step
        worst = np.fmax(
            worst, float(np.linalg.norm(resolvent(u + other * (v - u) / step, other) - u)) / max(factor, 1.0)
        )
    return float(worst) / size


def _users(A: Backward, x: PyTree, z: PyTree) -> list[tuple[Any, PyTree, PyTree]]:
    """The parts that the library does not vouch for, with what they act on."""
    found: list[Any] = []
    A.each(lambda part, *leaf: found.append((part, *leaf)), x, z)
    return [one for one in found if not isinstance(one[0], Set | Function) or one[0].foreign]


def _of_part(part: Any, x: PyTree, z: PyTree, subdifferential: bool) -> str:
    resolvent = _flat(part, x)
    pairs = _graph(resolvent, flat_of(x), flat_of(z))
    if len(pairs) < 3:
        return ""
    bare = not isinstance(part, Set | Function)
    found = _not_monotone(pairs) or (_not_one(resolvent, pairs) if bare else "") or _jump(resolvent, pairs)
    if not found and bare and subdifferential:
        found = _not_cyclic(pairs)
    if found or bare:
        return found
    inner = part.set if isinstance(part, Indicator) else part
    try:
        return _not_the_set(inner, x, pairs) if isinstance(inner, Set) else _not_the_function(inner, x, pairs)
    except Exception:
        return ""  # it need not take all these points, which says nothing


def _flat(part: Any, like: PyTree) -> Map:
    """The resolvent on flat points."""
    given = None if isinstance(part, Set | Function) else jax.jit(part.resolvent)

    def resolvent(v: FloatArray, step: float) -> FloatArray:
        try:
            return at(v, step)
        except Exception:
            return np.full_like(v, np.nan)  # a user's function need not take every point, which says nothing

    def at(v: FloatArray, step: float) -> FloatArray:
        nested = shaped_like(like, v)
        if isinstance(part, Set):
            return flat_of(part.project(np.atleast_1d(nested)))
        if isinstance(part, Function):
            return flat_of(part.prox(np.atleast_1d(nested), step))
        assert given is not None
        return flat_of(given(nested, jnp.asarray(step)))

    return resolvent


def _graph(resolvent: Map, x: FloatArray, z: FloatArray) -> list[_Pair]:
    rng, size = np.random.default_rng(0), 1 + float(np.linalg.norm(x))
    pairs: list[_Pair] = []
    few = len(x) > LARGE
    for step in STEPS[:2] if few else STEPS:
        centres = (x + step * z, x, np.zeros_like(x))
        scales = SCALES[1::3] if few else SCALES
        points = [*centres, *(c + size * scale * _unit(rng, len(x)) for scale in scales for c in centres)]
        for v in points:
            u = resolvent(v, step)
            if np.isfinite(u).all():
                pairs.append(_Pair(u, (v - u) / step, v, step))
    return pairs


def _unit(rng: np.random.Generator, n: int) -> FloatArray:
    """A random direction: all entries, or one alone."""
    away = rng.normal(size=n)
    if rng.random() < 0.3:
        away = np.where(np.arange(n) == rng.integers(n), away, 0.0)
    return away / max(float(np.linalg.norm(away)), 1e-300)


def _miss(a: _Pair, b: _Pair) -> tuple[float, float]:
    """⟨Δw, Δu⟩, and how far below 0 inaccuracy may take it."""
    du, dw = a.u - b.u, a.w - b.w
    error = LOOSE * (1 + max(float(np.linalg.norm(p)) for one in (a, b) for p in (one.u, one.v)))
    room = error * (float(np.linalg.norm(dw)) + float(np.linalg.norm(du)) * max(1 / a.step, 1 / b.step))
    return float(du @ dw), room


def _not_monotone(pairs: list[_Pair]) -> str:
    worst, said = 0.0, ""
    for i, a in enumerate(pairs):
        for b in pairs[:i]:
            along, room = _miss(a, b)
            share = along / max(room, 1e-300)
            if share < min(worst, -1.0):
                worst = share
                said = f"two points of its graph have ⟨z − z′, x − x′⟩ = {along:.3g} < 0{_where(a, b)}"
    return said


def _where(a: _Pair, b: _Pair) -> str:
    """Where that is, for short points."""
    if len(a.u) > 4:
        return f", at v = {_brief(a.v)} and {_brief(b.v)} with steps {a.step:g} and {b.step:g}"
    return f", at x = {_brief(a.u)} and {_brief(b.u)}"


def _brief(v: FloatArray) -> str:
    return "(" + ", ".join(f"{entry:.4g}" for entry in v[:4]) + (", …)" if len(v) > 4 else ")")


def _not_one(resolvent: Map, pairs: list[_Pair]) -> str:
    for i, one in enumerate(pairs):
        other = STEPS[(STEPS.index(one.step) + 1) % len(STEPS)]
        v = one.u + other * one.w
        again = resolvent(v, other)
        away = float(np.linalg.norm(again - one.u))
        if i % 2 == 0 and away > 10 * LOOSE * (1 + float(np.linalg.norm(one.u)) + float(np.linalg.norm(v))):
            return (
                f"its resolvents for the steps {one.step:g} and {other:g} are not of one operator: they differ by "
                f"{away:.3g} at v = {_brief(v)}"
            )
    return ""


def _jump(resolvent: Map, pairs: list[_Pair]) -> str:
    """Between far points, halve towards where the resolvent moves most."""
    rng = np.random.default_rng(1)
    for _ in range(SEGMENTS):
        a = pairs[rng.integers(len(pairs))]
        others = [pair for pair in pairs if pair.step == a.step]
        b = others[rng.integers(len(others))]
        for _ in range(HALVINGS):
            v = (a.v + b.v) / 2
            u = resolvent(v, a.step)
            middle = _Pair(u, (v - u) / a.step, v, a.step)
            if not np.isfinite(u).all():
                break
            a, b = max(((a, middle), (middle, b)), key=lambda ends: float(np.linalg.norm(ends[0].u - ends[1].u)))
            along, room = _miss(a, b)
            if along < -room:
                return f"two points of its graph have ⟨z − z′, x − x′⟩ = {along:.3g} < 0{_where(a, b)}"
    return ""


def _not_cyclic(pairs: list[_Pair]) -> str:
    rng = np.random.default_rng(2)
    for _ in range(100):
        a, b, c = (pairs[i] for i in rng.choice(len(pairs), 3, replace=False))
        terms = [one.w @ (one.u - other.u) for one, other in ((a, b), (b, c), (c, a))]
        if sum(terms) < -100 * LOOSE * sum(map(abs, terms)):
            return f"it is no subdifferential: three points of its graph have Σ⟨z, x − x′⟩ = {sum(terms):.3g} < 0"
    return ""


def _not_the_set(part: Set, x: PyTree, pairs: list[_Pair]) -> str:
    def rows(points: list[FloatArray]) -> FloatArray:
        return np.stack([np.atleast_1d(shaped_like(x, p)) for p in points])

    pairs = pairs[:: max(1, len(pairs) // 24)]
    inside, away = rows([one.u for one in pairs]), rows([one.v - one.u for one in pairs])
    axes, every = tuple(range(-part.rank, 0)), tuple(range(1, inside.ndim))
    again = np.asarray(part.project(inside))
    error = LOOSE * (1 + np.sqrt(np.sum(inside**2, axis=every)))
    if (np.sqrt(np.sum((again - inside) ** 2, axis=every)) > 10 * error).any():
        return "its projection is no projection: projecting twice is not projecting once"
    if not np.all(part.contains(inside, 100 * LOOSE)):
        return "it does not contain its own projections"
    support, along = np.asarray(part.support(away)), np.sum(away * inside, axis=axes)
    sizes = 100 * LOOSE * (1 + np.sqrt(np.sum(away**2, axis=axes))) * (1 + np.sqrt(np.sum(inside**2, axis=axes)))
    if (support < along - sizes).any():
        return TOO_SMALL
    finite = np.isfinite(support)
    if (np.where(finite, support - along, 0.0) > sizes).any():
        return "its support and its projection are not of one set: v − P(v) is not normal to it"
    crossed = np.sum(away[:, None] * inside[None], axis=axes) - support[:, None]
    lengths, reach = (1 + np.sqrt(np.sum(one**2, axis=axes)) for one in (away, inside))
    if (crossed > 100 * LOOSE * lengths[:, None] * reach[None]).any():
        return TOO_SMALL
    widest = np.max(np.sqrt(np.sum((inside[:, None] - inside[None]) ** 2, axis=axes)), axis=(0, 1))
    return "" if part.point_shape is None else _too_wide(part, widest)


def _too_wide(part: Set, widest: FloatArray) -> str:
    too_wide = widest > np.asarray(part.diameter()) * (1 + 100 * LOOSE) + 100 * LOOSE
    return f"two of its points are {np.max(widest):.3g} apart, further than its diameter" if np.any(too_wide) else ""


def _not_the_function(f: Function, x: PyTree, pairs: list[_Pair]) -> str:
    pairs = pairs[:: max(1, len(pairs) // 24)]
    u, w = (np.stack([np.atleast_1d(shaped_like(x, getattr(one, name))) for one in pairs]) for name in ("u", "w"))
    values, conjugates = np.asarray(f(u)), np.asarray(f.conjugate(w))
    values, conjugates = (np.reshape(one, (len(pairs), -1)).sum(axis=1) for one in (values, conjugates))
    U, W = u.reshape(len(pairs), -1), w.reshape(len(pairs), -1)
    products = W @ U.T  # ⟨w_i, u_j⟩
    lengths = np.linalg.norm(W, axis=1)[:, None] * (1 + np.linalg.norm(U, axis=1))[None]
    if not np.isfinite(values).all():
        return "its prox has points where its value is infinite"
    room = 100 * LOOSE * (1 + np.abs(values)[:, None] + np.abs(values)[None] + lengths + np.diag(lengths)[:, None])
    below = values[:, None] + products - np.diag(products)[:, None] - values[None]
    if (below > room).any():
        return f"its prox and its values are not of one convex function: f(x′) is {np.max(below):.3g} below a tangent"
    finite = np.isfinite(conjugates)
    young = np.where(finite[:, None], products - values[None] - np.where(finite, conjugates, 0.0)[:, None], 0.0)
    if (young > room).any():
        return f"its conjugate is too small: ⟨x, z⟩ exceeds f(x) + f*(z) by {np.max(young):.3g}"
    if (np.where(finite, -np.diag(young), 0.0) > np.diag(room)).any():
        return "its conjugate is not that of the function whose prox it has"
    return ""
