"""What stability arguments need of a run: how many iterations and which steps, fixed before the data were seen."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._points import add, norm
from epszero._types import FloatArray, PyTree
from epszero.certificates._base import Leaning, cannot
from epszero.certificates.case import Case, HowFound
from epszero.certificates.noise import Noise
from epszero.facts import Constant, Provenance
from epszero.methods import DouglasRachford, ForwardBackward, MiniBatchForwardBackward
from epszero.methods.stability import WITHOUT_STABILITY, Premises, Stability, Unstable
from epszero.oracles import Oracle


@dataclass(frozen=True)
class FixedRun:
    """A method with the step γ, K iterations, s samples."""

    gamma: float
    K: int
    s: int
    leaning: Leaning


def check_fixed(case: Case) -> HowFound:
    """Stability speaks of K iterations on any data; a run that stops when it likes is another algorithm."""
    if len(case.samples) != 1:
        cannot("stability bounds are for one data set that all agents see")
    if case.run is None:
        cannot("nothing is known of the run that found x")
    if not case.run.fixed:
        cannot(
            "the run stopped at a tolerance, so its length depends on the data: pass iterations=K to ez.solve, "
            "and no tol"
        )
    return case.run


def fixed_run(case: Case, published: bool = False) -> FixedRun:
    """K iterations with one step for all blocks and iterations, of a method whose output is x = J_{γA}(y) with y known.

    That is the paper's forward-backward (`published`: that alone), mini-batches, and Douglas–Rachford, y = 2p − ζ.
    """
    run = check_fixed(case)
    method = run.method
    plain = isinstance(method, ForwardBackward) and method.relaxation == 1
    if not (plain or (isinstance(method, DouglasRachford | MiniBatchForwardBackward) and not published)):
        others = "" if published else ", mini-batches of it, and Douglas–Rachford"
        cannot(f"it speaks of plain forward-backward{others}: pass method=ez.ForwardBackward(step=…)")
    assert isinstance(method, ForwardBackward | DouglasRachford | MiniBatchForwardBackward)
    sizes = [np.ravel(leaf) for leaf in jax.tree.leaves(method.steps.sizes)]
    if not sizes or np.ptp(np.concatenate(sizes)) > 0:
        cannot(
            "it speaks of one fixed step: pass method=ez.ForwardBackward(step=γ); a step found by backtracking "
            "depends on the data"
        )
    K, gamma = run.iterations, float(sizes[0][0])
    what = "and the seed, all" if isinstance(method, MiniBatchForwardBackward) else "both"
    said = Leaning(
        f"K = {K} iterations with the step γ = {gamma:.4g}, {what} fixed before the data were seen",
        Provenance.DECLARED,
        method.description,
    )
    return FixedRun(gamma, K, len(case.samples[0]), said)


def premises(case: Case, noise: Noise) -> Premises:
    """For a method's description of its stability."""
    mu, kappa, theta, diameter = (
        one.value if isinstance(one, Constant) else None
        for one in (case.mu, case.kappa, case.theta, case.facts.diameter)
    )
    J = case.jacobian
    return Premises(
        R=noise.R.value,
        mu=mu,
        kappa=kappa,
        theta=theta,
        jacobian=None if J is None else J.jacobian,
        diameter=np.inf if diameter is None else diameter,
        everywhere=J is not None,
    )


def stability(case: Case, noise: Noise) -> Stability:
    """The run's own stability, by the recursion."""
    run = check_fixed(case)
    try:
        found = run.method.stability(premises(case, noise), run.iterations)
    except Unstable as reason:
        cannot(str(reason))
    if found.on_average:
        cannot(
            f"the stability of {run.method.description} holds on average over its random choices, not for this run. "
            f"{WITHOUT_STABILITY}"
        )
    return found


def losses(case: Case) -> FloatArray:
    """‖z + O(x, ξ_i)‖ for every sample."""
    (samples,) = case.samples
    return np.asarray(_norms(case.oracle, samples.values, case.point, case.element))


@eqx.filter_jit
def _norms(oracle: Oracle, data: PyTree, point: PyTree, z: PyTree) -> Any:
    return jax.lax.map(lambda xi: norm(add(z, jax.tree.map(jnp.asarray, oracle(point, xi)))), data, batch_size=64)
