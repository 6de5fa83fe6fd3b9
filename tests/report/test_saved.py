"""Solutions in files: what is read again says the same, bit for bit; what does not belong together is refused."""

import io
import json
import pickle
import zipfile
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

RNG = np.random.default_rng(0)
ROWS = RNG.uniform(0.02, 0.25, size=(300, 4))
BOX = ez.sets.Box(0.0, 0.5)


def game(**options):
    return ez.models.ev_charging(**({"vehicles": 3, "hours": 4, "need": (2.0, 6.0)} | options))


@pytest.fixture(scope="module")
def solution():
    pool = ez.Samples(ROWS, support=BOX, columns=list("abcd"))
    return ez.solve(game(), pool.take(250, seed=3))


@pytest.fixture(scope="module")
def saved(solution, tmp_path_factory):
    return solution.save(tmp_path_factory.mktemp("saved") / "deep" / "er.npz")


def same(one, other):
    for name in ("x", "z"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("residual", "iterations", "status", "notes", "message", "fixed_iterations", "exact", "finished"):
        assert getattr(one, name) == getattr(other, name), name
    np.testing.assert_array_equal(one.trace.residual, other.trace.residual)
    np.testing.assert_array_equal(one.start, other.start)
    return True


def data_of(solution):
    assert isinstance(solution.samples, ez.Samples)
    return solution.samples


@pytest.mark.long
def test_what_is_loaded_certifies_to_the_same_bits(solution, saved):
    again = ez.load(saved, game())
    assert same(again, solution)
    mine, other = ez.certify(solution), ez.certify(again)
    assert str(mine) == str(other)
    assert mine.to_json() == other.to_json()
    np.testing.assert_array_equal(mine.intervals.lower, other.intervals.lower)


def test_the_history_of_samples_travels(solution, saved):
    again = data_of(ez.load(saved, game()))
    assert again.names == tuple("abcd")
    assert again.drawn_from == 300
    assert again.overlaps(data_of(solution))
    assert again.overlaps(ez.Samples(ROWS))
    assert not again.overlaps(ez.Samples(ROWS).take(250, seed=4))
    assert repr(again.support) == repr(BOX)


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "SFC64", "PCG64DXSM"])
def test_every_bit_generator_of_numpy(kind, tmp_path):
    rng = np.random.Generator(getattr(np.random, kind)(7))
    rng.integers(3, size=5, dtype=np.uint32)
    pool = ez.Samples(ROWS)
    problem = ez.VariationalInequality(lambda x, xi: x - xi, over=ez.sets.Box(0.0, 1.0, dim=4))
    one = ez.solve(problem, pool.take(50, seed=rng).split(0.5, seed=2)[0])
    again = data_of(ez.load(one.save(tmp_path / "a"), problem))
    assert again.overlaps(data_of(one))
    assert again.chosen == data_of(one).chosen
    repeated = pool[[1, 1, 2]]
    assert data_of(ez.load(ez.solve(problem, repeated).save(tmp_path / "b"), problem)).repeated == 1


def test_equal_solutions_give_equal_files(solution, saved, tmp_path):
    other = ez.load(saved, game()).save(tmp_path / "again")
    assert other.read_bytes() == saved.read_bytes()


def test_another_problem_is_refused(saved):
    for other in (game(need=(2.0, 5.9)), game(weight=1.0 + 1e-6), game(fee=0.03), game(seed=1)):
        with pytest.raises(ez.InputError, match=r"^problem: is not the one that was saved: its (cost|sets)"):
            ez.load(saved, other)
    with pytest.raises(ez.InputError, match="other declared constants"):
        ez.load(saved, game().declaring(ez.declare(mu=1e-4)))
    with pytest.raises(ez.InputError, match="problem"):
        ez.load(saved, game(vehicles=4))
    box = ez.sets.BoxBudget(0.0, np.full((3, 1), 2.5), at_least=np.full(3, 1.0), dim=4)
    other = ez.VariationalInequality(lambda x, xi: x + xi, over=box)
    with pytest.raises(ez.InputError, match="is a problem of another kind"):
        ez.load(saved, other)
    with pytest.raises(ez.InputError, match="must be the problem that was solved, but it is a int"):
        ez.load(saved, 3)


