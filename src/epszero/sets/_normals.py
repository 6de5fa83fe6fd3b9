"""`Normal`: what is shown of a point x and a vector z near the normal cone of a set at x.

⟨z′, y − x⟩ ≤ η for all y of the set, with z′ near the z that was asked about (certificates take z′ in its place), and
whether x itself is shown to lie in the set, up to a few units in the last place.
"""

from typing import NamedTuple

from epszero._types import FloatArray


class Normal(NamedTuple):
    """z′, η, and why that, or x ∈ C, is not shown but estimated; empty where it is shown."""

    z: FloatArray
    eta: float
    doubt: str = ""
