"""How many crates of four products to order every morning. A sample is a day's demand, in crates.

Ordering costs `price` a crate, and crates too many or too few cost ½ weight (order − demand)².
The shelf holds 80 crates. Used by docs/operators.md, as `examples/operator/stock.py:orders`.
"""

import jax.numpy as jnp
import numpy as np

import epszero as ez

PRICE = np.array([1.0, 1.5, 0.8, 2.0])  # € a crate
WEIGHT = np.array([0.4, 0.5, 0.3, 0.8])  # €/crate²
SHELF = 80.0  # crates


def cost(order, demand):
    """What a morning's order costs, on a day with this demand."""
    return PRICE @ order + 0.5 * jnp.sum(WEIGHT * (order - demand) ** 2)


orders = ez.Minimization(cost, ez.sets.BoxBudget(0.0, 60.0, at_most=SHELF, dim=4))
