"""Samples hold what they were given, unchanged and unchangeable."""

import copy
import hashlib
import pickle
from fractions import Fraction

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from epszero import InputError
from epszero.samples import Samples
from epszero.sets import Box

MATRICES = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 4)),
    elements=st.floats(-1e6, 1e6, allow_nan=False),
)


@pytest.fixture
def ten() -> Samples:
    return Samples(np.arange(20.0).reshape(10, 2), columns=["night", "day"], support=Box(0.0, 20.0))


@pytest.mark.long
@given(MATRICES)
def test_values_are_an_equal_read_only_copy(matrix):
    samples = Samples(matrix)
    before = matrix.copy()
    matrix += 1.0
    np.testing.assert_array_equal(samples.values, before)
    assert samples.values.dtype == np.float64
    assert not samples.values.flags.writeable
    assert (len(samples), samples.dim) == before.shape


def test_one_axis_is_read_as_a_column():
    samples = Samples([1, 2, 3])
    assert samples.values.shape == (3, 1)
    assert samples.dim == 1


@pytest.mark.parametrize(
    "values",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        np.array([[1, 2], [3, 4]], dtype=np.int32),
        np.array([[1, 2], [3, 4]], dtype=np.float32),
        [[Fraction(1), 2], [3, 4]],
        np.array([[1, 2], [3, 4]], order="F"),
        np.ma.masked_array([[1, 2], [3, 4]]),
        jax.numpy.array([[1, 2], [3, 4]]),
        [np.array([1, 2]), np.array([3, 4])],
    ],
)
def test_what_numpy_reads_as_numbers_is_accepted(values):
    np.testing.assert_array_equal(Samples(values).values, [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], ["values", "at least one sample"]),
        ([[]], ["values", "at least one sample"]),
        (np.zeros((0, 3)), ["values", "(0, 3)"]),
        (3.0, ["values", "one row per sample"]),
        (np.zeros((2, 2, 2)), ["values", "(2, 2, 2)", "from_arrays"]),
        ([[1, 2], [3]], ["rectangular", "row 1 has 1", "row 0 has 2"]),
        ([[1, 2], [3, np.nan]], ["values[1, 1]", "row 1, column 1", "NaN"]),
        ([[1, 2], [3, None]], ["values[1, 1]", "row 1, column 1"]),
        ([[-np.inf, 2], [3, 1]], ["values[0, 0]", "row 0, column 0", "infinite"]),
        (np.ma.masked_array([1.0, 2.0], [False, True]), ["row 1", "NaN"]),
        (["a", "b"], ["values", "text"]),
        (["1", "2"], ["values", "text"]),
        ([1, "x", None], ["values[1]", "'x'"]),
        ([1 + 2j], ["complex", "real and imaginary"]),
        (np.array([[1 + 0j]]), ["complex"]),
        ([10**400], ["values[0]", "real number"]),
        (np.array(["2026-01-01"], dtype="M8[D]"), ["dates"]),
        (object(), ["values", "real number"]),
        ({"P": np.zeros((2, 2))}, ["values", "real number"]),
    ],
)
def test_bad_values_are_refused_in_a_sentence(values, words):
    with pytest.raises(InputError) as caught:
        Samples(values)
    for word in words:
        assert word in str(caught.value)


def test_a_bad_cell_is_named_by_its_column():
    with pytest.raises(InputError, match="row 1, column 'day' is missing"):
        Samples([[1, 2], [3, np.nan]], columns=["night", "day"])


@pytest.mark.parametrize("columns", [["a"], ["a", "b", "c"], "ab", ["a", "a"], ["a", 1], [], 3])
def test_bad_column_names_are_refused(columns):
    with pytest.raises(InputError, match=r"^columns: "):
        Samples([[1, 2]], columns=columns)


def test_an_unknown_keyword_is_answered_with_the_nearest():
    with pytest.raises(TypeError, match="Did you mean 'support'"):
        Samples([1.0], suport=None)


# -- support -----------------------------------------------------------------------------------------------------------


