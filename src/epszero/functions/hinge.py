"""f(x) = Σ weight_i·max(0, margin_i − x_i).

Prox: v moved up by step·weight, but not across the margin; O(n). Conjugate: Σ margin_i·y_i where −weight_i ≤ y_i ≤ 0.
Both parameters: numbers or one per entry; leading axes are a batch.
"""

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, positive, real_array
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator
from epszero.sets.faces import Face


class Hinge(Function):
    """The hinge loss of support vector machines."""

    formula = True
    per_entry = ("weight", "margin")
    weight: FloatArray
    margin: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0, margin: Real = 1.0) -> None:
        self.weight = positive("weight", weight, strict=False)
        self.margin = real_array("margin", margin)
        self._refuse_clash()

    def _value(self, x: Array) -> Array:
        return jnp.sum(self.weight * jnp.maximum(self.margin - x, 0.0), axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        return jnp.maximum(v, jnp.minimum(self.margin, v + step * self.weight))

    def _conjugate(self, y: Array) -> Array:
        excess = jnp.maximum(y, -self.weight - y)
        return jnp.sum(self.margin * y + indicator(excess, self.weight), axis=-1)

    def _face(self, x: FloatArray, z: FloatArray) -> Face:
        """At the margin −weight < z < 0 keeps an entry there; elsewhere it keeps its side."""
        weight, away, eye = np.broadcast_to(self.weight, x.shape), x - self.margin, np.eye(len(x))
        at, off = (away == 0) & (weight > 0), (away != 0) & (weight > 0)
        duals = np.vstack([-eye[at], eye[at]])
        values = np.concatenate([-z[at], weight[at] + z[at]])
        rows, slacks = -np.sign(away)[off, None] * eye[off], np.abs(away[off])
        active = np.concatenate([at, away > 0]).tobytes()
        missed = np.zeros(int(at.sum()))
        return Face(eye[at], missed, rows, slacks, duals, values, active=active, lifts=duals, separable=True)
