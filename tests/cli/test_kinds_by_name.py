"""Every kind of certificate can be asked for by name, and several at once."""

import inspect

import pytest

import epszero as ez
from epszero.cli.kinds import CLASSES, NAMES, kind_of


def test_every_kind_has_a_name():
    rooms = ez.certificates
    kinds = {
        name
        for name, one in vars(rooms).items()
        if inspect.isclass(one) and issubclass(one, rooms.Kind) and one is not rooms.Kind
    }
    assert kinds == {
        *CLASSES.values(),
        "Dependent",
        "Tightest",
        "MarkovChain",
    }  # the last takes a label of every sample


@pytest.mark.parametrize("name", NAMES)
def test_every_name_makes_one(name):
    kind = kind_of(name, "2,0.5" if name == "dependent" else None)
    assert isinstance(kind, ez.certificates.Kind)
    assert type(kind).__name__ == CLASSES.get(name, type(kind).__name__)


def test_several_are_the_tightest_of_them():
    assert isinstance(kind_of("mean-deviation, Vector-Stability", None), ez.certificates.Tightest)
    assert kind_of(None, None) is None


@pytest.mark.parametrize(
    ("using", "beta", "said"),
    [
        ("magic", None, "--using: there is no kind 'magic' of certificate. There are: mean-deviation"),
        ("holdout", None, "Did you mean hold-out?"),
        ("hold-out,hold-out", None, "names hold-out more than once"),
        ("hold-out,", None, "there is no kind ''"),
        ("dependent", None, "--beta: is missing"),
        ("dependent", "2", "--beta: must be two numbers C,R"),
        ("dependent", "2,1", "--beta: must be two numbers C,R"),
        ("dependent", "-1,0.5", "--beta: must be two numbers C,R"),
        ("prequential", "2,0.5", "--beta: is a rate of mixing, and prequential knows of none"),
        (None, "2,0.5", "--beta: is given without --using dependent"),
    ],
)
def test_kinds_that_cannot_be(using, beta, said):
    with pytest.raises(ez.InputError) as caught:
        kind_of(using, beta)
    assert said in str(caught.value)