def test_samples_inside_the_support_are_accepted(ten):
    assert isinstance(ten.support, Box)
    assert Samples([[0.0, 1.0]], Box(0.0, 1.0)).support is not None


def test_a_sample_outside_the_support_is_named_with_how_many():
    with pytest.raises(InputError, match=r"values\[1\].*row 1 lies outside.*2 of 4 rows"):
        Samples([[0.5], [1.5], [0.2], [-3.0]], support=Box(0.0, 1.0))


def test_a_support_of_another_dimension_is_refused():
    with pytest.raises(InputError, match=r"^support: does not fit.*\(3,\).*\(2,\)"):
        Samples([[1.0, 2.0]], support=Box([0.0, 0.0, 0.0], 5.0))


def test_a_batch_of_sets_is_no_support():
    with pytest.raises(InputError, match="batch of sets"):
        Samples([[1.0, 2.0], [3.0, 4.0]], support=Box(np.zeros((2, 2)), 5.0))


def test_a_support_without_contains_is_refused():
    with pytest.raises(InputError, match=r"^support: must be a set with contains"):
        Samples([1.0], support=(0, 1))


def test_a_support_is_asked_once_for_all_rows():
    class Positive:
        calls = 0

        def contains(self, v, tol=0.0):
            self.calls += 1
            return np.all(v >= -tol, axis=-1)

    support = Positive()
    Samples(np.ones((50, 3)), support=support).take(10, seed=0)
    assert support.calls == 1


def test_a_support_that_answers_otherwise_than_once_per_row_is_refused():
    class Wrong:
        def contains(self, v, tol=0.0):
            return True

    with pytest.raises(InputError, match="once per sample"):
        Samples([1.0, 2.0], support=Wrong())


# -- immutability ------------------------------------------------------------------------------------------------------


def test_nothing_can_be_changed(ten):
    with pytest.raises(AttributeError, match="immutable"):
        ten.support = None
    with pytest.raises(AttributeError, match="immutable"):
        del ten.columns
    with pytest.raises(ValueError, match="read-only"):
        ten.values[0, 0] = 1.0
    for part in (ten[2:], ten[[1, 2]], ten.take(3, seed=0), *ten.split(0.5, seed=0)):
        with pytest.raises(ValueError, match="read-only"):
            part.values[0, 0] = 1.0


def test_the_container_of_a_tree_cannot_be_changed():
    samples = Samples.from_arrays({"P": np.zeros((4, 2, 2))})
    samples.values["P"] = None
    assert samples.values["P"].shape == (4, 2, 2)


def test_copies_and_pickles_keep_everything(ten):
    assert copy.copy(ten) is ten
    assert copy.deepcopy(ten) is ten
    back = pickle.loads(pickle.dumps(ten))
    assert back.digest() == ten.digest()
    assert back.columns == ten.columns
    assert repr(back) == repr(ten)
    assert not back.values.flags.writeable


def test_jax_sees_one_opaque_leaf(ten):
    assert jax.tree.leaves(ten) == [ten]


# -- rows --------------------------------------------------------------------------------------------------------------


@given(st.data(), MATRICES)
def test_indexing_is_numpy_indexing_of_rows(data, matrix):
    samples = Samples(matrix)
    row = data.draw(st.integers(-len(matrix), len(matrix) - 1))
    np.testing.assert_array_equal(samples[row], matrix[row])
    rows = data.draw(st.lists(st.integers(-len(matrix), len(matrix) - 1), min_size=1))
    np.testing.assert_array_equal(samples[rows].values, matrix[rows])
    cut = data.draw(st.slices(len(matrix)))
    mask = np.zeros(len(matrix), dtype=bool)
    mask[rows] = True
    np.testing.assert_array_equal(samples[mask].values, matrix[mask])
    if len(matrix[cut]):
        np.testing.assert_array_equal(samples[cut].values, matrix[cut])
    else:
        with pytest.raises(InputError, match="selects none"):
            samples[cut]


def test_iteration_gives_rows(ten):
    np.testing.assert_array_equal(np.stack(list(ten)), ten.values)


