"""How long does an audit take, and what does structure that was found by tracing save?

Times are of a second call, on the charging game (14 hours) with 3000 samples; "against the limit" divides by the time
that a user was promised. A plain cost is one that nobody declared affine in the sample; the peer is the same game with
a cost whose structure cannot be seen, so that every iteration passes over all samples.
"""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

import epszero as ez
from benchmarks._measure import Row, best_of

AGENTS, HOURS, SAMPLES, ITERATIONS = 20, 14, 3000, 200


def prices() -> ez.Samples:
    """Uniform ones: the audit's time does not depend on the law."""
    values = np.random.default_rng(0).uniform(0.0, 0.3, size=(SAMPLES, HOURS))
    return ez.Samples(values, support=ez.sets.Box(0.0, 0.3, dim=HOURS))


def rows() -> Iterator[Row]:
    """The audit against its limits, then a solve with structure found against one without."""
    data = prices()
    for vehicles, limit in ((20, 1.0), (100_000, 10.0)):
        game = ez.models.ev_charging(vehicles=vehicles, seed=0)
        ez.audit(game, data)
        seconds = best_of(3, lambda game=game: ez.audit(game, data))
        yield Row(
            f"audit, {vehicles} vehicles, against the limit", seconds, limit, seconds / limit, "≤ 1", seconds <= limit
        )
    cars = np.linspace(0.002, 0.008, AGENTS)
    strategies = ez.sets.BoxBudget(0.0, 2.5, at_least=12.0, dim=HOURS)

    def plain(x, mean_x, price, wear):
        return wear * x @ x + price @ x + jnp.sum((mean_x - 1.0) ** 2)

    def hidden(x, mean_x, price, wear):  # the same values; a branch on x hides that it is affine in the price
        return plain(x, mean_x, jnp.where(jnp.sum(x) > -1.0, price, 0.0), wear)

    method = ez.ForwardBackward(step=10.0)
    games = [ez.AggregativeGame(cost, cars, strategies) for cost in (plain, hidden)]
    found, unseen = (
        best_of(3, lambda game=game: ez.solve(game, data, method, iterations=ITERATIONS)) for game in games
    )
    yield Row("solve: structure hidden, against found", found, unseen, unseen / found, "≥ 10", unseen >= 10 * found)
