"""Pickles: solutions, problems, certificates and samples, read in a fresh process, say the same to the last bit."""

import functools
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle
import jax.numpy as jnp
import numpy as np
import pytest
import travelling

import epszero as ez

AGAIN = """
import pickle, sys
from pathlib import Path
import epszero as ez
import travelling
kept = pickle.loads(Path(sys.argv[1]).read_bytes())
told = {}
for name, (solution, certificate) in kept.items():
    anew = ez.certify(solution)
    told[name] = travelling.numbers(solution, anew), travelling.numbers(certificate.solution, certificate)
Path(sys.argv[2]).write_bytes(pickle.dumps(told))
"""


FEW = ("aggregative", "charging")


def certified_by_name(names):
    def one(problem):
        solution = ez.solve(problem, travelling.data(problem))
        return solution, ez.certify(solution)

    return {name: one(travelling.problems()[name]) for name in names}


@pytest.fixture(scope="module")
def certified():
    return certified_by_name(FEW)


def check_elsewhere(certified, folder):
    (folder / "kept").write_bytes(pickle.dumps(certified))
    command = [sys.executable, "-c", AGAIN, folder / "kept", folder / "told"]
    subprocess.run(command, check=True, cwd=Path(__file__).parent)
    told = pickle.loads((folder / "told").read_bytes())
    assert told.keys() == certified.keys()
    for name, (solution, certificate) in certified.items():
        expected = travelling.numbers(solution, certificate)
        assert told[name] == (expected, expected), name


@pytest.mark.long
@pytest.mark.slow
def test_another_process_certifies_to_the_same_bits(certified, tmp_path):
    check_elsewhere(certified, tmp_path)


@pytest.mark.long
def test_another_process_certifies_every_kind_to_the_same_bits(tmp_path):
    check_elsewhere(certified_by_name(set(travelling.problems()) - set(FEW)), tmp_path)


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
def test_arrays_come_back_in_full_and_read_only(certified, dumps):
    solution, _ = pickle.loads(dumps(certified["aggregative"]))
    problem, own = solution.problem, certified["aggregative"][0].problem
    assert problem.oracle.parameters["wear"].dtype == jnp.float64
    np.testing.assert_array_equal(problem.oracle.parameters["wear"], own.oracle.parameters["wear"])
    with pytest.raises(ValueError, match="read-only"):
        problem.parameters["wear"][0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        solution.samples.values[0, 0] = 1.0
    with pytest.raises(AttributeError, match="immutable"):
        problem.cost = None
    assert solution.samples.names == ("a", "b", "c")
    assert solution.samples.overlaps(certified["aggregative"][0].samples)


def test_cloudpickle_takes_functions_inside_functions(certified):
    weight = np.array([1 / 3, 0.5, 0.7])
    problem = ez.Minimization(lambda x, xi: jnp.sum(weight * x**2) - xi @ x, travelling.BOX)
    solution = ez.solve(problem, travelling.data(problem))
    again = pickle.loads(cloudpickle.dumps(solution))
    assert again.check() == solution.check()
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(solution)


def test_methods_and_declared_things_travel():
    problem = travelling.problems()["minimisation"]
    solution = ez.solve(problem, travelling.data(problem), ez.ForwardBackward(1 / 3, relaxation=0.9), iterations=7)
    again = pickle.loads(pickle.dumps(solution))
    assert again.method.description == solution.method.description
    assert again.problem.declared.mu == 0.9
    kind = ez.certificates.VectorStability()
    assert str(ez.certify(again, using=kind)) == str(ez.certify(solution, using=kind))


def test_models_draw_after_the_journey(certified):
    solution, certificate = pickle.loads(pickle.dumps(certified["charging"]))
    assert len(solution.problem.plot(solution, certificate=certificate).axes) == 3


def test_one_function_per_setting_after_the_journey():
    cost = travelling.problems()["charging"].cost.function
    assert pickle.loads(pickle.dumps(cost)) is cost
    assert functools.partial(cost).func is cost
