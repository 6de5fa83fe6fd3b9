"""The paper's charging game on real prices: Table I, the law of the prices, both references, and its trials.

P is the uniform law on the pool of 3649 days, drawn from with replacement: so samples are independent, B is known
exactly, and the support is the pool's box (docs/theory.md, section 7, note 9). Prices enter the game as an additive
term, so the equilibrium under a law is the one for its mean price.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import epszero as ez
from epszero.experiments._outcome import Setting, finite, size
from epszero.experiments._store import Arrays, Piece

FloatArray = NDArray[np.float64]
C = ez.certificates

DELTA, GAMMA = 0.05, 0.02
SIZES, ITERATIONS = (100, 500, 1000, 2000, 3000), (100, 500, 1000, 5000, 10000)
MOST = SIZES[-1]
MU, KAPPA, M, LOSS = 0.0127, 0.1159, 39.2192, 24.3852  # as the paper prints them: Table I, and ℓ̄
SCHEME_STEP, SCHEME_ITERATIONS = 2.0, 400  # of the surrogate scheme; the paper gives neither


@dataclass(frozen=True, eq=False)
class Charging:
    """Twenty vehicles, fourteen hours, ten years of prices."""

    game: ez.AggregativeGame
    pool: ez.Samples

    @cached_property
    def law(self) -> ez.Samples:
        """One sample, the mean price: under the law of the pool B is the oracle there."""
        return ez.Samples(self.pool.values.mean(axis=0)[None])

    @cached_property
    def exact(self) -> FloatArray:
        """x*, the equilibrium under the law of the pool."""
        return self.under(self.law)

    @cached_property
    def uniform(self) -> FloatArray:
        """The equilibrium under the paper's surrogate law, uniform between each hour's least and greatest price."""
        values = self.pool.values
        return self.under(ez.Samples((values.min(axis=0) + values.max(axis=0))[None] / 2))

    def under(self, law: ez.Samples) -> FloatArray:
        """The equilibrium, to 1e-12."""
        return ez.solve(self.game, law, tol=1e-12).x

    def draws(self, setting: Setting, s: int, trials: Sequence[int]) -> list[ez.Samples]:
        """A data set of s days for each trial."""
        return [self.pool.take(s, seed=setting.generator(s, trial)) for trial in trials]

    def errors(self, solutions: Sequence[ez.Solution]) -> FloatArray:
        """The true ‖e‖ = ‖z + B(x)‖ of every solution."""
        return np.array([dataclasses.replace(one, samples=self.law).check().residual for one in solutions])


@cache
def charging() -> Charging:
    """The setting of the paper's section V-A."""
    return Charging(ez.models.ev_charging(vehicles=20, seed=0), ez.datasets.day_ahead_prices(support="pool"))


def surrogate_piece(setting: Setting) -> Piece:
    """x* by the paper's scheme: 10k fresh samples of the surrogate law at iteration k."""

    def run() -> Arrays:
        it = charging()
        found = ez.reference_equilibrium(
            it.game, it.pool, step=SCHEME_STEP, iterations=SCHEME_ITERATIONS, seed=setting.seed
        )
        return {"x": np.asarray(found.x), "last_move": np.array(found.last_move), "drawn": np.array(found.drawn)}

    return Piece("surrogate", run)


def trial_pieces(setting: Setting, s: int, K: int) -> list[Piece]:
    """The trials with s samples and K iterations of Algorithm 3 with γ = 0.02."""
    return [
        Piece(
            f"charging-s{s}-K{K}-trials{batch.start}to{batch.stop}", lambda batch=batch: _trials(setting, s, K, batch)
        )
        for batch in setting.batches()
    ]