def test_a_wider_set_is_another_problem(tmp_path):
    """Though near x, in the inside of both, nothing tells them apart."""

    def means(end):
        return ez.Minimization(lambda x, xi: 0.5 * x @ x - xi @ x, ez.sets.Box(-end, end, dim=4))

    place = ez.solve(means(1.0), ez.Samples(ROWS, support=BOX)).save(tmp_path / "means")
    assert ez.load(place, means(1.0)).iterations == 0
    with pytest.raises(ez.InputError, match="its sets or functions are others"):
        ez.load(place, means(2.0))


def test_samples_may_be_given_again_but_no_others(solution, saved, tmp_path):
    assert ez.load(saved, game(), solution.samples).samples is solution.samples
    with pytest.raises(ez.InputError, match=r"^samples: are not those that .* was found with \(250 samples"):
        ez.load(saved, game(), ez.Samples(ROWS[:250], support=BOX))
    small = solution.save(tmp_path / "without", data=False)
    with pytest.raises(ez.InputError, match="samples: are not in .*: its samples were left out"):
        ez.load(small, game())
    assert same(ez.load(small, game(), solution.samples), solution)


def test_samples_kept_aside(tmp_path):
    data = ez.Samples(ROWS, support=BOX)
    one = ez.solve(game(), data, holdout=0.3)
    place = one.save(tmp_path / "a")
    for again in (ez.load(place, game()), ez.load(place, game(), data)):
        assert again.holdout.digest() == one.holdout.digest()
        assert ez.certify(again).to_json() == ez.certify(one).to_json()


class Pair(NamedTuple):
    P: np.ndarray
    q: np.ndarray


@pytest.mark.some(2)
@pytest.mark.parametrize("nest", [dict, list, tuple, Pair])
def test_data_that_are_no_matrix(nest, tmp_path):
    parts = {"P": 1 + ROWS[:, :3], "q": ROWS[:, 3]}
    tree = nest(parts) if nest is dict else Pair(**parts) if nest is Pair else nest(parts.values())
    P, q = ("P", "q") if nest is dict else (0, 1)
    problem = ez.Minimization(lambda x, xi: jnp.sum(xi[P] * x**2) - xi[q] * x.sum(), ez.sets.Box(0.0, 1.0, dim=3))
    one = ez.solve(problem, ez.Samples.from_arrays(tree))
    place = one.save(tmp_path / "a")
    if nest is Pair:
        with pytest.raises(ez.InputError, match="samples: are not in .*: the samples are nested in a Pair"):
            ez.load(place, problem)
    again = ez.load(place, problem, one.samples if nest is Pair else None)
    assert data_of(again).digest() == data_of(one).digest()
    np.testing.assert_array_equal(again.x, one.x)


@pytest.mark.long
def test_shared_constraints_and_data_of_each_agent(tmp_path):
    costs = [lambda x, xi: jnp.sum(x[0] ** 2) - xi @ x[0], lambda x, xi: jnp.sum(x[1] ** 2) + xi @ x[0] - xi @ x[1]]
    boxes = [ez.sets.Box(0.0, 1.0, dim=2)] * 2
    problem = ez.Game(costs, boxes, shared=(np.ones((1, 4)), np.array([0.1])))
    one = ez.solve(problem, [ez.Samples(ROWS[:, :2]), ez.Samples(ROWS[:99, 2:])])
    again = ez.load(one.save(tmp_path / "a"), problem)
    np.testing.assert_array_equal(again.multipliers, one.multipliers)
    assert [len(part) for part in again.samples or []] == [300, 99]
    assert again.check() == one.check()


