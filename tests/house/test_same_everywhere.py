"""The same question, asked at several doors, has the same answer: constants, solutions made together, records.

The large products are marked `some`: a share of them runs in every `make test`, all of them in `make test-long`.
"""

import functools
import math
import re

import numpy as np
import pytest
from answers import difference, of_solution, quietly
from gallery import GALLERY
from jax.flatten_util import ravel_pytree

import epszero as ez
from epszero.certificates import (
    Anytime,
    Dependent,
    EmpiricalBernstein,
    HoldOut,
    MeanDeviation,
    RepairedStability,
    Tightest,
    UniformStability,
    VectorStability,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*not convex:UserWarning")
S = 30  # samples
K = 10  # iterations where their number is fixed

# How certificates call the constants of an audit.
CONSTANTS = {"strong monotonicity μ": "mu", "μ of every O(·, ξ)": "mu", "μ": "mu", "κ": "kappa", "θ": "theta",
             "R": "R", "M": "M", "diameter": "diameter"}  # fmt: skip
SAID = re.compile(r"(.+) = (\S+)")


def data_of(name, seed=0):
    return GALLERY[name].data(S, seed)


def run_of(name):
    """K iterations with a step fixed beforehand, so that every kind of certificate has a chance."""
    exhibit = GALLERY[name]
    method = ez.PreconditionedForwardBackward() if exhibit.blocks_shared else ez.ForwardBackward(step=exhibit.step)
    return ez.solve(exhibit.problem(), data_of(name), method, x0=exhibit.x0, iterations=K)


# -- constants ---------------------------------------------------------------------------------------------------------

LEANING = {
    "default": None,
    "vector": VectorStability(),
    "published": UniformStability(),
    "repaired": RepairedStability(),
}


def constants_in(certificate):
    """(name in an audit, number, leaning) of every constant that a certificate leans on."""
    read = [(SAID.fullmatch(one.what), one) for one in certificate.leans_on]
    return [(CONSTANTS[said[1]], said[2], one) for said, one in read if said is not None and said[1] in CONSTANTS]


def words_of(constant):
    """What a certificate may say of a constant: the audit's words; or that they hold over a support that is declared,
    on which a certificate leans where an audit has a line of its own for it."""
    number = f"{constant.value:.4g}"
    over = f"{constant.provenance} over the declared support"
    return {(number, constant.provenance, constant.evidence), (number, "declared", over)}


@pytest.mark.long
def test_leanings_are_read():
    """The pattern that finds constants in what a certificate leans on finds them."""
    found = [
        one for kind in LEANING.values() for one in constants_in(ez.certify(run_of("moving Jacobian"), using=kind))
    ]
    assert {"mu", "kappa", "theta", "R", "M"} <= {name for name, _, _ in found}


@pytest.mark.some(8)
@pytest.mark.parametrize("name", GALLERY)
def test_a_constant_is_the_same_in_an_audit_and_in_a_certificate(name):
    """Number, provenance and evidence."""
    solution = run_of(name)
    constants = ez.audit(GALLERY[name].problem(), data_of(name), x0=GALLERY[name].x0).constants
    parted = []
    for title, kind in LEANING.items():
        for place, number, one in constants_in(ez.certify(solution, using=kind)):
            constant = constants.get(place)
            if constant is None or (number, one.provenance, one.evidence) not in words_of(constant):
                parted.append(f"{title}: {one}, but the audit knows {constant}")
    assert not parted, "\n".join(parted)


MEANINGS = {"distance": "distance", "exploitability": "exploitability", "cost gap": "cost_gap"}


@pytest.mark.some(10)
@pytest.mark.parametrize("name", GALLERY)
def test_a_plan_promises_only_what_a_certificate_can_say(name):
    """Where a certificate has no bound on something, a plan has none, for the same reason."""
    exhibit = GALLERY[name]
    if isinstance(data_of(name), list):
        pytest.skip("a plan is for one data set")
    certificate = ez.certify(ez.solve(exhibit.problem(), data_of(name), method_of(name), x0=exhibit.x0))
    if not math.isfinite(certificate.epsilon):
        pytest.skip("nothing can be said of the residual")
    for of, field in MEANINGS.items():
        if getattr(certificate, field) is None:
            rows = ez.plan(exhibit.problem(), size=1000, of=of, samples=data_of(name)).rows
            assert [row.kind for row in rows if row.answer is not None] == [], of
            reasons = {reason_of(row.note) for row in rows}
            assert reason_of(certificate.notes[field]) in reasons or any("not additive" in one for one in reasons), of


def reason_of(note):
    """Without the witness: a plan looks elsewhere, and may see another agent's cost bend by another curvature."""
    return re.sub(r"\d", "", re.split(" it is |: its ", note)[0])


def method_of(name):
    """None, but where nothing is proved and the user must choose."""
    return ez.ForwardBackward() if name == "bumpy game" else None


# -- one by one and together -------------------------------------------------------------------------------------------

METHODS = {
    "default": lambda one: None,
    "forward-backward": lambda one: ez.ForwardBackward(),
    "forward-backward, step": lambda one: ez.ForwardBackward(step=one.step),
    "forward-backward-forward": lambda one: ez.ForwardBackwardForward(),
    "extragradient": lambda one: ez.Extragradient(),
    "preconditioned": lambda one: ez.PreconditionedForwardBackward(),
}
RUNS = [(name, method) for name, one in GALLERY.items() for method in METHODS
        if one.blocks_shared or method != "preconditioned"]  # fmt: skip


@pytest.mark.some(58)
@pytest.mark.parametrize(("name", "method"), RUNS)
def test_solutions_made_together_are_those_made_one_by_one(name, method):
    exhibit, many = GALLERY[name], [data_of(name, seed) for seed in (0, 1, 2)]
    options = {"x0": exhibit.x0, "tol": 1e-8, "iterations": 300}
    chosen = METHODS[method](exhibit)
    alone = [quietly(lambda data=data: of_solution(ez.solve(exhibit.problem(), data, chosen, throw=False, **options)))
             for data in many]  # fmt: skip
    together = quietly(lambda: list(map(of_solution, ez.solve_many(exhibit.problem(), many, chosen, **options))))
    if isinstance(together, str):  # refused: then each alone is, too
        assert together in alone
        return
    for one, other in zip(together, alone, strict=True):
        assert not difference(one, other)


# -- records -----------------------------------------------------------------------------------------------------------

KINDS = {
    "default": None,
    "mean deviation": MeanDeviation(EmpiricalBernstein()),
    "hold-out": HoldOut(),
    "vector stability": VectorStability(),
    "repaired": RepairedStability(),
    "published": UniformStability(),
    "anytime": Anytime(),
    "dependent": Dependent(beta=[0.0]),
    "tightest": Tightest([MeanDeviation(), VectorStability(), HoldOut()]),
}
OF_THE_RUN = {"vector stability", "repaired", "published", "tightest"}  # kinds that look at the steps of a run


def scheduled_blocks(steps):
    """A schedule that gives one step per block: a function, which no record can hold."""
    if isinstance(steps, dict):
        return lambda k: {name: step / (1 + 0.1 * k) for name, step in steps.items()}
    return lambda k: [step / (1 + 0.1 * k) for step in steps]


VARIANTS = {
    "default": lambda one: (None, {}),
    "kept aside": lambda one: (None, {"holdout": 0.4}),
    "step": lambda one: (ez.ForwardBackward(step=one.step), {"iterations": K}),
    "relaxed": lambda one: (ez.ForwardBackward(step=one.step, relaxation=0.8), {"iterations": K}),
    "scheduled": lambda one: (ez.ForwardBackward(step=lambda k: one.step / (1 + 0.1 * k)), {"iterations": K}),
    "step per block": lambda one: (ez.ForwardBackward(step=one.steps), {"iterations": K}),
    "schedule per block": lambda one: (ez.ForwardBackward(step=scheduled_blocks(one.steps)), {"iterations": K}),
    "forward-backward-forward": lambda one: (ez.ForwardBackwardForward(step=one.step), {"iterations": K}),
    "extragradient": lambda one: (ez.Extragradient(step=one.step), {"iterations": K}),
    "preconditioned": lambda one: (ez.PreconditionedForwardBackward(), {"iterations": K}),
    "preconditioned, step": lambda one: (ez.PreconditionedForwardBackward(step=one.step), {"iterations": K}),
}


def makes_sense(one, variant):
    if variant.startswith("preconditioned"):
        return one.blocks_shared
    return one.steps is not None if variant.endswith("per block") else True


@functools.lru_cache(maxsize=4)
def varied(name, variant):
    exhibit = GALLERY[name]
    method, options = VARIANTS[variant](exhibit)
    return quietly(
        lambda: ez.solve(
            exhibit.problem(), data_of(name), method or method_of(name), x0=exhibit.x0, throw=False, **options
        )
    )


RECORDS = [(name, variant) for name, one in GALLERY.items() for variant in VARIANTS if makes_sense(one, variant)]


@pytest.mark.some(58)
@pytest.mark.parametrize(("name", "variant"), RECORDS)
def test_every_honest_record_holds_up(name, variant):
    """Whatever was certified, refusals too, is found again from the record, the problem and the data."""
    solution = varied(name, variant)
    if isinstance(solution, str):
        pytest.skip(f"refused: {solution}")
    fallen = {}
    for title, kind in KINDS.items():
        if variant == "schedule per block" and title in OF_THE_RUN:
            continue
        found = ez.verify(ez.certify(solution, using=kind).to_json(), GALLERY[name].problem(), data_of(name))
        if not found:
            fallen[title] = str(found)
    assert fallen == {}


@pytest.mark.long
def test_the_gallery_is_certified():
    """So that the products above say something: most of the gallery has a finite ε by default."""
    finite = [name for name in GALLERY if math.isfinite(ez.certify(varied(name, "default")).epsilon)]
    assert len(finite) >= len(GALLERY) - 3, sorted(set(GALLERY) - set(finite))


@pytest.mark.long
def test_runs_are_not_all_refused():
    points = [varied(name, "step") for name in ("affine", "game", "aggregative")]
    assert all(np.isfinite(ravel_pytree(one.point)[0]).all() for one in points)