def _trials(setting: Setting, s: int, K: int, batch: range) -> Arrays:
    it = charging()
    solutions = ez.solve_many(it.game, it.draws(setting, s, batch), ez.ForwardBackward(GAMMA), iterations=K)
    paper = ez.certify_many(solutions, DELTA, C.UniformStability())
    repaired = ez.certify_many(solutions, DELTA, C.RepairedStability())
    ours = ez.certify_many(solutions, DELTA)
    printed = printed_residual(np.array([one.terms["empirical_risk"] for one in paper]), s)
    return {
        "x": np.array([one.x for one in solutions]),
        "residual": np.array([one.residual for one in solutions]),
        "true": it.errors(solutions),
        "paper": _epsilons(paper),
        "repaired": _epsilons(repaired),
        "ours": _epsilons(ours),
        "distance": np.array(finite([one.distance for one in ours])),
        "paper_distance": np.array(finite([one.distance for one in paper])),
        "saving": np.array([np.max(one.exploitability) for one in ours if one.exploitability is not None]),
        "printed": printed / GAMMA,
        "printed_risk": printed,
    }


def printed_residual(risk: FloatArray, s: int) -> FloatArray:
    """ε_residual by the paper's formula (replacement; Lemma 4.4) with the constants that it prints."""
    tau = np.sqrt(1 - GAMMA * (2 * MU - GAMMA * KAPPA**2))
    beta = 2 * GAMMA * M * (1 + tau) / (s * (1 - tau))
    return risk + beta + (s * beta + LOSS) * np.sqrt(2 * np.log(1 / DELTA) / s)


def _epsilons(certificates: Sequence[ez.Certificate]) -> FloatArray:
    return np.array([one.epsilon for one in certificates])


@dataclass(frozen=True, eq=False)
class Trials:
    """All trials of one s and K, with x* by both references; sizes are relative to ‖x*‖ where they speak of x."""

    arrays: Arrays
    surrogate: FloatArray

    @staticmethod
    def gathered(found: Sequence[Arrays], surrogate: FloatArray) -> "Trials":
        """From the pieces of `trial_pieces`."""
        return Trials({name: np.concatenate([one[name] for one in found]) for name in found[0]}, surrogate)

    @cached_property
    def error(self) -> FloatArray:
        """‖x − x*‖/‖x*‖ under the law of the pool."""
        return self._away(charging().exact)

    @cached_property
    def surrogate_error(self) -> FloatArray:
        """The same by the paper's reference."""
        return self._away(self.surrogate)

    @property
    def demand(self) -> FloatArray:
        """σ(x) of every trial."""
        return self.arrays["x"].mean(axis=1)

    def relative(self, name: str) -> FloatArray:
        """One of the arrays, divided by ‖x*‖."""
        return self.arrays[name] / size(charging().exact)

    def row(self) -> dict[str, Any]:
        """For a table: relative errors and mean bounds."""
        low, middle, high = np.quantile(self.error, [0.05, 0.5, 0.95]).tolist()
        return {
            "error 5 %": low,
            "error median": middle,
            "error 95 %": high,
            "median by the paper's x*": float(np.median(self.surrogate_error)),
            "paper's ε_residual/‖x*‖, printed constants": float(self.relative("printed_risk").mean()),
            "paper's ε/‖x*‖, printed constants": float(self.relative("printed").mean()),
            "paper's ε/‖x*‖": float(self.relative("paper").mean()),
            "repaired ε/‖x*‖": float(self.relative("repaired").mean()),
            "our ε/‖x*‖": float(self.relative("ours").mean()),
            "true ‖e‖/‖x*‖": float(self.relative("true").mean()),
            "our bound on ‖x − x*‖/‖x*‖": float(self.relative("distance").mean()),
            "our bound on a saving (€)": float(self.arrays["saving"].mean()),
            "ours missed": int((self.arrays["true"] > self.arrays["ours"]).sum()),
        }

    def _away(self, reference: FloatArray) -> FloatArray:
        distances = np.linalg.norm(self.arrays["x"] - reference, axis=(1, 2))
        return distances / size(reference)
