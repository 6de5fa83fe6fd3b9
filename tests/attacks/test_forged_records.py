"""Records that somebody has changed: whatever is changed, wherever, no changed claim holds up, and nothing crashes.

A search: an honest record of some kind, a place anywhere in its JSON, and a change there. What `ez.verify` documents as
not compared (the run where no claim leans on it, versions) may change within its form; x, z, δ and the kind are what
all else is worked out from, so the claims must be theirs.
"""

import base64
import contextlib
import copy
import functools
import json
import re

import jax.numpy as jnp
import numpy as np
import pytest
from budget import budget
from hypothesis import assume, given
from hypothesis import strategies as st

import epszero as ez
from epszero.certificates import (
    Anytime,
    Bernstein,
    Betting,
    Certificate,
    Dependent,
    EmpiricalBernstein,
    Hoeffding,
    HoldOut,
    MeanDeviation,
    MedianOfMeans,
    Outcome,
    RepairedStability,
    Tightest,
    UniformStability,
    VectorStability,
)

H = np.array([[1.4, 0.5, 0.0], [-0.3, 1.0, 0.2], [0.1, 0.0, 0.8]])
UNIT = ez.sets.Box(0.0, 1.0, dim=3)
CUBE = ez.sets.Box(-0.2, 0.4, dim=3)
STEP = ez.ForwardBackward(step=0.3)


def rows(s, seed):
    return ez.Samples(np.random.default_rng(seed).beta(0.7, 1.5, size=(s, 3)), support=UNIT)


def line():
    return ez.Inclusion(CUBE, lambda x, xi: H @ x - xi)


def exact():
    return ez.Inclusion(CUBE, lambda x: H @ x - 0.3)


def bent():
    declared = ez.declare(mu=1.0, kappa=2.0, R=float(np.sqrt(3)), support=UNIT)
    return ez.VariationalInequality(
        lambda x, xi: x + jnp.tanh(x - xi), ez.sets.Box(-1.0, 1.0, dim=3), declared=declared
    )


def wavy():
    """Nothing is declared: μ is verified."""
    return ez.VariationalInequality(lambda x, xi: 1.5 * x + jnp.sin(x) - xi, ez.sets.Box(-1.0, 1.0, dim=3))


def game():
    return ez.models.ev_charging(vehicles=4, hours=3, wear=(0.3, 0.6), need=(1.0, 3.0), seed=0)


FIXED = {"method": STEP, "iterations": 12}
HONEST = {  # the problem, data, how it is solved, the kind
    "default": (game, rows(40, 4), FIXED, None),
    "mean deviation": (line, rows(40, 1), FIXED, MeanDeviation(EmpiricalBernstein())),
    "hold-out": (bent, rows(60, 3), {**FIXED, "holdout": 0.4}, HoldOut()),
    "anytime": (line, rows(40, 1), FIXED, Anytime(Hoeffding(), looks=(10, 20))),
    "vector stability": (bent, rows(40, 2), FIXED, VectorStability()),
    "uniform stability": (line, rows(40, 1), FIXED, UniformStability()),
    "repaired stability": (line, rows(40, 1), FIXED, RepairedStability()),
    "dependent": (line, rows(40, 1), FIXED, Dependent(beta=[0.5, 0.0])),
    "tightest": (line, rows(40, 1), FIXED, Tightest([MeanDeviation(Betting()), VectorStability()], weights=[3, 1])),
    "known": (exact, None, {"iterations": 3}, None),
    "verified": (wavy, rows(40, 1), FIXED, None),
    "refused": (line, rows(40, 1), FIXED, HoldOut()),
}
ON_RUN = {"vector stability", "uniform stability", "repaired stability"}


@functools.cache
def honest(name):
    """The problem, the data and the text of an honest record."""
    problem, data, how, kind = HONEST[name]
    made = problem()
    solution = ez.solve(made, data, **how) if data is not None else ez.solve(made, **how)
    return made, data, ez.certify(solution, 0.05, kind).to_json()