def test_parts_keep_columns_support_and_count(ten):
    for part in (ten[2:], ten[[1]], ten.take(3, seed=0), *ten.split(0.5, seed=0)):
        assert part.columns == ("night", "day")
        assert part.support is ten.support


@pytest.mark.parametrize("index", [(1, 2), 1.5, "night", None, True, [True], [[1, 2]], [1.5], [], [False] * 10])
def test_other_indices_are_refused(ten, index):
    with pytest.raises(InputError, match=r"^index: "):
        ten[index]


@pytest.mark.parametrize("index", [10, -11, [0, 10]])
def test_a_row_that_is_not_there_is_an_index_error(ten, index):
    with pytest.raises(IndexError, match="no row"):
        ten[index]


# -- drawing -----------------------------------------------------------------------------------------------------------


@given(MATRICES, st.integers(1, 30), st.integers(0, 2**63))
def test_take_with_replacement_draws_rows_of_the_pool_reproducibly(matrix, n, seed):
    drawn = Samples(matrix).take(n, seed=seed)
    assert len(drawn) == n
    assert {row.tobytes() for row in drawn.values} <= {row.tobytes() for row in matrix}
    np.testing.assert_array_equal(drawn.values, Samples(matrix).take(n, seed=seed).values)


@given(st.integers(1, 40), st.integers(0, 1000), st.data())
def test_take_without_replacement_repeats_nothing(s, seed, data):
    n = data.draw(st.integers(1, s))
    drawn = Samples(np.arange(s)).take(n, seed=seed, replace=False).values[:, 0]
    assert len(set(drawn)) == n
    assert set(drawn) <= set(range(s))


@given(st.integers(2, 40), st.floats(0.0, 1.0, exclude_min=True, exclude_max=True), st.integers(0, 1000))
def test_split_gives_two_disjoint_parts_that_make_the_whole(s, fraction, seed):
    samples = Samples(np.arange(s))
    size = round(fraction * s)
    if size in (0, s):
        with pytest.raises(InputError, match=r"^fraction: .*at least one sample"):
            samples.split(fraction, seed=seed)
        return
    first, second = samples.split(fraction, seed=seed)
    assert len(first) == size
    assert sorted([*first.values[:, 0], *second.values[:, 0]]) == list(range(s))
    assert list(first.values[:, 0]) == sorted(first.values[:, 0])
    np.testing.assert_array_equal(first.values, samples.split(fraction, seed=seed)[0].values)


def test_take_is_uniform_over_the_pool():
    counts = np.bincount(Samples(np.arange(5)).take(50_000, seed=3).values[:, 0].astype(int))
    np.testing.assert_allclose(counts / 50_000, 0.2, atol=0.01)


def test_different_seeds_differ_and_a_generator_moves_on(ten):
    assert ten.take(50, seed=0).digest() != ten.take(50, seed=1).digest()
    rng = np.random.default_rng(0)
    assert ten.take(50, seed=rng).digest() == ten.take(50, seed=0).digest()
    assert ten.take(50, seed=rng).digest() != ten.take(50, seed=0).digest()


@pytest.mark.parametrize("seed", [None, -1, 1.0, "0", True, np.random.RandomState(0)])
def test_a_seed_is_an_integer_or_a_generator(ten, seed):
    with pytest.raises(InputError, match=r"^seed: .*default_rng"):
        ten.take(3, seed=seed)
    with pytest.raises(InputError, match=r"^seed: "):
        ten.split(0.5, seed=seed)


def test_bad_draws_are_refused(ten):
    with pytest.raises(InputError, match=r"^n: is 11, but there are only 10"):
        ten.take(11, seed=0, replace=False)
    for n in (0, -1, 1.5, True):
        with pytest.raises(InputError, match=r"^n: "):
            ten.take(n, seed=0)
    for fraction in (0, 1, -0.1, 1.5, np.nan, "half", [0.5]):
        with pytest.raises(InputError, match=r"^fraction"):
            ten.split(fraction, seed=0)


