"""`Method`: an endless stepper for 0 ∈ A(x) + B̂(x).

A method writes `prepared` (check its parameters against the problem and settle what was left open), `init` and `step`,
`settings` where it has some, and `stability` where it is known how much one sample can change its output.
It knows nothing of loops, tolerances, samples or printing. After every step the state holds a point of dom A together
with a z ∈ A(point), and the norm of the residual z + B̂(point).

The letters are the same in all files: x is the iterate, y = x − ΓB̂(x), x̄ (`x_bar`) the resolvent's point, x⁺ (`x_next`)
the next iterate, and Γ (`Gamma`) the step sizes. `Bx`, `Bx_bar` and `Bx_next` are B̂ at x, x̄ and x⁺.
"""

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp

from epszero._points import subtract
from epszero._pytree import Node
from epszero._types import Array, PyTree
from epszero.facts import AverageFacts, StepRange
from epszero.functions import Function
from epszero.methods.backtracking import Judgement, Pace, StepTest, first_pace, first_step, judged, probing_step
from epszero.methods.record import read, written
from epszero.methods.stability import ANY_ALGORITHM, Premises, Stability, Unstable
from epszero.methods.steps import Steps, over, root, scaled, times
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward, is_part
from epszero.sets import Set


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

    texts: ClassVar[tuple[str, ...]] = ("description", "_asked")  # static fields that only people read
    needs_samples: ClassVar[bool] = False  # B̂ must come as a `SampledMean`, from which batches can be drawn
    stackable: ClassVar[bool] = True  # blocks of one shape may be stacked for the run (solve/packing.py)
    description: str  # one line for reports: the method, its step and where the step came from
    _asked: str = ""  # once settled: the settings as the user gave them, a record in JSON

    @property
    def open(self) -> bool:
        """Whether a step is still to be chosen."""
        return False

    @property
    def fixed_point(self) -> bool:
        """Whether a settled step is x⁺ = T_k(x), with nothing remembered of the steps before."""
        return False

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        """The longest step of a settled method and those that are proved to converge; None where it is not known."""
        del problem, x, known
        return None

    @abstractmethod
    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "Method":
        """The method with its parameters checked and settled for this problem and points like `x`.

        `known`: what is known of B̂; only what is declared where it is left out.
        """

    @abstractmethod
    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        """The state before the first step."""

    @abstractmethod
    def step(self, A: Backward, B: Average, state: State) -> State:
        """One iteration."""

    def measured(self, A: Backward, B: Average, state: State) -> State:
        """The state with B̂ and the residual at its point, where `step` leaves them to those who look at them."""
        del A, B
        return state

    @abstractmethod
    def last_step(self, state: State) -> PyTree:
        """The step sizes of the iteration that led to `state`."""

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of the constructor by name, as they were given to it."""
        return {}

    def bare(self) -> Self:
        """The same method without its texts. A compiled loop sees this, so a new step size needs no new program."""
        within = {name: one.bare() for name, one in vars(self).items() if isinstance(one, Steps | Method)}
        return self.replaced(**within, **{name: "" for name in self.texts if name in self.static})

    def to_record(self, schedule: Sequence[PyTree] | None = None) -> dict[str, Any]:
        """What the user asked for, as plain JSON, settled or not.

        A step that is a function of k is recorded by its values Γ_0, …, Γ_K where they are passed as `schedule`.
        """
        kind = type(self)
        name = kind.__name__ if kind.__module__.startswith("epszero.") else f"{kind.__module__}.{kind.__qualname__}"
        record = json.loads(self._asked) if self._asked else {"method": name, **_written(self.settings)}
        if schedule is not None:
            _with_schedule(record, schedule)
        return record

    @staticmethod
    def from_record(record: Mapping[str, Any], x: PyTree) -> "Method":
        """The method that `to_record` was called on, not settled; x is a point that shows how steps are nested.

        Raises `LookupError` where it cannot be rebuilt.
        """
        from epszero import methods  # noqa: PLC0415  (complete only after this file)

        kind = getattr(methods, record["method"], None)
        if not (isinstance(kind, type) and issubclass(kind, Method)) or kind is Method:
            raise LookupError(f"{record['method']} is not a method of epszero. Pass the method itself.")
        settings = {name: value for name, value in record.items() if name != "method"}
        return kind(**{name: _read(value, x) for name, value in settings.items()})

    def _settled(self, **changes: Any) -> Self:
        """This method with its parameters settled. What the user asked for is kept."""
        return self.replaced(**changes, _asked=json.dumps(self.to_record()))

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """How much one sample changes the output after the steps 0, …, K of a settled method; raises `Unstable`."""
        del facts, iterations
        raise Unstable(
            f"No stability bound is known for {self.description}. Use ez.ForwardBackward(step=γ), or {ANY_ALGORITHM}."
        )


def _written(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one.to_record() if isinstance(one, Method) else written(one) for name, one in settings.items()}


def _read(setting: Any, x: PyTree) -> Any:
    return Method.from_record(setting, x) if isinstance(setting, dict) and "method" in setting else read(setting, x)


def _with_schedule(record: dict[str, Any], schedule: Sequence[PyTree]) -> None:
    """The values of a step that is a function of k, in the place of the function."""
    if isinstance(record.get("of"), dict):
        _with_schedule(record["of"], schedule)
    if isinstance(record.get("step"), dict) and "schedule" in record["step"]:
        record["step"] = {"schedule": [written(row) for row in schedule]}


def first_state(x: PyTree, Bx: PyTree, point: PyTree, own: PyTree) -> State:
    """Before the first step there is no z yet, and no residual."""
    zero = jax.tree.map(jnp.zeros_like, x)
    return State(jnp.asarray(0), x, Bx, point, zero, jnp.asarray(jnp.inf), jnp.asarray(False), own)


def starting_pace(B: Average, x: PyTree, Bx: PyTree, scale: PyTree = None) -> Pace:
    """The first step to try, from the slope of B̂ between x and a point nearby, in the domain or not."""
    half = root(scale)
    near = subtract(x, times(scaled(scale, probing_step(over(x, half), times(half, Bx))), Bx))
    return first_pace(first_step(over(subtract(near, x), half), times(half, subtract(B(near), Bx))))


def step_taken(steps: Steps, state: State) -> PyTree:
    """The Γ that led to a state whose `own` is a pace where it is searched for."""
    if steps.searched:
        return scaled(steps.scale, state.own.used)
    return steps.sizes if steps.schedule is None else steps.at(state.k - 1)  # else nothing is computed, even k − 1


def step_to_take(steps: Steps, state: State) -> PyTree:
    """The Γ to take, or to try, from a state."""
    return scaled(steps.scale, state.own.step) if steps.searched else steps.at(state.k)


def tested(steps: Steps, test: StepTest, new: State, old: State) -> State:
    """The new state; where the step is searched for and was not accepted, the old one with a shorter step."""
    if not steps.searched:
        return new
    judgement = judged(old.own, test)
    return new_or_old(judgement, new._replace(own=judgement.pace), old._replace(own=judgement.pace))


def new_or_old(judgement: Judgement, new: State, old: State) -> State:
    """The new state where the attempt was accepted or is the last one, else the old one."""
    state = jax.tree.map(lambda a, b: jnp.where(judgement.accepted | judgement.stuck, a, b), new, old)
    return state._replace(stuck=judgement.stuck)


def no_bound_by_zeros(problem: Problem, proximal: bool) -> str:
    """Why d ≤ R/(μs) + 2ρ^K sup_D ‖x⁰ − x̂_D‖ is not known here; empty where it is. `proximal`: A must be a ∂g."""
    if problem.coupling is not None:
        return (
            "Strategies and multipliers together are never strongly monotone. For affine constraints use "
            "ez.PreconditionedForwardBackward(step=α, dual_step=β)."
        )
    parts = jax.tree.leaves(problem.A.parts, is_leaf=is_part)
    if proximal and not all(isinstance(part, Set | Function) for part in parts):
        return "The bound holds for sets and functions, and A is another operator. Use ez.ForwardBackwardForward()."
    return ""
