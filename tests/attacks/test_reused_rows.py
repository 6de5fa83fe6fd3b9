"""Attack: make one set of rows look like two, or chosen rows like random ones. What is true is kept in a model by hand.

A programme is a list of draws, splits, slices, masks, joins and pickles of one pool. The model knows of every row which
row of the pool it is, or which number of which draw, and which seeds had a say.
"""

import copy
import dataclasses
import pickle
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from budget import budget
from hypothesis import given
from hypothesis import strategies as st

import epszero as ez
from epszero.certificates import Anytime, EmpiricalBernstein, HoldOut, MeanDeviation
from epszero.certificates._base import CHOSEN, Refused, check_independent
from epszero.certificates.hold_out import fresh
from epszero.certificates.mean import Region
from epszero.samples import Samples

VALUES = np.random.default_rng(5).uniform(0, 1, (40, 2))
UNIT = ez.sets.Box(0.0, 1.0)
KEYS: dict[Any, int] = {}  # one number for each draw: what was drawn from, and the seed


class Truth(NamedTuple):
    """What is known of some rows; a seed counts where it decided something."""

    rows: tuple[Any, ...]  # ("row", i) of the pool, or (its key, j) of a draw
    sources: frozenset[Any] = frozenset()  # rows that were drawn from
    own: frozenset[Any] = frozenset()  # (key, seed) of the draws
    before: frozenset[int] = frozenset()  # other seeds
    masked: bool = False  # values had a say, or the random numbers that made them

    @property
    def seeds(self) -> set[int]:
        return {seed for _, seed in self.own} | self.before


class Item(NamedTuple):
    """What the library made, and what is true of it."""

    made: Samples
    true: Truth


def _draw(item: Item, n: int, seed: int) -> Item:
    made, true = item
    used = {seed} if len(made) > 1 else set()
    key = KEYS.setdefault((true.rows, seed), len(KEYS))
    return Item(
        made.take(n, seed=seed),
        Truth(
            rows=tuple((key, j) for j in range(n)),
            sources=true.sources | set(true.rows),
            own=frozenset((key, one) for one in used),
            before=frozenset(true.seeds),
            masked=bool(used & true.seeds),
        ),
    )


