"""A model in a file of its own: when do ten vehicles charge? A sample is a day's prices in €/MWh.

    epszero audit   examples/charging_game.py:game --samples examples/prices_nl_2024.csv --columns $HOURS
    epszero certify examples/charging_game.py:game --samples examples/prices_nl_2024.csv --columns $HOURS \
        --support=-500,4000 --draws 3000 --report report.html

with HOURS=h00,h01,h02,h03,h04,h05,h06.
"""

import jax.numpy as jnp
import numpy as np

import epszero as ez

cars = {"wear": np.linspace(0.002, 0.008, 10), "need": np.linspace(6.0, 12.0, 10)}  # €/kWh², kWh


def cost(x, mean_x, price, car):
    """What one car pays: wear of its battery, energy, and its part in the average demand."""
    return car["wear"] * x @ x + price @ x / 1000 + jnp.sum((mean_x - 1.0) ** 2)


game = ez.AggregativeGame(cost, cars, ez.sets.BoxBudget(0.0, 2.5, at_least=cars["need"], dim=7))