def places(tree, path=()):
    """Every place in a tree of JSON."""
    yield path
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield from places(value, (*path, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def changed(tree, path, value):
    tree = copy.deepcopy(tree)
    at(tree, path[:-1])[path[-1]] = value
    return tree


SCALES = [1 - 1e-6, 1 + 1e-6, 0.5, 0.0, -1.0, 2.0, 1e-3, float("nan"), float("inf")]
STRANGE = [None, True, 0, -1, 1e308, 10**400, "", "a", "0.05", [], {}, [[]], {"class": "Kind"}, {"opaque": "x"}]


def scaled(text, factor):
    """An array in base 64, times a number."""
    array = np.frombuffer(base64.b64decode(text), dtype="<f8")
    with np.errstate(all="ignore"):
        return base64.b64encode((array * factor).tobytes()).decode()


@st.composite
def forgeries(draw, name):
    """The record with one thing changed, and where."""
    record = json.loads(honest(name)[2])
    every = [path for path in places(record) if path]
    top = draw(st.sampled_from(sorted({path[0] for path in every})))  # each part as often as any other
    path = draw(st.sampled_from([path for path in every if path[0] == top]))
    value = at(record, path)
    how = draw(st.sampled_from(["scale", "word", "strange", "remove", "add"]))
    if how == "scale" and isinstance(value, int | float) and not isinstance(value, bool):
        return path, changed(record, path, value * draw(st.sampled_from(SCALES)))
    if how in ("scale", "word") and isinstance(value, str):
        if path[-1] == "float64":
            return path, changed(record, path, scaled(value, draw(st.sampled_from(SCALES))))
        digits = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), value)
        return path, changed(record, path, draw(st.sampled_from([value + " ", value.upper(), value[1:], digits, ""])))
    if how == "remove":
        tree = copy.deepcopy(record)
        del at(tree, path[:-1])[path[-1]]
        return path, tree
    if how == "add" and isinstance(value, dict | list):
        tree = copy.deepcopy(record)
        inner = at(tree, path)
        if isinstance(inner, dict):
            inner["more"] = 0
        else:
            inner.append(copy.deepcopy(inner[0]) if inner else 0)
        return path, tree
    return path, changed(record, path, draw(st.sampled_from(STRANGE)))


def answer(record, problem, data):
    """What verify says; None where it refuses in a sentence."""
    try:
        return ez.verify(record, problem, data)
    except ez.InputError:
        return None


def same_claims(record, found):
    """Whether the claims are those of the certificate that was worked out from x, z, δ and the kind of the record."""
    told = record["epsilon"], record["distance"], record["delta"]
    was = found.certificate.epsilon, found.certificate.distance, found.certificate.delta
    return all(a == pytest.approx(b, rel=1e-6, abs=1e-14) for a, b in zip(told, was, strict=True) if a is not None)


@pytest.mark.long
@budget(120)
@given(data=st.data())
def test_no_changed_claim_holds_up_and_nothing_crashes(data):
    name = data.draw(st.sampled_from(list(HONEST)))
    problem, samples, text = honest(name)
    path, record = data.draw(forgeries(name))
    assume(json.dumps(record) != json.dumps(json.loads(text)))
    assume(not _equal(at_or(record, path), at_or(json.loads(text), path)))
    found = answer(json.dumps(record) if data.draw(st.booleans()) else record, problem, samples)
    with contextlib.suppress(ez.InputError):
        assert isinstance(Certificate.from_json(json.dumps(record)), Certificate)
    if found is None or found.outcome is not Outcome.HOLDS:
        return
    if path[0] in ("delta", "kind", "point", "element"):  # the claims are true of these
        assert same_claims(record, found), path
        return
    unexamined = path[0] == "run" and (name not in ON_RUN or path[1] == "notes")
    assert path[0] == "versions" or unexamined or boxes(path, text, record), path