# -- trees -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def quadratics() -> Samples:
    rng = np.random.default_rng(0)
    return Samples.from_arrays({"P": rng.normal(size=(6, 3, 3)), "q": (rng.normal(size=(6, 3)), np.arange(6))})


def test_a_tree_keeps_its_structure_through_every_selection(quadratics):
    assert (len(quadratics), quadratics.dim) == (6, 9 + 3 + 1)
    part = quadratics[2:5]
    assert part.values["P"].shape == (3, 3, 3)
    np.testing.assert_array_equal(part.values["q"][1], [2.0, 3.0, 4.0])
    drawn = quadratics.take(4, seed=0).values
    rows = drawn["q"][1].astype(int)
    np.testing.assert_array_equal(drawn["P"], quadratics.values["P"][rows])
    first, second = quadratics.split(0.5, seed=1)
    assert sorted([*first.values["q"][1], *second.values["q"][1]]) == list(range(6))
    row = quadratics[4]
    assert row["P"].shape == (3, 3)
    assert row["q"][1] == 4.0


def test_a_bare_array_keeps_all_its_axes():
    samples = Samples.from_arrays(np.zeros((5, 2, 3)), support=None)
    assert samples.values.shape == (5, 2, 3)
    assert samples[0].shape == (2, 3)


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({}, ["tree", "no arrays"]),
        ([[1, 2], [3, 4]], ["tree[0][0]", "leading axis"]),
        ({"P": np.zeros((4, 2)), "q": np.zeros(3)}, ["tree['q']", "3 samples", "4"]),
        ({"P": np.zeros((0, 2))}, ["tree['P']", "(0, 2)"]),
        ({"P": np.array([[1.0, 2.0], [3.0, np.nan]])}, ["tree['P'][1, 1]", "sample 1"]),
        ({"P": np.array([1j])}, ["tree['P']", "complex"]),
    ],
)
def test_bad_trees_are_refused(tree, words):
    with pytest.raises(InputError) as caught:
        Samples.from_arrays(tree)
    for word in words:
        assert word in str(caught.value)


def test_a_tree_is_checked_against_its_support():
    class UnitTrace:
        def contains(self, v, tol=0.0):
            return np.abs(np.trace(v["P"], axis1=1, axis2=2) - 1.0) <= tol

    inside = np.broadcast_to(np.eye(2) / 2, (3, 2, 2))
    assert len(Samples.from_arrays({"P": inside}, support=UnitTrace())) == 3
    with pytest.raises(InputError, match="row 0 lies outside"):
        Samples.from_arrays({"P": 2 * inside}, support=UnitTrace())


# -- what they say of themselves ---------------------------------------------------------------------------------------


def test_the_digest_is_that_of_the_content(ten, quadratics):
    same = Samples(ten.values.tolist())
    assert same.digest() == ten.digest() == ten[:].digest()
    assert len(ten.digest()) == 64
    assert Samples([1.0, 2.0]).digest() != Samples([2.0, 1.0]).digest()
    assert Samples([[1.0, 2.0]]).digest() != Samples([[1.0], [2.0]]).digest()
    assert ten[::2].digest() == Samples(ten.values[::2]).digest()
    assert quadratics[:].digest() == quadratics.digest() != quadratics[1:].digest()


def test_the_digest_does_not_change_between_releases():
    content = b" (2, 1)\n" + bytes.fromhex("000000000000f03f0000000000000040")  # 1.0 and 2.0, little-endian
    assert Samples([1.0, 2.0]).digest() == hashlib.sha256(content).hexdigest()


def test_the_repr_is_short_and_says_what_matters(ten, quadratics):
    assert repr(ten) == "Samples(10 × 2, columns=['night', 'day'], support=Box(lower=0.0, upper=20.0))"
    assert repr(quadratics) == "Samples(6 × {'P': 3 × 3, 'q': (3, number)})"
    wide = Samples(np.zeros((2, 30)), columns=[f"h{i}" for i in range(30)])
    assert "'h7', … (30 in all)" in repr(wide)
