"""One contract for every set, each held against constraints written a second time, in CVXPY."""

import inspect
import zlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from set_cases import CASES, Case, box

import epszero.sets as ez
from epszero.sets.conic import minimise

pytestmark = pytest.mark.some(5)

JITTER = np.random.default_rng(8).normal(scale=0.1, size=100)
every_set = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
seeded = settings(derandomize=True, deadline=None, max_examples=15)
entries = st.one_of(st.integers(-32, 32).map(lambda k: k / 8), st.floats(-4, 4, allow_subnormal=False))


def points(case: Case) -> st.SearchStrategy[Any]:
    return hnp.arrays(np.float64, (len(case.members), case.n), elements=entries)


def rng_of(case: Case) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(case.name.encode()))


# -- the contract -----------------------------------------------------------------------------------------------------


def check_reference(case: Case, v: Any) -> None:
    v = v + JITTER[: v.size].reshape(v.shape)  # where a bound is just touched, the reference itself is off by 1e-6
    expected = np.stack([reference.project(row) for reference, row in zip(case.references, v, strict=True)])
    np.testing.assert_allclose(case.project(v), expected, atol=max(1e-6, case.tight), rtol=0)


def check_optimality(case: Case, v: Any, other: Any) -> None:
    """⟨v − p, y − p⟩ ≤ 0 for y in the set; for all y at once, σ(v − p) = ⟨v − p, p⟩."""
    p, y = case.project(v), case.project(other)
    assert (np.sum((v - p) * (y - p), axis=-1) <= case.tight).all()
    away = np.linalg.norm(v - p, axis=-1) > 1e-5
    d = np.where(away[:, None], v - p, 0.0)
    size = 1 + np.abs(d * p).sum(axis=-1)
    np.testing.assert_allclose(case.support(d) / size, np.sum(d * p, axis=-1) / size, atol=case.tight)


def check_nonexpansive(case: Case, v: Any, w: Any) -> None:
    p, q = case.project(v), case.project(w)
    lost = np.sum((p - q) * (v - w) - (p - q) ** 2, axis=-1)
    assert (lost >= -case.tight).all()


def check_membership(case: Case, v: Any) -> None:
    p = case.project(v)
    np.testing.assert_allclose(case.project(p), p, atol=case.tight, rtol=0)
    assert case.contains(p).all()
    outside = np.linalg.norm(v - p, axis=-1) > 1e-3
    assert not case.contains(v)[outside].any()


def check_all(case: Case, v: Any, w: Any) -> None:
    check_reference(case, v)
    check_optimality(case, v, w)
    check_nonexpansive(case, v, w)
    check_membership(case, v)


@pytest.mark.some(4)
@every_set
def test_projection(case: Case) -> None:
    @seeded
    @given(points(case), points(case))
    def check(v: Any, w: Any) -> None:
        check_all(case, v, w)

    check()


@every_set
def test_support(case: Case) -> None:
    """Against linear programs, along the axes both ways and at random."""
    axes = [
        sign * np.tile(np.eye(case.n)[i], (len(case.members), 1)) for i in range(min(case.n, 2)) for sign in (1, -1)
    ]
    for d in [*axes, rng_of(case).normal(size=axes[0].shape), np.zeros(axes[0].shape)]:
        expected = np.array([reference.support(row) for reference, row in zip(case.references, d, strict=True)])
        np.testing.assert_allclose(case.support(d), expected, atol=1e-6, rtol=1e-6)


@every_set
def test_diameter(case: Case) -> None:
    """No two members are further apart; some are as far where the diameter is exact (found by climbing the width)."""
    diameter = np.ravel(case.set.diameter())
    assert np.shape(case.set.diameter()) == case.set.batch_shape
    reach = min(1e6, case.far)
    furthest, rng = np.zeros(len(case.members)), rng_of(case)
    for _ in range(4 if case.n > 4 else 8):
        d = rng.normal(size=(len(case.members), case.n))
        for _ in range(5):
            apart = case.project(reach * d) - case.project(-reach * d)
            length = np.linalg.norm(apart, axis=-1)
            furthest = np.maximum(furthest, length)
            d = np.where(length[:, None] > 0, apart / np.where(length > 0, length, 1.0)[:, None], d)
    assert (furthest <= diameter * (1 + 1e-9) + case.tight).all()
    if case.exact:
        np.testing.assert_allclose(np.where(np.isinf(diameter), 1e5, diameter), np.minimum(furthest, 1e5), rtol=1e-4)


@pytest.mark.some(6)
@every_set
def test_batches_and_transformations(case: Case) -> None:
    """One call on a batch, a loop, jit and vmap agree; single precision under the user's jit agrees to its digits."""
    rows = [case.point(v) for v in rng_of(case).normal(size=(3, len(case.members), case.n)) * 2]
    looped = np.stack([case.flat(case.set.project(row)) for row in rows])
    reach = np.stack([case.set.support(row) for row in rows])
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
    mapped = jax.vmap(case.set.project)
    batched = mapped if isinstance(case.set, ez.Product) else case.set.project

    def flat(points: Any) -> Any:
        return np.stack([case.flat(jax.tree.map(lambda leaf, i=i: leaf[i], points)) for i in range(3)])

    with jax.enable_x64(True):
        double, support = jax.jit(lambda V: (batched(V), jax.vmap(case.set.support)(V)))(stacked)
    single = jax.jit(mapped)(jax.tree.map(jnp.float32, stacked))
    np.testing.assert_allclose(flat(double), looped, atol=1e-9)
    np.testing.assert_allclose(support, reach, rtol=1e-9, atol=case.tight)
    np.testing.assert_allclose(flat(single), looped, atol=2e-3)
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(single))
    for leaf in jax.tree.leaves(case.set.project(rows[0])):
        assert isinstance(leaf, np.ndarray)
        assert leaf.dtype == np.float64