@pytest.mark.long
def test_named_methods_and_kinks(tmp_path):
    one = ez.solve(game(), ez.Samples(ROWS, support=BOX), ez.ForwardBackward(0.5, relaxation=0.9), iterations=9)
    again = ez.load(one.save(tmp_path / "a"), game())
    kind = ez.certificates.VectorStability()
    assert str(ez.certify(again, using=kind)) == str(ez.certify(one, using=kind))
    newsvendor = ez.Minimization(lambda x, xi: jnp.sum(jnp.maximum(x - xi, 2 * (xi - x))), ez.sets.Box(0.0, 1.0, dim=1))
    kinked = ez.solve(newsvendor, ez.Samples(ROWS[:, :1]))
    loaded = ez.load(kinked.save(tmp_path / "b"), newsvendor)
    assert loaded.message == kinked.message
    assert loaded.check() == kinked.check()
    until = ez.solve(game(), ez.Samples(ROWS, support=BOX), ez.ForwardBackward(lambda k: 0.5 + 0 * k), tol=1e-3)
    with pytest.raises(ez.InputError, match=r"^method: is not in .*function of k.*Pass method= again"):
        ez.load(until.save(tmp_path / "c"), game())
    assert same(ez.load(tmp_path / "c", game(), method=until.asked), until)


@pytest.mark.long
def test_without_samples(tmp_path):
    problem = ez.models.zero_sum([[0, 1, -1], [-1, 0, 2], [1, -2, 0]])
    one = ez.solve(problem)
    again = ez.load(one.save(tmp_path / "a"), problem)
    np.testing.assert_array_equal(again.x[0], one.x[0])
    assert again.samples is None


def test_nothing_in_a_file_is_executed(saved, tmp_path):
    class Evil:
        def __reduce__(self):
            return exec, ("raise SystemExit('executed')",)

    with zipfile.ZipFile(saved) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    content = io.BytesIO()
    np.save(content, np.array([Evil()], dtype=object), allow_pickle=True)
    assert b"pickle" not in b"".join(parts.values())
    for name in [one for one in parts if one.endswith(".npy")]:
        _rewritten(tmp_path / "evil", parts | {name: content.getvalue()})
        with pytest.raises(ez.InputError, match="is not a saved solution, or damaged"):
            ez.load(tmp_path / "evil", game())
    (tmp_path / "pickle").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ez.InputError, match="is not a saved solution"):
        ez.load(tmp_path / "pickle", game())


def _rewritten(place, parts):
    with zipfile.ZipFile(place, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)


def test_damaged_files_are_refused_in_a_sentence(saved, tmp_path):
    with zipfile.ZipFile(saved) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    record = json.loads(parts["solution.json"])
    place = tmp_path / "damaged"

    def refused(match, **changes):
        _rewritten(place, parts | {"solution.json": json.dumps(record | changes).encode()})
        with pytest.raises(ez.InputError, match=match):
            ez.load(place, game())

    refused("not a saved solution", kind="other")
    refused("another version", form=2)
    for name in ("points", "problem", "run", "samples", "trace", "residual", "step"):
        refused(r"^(path|problem|samples): ", **{name: {"no": "such"}})
    samples = record["samples"][0]
    refused("its samples are not those", samples=[samples | {"digest": "0"}])
    refused(
        "is damaged", samples=[samples | {"whole": samples["whole"] | {"choices": [{"generator": "os", "used": 1}]}}]
    )
    rows = json.loads(json.dumps(record))
    rows["samples"][0]["whole"]["rows"] = rows["samples"][0]["whole"]["values"]["array"]
    refused("is damaged", samples=rows["samples"])
    whole = saved.read_bytes()
    for cut in (10, len(whole) // 2):
        place.write_bytes(whole[:cut])
        with pytest.raises(ez.InputError, match="not a saved solution"):
            ez.load(place, game())
    refusals, good = 0, ez.load(saved, game())
    for at in range(60, 600, 20):  # of the first part
        place.write_bytes(whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :])
        try:
            assert same(ez.load(place, game()), good)  # in what zips say twice, or not at all
        except ez.InputError:
            refusals += 1
    assert refusals > 10
    with pytest.raises(ez.InputError, match="there is no file"):
        ez.load(tmp_path / "nowhere", game())
    with pytest.raises(ez.InputError, match="is a directory"):
        ez.load(tmp_path, game())


@pytest.mark.long
def test_wrong_words(solution, tmp_path):
    with pytest.raises(ez.InputError, match="path: must be the name of a file, but it is a int"):
        solution.save(3)
    with pytest.raises(ez.InputError, match="path: .* is a directory"):
        solution.save(tmp_path)
    with pytest.raises(ez.InputError, match="data: must be True or False"):
        solution.save(tmp_path / "a", data="no")
    assert list(tmp_path.iterdir()) == []
