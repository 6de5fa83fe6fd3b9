"""The lemma that backtracking leans on: a step that passes the test shrinks the next one, by what the header says."""

import numpy as np
import pytest

from epszero.methods.backtracking import NU

pytestmark = pytest.mark.some(2)


def violations(nu: float, claimed: float, seed: int) -> int:
    """How often ‖d⁺‖² exceeds ‖d‖² − γ²(1/claimed − 1)‖ΔB‖² after a step that passed the test with this ν."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(4, 4))
    H = root @ root.T / 4 + 2 * (root - root.T)  # monotone, mostly a rotation
    q, broken = rng.normal(size=4), 0
    for gamma in np.geomspace(1e-3, 3, 60):
        x = rng.uniform(-1, 1, size=4)
        p = np.clip(x - gamma * (H @ x + q), -1, 1)
        d, change = p - x, H @ (p - x)
        if change @ d >= gamma / (2 * nu) * change @ change:
            after = np.clip(p - gamma * (H @ p + q), -1, 1) - p
            broken += after @ after > d @ d - gamma**2 * (1 / claimed - 1) * change @ change + 1e-12
    return broken


@pytest.mark.parametrize("seed", range(20))
def test_the_claim_holds(seed):
    assert violations(NU, NU, seed) == 0


def test_a_laxer_test_would_break_it():
    assert sum(violations(4.0, NU, seed) for seed in range(20)) > 0
