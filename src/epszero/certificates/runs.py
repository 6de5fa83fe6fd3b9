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
from epszero.certificates.case import Case
from epszero.certificates.noise import Noise
from epszero.constants import Provenance
from epszero.methods import ForwardBackward
from epszero.methods.stability import Facts, Stability, Unstable
from epszero.oracles import Oracle


@dataclass(frozen=True)
class Run:
    """Forward-backward with the step γ, K iterations, s samples."""

    gamma: float
    K: int
    s: int
    leaning: Leaning


def check_fixed(case: Case) -> None:
    """Stability speaks of K iterations on any data; a run that stops when it likes is another algorithm."""
    if len(case.samples) != 1:
        cannot("stability bounds are for one data set that all agents see")
    if not case.solution.fixed_iterations:
        cannot("the run stopped at a tolerance, so its length depends on the data: pass iterations=K to ez.solve, "
               "and no tol")  # fmt: skip


def fixed_run(case: Case) -> Run:
    """The paper's algorithm: forward-backward, one step for all blocks and iterations."""
    check_fixed(case)
    method = case.solution.method
    if not isinstance(method, ForwardBackward) or method.relaxation != 1:
        cannot("it speaks of plain forward-backward: pass method=ez.ForwardBackward(step=…)")
    sizes = [np.ravel(leaf) for leaf in jax.tree.leaves(method.steps.sizes)]
    if not sizes or np.ptp(np.concatenate(sizes)) > 0:
        cannot("it speaks of one fixed step: pass method=ez.ForwardBackward(step=γ); a step found by backtracking "
               "depends on the data")  # fmt: skip
    K, gamma = case.solution.iterations, float(sizes[0][0])
    said = Leaning(f"K = {K} iterations with the step γ = {gamma:.4g}, both fixed before the data were seen",
                   Provenance.DECLARED, case.solution.method.description)  # fmt: skip
    return Run(gamma, K, len(case.samples[0]), said)


def facts(case: Case, noise: Noise) -> Facts:
    """For a method's description of its stability."""
    mu, kappa, theta, diameter = (
        None if one is None else one.value for one in (case.mu, case.kappa, case.theta, case.diameter)
    )
    linear = case.linear
    return Facts(
        R=noise.R.value, mu=mu, kappa=kappa, theta=theta, jacobian=None if linear is None else linear.jacobian,
        diameter=np.inf if diameter is None else diameter, everywhere=linear is not None,
    )  # fmt: skip


def stability(case: Case, noise: Noise) -> Stability:
    """The run's own stability, by the recursion."""
    check_fixed(case)
    try:
        return case.solution.method.stability(facts(case, noise), case.solution.iterations)
    except Unstable as reason:
        cannot(str(reason))


def losses(case: Case) -> FloatArray:
    """‖z + O(x, ξ_i)‖ for every sample."""
    (samples,) = case.samples
    return np.asarray(_norms(case.problem.oracle, samples.values, case.point, case.solution.element))


@eqx.filter_jit
def _norms(oracle: Oracle, data: PyTree, point: PyTree, z: PyTree) -> Any:
    return jax.lax.map(lambda xi: norm(add(z, jax.tree.map(jnp.asarray, oracle(point, xi)))), data, batch_size=64)