def _parts(item: Item, kind: str, seed: int) -> Item:
    made, true = item
    order = np.random.default_rng(seed).permutation(len(made))
    half = max(1, len(made) // 2)
    if kind == "take" or len(made) < 2:
        part, rows = made.take(half, seed=seed, replace=False), order[:half]
    else:
        which = kind == "second"
        first = round(0.5 * len(made))
        part, rows = made.split(0.5, seed=seed)[which], np.sort(order[first:] if which else order[:first])
    used = {seed} if len(made) > 1 else set()
    picked = true._replace(rows=tuple(true.rows[j] for j in rows))
    present = _present(picked)
    return Item(part, present._replace(before=present.before | used, masked=true.masked or bool(used & true.seeds)))


def _present(true: Truth) -> Truth:
    """Without the draws of which no row is left: a model of all that is here, not of what was here."""
    keys = {key for key, _ in true.rows}
    return true._replace(own=frozenset(one for one in true.own if one[0] in keys))


def _select(item: Item, rows: Any, index: Any, *, masked: bool) -> Item:
    true = _present(item.true._replace(rows=tuple(item.true.rows[j] for j in rows)))
    return Item(item.made[index], true._replace(masked=item.true.masked or masked))


def _join(one: Item, other: Item) -> Item:
    a, b = one.true, other.true
    joined = Truth(a.rows + b.rows, a.sources | b.sources, a.own | b.own, a.before | b.before, a.masked or b.masked)
    return Item(one.made.followed_by(other.made), joined)


@st.composite
def programmes(draw: Any) -> list[Item]:
    """A few results of a few steps each, all of one pool."""
    pool = Item(Samples(VALUES, support=UNIT), Truth(tuple(("row", i) for i in range(40))))
    items = [pool]
    kinds = ["draw", "draw", "take", "first", "second", "slice", "mask", "sort", "join", "pickle", "anew"]
    for _ in range(draw(st.integers(2, 7))):
        item = items[draw(st.integers(0, len(items) - 1))]
        kind, seed = draw(st.sampled_from(kinds)), draw(st.integers(0, 2))
        n = len(item.made)
        if kind == "draw":
            items.append(_draw(item, draw(st.integers(1, 30)), seed))
        elif kind in ("take", "first", "second"):
            items.append(_parts(item, kind, seed))
        elif kind == "slice":
            cut = draw(st.slices(n))
            if range(*cut.indices(n)):
                items.append(_select(item, range(*cut.indices(n)), cut, masked=False))
        elif kind == "mask":
            mask = item.made.values[:, 0] <= np.quantile(item.made.values[:, 0], draw(st.floats(0.0, 1.0)))
            index = mask if draw(st.booleans()) else np.flatnonzero(mask).tolist()
            items.append(_select(item, np.flatnonzero(mask), index, masked=True))
        elif kind == "sort":
            order = np.argsort(item.made.values[:, 1])[: draw(st.integers(1, n))]
            items.append(_select(item, order, order, masked=True))
        elif kind == "join":
            items.append(_join(item, items[draw(st.integers(0, len(items) - 1))]))
        elif kind == "pickle":
            items.append(Item(pickle.loads(pickle.dumps(item.made)), item.true))
        elif item.true == pool.true:
            items.append(Item(Samples(VALUES.copy(), support=UNIT), pool.true))
    return items


def _must_overlap(a: Truth, b: Truth) -> bool:
    """They share a row, one was drawn from the other, or a draw used random numbers that the other depends on."""
    if set(a.rows) & set(b.rows) or a.sources & set(b.rows) or b.sources & set(a.rows):
        return True

    def reused(one: Truth, other: Truth) -> bool:
        return any(
            seed in other.before or any(seed == theirs and key != their_key for their_key, theirs in other.own)
            for key, seed in one.own
        )

    return reused(a, b) or reused(b, a)


@budget(50)
@given(programmes())
def test_what_shares_a_row_or_random_numbers_is_no_hold_out(items):
    for one in items:
        for other in items:
            if not _must_overlap(one.true, other.true):
                continue
            assert one.made.overlaps(other.made)
            case: Any = SimpleNamespace(own_data=False, samples=[one.made], kept_aside=None)
            with pytest.raises(ez.InputError, match="has seen some of these samples, or others that were drawn"):
                fresh(case, other.made)


@budget(30)
@given(programmes())
def test_what_shares_nothing_is_fresh(items):
    """Otherwise all could be refused. Draws of which some rows went are left out: the library forgets no dependence."""
    for one in items:
        for other in items:
            whole = not any(len(item.true.sources) and item.true.masked for item in (one, other))
            apart = not (one.true.seeds & other.true.seeds or one.true.sources & set(other.true.rows))
            if whole and apart and not _must_overlap(one.true, other.true):
                assert not one.made.overlaps(other.made)


@budget(50)
@given(programmes())
def test_rows_that_values_chose_are_not_drawn_at_random(items):
    for made, true in items:
        assert made.chosen or not true.masked
        if true.masked:
            assert made.drawn_from is None
        if made.drawn_from is not None:
            (key,) = {key for key, _ in true.rows}  # one draw
            assert made.drawn_from in {len(rows) for (rows, _), known in KEYS.items() if known == key}
        assert (made.repeated > 0) or len(set(true.rows)) == len(true.rows)


def _words(samples: Samples) -> str:
    try:
        return str(check_independent([samples]))
    except Refused as refused:
        return str(refused)


@budget(25)
@given(programmes())
def test_copies_change_nothing_of_what_certificates_say(items):
    for made, _ in items:
        for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
            assert (again.drawn_from, again.repeated, again.chosen) == (made.drawn_from, made.repeated, made.chosen)
            assert _words(again) == _words(made)
            assert again.overlaps(made)
            assert [again.overlaps(other.made) for other in items] == [made.overlaps(other.made) for other in items]


@budget(30)
@given(st.integers(0, 40), st.integers(1, 60), st.integers(0, 40), st.integers(1, 60), st.sampled_from([40, 7, 1]))
def test_a_generator_that_moved_on_is_not_drawn_from_again(skipped, first, later, second, size):
    """Two generators with one seed: their draws are fresh where they used different stretches of random numbers."""
    for kind in (np.random.PCG64, np.random.Philox, np.random.MT19937, np.random.SFC64):
        rngs = [np.random.Generator(kind(3)) for _ in range(2)]
        for rng, many in zip(rngs, (skipped, later), strict=True):
            rng.random(many)  # 64 bits each
        pools = [Samples(VALUES[:size]), Samples(VALUES[-size:] / 2)]
        one, other = (pool.take(n, rng) for pool, n, rng in zip(pools, (first, second), rngs, strict=True))
        if kind is np.random.MT19937:
            skipped_raw, later_raw, raws = 2 * skipped, 2 * later, (first, second)
        else:
            skipped_raw, later_raw, raws = skipped, later, (-(-first // 2), -(-second // 2))
        together = skipped_raw < later_raw + raws[1] and later_raw < skipped_raw + raws[0]
        if size == 1:  # nothing is random, and nothing is used up
            assert not one.overlaps(other)
        elif together:
            assert one.overlaps(other)
        elif max(skipped_raw - later_raw - raws[1], later_raw - skipped_raw - raws[0]) > 3:  # room for rejections
            assert not one.overlaps(other)


@pytest.mark.parametrize("seed", [1, np.int64(1), np.uint8(1), np.random.default_rng(1), np.random.default_rng([1])])
def test_a_seed_is_the_same_in_every_form(seed):
    pool = Samples(VALUES)
    same = np.array_equal(pool.take(20, seed=1).values, pool.take(20, seed=copy.deepcopy(seed)).values)
    assert pool.take(20, seed=1).overlaps(pool.take(20, seed=seed)) == same


@budget(20)
@given(st.integers(0, 2**32), st.integers(3, 400), st.integers(0, 399), st.integers(1, 50), st.integers(2, 5))
def test_data_that_are_read_twice_are_recognised_and_few_outcomes_are_not(seed, size, start, length, outcomes):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(size, 2))
    part = values[start % size :][:length]
    assert Samples(values).overlaps(Samples(values.tolist()))
    if len(part) >= 7 and size >= 20:
        joined = np.concatenate([part, rng.normal(size=(200, 2))])  # few of many, but in a row
        assert Samples(values).overlaps(Samples(joined))
    coins = [rng.integers(outcomes, size=(size, 1)).astype(float) for _ in range(2)]
    cards = [rng.integers(max(size, 20), size=(max(size, 20), 1)).astype(float) for _ in range(2)]
    assert size < 20 or not Samples(coins[0]).overlaps(Samples(coins[1]))
    assert size < 100 or not Samples(cards[0]).overlaps(Samples(cards[1]))
    assert not Samples(np.ones((size, 1))).overlaps(Samples(np.ones((size, 1))))
    if size >= 100:
        assert Samples(coins[0]).overlaps(Samples(coins[0].copy()))
        assert Samples(coins[0]).overlaps(Samples(coins[0][5:]))


@pytest.mark.long
def test_numbers_of_rows_hold_in_another_process():
    pool = Samples(VALUES)
    few = Samples(np.ones(3))  # not to be recognised by its values
    script = (
        "import pickle, sys; pool, few, draw = pickle.load(sys.stdin.buffer); "
        "sys.stdout.buffer.write(pickle.dumps((pool.take(9, seed=4), few[1:], draw[:5], type(few)([1.0, 1.0, 1.0]))))"
    )
    sent = pickle.dumps((pool, few, pool.take(20, seed=1)))
    got = subprocess.run([sys.executable, "-c", script], input=sent, capture_output=True, check=True).stdout
    draw, some, part, other = pickle.loads(got)
    assert draw.overlaps(pool)
    assert draw.overlaps(Samples(VALUES).take(30, seed=4))
    assert not draw.overlaps(pool.take(30, seed=5))
    assert some.overlaps(few)
    assert not other.overlaps(few)
    assert part.overlaps(pool.take(3, seed=1))
    assert part.drawn_from == 40


# -- the numbers that these would have given --------------------------------------------------------------------------

LINE = ez.VariationalInequality(lambda x, xi: x - xi, over=ez.sets.Box(0.0, 1.0, dim=1))


@pytest.mark.some(2)
@pytest.mark.parametrize("drawn", [True, False])
def test_a_certificate_of_chosen_rows_says_so(drawn):
    pool = Samples(np.random.default_rng(0).uniform(0, 1, (5000, 1)), support=UNIT)
    rows = pool.take(5000, seed=2) if drawn else pool
    low = rows.values[:, 0] < 0.1
    for index in (low, np.flatnonzero(low), np.sort(np.argsort(rows.values[:, 0])[:99]), np.flatnonzero(low).tolist()):
        solution = ez.solve(LINE, rows[index], iterations=50)
        found = ez.certify(solution)
        assert found.epsilon < abs(float(solution.x[0]) - pool.values.mean())  # false for a row drawn at random
        assert CHOSEN in found.leans_on
        assert "drawn at random" not in str(found)
        assert ez.verify(found.to_json(), LINE, Samples(rows[index].values, support=UNIT))
    joined = [rows[int(j) : int(j) + 1] for j in np.flatnonzero(low)[:20]]
    whole = joined[0]
    for one in joined[1:]:
        whole = whole.followed_by(one)
    assert whole.drawn_from is None
    assert whole.chosen


CELLS = 400
MEMORY = ez.VariationalInequality(
    lambda x, xi: (1.0 - x[(xi[0] * CELLS).astype(int)]) * np.eye(CELLS)[0],
    over=ez.sets.Box(0.0, 1.0, dim=CELLS),
    declared=ez.declare(R=1.0),
)


def test_a_draw_with_the_same_seed_would_certify_what_was_learnt_by_heart():
    """x knows the cells that it has seen: there it errs by 0, and elsewhere by 1."""
    pool = Samples((np.arange(CELLS)[:, None] + 0.5) / CELLS)
    seen = pool.take(100, seed=1)
    x = np.isin(np.arange(CELLS), (seen.values[:, 0] * CELLS).astype(int)).astype(float)
    truth = float(np.mean(1.0 - x))
    start = ez.solve(MEMORY, seen, ez.ForwardBackward(step=0.1), iterations=1)
    solution = dataclasses.replace(start, point=x, element=np.zeros(CELLS))
    honest = ez.certify(solution, using=HoldOut(samples=pool.take(100, seed=2)))
    assert honest.epsilon >= truth
    for again in (pool.take(100, seed=1), pool.take(300, seed=1)[:100], Samples(pool.values).take(100, seed=1)):
        errors = (1.0 - x[(again.values[:, 0] * CELLS).astype(int)])[:, None] * np.eye(CELLS)[0]
        region = EmpiricalBernstein().around(errors, Region.within(1.0, CELLS), 0.05)
        assert float(np.linalg.norm(region.centre) + region.radius) < truth / 2  # what was printed
        for one in (again, pickle.loads(pickle.dumps(again))):
            with pytest.raises(ez.InputError, match="drawn with the same seed"):
                ez.certify(solution, using=HoldOut(samples=one))


def test_a_stream_takes_no_draw_twice():
    pool = Samples(np.random.default_rng(0).uniform(0, 1, (500, 1)), support=UNIT)
    solution = ez.solve(LINE, pool.take(100, seed=1), iterations=50)
    stream = ez.certify(solution, using=Anytime())
    for again in (pool.take(100, seed=1), pool.take(30, seed=1), pickle.loads(pickle.dumps(solution.samples)), pool):
        with pytest.raises(ez.InputError, match=r"^new_samples: .*drawn with the same seed"):
            stream.update(again)
    assert stream.update(pool.take(100, seed=2)).epsilon <= stream.epsilon


def test_a_pool_and_its_draws_are_not_independent_samples():
    pool = Samples(np.random.default_rng(0).uniform(0, 1, (100, 1)), support=UNIT)
    draws = np.random.default_rng(1)
    for twice in (
        pool.followed_by(pool.take(100, seed=1)),
        pool.take(50, seed=1).followed_by(pool.take(80, seed=1)),
        pool.take(50, seed=1).followed_by(Samples(pool.values[:50], support=UNIT).take(80, seed=1)),
        pickle.loads(pickle.dumps(pool.take(50, seed=1).followed_by(pool.take(80, seed=1)))),
    ):
        found = ez.certify(ez.solve(LINE, twice, iterations=50), using=MeanDeviation())
        assert found.verdict == "refused"
        assert "repetitions" in found.reason
    apart = pool.take(50, draws).followed_by(pool.take(80, draws))
    assert apart.repeated == 0
    assert ez.certify(ez.solve(LINE, apart, iterations=50)).verdict == "conditional"


def test_what_a_run_keeps_aside_is_not_chosen_by_the_numbers_that_drew_it():
    pool = Samples(np.random.default_rng(0).uniform(0, 1, (500, 1)), support=UNIT)
    for seed in range(4):
        solution = ez.solve(LINE, pool.take(100, seed=seed), holdout=0.5, iterations=20)
        used, kept = solution.samples, solution.holdout
        assert isinstance(used, Samples)
        assert isinstance(kept, Samples)
        assert (used.drawn_from, kept.drawn_from) == (500, 500)
        assert not used.overlaps(kept)
    one, other = pool.take(100, seed=7).split(0.5, seed=7)
    assert one.chosen
    assert other.drawn_from is None
