"""Stating games: sizes, nesting, local functions, data of one's own; and the paper's Algorithm 3, agent by agent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import epszero as ez

pytestmark = pytest.mark.some(2)

RNG = np.random.default_rng(5)
CARS, HOURS = 3, 2
WEAR = RNG.uniform(1.0, 2.0, CARS)
FEE = RNG.normal(size=(CARS, HOURS))
PARAMETERS = {"wear": WEAR, "fee": FEE}
PRICES = [RNG.normal(size=(many, HOURS)) for many in (4, 7, 5)]  # one data set per car, of different lengths
OWN_SAMPLES = [ez.Samples(values) for values in PRICES]
TOGETHER = RNG.normal(size=(6, HOURS))
CAPS = np.array([[0.02], [0.05], [0.1]])
STACKED = ez.sets.Box(-CAPS, 1.0, dim=HOURS)
LISTED = [ez.sets.Box(-cap, 1.0, dim=HOURS) for cap in CAPS]


def cost(own, average, price, car):
    """Not affine in the price: its average needs every sample."""
    return car["wear"] * own @ own * (1 + price @ price) + (car["fee"] + price) @ own + 1.5 * average @ own


def cost_of(i):
    car = {"wear": WEAR[i], "fee": FEE[i]}
    return lambda x, price: cost(x[i], sum(x) / CARS, price, car)


def own_gradient(i, own, average, prices):
    """By hand, from what agent i knows: its parameters, its data, the average."""
    weight = WEAR[i] * (1 + np.mean(np.sum(prices**2, axis=1)))
    return 2 * weight * own + FEE[i] + prices.mean(axis=0) + 1.5 * average + 1.5 * own / CARS


def features(price):
    return {"square": price @ price, "price": price}


def affine_cost(own, average, seen, car):
    return car["wear"] * own @ own * (1 + seen["square"]) + (car["fee"] + seen["price"]) @ own + 1.5 * average @ own


AGGREGATIVE = ez.AggregativeGame(cost, PARAMETERS, STACKED)
GAME = ez.Game([cost_of(i) for i in range(CARS)], LISTED)


def equilibrium(prices):
    """By a fixed point in NumPy, run until nothing moves."""
    x = np.zeros((CARS, HOURS))
    for _ in range(2000):
        F = np.stack([own_gradient(i, x[i], x.mean(axis=0), prices[i]) for i in range(CARS)])
        x = STACKED.project(x - 0.05 * F)
    return x


# -- the paper's Algorithm 3 -------------------------------------------------------------------------------------------

SIZES = np.array([0.02, 0.05, 0.08])
STEPS = {
    "per agent": (SIZES, lambda k: SIZES),
    "scheduled": (lambda k: SIZES / jnp.sqrt(k + 1.0), lambda k: SIZES / np.sqrt(k + 1)),
}


def agent_wise(steps, K):
    """Each agent moves by its own gradient and its own set; all it learns of the others is the average."""
    x = [np.zeros(HOURS) for _ in range(CARS)]
    x = [part.project(own) for part, own in zip(LISTED, x, strict=True)]
    for k in range(K + 1):
        average = sum(x) / CARS
        x = [LISTED[i].project(x[i] - steps(k)[i] * own_gradient(i, x[i], average, PRICES[i])) for i in range(CARS)]
    return np.stack(x)


@pytest.mark.parametrize("steps", STEPS)
def test_agent_by_agent_listed_and_stacked_agree_iterate_for_iterate(steps):
    given, by_hand = STEPS[steps]
    nested = (lambda k: list(given(k))) if callable(given) else [float(step) for step in given]
    for K in (0, 1, 2, 12):
        expected = agent_wise(by_hand, K)
        start = np.zeros((CARS, HOURS))
        stacked = ez.solve(AGGREGATIVE, OWN_SAMPLES, ez.ForwardBackward(given), x0=start, iterations=K)
        listed = ez.solve(GAME, OWN_SAMPLES, ez.ForwardBackward(nested), x0=list(start), iterations=K)
        np.testing.assert_allclose(stacked.x, expected, atol=1e-13)
        np.testing.assert_allclose(np.stack(listed.x), expected, atol=1e-13)


def test_an_agents_gradient_needs_no_other_agents_cost():
    asked = []

    def counted(i):
        def f(x, price):
            asked.append(i)
            return cost_of(i)(x, price)

        return f

    game = ez.Game([counted(i) for i in range(CARS)], LISTED)
    with jax.enable_x64(True):
        for i in range(CARS):
            asked.clear()
            game.gradients[i](list(np.ones((CARS, HOURS))), PRICES[0][0])
            assert set(asked) == {i}


# -- whose data --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_data_set_for_each_agent_of_its_own_length():
    expected = equilibrium(PRICES)
    for game in (AGGREGATIVE, GAME):
        solution = ez.solve(game, OWN_SAMPLES)
        np.testing.assert_allclose(np.stack(list(solution.x)), expected, atol=1e-8)
        check = solution.check_equilibrium()
        assert check.largest < 1e-12
        assert (check.at_most >= check.saving - 1e-12).all()


@pytest.mark.long
def test_one_data_set_for_all():
    expected = equilibrium([TOGETHER] * CARS)
    for game in (AGGREGATIVE, GAME):
        np.testing.assert_allclose(np.stack(list(ez.solve(game, TOGETHER).x)), expected, atol=1e-8)


@pytest.mark.long
def test_declared_affine_in_features_is_the_same_game():
    affine = ez.AggregativeGame(ez.oracles.Affine(affine_cost, phi=features), PARAMETERS, STACKED)
    for samples in (OWN_SAMPLES, ez.Samples(TOGETHER)):
        plain, quick = ez.solve(AGGREGATIVE, samples, tol=1e-11), ez.solve(affine, samples, tol=1e-11)
        np.testing.assert_allclose(quick.x, plain.x, atol=1e-11)
        savings = [one.check_equilibrium().at_most for one in (plain, quick)]
        np.testing.assert_allclose(*savings, atol=1e-9)
    listed = [
        ez.oracles.Affine(
            lambda x, f, i=i: affine_cost(x[i], sum(x) / CARS, f, {"wear": WEAR[i], "fee": FEE[i]}), phi=features
        )
        for i in range(CARS)
    ]
    mixed = ez.Game([*listed[:2], cost_of(2)], LISTED)  # two declared, one not
    np.testing.assert_allclose(np.stack(ez.solve(mixed, OWN_SAMPLES).x), equilibrium(PRICES), atol=1e-8)


@pytest.mark.parametrize("affine", [False, True])
def test_private_rows_of_one_data_set(affine):
    rows = RNG.normal(size=(8, CARS, HOURS))
    stated = ez.oracles.Affine(affine_cost, phi=features) if affine else cost
    game = ez.AggregativeGame(stated, PARAMETERS, STACKED, private=True)
    solution = ez.solve(game, ez.Samples.from_arrays(rows))
    np.testing.assert_allclose(solution.x, equilibrium([rows[:, i] for i in range(CARS)]), atol=1e-8)
    assert solution.check_equilibrium().largest < 1e-12


@pytest.mark.long
def test_private_columns_of_one_data_set():
    """Agent i reads column i by itself."""
    columns = ez.Samples(np.arange(12.0).reshape(4, 3) / 10)
    game = ez.Game([lambda x, xi, i=i: jnp.sum((x[i] - xi[i]) ** 2) for i in range(3)], [ez.sets.Box(0, 9, dim=1)] * 3)
    np.testing.assert_allclose(np.concatenate(ez.solve(game, columns).x), columns.values.mean(axis=0), atol=1e-8)


# -- forms of strategies -----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_strategies_of_different_kinds_and_sizes():
    """A dictionary, a vector with an L1 term, a number and a matrix; F written by hand tells whether it is solved."""
    C = np.array([[1.0, 2.0], [2.0, -1.0]])
    costs = [
        lambda x: 0.5 * jnp.sum((x[0]["a"] - 1.0) ** 2) + jnp.sum(x[0]["b"][0] ** 2) + x[0]["a"].sum() * x[2],
        lambda x: jnp.sum((x[1] - jnp.array([1.0, 0.05, -1.0])) ** 2) + x[1].sum() * x[2],
        lambda x: (x[2] - 0.3) ** 2 - x[2] * (x[0]["a"].sum() + x[1].sum()),
        lambda x: 0.5 * jnp.sum((x[3] - C) ** 2) + x[2] * jnp.trace(x[3]),
    ]
    parts = [
        {"a": ez.sets.Box(0.0, 1.0, dim=2), "b": [ez.sets.Simplex(dim=3)]},
        ez.functions.L1(0.3),
        ez.sets.Box(-1, 1),
        ez.sets.PositiveSemidefinite(2),
    ]
    x0 = [{"a": [0, 0], "b": [[1, 0, 0]]}, [0.0, 0.0, 0.0], 0, np.eye(2)]
    solution = ez.solve(ez.Game(costs, parts), x0=x0)
    first, second, third, fourth = solution.x
    assert third.shape == ()
    np.testing.assert_allclose(first["a"], np.clip(1.0 - third, 0, 1), atol=1e-8)
    np.testing.assert_allclose(first["b"][0], 1 / 3, atol=1e-8)
    middle = np.array([1.0, 0.05, -1.0]) - third / 2
    np.testing.assert_allclose(second, np.sign(middle) * np.maximum(np.abs(middle) - 0.15, 0), atol=1e-8)
    np.testing.assert_allclose(third, np.clip(0.3 + (first["a"].sum() + second.sum()) / 2, -1, 1), atol=1e-8)
    values, vectors = np.linalg.eigh(C - third * np.eye(2))
    np.testing.assert_allclose(fourth, vectors @ np.diag(np.maximum(values, 0)) @ vectors.T, atol=1e-8)
    check = solution.check_equilibrium()
    assert check.largest < 1e-8
    assert [len(response) for response in check.responses] == [5, 3, 1, 4]
    assert solution.check().residual < 1e-8


@pytest.mark.long
def test_a_product_is_the_list_of_its_members():
    costs = [lambda x: jnp.sum((x[0] - 2) ** 2), lambda x: jnp.sum((x[1] + x[0].sum()) ** 2)]
    sets = [ez.sets.Box(0, 1, dim=2), ez.sets.Box(-3, 1, dim=1)]
    solution = ez.solve(ez.Game(costs, ez.sets.Product(sets)))
    np.testing.assert_allclose(np.concatenate(solution.x), [1, 1, -2], atol=1e-8)


@pytest.mark.long
def test_agents_alike_without_parameters():
    def cost(own, average):
        return own @ own + average @ own - own.sum()

    solution = ez.solve(ez.AggregativeGame(cost, None, ez.sets.Box(-1, 1, dim=2), agents=4))
    np.testing.assert_allclose(solution.x, np.full((4, 2), 1 / (2 + 1 + 1 / 4)), atol=1e-8)


@pytest.mark.long
def test_agents_alike_whose_strategies_have_parts():
    def cost(own, average, car):
        through = average["u"] @ own["u"] - own["u"].sum() + average["v"].sum()
        return car * own["u"] @ own["u"] + jnp.sum((own["v"] - 1.0) ** 2) + through

    sets = {"u": ez.sets.Box(-1, 1, dim=2), "v": ez.sets.Box(-1, 1, dim=1)}
    solution = ez.solve(ez.AggregativeGame(cost, np.array([1.0, 2.0]), sets))
    u = np.linalg.solve([[2 + 1.0, 0.5], [0.5, 4 + 1.0]], [1.0, 1.0])  # 2c u + ū + u/N = 1
    np.testing.assert_allclose(solution.x["u"], u[:, None] * np.ones((1, 2)), atol=1e-8)
    np.testing.assert_allclose(solution.x["v"], 1.0 - 1 / 4, atol=1e-8)  # the average's share 1/N counts
    assert solution.check_equilibrium().largest < 1e-12


def scalar_cost(own, average, car):
    return car * own**2 + average * own - own


def test_agents_alike_with_numbers_for_strategies_are_asked_for_vectors():
    game = ez.AggregativeGame(scalar_cost, np.array([1.0, 2.0]), ez.sets.Box(-1, 1))
    with pytest.raises(ez.InputError, match=r"^x0: must have one row per agent, 2 of them.*vector of length 1"):
        ez.solve(game, x0=np.zeros(2))


def test_a_set_for_numbers_is_every_agents_own():
    strategies = ez.sets.BoxBudget(0.0, 1.0, at_least=0.5)
    game = ez.AggregativeGame(lambda own, average, car: car * own**2, np.array([1.0, 2.0]), strategies)
    with pytest.raises(ez.InputError, match=r"^x0: must have one row per agent"):
        ez.solve(game, x0=np.zeros(2))


# -- gradients written by hand -----------------------------------------------------------------------------------------


def by_hand(own, average, price, car, share=1 / CARS):
    slope = 2 * car["wear"] * own * (1 + price @ price) + car["fee"] + price
    return slope + 1.5 * average + share * 1.5 * own


def listed_by_hand(wrong=0.0):
    def one(i):
        car = {"wear": WEAR[i], "fee": FEE[i]}
        return lambda x, price: by_hand(x[i], sum(x) / CARS, price, car) + (i == 1) * wrong

    return [one(i) for i in range(CARS)]


@pytest.mark.long
def test_a_right_gradient_is_taken():
    expected = equilibrium([TOGETHER] * CARS)
    parts = listed_by_hand()
    stacked = ez.AggregativeGame(cost, PARAMETERS, STACKED, pseudogradient=by_hand)
    for game in (
        ez.Game(GAME.costs, LISTED, pseudogradient=parts),
        ez.Game(GAME.costs, LISTED, pseudogradient=lambda x, price: [part(x, price) for part in parts]),
        stacked,
    ):
        np.testing.assert_allclose(np.stack(list(ez.solve(game, TOGETHER).x)), expected, atol=1e-8)


def test_a_wrong_gradient_is_refused():
    wrong = ez.Game(GAME.costs, LISTED, pseudogradient=listed_by_hand(wrong=1e-3))
    with pytest.raises(ez.InputError, match=r"^pseudogradient: differs .*agent 1 by 0\.0014.*leave it out"):
        ez.solve(wrong, TOGETHER)
    shareless = ez.AggregativeGame(
        cost,
        PARAMETERS,
        STACKED,
        pseudogradient=lambda own, average, price, car: by_hand(own, average, price, car, 0.0),
    )
    with pytest.raises(ez.InputError, match="^pseudogradient: differs from the derivative of the cost of agent 0"):
        ez.solve(shareless, TOGETHER)
    with pytest.raises(ez.InputError, match="^pseudogradient: must take the arguments of the cost"):
        ez.AggregativeGame(cost, PARAMETERS, STACKED, pseudogradient=lambda own, average, car: own)


@pytest.mark.parametrize(
    "given",
    [
        listed_by_hand()[:2],
        lambda x, price: tuple(part(x, price) for part in listed_by_hand()),
        lambda x, price: [jnp.zeros(5), *(part(x, price) for part in listed_by_hand()[1:])],
        lambda x: [own * 0.0 for own in x],
    ],
    ids=["too few", "a tuple", "a wrong shape", "without the sample"],
)
def test_a_gradient_of_the_wrong_form_is_refused_by_name(given):
    with pytest.raises(ez.InputError, match="^pseudogradient: "):
        ez.solve(ez.Game(GAME.costs, LISTED, pseudogradient=given), TOGETHER)


# -- shared constraints in all forms -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [pytest.param(False, marks=pytest.mark.long), True])
def test_every_form_of_the_same_shared_constraints_is_the_same(sparse):
    rng = np.random.default_rng(9)
    G = rng.normal(size=(2, 12))
    if sparse:  # so few that they are kept as a list
        G *= np.isin(np.arange(24).reshape(2, 12), (0, 5, 13, 20))
    b = G @ np.full(12, 0.4)
    blocks = [G[:, :2], G[:, 2:]]
    forms = [
        (G, b),
        (sp.csc_matrix(G), b),
        (blocks, b),
        ([sp.coo_matrix(block) for block in blocks], list(b)),
        [(G[:1], b[:1]), (sp.coo_matrix(G[1:]), b[1])],
        ez.AffineConstraint(G, b),
        (lambda x: sum(block @ own for block, own in zip(blocks, x, strict=True)), b),
    ]
    costs = [lambda x: jnp.sum((x[0] - 1) ** 2) + x[0].sum() * x[1].sum(), lambda x: jnp.sum((x[1] + x[0].sum()) ** 2)]
    games = [ez.Game(costs, [ez.sets.Box(-1, 1, dim=2), ez.sets.Box(-1, 1, dim=10)], form) for form in forms]
    x, multipliers = [rng.normal(size=2), rng.normal(size=10)], rng.uniform(size=2)
    for game in games:
        with jax.enable_x64(True):
            np.testing.assert_allclose(game.coupling.value(x), G @ np.concatenate(x) - b, atol=1e-14)
            pulled = np.concatenate(game.coupling.pull(x, multipliers))
        np.testing.assert_allclose(pulled, G.T @ multipliers, atol=1e-14)
    method = ez.ForwardBackwardForward()  # named, as the game is not monotone
    matrix, function = (ez.solve(game, None, method, iterations=30) for game in (games[0], games[-1]))
    assert matrix.multipliers.max() > 0.01
    np.testing.assert_allclose(np.concatenate(matrix.x), np.concatenate(function.x), atol=1e-12)
    np.testing.assert_allclose(matrix.multipliers, function.multipliers, atol=1e-11)
