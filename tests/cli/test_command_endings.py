"""Errors of the library in the words of the command line: by their fields, not by their sentences."""

import copy
import pickle

import pytest

import epszero as ez
from epszero.cli.endings import as_options


@pytest.mark.parametrize(
    ("argument", "remedy", "said"),
    [
        ("path", "Mend it", "--samples: is wrong. Mend it."),
        ("values[3]", "Mend it", "--samples: is wrong. Mend it."),
        ("n", "Pass 3", "--draws: is wrong. Pass 3."),
        ("cost", "Return a number", "cost: is wrong. Return a number."),
        ("cost[2]", "Return a number", "cost[2]: is wrong. Return a number."),
        ("--dim", "Leave it out", "--dim: is wrong. Leave it out."),
        ("path", 'Fill it in, or pass missing="drop"', "--samples: is wrong. Fill it in, or pass --drop-missing."),
        ("path", "Choose columns=['a', 'b']", "--samples: is wrong. Choose --columns a,b."),
        ("path", "Pass names=['a']", "--samples: is wrong. Pass names=['a']."),
        ("columns", "Did you mean 'a'?", "--columns: is wrong. Did you mean 'a'?"),
    ],
)
def test_arguments_become_options(argument, remedy, said):
    assert as_options(ez.InputError.about(argument, "is wrong", remedy)) == said


def test_a_sentence_that_only_looks_like_an_argument_stays_as_it_is():
    assert as_options(ez.InputError("path: the way is long")) == "path: the way is long"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_the_fields_survive_copies(again):
    error = again(ez.InputError.about("x0", "must be finite.", "Pass numbers."))
    assert (error.argument, error.rule, error.remedy) == ("x0", "must be finite", "Pass numbers")
    assert str(error) == "x0: must be finite. Pass numbers."
    bare = again(ez.InputError("It cannot be."))
    assert (str(bare), bare.argument, bare.rule, bare.remedy) == ("It cannot be.", None, None, None)


def test_refusals_of_the_library_have_fields():
    with pytest.raises(ez.InputError) as caught:
        ez.sets.Box([0.0, float("nan")], 1.0)
    assert caught.value.argument == "lower[1]"
    with pytest.raises(ez.InputError) as caught:
        ez.sets.Box(0.0, 1.0, dims=2)
    assert caught.value.argument == "dims"
    assert "Did you mean 'dim'?" in caught.value.remedy
