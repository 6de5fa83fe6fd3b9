"""Rules of convexity (facts/ruled.py) against dense search: no claim about a random composition may be wrong.

Of a loss f whose gradient O is claimed to have slope ≥ μ, steepness ≤ κ, ‖O‖ ≤ M and ‖O(x, ξ) − O(x, ξ′)‖ ≤ R, values
alone must satisfy, for all pairs of points and samples: μ/4 ‖x − y‖² ≤ f(x) + f(y) − 2f(½(x + y)) ≤ κ/4 ‖x − y‖²,
|f(x) − f(y)| ≤ M‖x − y‖, and the same of f(·, ξ) − f(·, ξ′) with R. Ten thousands of functions are drawn where
EPSZERO_ATTACKS asks for them; rules that are broken on purpose must be caught by the few of the default run.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from budget import TIMES
from compositions import draw, value

from epszero._double import double
from epszero._points import length
from epszero._trace.intervals import Interval, NoEnclosure
from epszero._trace.intervals.arithmetic import point
from epszero._trace.rules import bends, exponentials, expressions, nested
from epszero._trace.rules.ranges import Ranges
from epszero.facts import composed_slopes, ruled
from epszero.facts.composed import read_costs, read_operator
from epszero.facts.ruled import Ruled

CASES = 100  # in the default run
PAIRS = 400
SLACK = 1e-9


def case(seed):
    """A loss, its box, its support."""
    rng = np.random.default_rng([21, seed])
    n, d = int(rng.integers(1, 4)), int(rng.choice([0, 0, 1, 2]))
    tree = draw(rng, n, d)
    centre, half = rng.normal(size=n), rng.choice([0.1, 0.5, 2.0]) * rng.uniform(0.5, 1.5, size=n)
    return tree, n, d, centre - half, centre + half


def claims(seed):
    """What rules say of it."""
    tree, n, d, low, high = case(seed)
    ranges, sample = Ranges(low, high), np.zeros(d)
    support = Interval(-np.ones(d), np.ones(d))
    with double(), np.errstate(all="ignore"):
        try:
            found = read_costs(
                lambda x, xi: value(tree, jnp, x, xi), np.zeros(n), ranges, sample, support, np.zeros(n, int)
            )
            return ruled.claims(found, ((low + high) / 2, float(np.linalg.norm(high - low)) / 2), bounded=True)
        except NoEnclosure as error:
            return Ruled(why_not=str(error))


def wrong(seed, said):
    """What of it values contradict; empty where nothing is."""
    tree, n, d, low, high = case(seed)
    rng = np.random.default_rng([22, seed])
    x, y = rng.uniform(low, high, size=(2, PAIRS, n))
    corner = rng.random((2, PAIRS, 1)) < 0.2
    x, y = (np.where(corner[k], np.where(rng.random((PAIRS, n)) < 0.5, low, high), one) for k, one in enumerate((x, y)))
    near = rng.random((PAIRS, 1)) < 0.5
    y = np.where(near, x + 0.05 * (y - x), y)
    xi, other = np.where(rng.random((2, PAIRS, d)) < 0.3, np.sign(rng.normal(size=(2, PAIRS, d))),
                         rng.uniform(-1, 1, size=(2, PAIRS, d)))  # fmt: skip
    with np.errstate(all="ignore"):
        points = {"x": x, "y": y, "m": (x + y) / 2}
        f = {(name, k): value(tree, np, one, sample) + np.zeros(PAIRS)
             for name, one in points.items() for k, sample in enumerate((xi, other))}  # fmt: skip
    size = max(np.abs(values).max() for values in f.values())
    distance = np.linalg.norm(x - y, axis=1)
    tiny = SLACK * (1 + size)
    if any(np.isnan(values).any() for values in f.values()):
        return ["undefined"] if said.smooth else []
    if any(np.isinf(values).any() for values in f.values()):  # too large for floating-point numbers
        return []
    bend = f["x", 0] + f["y", 0] - 2 * f["m", 0]
    found = []
    if said.convex and np.any(bend < -tiny):
        found.append("convex")
    if said.slope is not None and np.any(bend < said.slope.value / 4 * distance**2 - tiny):
        found.append("slope")
    if said.kappa is not None and np.any(np.abs(bend) > said.kappa.value / 4 * distance**2 + tiny):
        found.append("kappa")
    if said.M is not None and np.any(np.abs(f["x", 0] - f["y", 0]) > said.M.value * distance + tiny):
        found.append("M")
    apart = (f["x", 0] - f["x", 1]) - (f["y", 0] - f["y", 1])
    if said.R is not None and np.any(np.abs(apart) > said.R.value * distance + tiny):
        found.append("R")
    return found


@pytest.mark.parametrize("start", range(0, CASES, 50))
def test_no_claim_is_wrong(start):
    made = 0
    for seed in range(start * TIMES, (start + 50) * TIMES):
        said = claims(seed)
        assert not wrong(seed, said), (seed, said)
        made += said.slope is not None or bool(said.convex)
    assert made >= 15 * TIMES  # the attack attacks something


def game(seed):
    """Agents' costs of all strategies: terms of their own, terms that some share, couplings."""
    rng = np.random.default_rng([23, seed])
    agents, d = int(rng.integers(2, 5)), int(rng.choice([0, 1]))
    shared = draw(rng, agents, d, tame=True)
    same = rng.random() < 0.6
    weights = np.ones(agents) if same else rng.uniform(0.2, 2.0, size=agents)
    own = [draw(rng, 1, d, tame=True) for _ in range(agents)]
    K = rng.normal(size=(agents, agents)) * rng.choice([0.0, 0.1, 0.5])
    centre, half = rng.normal(size=agents), rng.choice([0.1, 0.5, 2.0]) * rng.uniform(0.5, 1.5, size=agents)

    def cost(i, xp, x, xi):
        mine = value(own[i], xp, x[..., i : i + 1], xi)
        return mine + weights[i] * value(shared, xp, x, xi) + x[..., i] * xp.sum(K[i] * x, axis=-1)

    return cost, agents, d, centre - half, centre + half