@every_set
def test_conic_form(case: Case) -> None:
    """The form given to conic solvers describes the same set."""
    if case.set.batch_shape or isinstance(case.set, ez.Product):
        return
    for v in rng_of(case).normal(size=(3, case.n)) * 2:
        found = minimise(case.set.conic(case.n), -v, curvature=1.0)
        assert found.status == "solved"
        np.testing.assert_allclose(found.x, case.project(v[None])[0], atol=1e-4 if case.curved else 1e-6)


@every_set
def test_members(case: Case) -> None:
    """What a batch answers at a place, its member answers, and conic solvers can take the member."""
    if not case.set.batch_shape:
        assert case.set.member(()) is case.set
        return
    v = rng_of(case).normal(size=case.shape) * 2
    projected, reach = case.set.project(v), case.set.support(v)
    for place in np.ndindex(case.set.batch_shape):
        single = case.set.member(place)
        assert (single.batch_shape, single.point_shape) == ((), case.set.point_shape)
        np.testing.assert_allclose(single.project(v[place]), projected[place], atol=1e-12)
        np.testing.assert_allclose(single.support(v[place]), reach[place], rtol=1e-12, atol=1e-12)
        found = minimise(single.conic(case.n), -v[place], curvature=1.0)
        assert found.status == "solved"
        np.testing.assert_allclose(found.x, projected[place], atol=1e-4 if case.curved else 1e-6)


@every_set
def test_extremes(case: Case) -> None:
    """Zero, tiny, huge and NaN input."""
    direction = rng_of(case).normal(size=(len(case.members), case.n))
    origin = case.project(np.zeros_like(direction))
    np.testing.assert_allclose(case.project(1e-300 * direction), origin, atol=case.tight)
    for far in (case.far * direction, -case.far * direction, np.where(direction > 0, case.far, 1.0)):
        p = case.project(far)
        assert case.contains(p).all()
        slope = np.sum((far - p) * (origin - p), axis=-1)
        scale = np.linalg.norm(far - p, axis=-1) * (1 + np.linalg.norm(origin - p, axis=-1))
        assert (slope <= case.tight * scale).all()
    spoilt = direction.copy()
    spoilt[0, 0] = np.nan
    assert np.isnan(case.project(spoilt)[0]).any()
    assert not case.contains(spoilt)[0]


@every_set
def test_point_is_a_member(case: Case) -> None:
    point = case.set.point()
    assert np.all(case.set.contains(point, case.tight))
    assert isinstance(case.set, ez.Product) or np.shape(point) == case.shape


def test_every_public_set_is_registered() -> None:
    public = {value for _, value in inspect.getmembers(ez, inspect.isclass) if issubclass(value, ez.Set)} - {ez.Set}
    assert public == {type(case.set) for case in CASES}


@every_set
def test_every_set_says_how_accurate_it_is(case: Case) -> None:
    """Closed forms are exact; the others prove what is near a normal, or say what they doubt."""
    assert vars(type(case.set)).get("formula", False) or "_normal" in vars(type(case.set))
    if case.set.exact or case.set.batch_shape:
        return
    v = 2.0 * rng_of(case).normal(size=case.shape)
    x = case.set.project(v)
    found = case.set.normal_near(x, v - x)
    np.testing.assert_allclose(found.z, v - x, atol=1e-5)
    assert found.eta < 1e-6
    others = case.set.project(rng_of(case).normal(size=(20, *case.shape)))
    assert (np.sum(found.z * (others - x), axis=tuple(range(-case.set.rank, 0))) <= found.eta + 1e-12).all()


def test_a_wrong_projection_breaks_the_contract() -> None:
    class Crooked(ez.Set):
        """A box with one wrong answer."""

        def __init__(self, fault: str) -> None:
            self.box, self.fault = ez.Box([0.0, 0.0], 1.0), fault

        static = ("fault",)

        @property
        def point_shape(self) -> tuple[int, ...]:
            return (2,)

        def _project(self, v: Any) -> Any:
            p = self.box._project(v)
            return {"off": p + 1e-3, "short": 0.999 * p, "identity": v, "mirror": 2 * p - v}.get(self.fault, p)

        def _support(self, direction: Any) -> Any:
            return self.box._support(direction) * (1.001 if self.fault == "support" else 1.0)

        def _diameter(self) -> Any:
            return self.box._diameter()

    rng = np.random.default_rng(0)
    v, w = rng.normal(size=(2, 30, 1, 2)) * 3

    def case(fault: str) -> Case:
        return Case(fault, Crooked(fault), 2, [box(0, 1)])

    def fails(check: Callable[..., None], *samples: Any, fault: str) -> bool:
        caught = 0
        for sample in zip(*samples, strict=True):
            try:
                check(case(fault), *sample)
            except AssertionError:
                caught += 1
        return caught > 0

    assert not fails(check_all, v[:3], w[:3], fault="none")
    for fault in ("off", "short", "identity"):
        assert fails(check_reference, v[:3], fault=fault)
    assert fails(check_optimality, v, w, fault="off")
    assert fails(check_optimality, v, w, fault="support")
    assert fails(check_optimality, v, w, fault="short")
    assert fails(check_membership, v, fault="off")
    assert fails(check_nonexpansive, v, w, fault="mirror")
