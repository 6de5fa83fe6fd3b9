"""What the tests of certificates share besides fixtures."""

import numpy as np

import epszero as ez

H = np.array([[1.4, 0.5, 0.0], [-0.3, 1.0, 0.2], [0.1, 0.0, 0.8]])
UNIT = ez.sets.Box(0.0, 1.0, dim=3)


def rows(s: int, seed: int) -> ez.Samples:
    """Skewed samples in the unit cube."""
    return ez.Samples(np.random.default_rng(seed).beta(0.7, 1.5, size=(s, 3)), support=UNIT)