def pseudogradient(cost, agents, x, xi):
    """By central differences, and how far they can be trusted: two step lengths must agree."""
    found = []
    for step in (1e-4, 2e-4):
        rows = []
        for i in range(agents):
            e = np.zeros(agents)
            e[i] = step
            rows.append((cost(i, np, x + e, xi) - cost(i, np, x - e, xi)) / (2 * step))
        found.append(np.stack(rows, axis=-1))
    return found[0], np.abs(found[0] - found[1]).max(axis=-1)


def game_is_wrong(seed):
    cost, agents, d, low, high = game(seed)
    support, owner = Interval(-np.ones(d), np.ones(d)), np.arange(agents)
    with double(), np.errstate(all="ignore"):
        try:
            every = lambda x, xi: [cost(i, jnp, x, xi) for i in range(agents)]  # noqa: E731
            found = read_costs(every, np.zeros(agents), Ranges(low, high), np.zeros(d), support, owner)
            said = ruled.claims(found, ((low + high) / 2, float(np.linalg.norm(high - low)) / 2), bounded=True)
        except NoEnclosure:
            return [], None
    rng = np.random.default_rng([24, seed])
    inner = 1e-3 * (high - low)
    x, y = rng.uniform(low + inner, high - inner, size=(2, PAIRS, agents))
    xi, other = rng.uniform(-1, 1, size=(2, PAIRS, d))
    with np.errstate(all="ignore"):
        (Fx, ex), (Fy, ey), (Gx, gx) = (pseudogradient(cost, agents, *pair) for pair in ((x, xi), (y, xi), (x, other)))
    step, size = x - y, np.linalg.norm(x - y, axis=1)
    good = np.isfinite(Fx).all(axis=1) & np.isfinite(Fy).all(axis=1) & np.isfinite(Gx).all(axis=1)
    room = 4 * (ex + ey + gx) + 1e-6 * (1 + np.abs(Fx).max(axis=1))
    bad = []
    if said.slope is not None:
        slope = np.sum((Fx - Fy) * step, axis=1)
        bad += ["slope"] * bool(np.any(good & (slope < said.slope.value * size**2 - room * size * agents)))
    for name, gap, limit in (("kappa", length(Fx - Fy, axis=1), size), ("M", length(Fx, axis=1), 1.0),
                             ("R", length(Fx - Gx, axis=1), 1.0)):  # fmt: skip
        bound = getattr(said, name)
        if bound is not None:
            bad += [name] * bool(np.any(good & (gap > bound.value * limit + room * agents)))
    return bad, said


