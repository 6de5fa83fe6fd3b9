"""An answer is a function of its arguments: what was asked before, of the same objects, does not change it.

A state machine asks one problem after another, with several data sets, supports and starting points, whatever order
Hypothesis comes up with. Every answer is compared with that of objects built for this one question.
"""

import functools
import itertools
import json
from typing import Any

import pytest
from answers import difference, of_certificate, of_solution, of_verification, quietly
from house_problems import ASKED
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import epszero as ez
from epszero.certificates import simulated

SIZE = 1000  # samples that a plan is asked about
PLACES = [(name, data, start) for name, asked in ASKED.items() for data in asked.data for start in asked.starts]


@pytest.fixture(autouse=True, scope="module")
def _plans_by_one_world():
    """Of a plan only that it is the same is looked at: one drawn world will do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated, "WORLDS", 1)
        yield


class House:
    """One object of each kind, asked again and again; or, where nothing was asked yet, fresh ones."""

    def __init__(self) -> None:
        self.problem = functools.cache(lambda name: ASKED[name].problem())
        self.samples = functools.cache(lambda name, data: ASKED[name].data[data]())

    def solved(self, name: str, data: str, start: str) -> ez.Solution:
        asked = ASKED[name]
        return ez.solve(self.problem(name), self.samples(name, data), asked.method(), x0=asked.starts[start])

    def solved_many(self, name: str, start: str) -> list[ez.Solution]:
        asked = ASKED[name]
        many = [self.samples(name, data) for data in asked.data]
        return list(ez.solve_many(self.problem(name), many, asked.method(), x0=asked.starts[start]))

    def answer(self, question: str, name: str, data: str, start: str) -> Any:
        """To any question, in comparable form."""
        return quietly(lambda: getattr(self, question)(name, data, start))

    def solve(self, name: str, data: str, start: str) -> Any:
        return of_solution(self.solved(name, data, start))

    def solve_many(self, name: str, data: str, start: str) -> Any:
        del data
        return [of_solution(one) for one in self.solved_many(name, start)]

    def certify(self, name: str, data: str, start: str) -> Any:
        return of_certificate(ez.certify(self.solved(name, data, start)))

    def certify_many(self, name: str, data: str, start: str) -> Any:
        del data
        return [of_certificate(one) for one in ez.certify_many(self.solved_many(name, start))]

    def plan(self, name: str, data: str, start: str) -> Any:
        del start
        return str(ez.plan(self.problem(name), size=SIZE, of=ASKED[name].of, samples=self.samples(name, data)))

    def audit(self, name: str, data: str, start: str) -> Any:
        asked = ASKED[name]
        given = self.problem(name), self.samples(name, data)
        return json.loads(ez.audit(*given, method=asked.method(), x0=asked.starts[start]).to_json())

    def verify(self, name: str, data: str, start: str) -> Any:
        return of_verification(ez.verify(honest(name, data, start), self.problem(name), self.samples(name, data)))


QUESTIONS = ("solve", "solve_many", "certify", "certify_many", "plan", "audit", "verify")


@functools.cache
def honest(name: str, data: str, start: str) -> str:
    """The record that fresh objects give."""
    return quietly(lambda: ez.certify(House().solved(name, data, start)).to_json())


@functools.cache
def fresh(question: str, name: str, data: str, start: str) -> Any:
    """The answer of objects that were never asked before."""
    return House().answer(question, name, data, start)


class History(RuleBasedStateMachine):
    """All questions about one problem or two, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.house = House()
        self.places = PLACES

    @initialize(names=st.lists(st.sampled_from(sorted(ASKED)), min_size=1, max_size=2, unique=True))
    def choose(self, names: list[str]) -> None:
        self.places = [place for place in PLACES if place[0] in names]

    @rule(question=st.sampled_from(QUESTIONS), which=st.integers(0, 7))
    def ask(self, question: str, which: int) -> None:
        place = self.places[which % len(self.places)]
        found = self.house.answer(question, *place)
        said = difference(found, fresh(question, *place), f"{question} {place}")
        assert not said, "\n".join(said)


NO_SHRINKING = (Phase.explicit, Phase.generate)  # it takes minutes; the long tests name the pair of questions


class TestHistory(History.TestCase):
    settings = settings(max_examples=3, stateful_step_count=10, phases=NO_SHRINKING)


@pytest.mark.long
class TestLongHistory(History.TestCase):
    settings = settings(max_examples=15, stateful_step_count=30, phases=NO_SHRINKING)


@pytest.mark.some(3)
@pytest.mark.parametrize("name", ASKED)
def test_fresh_objects_agree_with_each_other(name):
    """What this file compares with must be no matter of chance or of the clock."""
    data, start = next(iter(ASKED[name].data)), next(iter(ASKED[name].starts))
    for question in ("solve", "certify"):
        assert not difference(House().answer(question, name, data, start), fresh(question, name, data, start))


@pytest.mark.long
@pytest.mark.parametrize("second", QUESTIONS)
@pytest.mark.parametrize("name", ASKED)
def test_every_question_after_every_other(name, second):
    """`first` is asked at one place, then `second` at another, of the same objects."""
    mine = [place for place in PLACES if place[0] == name]
    for first, (here, there) in itertools.product(QUESTIONS, zip(mine[1:] + mine[:1], mine, strict=True)):
        house = House()
        house.answer(first, *here)
        said = difference(house.answer(second, *there), fresh(second, *there), f"{second} {there} after {first} {here}")
        assert not said, "\n".join(said)


@pytest.mark.long
def test_a_verification_of_an_honest_record_holds():
    for place in PLACES:
        assert fresh("verify", *place) == {"agrees": True, "differences": ()}, place
