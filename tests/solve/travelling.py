"""Problems of module-level functions, for pickles that are read in another process, and the numbers that must agree."""

import functools

import jax.numpy as jnp
import numpy as np

import epszero as ez

PRICES = np.random.default_rng(0).uniform(0.02, 0.25, size=(300, 3))
BOX = ez.sets.Box(0.0, 1.0, dim=3)


def car_cost(x, mean_x, price, car):
    return car["wear"] * x @ x + price @ x + 0.1 * jnp.sum((mean_x - 1.0) ** 2)


def first(x, xi):
    return jnp.sum(x[0] ** 2) + x[0] @ x[1] - xi @ x[0]


def second(x, xi):
    return jnp.sum(x[1] ** 2) - x[0] @ x[1] + xi @ x[1]


def loss(x, xi):
    return 0.5 * jnp.sum(x**2) - xi @ x


def logistic(x, xi):
    return jnp.log1p(jnp.exp(-(xi @ x))) + 0.1 * jnp.sum(x**2)


def doubled(x):
    return 2 * x


def negative(xi):
    return -xi


def total(x):
    return x.sum(axis=0)


@functools.cache
def problems():
    cars = {"wear": np.array([0.1, 1 / 3, 0.2, 0.7])}  # a third is not a float32
    schedules = ez.sets.BoxBudget(0.0, 2.0, at_least=1.0, dim=3)
    roads = [("s", "a", 0, 10), ("s", "b", 50, 1), ("a", "t", 50, 1), ("b", "t", 0, 10), ("a", "b", 10, 1)]
    return {
        "aggregative": ez.AggregativeGame(car_cost, cars, schedules),
        "capacity": ez.AggregativeGame(
            ez.oracles.Affine(car_cost), cars, schedules, shared=ez.AffineConstraint(total, 1.4)
        ),
        "game": ez.Game([first, second], [BOX, BOX]),
        "shared": ez.Game([first, second], [BOX, BOX], shared=(np.ones((1, 6)), np.array([1 / 3]))),
        "minimisation": ez.Minimization(loss, BOX, ez.declare(mu=0.9)),
        "logistic": ez.Minimization(logistic, BOX),
        "additive": ez.VariationalInequality(ez.oracles.Additive(doubled, negative), over=BOX),
        "charging": ez.models.ev_charging(vehicles=3, hours=3, need=(1.0, 2.0)),
        "cournot": ez.models.cournot(firms=2, markets=3),
        "routing": ez.models.routing(roads, trips=[("s", "t", 6)]),
        "zero-sum": ez.models.zero_sum([[0, 1, -1], [-1, 0, 2], [1, -2, 0]]),
    }


def data(problem):
    return ez.Samples(PRICES, support=ez.sets.Box(0.0, 0.3), columns=list("abc")) if problem.oracle.uncertain else None


def numbers(solution, certificate):
    """All that a certificate says, and its bands, as bytes."""
    found = [certificate.epsilon, certificate.distance, certificate.total_exploitability, certificate.cost_gap]
    if not certificate.without_intervals:
        band = certificate.intervals
        found += [np.asarray(side).tolist() for side in (band.lower, band.upper) if not isinstance(side, list)]
    return repr((found, certificate.verdict, certificate.leans_on, solution.check()))