@pytest.mark.parametrize("start", range(0, 24, 12))
def test_no_claim_about_a_game_is_wrong(start):
    made = 0
    for seed in range(start * TIMES, (start + 12) * TIMES):
        bad, said = game_is_wrong(seed)
        assert not bad, (seed, bad, said)
        made += said is not None and said.slope is not None
    assert made >= 5 * TIMES


def operator_is_wrong(seed):
    """An operator whose entries are drawn, read as it is."""
    rng = np.random.default_rng([25, seed])
    n, d = int(rng.integers(1, 4)), int(rng.choice([0, 1]))
    trees = [draw(rng, n, d, tame=True) for _ in range(n)]
    A = rng.normal(size=(4, n))
    centre, half = rng.normal(size=n), rng.choice([0.1, 0.5, 2.0]) * rng.uniform(0.5, 1.5, size=n)
    low, high = centre - half, centre + half

    def F(xp, x, xi):
        rows = xp.stack([value(tree, xp, x, xi) + 0.0 * x[..., 0] for tree in trees], axis=-1)
        return 0.2 * rows + xp.tanh(x @ A.T) @ A

    with double(), np.errstate(all="ignore"):
        try:
            support = Interval(-np.ones(d), np.ones(d))
            found = read_operator(lambda x, xi: F(jnp, x, xi), np.zeros(n), Ranges(low, high), np.zeros(d), support)
            said = ruled.claims(found, ((low + high) / 2, float(np.linalg.norm(high - low)) / 2), bounded=True)
        except NoEnclosure:
            return [], None
        x, y = rng.uniform(low, high, size=(2, PAIRS, n))
        y = np.where(rng.random((PAIRS, 1)) < 0.5, x + 0.05 * (y - x), y)
        xi, other = rng.uniform(-1, 1, size=(2, PAIRS, d))
        Fx, Fy, Gx = F(np, x, xi), F(np, y, xi), F(np, x, other)
    size, room = np.linalg.norm(x - y, axis=1), SLACK * (1 + np.abs(Fx).max())
    bad = []
    if said.slope is not None:
        slope = np.sum((Fx - Fy) * (x - y), axis=1)
        bad += ["slope"] * bool(np.any(slope < said.slope.value * size**2 - room * size))
    for name, gap, limit in (("kappa", length(Fx - Fy, axis=1), size), ("M", length(Fx, axis=1), 1.0),
                             ("R", length(Fx - Gx, axis=1), 1.0)):  # fmt: skip
        bound = getattr(said, name)
        bad += [name] * bool(bound is not None and np.any(gap > bound.value * limit + room))
    return bad, said


def test_no_claim_about_an_operator_is_wrong():
    made = 0
    for seed in range(30 * TIMES):
        bad, said = operator_is_wrong(seed)
        assert not bad, (seed, bad, said)
        made += said is not None and said.slope is not None
    assert made >= 10 * TIMES


def caught():
    """Whether a loss is claimed wrongly, of a few times as many as in the default run."""
    return any(wrong(seed, claims(seed)) for seed in range(4 * CASES))


BREAKS = {
    "an outer function need not be monotone": (nested, "rising", lambda *_: (True, True)),
    "softplus bends half as much": (exponentials.ATOMS, "softplus", exponentials.ATOMS["softplus"]._replace(
        second=lambda t: Interval(*(0.5 * end for end in exponentials.bump(t))))),
    "kinks are smooth": (bends.ATOMS, "relu", bends.ATOMS["relu"]._replace(
        kink=None, second=lambda t: point(np.zeros(t.lower.shape)))),
    "a negative multiple is a positive one": (composed_slopes, "curvature", None),
}  # fmt: skip


@pytest.mark.some(3)
@pytest.mark.parametrize("name", BREAKS)
def test_broken_rules_are_caught(name, monkeypatch):
    where, what, broken = BREAKS[name]
    if what == "curvature":
        right = composed_slopes.curvature

        def broken(block, share, *rest):
            return right(block, Interval(np.abs(share.lower), np.abs(share.upper)), *rest)

    if isinstance(where, dict):
        monkeypatch.setitem(where, what, broken)
        monkeypatch.setitem(expressions.PLAIN, what, broken)
    else:
        monkeypatch.setattr(where, what, broken)
    assert caught()
