"""{x : (x − c)ᵀ P (x − c) ≤ r²} with P symmetric positive definite.

At construction: P = V diag(λ) Vᵀ, O(n³). Projection: in the axes y = Vᵀ(v − c), x_i = y_i/(1 + μ D_i) with D = λ/r² and
μ ≥ 0 the root of q(μ) = ‖√D y/(1 + μD)‖ = 1 (the secular equation). 1/q is concave, so Newton's method on it climbs to
the root from the left: some 5 to 10 passes of O(n), then O(n²) to turn back; accurate to rounding.
Support ⟨d, c⟩ + r‖λ^(−1/2) Vᵀd‖, diameter 2r/√λ_min; both exact. P (…, n, n), c (…, n) and r (…) may be batches.
Source: Moré & Sorensen, "Computing a trust region step", SIAM J. Sci. Stat. Comput. 4 (1983).
"""

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, positive, real_array
from epszero._shaped import dot, norm
from epszero._types import Array, FloatArray, Real
from epszero.sets._base import Set
from epszero.sets._parameters import Matrix, broadcast, positive_definite, spread
from epszero.sets.conic import ConicForm

PASSES = 60


class Ellipsoid(Set):
    """The ellipsoid with shape `matrix`, `center` and `radius` (its semi-axes are radius/√eigenvalue)."""

    formula = True
    per_entry = ("eigenvalues", "center")
    per_point = ("radius",)
    matrices = ("axes",)
    eigenvalues: FloatArray
    axes: FloatArray  # V, one axis per column
    center: FloatArray
    radius: FloatArray

    @known_arguments
    def __init__(self, matrix: Matrix, center: Real = 0.0, radius: Real = 1.0) -> None:
        self.eigenvalues, self.axes = positive_definite("matrix", matrix)
        self.center = spread("center", real_array("center", center), self.eigenvalues.shape[-1])
        self.radius = positive("radius", radius)
        broadcast(matrix=self.axes.shape[:-2], center=self.center.shape[:-1], radius=self.radius.shape)

    def _project(self, v: Array) -> Array:
        y = jnp.einsum("...ji,...j->...i", self.axes, v - self.center)
        slope = jnp.sqrt(self.eigenvalues) / self.radius[..., None]  # √D
        outside = ~(norm(slope * y) <= 1)
        shrunk = y / (1 + _multiplier(slope * y, slope**2)[..., None] * slope**2)
        shrunk = shrunk / norm(slope * shrunk)[..., None]  # onto the surface, to the last digit
        return jnp.where(outside[..., None], self.center + jnp.einsum("...ij,...j->...i", self.axes, shrunk), v)

    def _support(self, direction: Array) -> Array:
        across = jnp.einsum("...ji,...j->...i", self.axes, direction) / jnp.sqrt(self.eigenvalues)
        return dot(direction, self.center) + self.radius * norm(across)

    def _diameter(self) -> Array:
        return jnp.broadcast_to(2 * self.radius / jnp.sqrt(jnp.min(self.eigenvalues, axis=-1)), self.batch_shape)

    def _point(self) -> Array:
        return jnp.broadcast_to(self.center, self.batch_shape + self.known_point_shape)

    def _conic(self, n: int) -> ConicForm:
        root = np.sqrt(self.eigenvalues)[:, None] * self.axes.T / self.radius
        return ConicForm.second_order(
            np.vstack([np.zeros((1, n)), -root]), np.concatenate([np.ones(1), -root @ np.broadcast_to(self.center, n)])
        )


@jax.custom_jvp
def _multiplier(w: Array, D: Array) -> Array:
    """μ with ‖w/(1 + μD)‖ = 1, per batch entry; 0 where ‖w‖ ≤ 1."""

    def newton(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        mu, _, passes = state
        shrunk = w / (1 + mu[..., None] * D)
        q = norm(shrunk)
        pull = jnp.sum((shrunk / q[..., None]) ** 2 * (D / (1 + mu[..., None] * D)), axis=-1)  # −q′/q
        further = mu + (q - 1) / pull
        return jnp.where(further > mu, further, mu), further > mu, passes + 1

    size = norm(w)
    start = jnp.where(size > 1, (size - 1) / jnp.max(D, axis=-1), 0.0)  # here q ≥ 1 still
    state = (start, size > 1, jnp.asarray(0))
    return jax.lax.while_loop(lambda state: jnp.any(state[1]) & (state[2] < PASSES), newton, state)[0]


@_multiplier.defjvp
def _along(at: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """By q(μ) = 1, whatever the passes that led there: one more of them, in which only q is differentiated."""
    mu, (w, D) = _multiplier(*at), at
    outside = norm(w) > 1
    safe = jnp.where(outside[..., None], w, 1.0)

    def level(w: Array, D: Array) -> Array:
        return norm(jnp.where(outside[..., None], w, 1.0) / (1 + mu[..., None] * D))

    q, raised = jax.jvp(level, at, tangents)
    shrunk = safe / (1 + mu[..., None] * D)
    pull = jnp.sum((shrunk / q[..., None]) ** 2 * (D / (1 + mu[..., None] * D)), axis=-1)
    return mu, jnp.where(outside, raised / (q * pull), 0.0)
