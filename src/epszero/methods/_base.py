"""`Method`: an endless stepper for 0 ∈ A(x) + B̂(x).

A method writes `prepared` (check its parameters against the problem and settle what was left open), `init` and `step`.
It knows nothing of loops, tolerances, samples or printing. After every step the state holds a point of dom A together
with a z ∈ A(point), and the norm of the residual z + B̂(point).
"""

from abc import abstractmethod
from typing import Any, NamedTuple

from epszero._pytree import Node
from epszero._types import Array, PyTree
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward


class State(NamedTuple):
    """What every method carries from one iteration to the next."""

    k: Array  # steps taken
    x: PyTree  # the iterate
    Bx: PyTree  # B̂ at the iterate
    point: PyTree  # the output, in dom A; None while it is the iterate itself
    z: PyTree  # an element of A(point)
    residual: Array  # ‖z + B̂(point)‖
    stuck: Array  # the method cannot go on
    own: PyTree  # what only this method knows


class Method(Node):
    """A splitting method."""

    description: str  # one line for reports: the method, its step and where the step came from

    @abstractmethod
    def prepared(self, problem: Problem, x: PyTree) -> "Method":
        """The method with its parameters checked and settled for this problem and points like `x`."""

    @abstractmethod
    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        """The state before the first step."""

    @abstractmethod
    def step(self, A: Backward, B: Average, state: State) -> State:
        """One iteration."""

    @abstractmethod
    def last_step(self, state: State) -> Any:
        """The step sizes of the iteration that led to `state`."""
