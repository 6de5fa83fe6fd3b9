"""A method's steps one by one, outside of the loop, for comparison with loops that are written by hand."""

import jax
import numpy as np

from epszero.solve.attempt import trial_of
from epszero.solve.request import Request
from epszero.solve.setup import setting_of


def states(problem, method, x0, steps, samples=None):
    """The settled method, and the states after the steps 1, …, `steps`."""
    with jax.enable_x64(True):
        trial = trial_of(Request(problem, method, None, None, None), setting_of(problem, samples, None, x0))
        settled = method.prepared(problem, trial.setting.x, trial.known)
        bare, A, B = settled.bare(), problem.placed, trial.B
        advance = jax.jit(lambda state: bare.step(A, B, state))
        state = jax.jit(lambda x: bare.init(A, B, x))(trial.setting.x)
        found = []
        for _ in range(steps):
            state = advance(state)
            found.append(jax.tree.map(np.asarray, state))
    return settled, found


def points(problem, method, x0, steps, samples=None):
    """The outputs, one row for each step."""
    return np.stack(
        [one.x if one.point is None else one.point for one in states(problem, method, x0, steps, samples)[1]]
    )
