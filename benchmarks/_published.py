"""Methods for monotone variational inequalities as published, in a few lines of NumPy each: those that monviso offers.

F(x) = Mx + q over a region, L = ‖M‖, steps just below what is proved for a Lipschitz constant alone. Each generates
points; whoever asks judges them. Projections are those of the collection (clipping, or DAQP).
"""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.collection._case import Affine, Array

Points = Iterator[Array]
EVERY = 10  # iterations, after which a point is judged
PHI = 1.5  # of the adaptive golden ratio algorithm


def extragradient(F: Callable[[Array], Array], P: Callable[[Array], Array], x: Array, L: float) -> Points:
    """Korpelevich (1976)."""
    step = 0.9 / L
    while True:
        x = P(x - step * F(P(x - step * F(x))))
        yield x


def popov(F: Callable[[Array], Array], P: Callable[[Array], Array], x: Array, L: float) -> Points:
    """Popov (1980)."""
    step, y = 0.9 / (3 * L), x
    while True:
        Fy = F(y)
        x = P(x - step * Fy)
        y = P(x - step * Fy)
        yield x


def forward_backward_forward(F: Callable[[Array], Array], P: Callable[[Array], Array], x: Array, L: float) -> Points:
    """Tseng (2000)."""
    step = 0.9 / L
    while True:
        Fx = F(x)
        y = P(x - step * Fx)
        x = y + step * (Fx - F(y))
        yield y


def forward_reflected_backward(F: Callable[[Array], Array], P: Callable[[Array], Array], x: Array, L: float) -> Points:
    """Malitsky & Tam (2020)."""
    step, before = 0.9 / (2 * L), F(x)
    while True:
        now = F(x)
        x, before = P(x - step * (2 * now - before)), now
        yield x


def reflected_gradient(F: Callable[[Array], Array], P: Callable[[Array], Array], x: Array, L: float) -> Points:
    """Malitsky (2015)."""
    step, before = 0.9 * (np.sqrt(2) - 1) / L, x
    while True:
        x, before = P(x - step * F(2 * x - before)), x
        yield x


def adaptive_golden_ratio(F: Callable[[Array], Array], P: Callable[[Array], Array], x: Array, L: float) -> Points:
    """Malitsky (2020), algorithm 1; L only for the first step."""
    step, theta, mean, before, F_before = 1 / L, 1.0, x, x, F(x)
    x = P(x - step * F_before)
    while True:
        Fx = F(x)
        moved, changed = float(np.sum((x - before) ** 2)), float(np.sum((Fx - F_before) ** 2))
        local = PHI * theta / (4 * step) * moved / changed if changed > 0 else np.inf
        longer = min((1 / PHI + 1 / PHI**2) * step, local, 1e6)
        theta, step = PHI * longer / step, longer
        mean = ((PHI - 1) * x + mean) / PHI
        before, F_before, x = x, Fx, P(mean - step * Fx)
        yield x


PUBLISHED = {
    "EG, NumPy": extragradient,
    "Popov, NumPy": popov,
    "FBF, NumPy": forward_backward_forward,
    "FRB, NumPy": forward_reflected_backward,
    "PRG, NumPy": reflected_gradient,
    "aGRAAL, NumPy": adaptive_golden_ratio,
}


def run(method: Callable[..., Points], form: Affine, good: Callable[[Array], bool]) -> Array:
    """The first point that is good, looked at now and then; who waits too long ends it."""
    L = max(float(np.linalg.norm(form.M, 2)), 1e-300)
    start = form.region.project(np.zeros(form.region.size))
    points = method(lambda x: form.M @ x + form.q, form.region.project, start, L)
    for k, x in enumerate(points):
        if k % EVERY == EVERY - 1 and good(x):
            return x
    raise AssertionError