def at_or(tree, path):
    try:
        return at(tree, path)
    except (LookupError, TypeError):
        return ...


def _equal(a, b):
    """The same in JSON: 40 is 40.0, but true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b
    return type(a) is type(b) and a == b


def boxes(path, text, record):
    """Whether only the number of boxes of a proof was changed, which is no claim."""
    before, after = at(json.loads(text), path), at_or(record, path)
    mask = functools.partial(re.sub, r"\d+ box(es)?", "")
    return isinstance(after, str) and isinstance(before, str) and mask(before) == mask(after)


@budget(60)
@given(
    name=st.sampled_from(list(HONEST)), cut=st.floats(0, 1), letter=st.sampled_from('"{[]}:,0x -e\\é'), data=st.data()
)
def test_damaged_text_is_answered_in_a_sentence(name, cut, letter, data):
    problem, samples, text = honest(name)
    place = int(cut * (len(text) - 1))
    damaged = data.draw(
        st.sampled_from([text[:place], text[:place] + letter + text[place + 1 :], text[:place] + letter + text[place:]])
    )
    found = answer(damaged, problem, samples)
    assert found is None or isinstance(found.outcome, Outcome)
    try:
        Certificate.from_json(damaged)
    except ez.InputError:
        return


# -- the honest --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HONEST)
def test_the_unchanged_record_holds_up_wherever_it_is_looked_at(name):
    problem, samples, text = honest(name)
    again = json.dumps(json.loads(text), indent=None, sort_keys=True)  # a round trip through other hands
    for one in (text, again, text.encode(), json.loads(text), Certificate.from_json(text)):
        found = ez.verify(one, problem, samples)
        assert found, str(found)
    other = HONEST[name][0]()  # another object of the same problem: nothing is remembered
    found = ez.verify(text, other, samples)
    assert found, str(found)
    assert Certificate.from_json(text).to_json() == text
    assert str(Certificate.from_json(text)) == str(found.certificate)


@pytest.mark.long
def test_what_was_asked_before_does_not_matter():
    problem, samples, text = honest("verified")
    ez.audit(problem, samples, budget=2)
    ez.certify(ez.solve(problem, rows(30, 7)), 0.2)
    assert ez.verify(text, problem, samples)
    several, alone = line(), line()
    for certificate in ez.certify_many(ez.solve_many(several, [rows(20, seed) for seed in range(66)])):
        found = ez.verify(certificate.to_json(), alone, certificate.solution.samples)
        assert found, str(found)


@pytest.mark.long
def test_how_many_boxes_a_proof_took_is_no_claim():
    """Of one number, where a search comes after the rules of convexity."""
    problem = ez.VariationalInequality(lambda x, xi: 1.5 * x + jnp.sin(x) - xi, ez.sets.Box(-1.0, 1.0, dim=1))
    values = np.random.default_rng(1).uniform(size=(40, 1))
    samples = ez.Samples(values, support=ez.sets.Box(0.0, 1.0, dim=1))
    text = ez.certify(ez.solve(problem, samples)).to_json()
    assert re.search(r"enclosed over \d+ box", text)
    assert ez.verify(re.sub(r"over \d+ box(es)?", "over 99 boxes", text), problem, samples)
    found = ez.verify(text.replace("verified", "exact"), problem, samples)
    assert not found


# -- regressions -------------------------------------------------------------------------------------------------------


def test_a_small_number_is_compared_with_itself():
    """2.8e-10 became 0 once."""
    problem = exact()
    record = json.loads(ez.certify(ez.solve(problem)).to_json())
    assert 1e-12 < record["epsilon"] < 1e-8
    assert ez.verify(record, problem)
    for name in ("epsilon", "distance", "relative_distance"):
        for factor in (0.0, 0.5, 0.999, 2.0):
            assert not ez.verify(record | {name: record[name] * factor}, problem), (name, factor)
    terms = record["terms"] | {"empirical": 0.0}
    assert not ez.verify(record | {"terms": terms}, problem)


def test_a_small_number_beside_a_large_one_is_compared_with_itself():
    problem, data = line(), rows(40, 1)
    record = json.loads(ez.certify(ez.solve(problem, data), 0.05).to_json())
    assert 1e-13 < record["terms"]["empirical"] < 1e-8 < record["epsilon"]
    for factor in (0.0, 0.5, 2.0):
        terms = record["terms"] | {"empirical": record["terms"]["empirical"] * factor}
        assert not ez.verify(record | {"terms": terms}, problem, data)


@pytest.mark.parametrize("name", ["reason", "by"])
def test_forged_words_are_found(name):
    problem, samples, text = honest("mean deviation")
    record = json.loads(text)
    assert not ez.verify(record | {name: "by the word of an expert"}, problem, samples)
    chosen = json.loads(honest("default")[2])["reason"]
    assert not ez.verify(record | {"reason": chosen}, problem, samples)  # it was named, and is not the default


@pytest.mark.parametrize("iterations", ["a", -1, 1.5, None, 10**400, True])
def test_iterations_are_a_number(iterations):
    problem, samples, text = honest("mean deviation")
    record = json.loads(text)
    with pytest.raises(ez.InputError, match="iterations"):
        ez.verify(changed(record, ("run", "iterations"), iterations), problem, samples)


def test_a_hold_out_picked_among_sixty_is_found():
    problem, data = bent(), rows(60, 3)
    tried = []
    for seed in range(60):
        seen, kept = data.split(0.6, seed=seed)
        tried.append((float(np.linalg.norm(kept.values.mean(0) - seen.values.mean(0))), seed, seen, kept))
    _, seed, seen, kept = min(tried[1:], key=lambda one: one[0])
    solution = ez.solve(problem, seen, **FIXED)
    record = json.loads(ez.certify(solution, 0.05, HoldOut(samples=kept)).to_json())
    record["data"]["kept_aside"] = record["data"]["given"].pop() | {"seed": seed}
    record["kind"]["samples"] = None
    found = ez.verify(record, problem, data)
    assert found.outcome is Outcome.FALSE
    assert "seed" in str(found)
    assert not ez.verify(changed(record, ("data", "kept_aside", "seed"), 0), problem, data)


@pytest.mark.long
def test_a_stream_may_be_passed_whole_or_in_pieces():
    problem, first, pieces = line(), rows(40, 1), [rows(20, 8), rows(30, 9)]
    solution = ez.solve(problem, first, **FIXED)
    text = ez.certify(solution, 0.05, Anytime()).update(pieces[0]).update(pieces[1]).to_json()
    whole = first.followed_by(pieces[0]).followed_by(pieces[1])
    assert ez.verify(text, problem, whole)
    assert ez.verify(text, problem, first, fresh=whole)
    assert ez.verify(text, problem, first, fresh=pieces)
    assert not ez.verify(text, problem, first, fresh=pieces[::-1])
    assert not ez.verify(text, problem, first, fresh=pieces[:1])
    assert not ez.verify(text, problem, first)
    held = ez.solve(bent(), rows(60, 3), **FIXED, holdout=0.4)
    text = ez.certify(held, 0.05, Anytime()).update(pieces[0]).to_json()
    assert ez.verify(text, bent(), rows(60, 3), fresh=pieces[0])
    assert ez.verify(text, bent(), rows(60, 3).followed_by(pieces[0]))


@pytest.mark.parametrize(
    ("place", "value"),
    [("epsilon", float("nan")), ("epsilon", -1.0), ("epsilon", "0.1"), ("epsilon", 10**400), ("delta", 2.0),
     ("delta", 0), ("delta", "0.05"), ("delta", True), ("distance", -1e-9), ("exploitability", "ab"),
     ("exploitability", []),
     ("verdict", "certain"), ("verdict", "guaranteed"), ("leans_on", "all"), ("terms", []), ("terms", {"a": "b"}),
     ("notes", {}), ("by", 3), ("point", "abc"), ("point", [{"shape": [10**15], "float64": "AAAA"}]), ("form", True),
     ("form", 2.0), ("form", 3), ("kind", {"class": "Nobody"}), ("kind", {"class": "Kind"}), ("kind", {"class": 3}),
     ("kind", {"class": "Anytime", "looks": ["a"]}), ("obstacle", "a wall"), ("data", None), ("run", {}), ("more", 1)],
)  # fmt: skip
def test_from_json_refuses_what_no_certificate_can_have(place, value):
    record = json.loads(honest("default")[2]) | {place: value}
    with pytest.raises(ez.InputError, match="certificate_json"):
        Certificate.from_json(json.dumps(record))


def nested(levels):
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


ODD = {
    "deep text": "[" * 100_000,
    "deep kind": {"kind": {"class": "Tightest", "kinds": nested(300)}},
    "deep asked": {"run": nested(300)},
    "twice": None,
    "NaN": '{"form": NaN}',
    "overflow": '{"form": 2, "epsilon": 1e400}',
    "many digits": '{"form": ' + "9" * 5000 + "}",
    "bytes": b"\xff\xfe{",
    "list": [1, 2],
    "object": object(),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_records_are_answered_in_a_sentence(name):
    problem, samples, text = honest("default")
    given = ODD[name]
    if name == "twice":
        given = text.replace("{", '{"epsilon": 0.0,', 1)
    if isinstance(given, dict):
        given = json.loads(text) | given
    with pytest.raises(ez.InputError, match="certificate_json"):
        ez.verify(given, problem, samples)
    with pytest.raises(ez.InputError, match="certificate_json"):
        Certificate.from_json(given)


def test_a_dictionary_that_holds_itself_is_no_record():
    record = json.loads(honest("default")[2])
    record["run"]["asked"] = record
    with pytest.raises(ez.InputError, match="certificate_json"):
        ez.verify(record, honest("default")[0], honest("default")[1])


SUPPORTS = {
    "box": ez.sets.Box(0.0, 1.0, dim=3),
    "half-line": ez.sets.Box(0.0, np.inf, dim=3),
    "largest entry": ez.sets.Ball(1.0, center=np.full(3, 0.5), norm=np.inf),
    "polyhedron": ez.sets.Polyhedron(np.vstack([np.eye(3), -np.eye(3)]), np.repeat([1.0, 0.0], 3)),
}


@pytest.mark.parametrize("name", SUPPORTS)
def test_a_declared_support_is_recorded(name):
    def made():
        return ez.Inclusion(CUBE, lambda x, xi: H @ x - xi, declared=ez.declare(support=SUPPORTS[name], R=0.0))

    data = ez.Samples(rows(30, 5).values)
    bound = MedianOfMeans(1.0) if name == "half-line" else Bernstein()
    text = ez.certify(ez.solve(made(), data), 0.05, MeanDeviation(bound)).to_json()
    assert ez.verify(text, made(), data)
    assert json.loads(text)["declared"].keys() == {"support", "R"}
    without = ez.Inclusion(CUBE, lambda x, xi: H @ x - xi, declared=ez.declare(support=SUPPORTS[name]))
    assert not ez.verify(text, without, data)


@pytest.mark.long
def test_infinite_savings_come_back():
    costs = [lambda x: jnp.sum(x[0] ** 4), lambda x: jnp.sum((x[1] - 1) ** 4)]
    free = ez.Game(costs, [ez.sets.Box(-10.0, 10.0, dim=1), ez.sets.WholeSpace(dim=1)])
    certificate = ez.certify(ez.solve(free, tol=1e-6))
    back = Certificate.from_json(certificate.to_json())
    assert back.exploitability.tolist() == certificate.exploitability.tolist()
    assert back.exploitability[1] == np.inf
    assert str(back) == str(certificate)
