"""What a user gives as A is monotone on the user's word, never on the library's, and refused where points deny it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from budget import budget
from hypothesis import given
from hypothesis import strategies as st

import epszero as ez
from epszero.problems.refuted import contradiction

N = 2
POINTS = np.array([[1.0, 0.0], [-0.5, 0.8], [-0.4, -1.0]])


class Given:
    """An operator known through a function of v and step."""

    def __init__(self, resolvent):
        self.resolvent = resolvent


def minus(c):
    return Given(lambda v, step: v / (1 - c * step))


def turned(angle, length):
    """A = length·(rotation by `angle`), monotone for |angle| ≤ 90°."""
    M = length * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return Given(lambda v, step: jnp.linalg.solve(jnp.eye(N) + step * M, v))


def hard(weight):
    """The prox of weight·(how many entries are not 0)."""
    return Given(lambda v, step: jnp.where(v**2 > 2 * weight * step, v, 0.0))


def pushed(weight):
    """The prox of −weight·|x|₁."""
    return Given(lambda v, step: v + step * weight * jnp.where(v >= 0, 1.0, -1.0))


def rooted(weight):
    """The prox of weight·Σ√|x_i|, by looking at a fine grid beside 0."""

    def resolvent(v, step):
        share = jnp.linspace(0.0, 1.0, 2001)
        x = share[:, None] * v
        costs = weight * jnp.sqrt(jnp.abs(x)) + (x - v) ** 2 / (2 * step)
        return jnp.take_along_axis(x, jnp.argmin(costs, axis=0)[None], axis=0)[0]

    return Given(resolvent)


def on_sphere(radius):
    return Given(lambda v, step: radius * v / jnp.maximum(jnp.linalg.norm(v), 1e-300))


def among(scale):
    return Given(lambda v, step: scale * jnp.asarray(POINTS)[jnp.argmin(jnp.sum((v - scale * POINTS) ** 2, axis=1))])


def one_step_for_all(c):
    """v/(1 + c) whatever the step."""
    return Given(lambda v, step: v / (1 + c))


def squared_steps(c):
    return Given(lambda v, step: v / (1 + c * step**2))


sizes = st.floats(0.2, 5.0)
MAKERS = {  # so that one of each is convicted whatever the search draws
    "minus": lambda: minus(0.9),
    "turned": lambda: turned(1.7, 1.0),
    "hard": lambda: hard(1.0),
    "pushed": lambda: pushed(1.0),
    "rooted": lambda: rooted(1.0),
    "sphere": lambda: on_sphere(1.0),
    "among": lambda: among(1.0),
    "one step": lambda: one_step_for_all(1.0),
    "squared": lambda: squared_steps(1.0),
}
LIARS = st.one_of(
    sizes.map(minus),
    st.builds(turned, st.floats(1.65, 3.1), sizes),
    sizes.map(hard),
    sizes.map(pushed),
    sizes.map(rooted),
    sizes.map(on_sphere),
    sizes.map(among),
    sizes.map(one_step_for_all),
    sizes.map(squared_steps),
)
HONEST = st.one_of(
    st.builds(turned, st.floats(-1.57, 1.57), sizes),
    sizes.map(lambda c: Given(lambda v, step: v / (1 + c * step))),
    sizes.map(lambda w: Given(lambda v, step: jnp.sign(v) * jnp.maximum(jnp.abs(v) - w * step, 0.0))),
    sizes.map(lambda r: Given(lambda v, step: jnp.clip(v, -r, 0.5))),
    sizes.map(lambda r: Given(lambda v, step: v * jnp.minimum(1.0, r / jnp.maximum(jnp.linalg.norm(v), 1e-300)))),
)
places = st.tuples(st.floats(-3, 3), st.floats(-3, 3)).map(np.array)


def found_in(part, x, z, subdifferential=False):
    problem = ez.Inclusion(part, lambda x: x)
    with jax.enable_x64(True):
        return contradiction(problem.A, x, z, subdifferential)


@pytest.mark.long
@budget(10)
@given(LIARS, places, places)
def test_liars_are_convicted(liar, x, z):
    assert found_in(liar, x, z)


@pytest.mark.parametrize("name", MAKERS)
def test_one_of_each(name):
    assert found_in(MAKERS[name](), np.array([0.4, -0.2]), np.array([0.1, 0.3]))


@pytest.mark.long
@budget(8)
@given(HONEST, places, places)
def test_the_honest_are_not_and_yet_lean_on_the_user(honest, x, z):
    assert found_in(honest, x, z) == ""
    assert ez.Inclusion([honest, ez.sets.Box(0.0, 1.0, dim=1)], lambda x: x).A.unvouched


def test_a_rotation_is_no_subdifferential():
    x = np.array([1.0, -0.3])
    assert found_in(turned(1.5, 1.0), x, x) == ""
    assert "no subdifferential" in found_in(turned(1.5, 1.0), x, x, subdifferential=True)
    assert found_in(Given(lambda v, step: v / (1 + step)), x, x, subdifferential=True) == ""


# -- sets and functions of the user's own -----------------------------------------------------------------------------


class Honest(ez.sets.Set):
    """The disc |x − centre| ≤ 1."""

    formula = True
    per_entry = ("centre",)

    def __init__(self, centre=(0.0, 0.0)):
        self.centre = np.array(centre)

    def _project(self, v):
        away = v - self.centre
        return self.centre + away / jnp.maximum(1.0, jnp.linalg.norm(away, axis=-1, keepdims=True))

    def _support(self, direction):
        return jnp.sum(direction * self.centre, axis=-1) + jnp.linalg.norm(direction, axis=-1)

    def _diameter(self):
        return jnp.asarray(2.0)


class Sphere(Honest):
    def _project(self, v):
        return v / jnp.linalg.norm(v, axis=-1, keepdims=True)


class Narrow(Honest):
    def _diameter(self):
        return jnp.asarray(0.5)


class Short(Honest):
    def _support(self, direction):
        return 0.5 * jnp.linalg.norm(direction, axis=-1)


class Radial(Honest):
    """A box, but its projection goes towards the centre."""

    def _project(self, v):
        return v / jnp.maximum(1.0, jnp.max(jnp.abs(v), axis=-1, keepdims=True))

    def _support(self, direction):
        return jnp.sum(jnp.abs(direction), axis=-1)


class Restless(Honest):
    def _project(self, v):
        return 0.5 * super()._project(v)


class Bent(ez.functions.Function):
    """−|x|, with the prox of that."""

    def _value(self, x):
        return -jnp.sum(jnp.abs(x), axis=-1)

    def _prox(self, v, step):
        return v + step * jnp.where(v >= 0, 1.0, -1.0)

    def _conjugate(self, y):
        return jnp.zeros(y.shape[:-1])


class Square(ez.functions.Function):
    """|x|²/2."""

    formula = True
    factor = 1.0
    share = 1.0

    def _value(self, x):
        return self.factor * 0.5 * jnp.sum(x**2, axis=-1)

    def _prox(self, v, step):
        return v / (1 + step)

    def _conjugate(self, y):
        return self.share * 0.5 * jnp.sum(y**2, axis=-1)


class OtherValue(Square):
    factor = 3.0


class OtherConjugate(Square):
    share = 0.3


LYING_PARTS = [Sphere(), Narrow(), Short(), Radial(), Restless(), Bent(), OtherValue(), OtherConjugate()]
OWN = Honest()
HOLDING = [
    OWN,
    ez.sets.Translated(ez.sets.Scaled(OWN, -2.0), [1.0, 0.0]),
    ez.sets.Intersection(OWN, ez.sets.Box(-0.5, 0.5, dim=N)),
    ez.functions.Indicator(ez.sets.Translated(OWN, 1.0)),
    ez.functions.Tilted(ez.functions.Precomposed(ez.functions.Scaled(Square(), 2.0), -1.0), 0.5),
    ez.functions.Conjugate(ez.functions.Translated(Square(), 0.3)),
    ez.functions.OnBlock(Square(), [1]),
    ez.sets.Product([OWN, ez.sets.Ball(dim=N)]),
    ez.functions.SeparableSum([ez.functions.L1(), ez.functions.OnBlock(ez.functions.Indicator(OWN), [0, 1])]),
]


@pytest.mark.parametrize("part", LYING_PARTS, ids=lambda part: type(part).__name__)
def test_sets_and_functions_that_contradict_themselves(part):
    assert found_in(part, np.array([0.3, 0.4]), np.array([0.1, -0.2]))


@pytest.mark.parametrize("part", [OWN, Square(), HOLDING[1], HOLDING[4]], ids=lambda part: type(part).__name__)
def test_those_that_do_not_are_not_convicted(part):
    assert found_in(part, np.array([0.3, 0.4]), np.array([0.1, -0.2])) == ""


@pytest.mark.parametrize("part", HOLDING, ids=lambda part: type(part).__name__)
def test_whatever_holds_a_part_of_the_users_leans_on_the_user(part):
    assert ez.Inclusion(part, lambda x: x).A.unvouched
    assert ez.Inclusion({"a": ez.sets.Ball(), "b": [part]}, lambda x: x).A.unvouched


def test_the_library_vouches_for_itself():
    parts = [ez.sets.Box(0, 1), ez.functions.Scaled(ez.functions.Indicator(ez.sets.Ball()), 2.0), ez.sets.Simplex()]
    assert not ez.Inclusion(parts, lambda x: x).A.unvouched


class Renamed(ez.sets.Ball):
    """A subclass that says nothing of its own."""


def test_a_subclass_does_not_inherit_the_word_of_the_library():
    assert not Renamed(dim=N).exact
    assert Renamed(dim=N).foreign
    assert not ez.sets.Scaled(Renamed(dim=N), 2.0).exact
    assert Honest().exact
    assert not Sphere().exact


# -- certificates -----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_minus_the_identity_was_guaranteed():
    problem = ez.Inclusion(minus(0.9), lambda x: x - 1.0)
    solution = ez.solve(problem, x0=np.zeros(N), method=ez.ForwardBackward(step=0.5), throw=False)
    found = ez.certify(solution)
    assert found.verdict == "refused"
    assert "A is not monotone" in found.reason
    assert any("A is not monotone" in note for note in solution.notes)
    with pytest.raises(ez.InputError, match="A is not monotone, or not what it says: two points"):
        ez.solve(problem, x0=np.zeros(N))


def test_an_honest_resolvent_is_conditional():
    problem = ez.Inclusion(Given(lambda v, step: v / (1 + step)), lambda x: x - 1.0)
    found = ez.certify(ez.solve(problem, x0=np.zeros(N)))
    assert found.verdict == "conditional"
    assert any(leaning.what == "A monotone" for leaning in found.leans_on)


@pytest.mark.long
def test_a_set_of_the_users_is_conditional_or_less():
    found = ez.certify(ez.solve(ez.Inclusion(OWN, lambda x: x - 3.0)))
    assert found.verdict == "conditional"
    assert ez.certify(ez.solve(ez.Inclusion(Renamed(dim=N), lambda x: x - 3.0))).verdict == "heuristic"


def test_a_rough_resolvent_is_no_more_than_estimated():
    rough = Given(lambda v, step: jnp.round(v / (1 + step), 8))
    found = ez.certify(ez.solve(ez.Inclusion(rough, lambda x: x - 1 / 3), x0=np.zeros(N), throw=False))
    assert found.verdict in ("heuristic", "refused")
    assert found.verdict == "refused" or any("good to" in leaning.evidence for leaning in found.leans_on)


def test_a_point_off_the_graph_is_certified_where_its_neighbour_is():
    problem = ez.Inclusion(Given(lambda v, step: jnp.clip(v, 0.0, 1.0)), lambda x: 1e-3 * (x - 1.0))
    x = np.array([1 - 1e-5, 1 - 1e-5])  # here A is 0, not 1e-3·(1 − x), though that plus B is 0
    solution = dataclasses.replace(ez.solve(problem, x0=np.zeros(N)), point=x, element=1e-3 * (1 - x))
    found = ez.certify(solution)
    assert found.verdict == "conditional"
    assert found.distance >= np.linalg.norm(x - 1)


@pytest.mark.parametrize("P", [np.diag([1.0, -1e-11]), np.diag([1.0, -1.0])])
def test_a_quadratic_that_is_not_convex_is_refused(P):
    with pytest.raises(ez.InputError, match="positive semidefinite"):
        ez.functions.Quadratic(P)
