"""Factors that are proved of our methods beside tight ones, by performance estimation (PEPit), and what was observed.

Each problem has B μ-strongly monotone with κ (Lipschitz) or θ (cocoercive) and any A of the class that the method is
for. "pair": how much two points of one method may stay apart, over one step, at most. "zero": how far the output of so
many steps is from the zero, over how far it began. Proved: `stability` of the method. Tight: the semidefinite program
of Drori & Teboulle (2014) and Taylor, Hendrickx & Glineur (2017) over all such A and B; for κ or θ beside μ its
conditions are necessary, so that it may lie above the truth, never below. Observed: the worst of B = a + ib on the
plane over all angles, with A = 0 and for pairs with every rotation as a reflection. Observed ≤ tight ≤ proved.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import epszero as ez
from benchmarks._measure import Row
from epszero.methods.stability import Premises

ABSENT = "worst-case: skipped, as PEPit is not installed (the dependency group bench has it)."
MU, KAPPA, STEPS = 0.2, 1.0, 3  # θ = 1/κ where B is cocoercive
ROUNDING = 2e-4  # of the solvers of semidefinite programs


@dataclass(frozen=True)
class Case:
    """A method with a step, what is asked, and its steps: in points of PEPit, or in complex numbers."""

    name: str
    method: ez.methods.Method
    gamma: float
    run: "Callable[[Any, float, Any, Callable[[Any], Any], int], Any]"  # (x, γ, J, B, steps): the output
    pair: bool = False
    cocoercive: bool = False
    subdifferential: bool = False  # A is one

    @property
    def premises(self) -> Premises:
        theta = 1 / KAPPA if self.cocoercive else None
        return Premises(1.0, MU, KAPPA if theta is None else None, theta, diameter=1.0, everywhere=True)

    def proved(self) -> float:
        """By the method's own word."""
        easy = ez.VariationalInequality(lambda x: KAPPA * x, ez.sets.Box(-1.0, 1.0, dim=2))
        settled = self.method.prepared(easy, np.zeros(2))
        found = settled.stability(self.premises, 1 if self.pair else STEPS - 1)
        return float(found.q[0]) if self.pair else found.extra / 2


def rows() -> Iterator[Row]:
    """Of every method with a factor."""
    if not find_spec("PEPit"):
        print(ABSENT)
        return
    for case in cases():
        proved, tight, seen = case.proved(), by_pepit(case), observed(case)
        held = seen <= tight * (1 + ROUNDING) and tight <= proved * (1 + ROUNDING)
        what = f"{case.name}, γκ = {case.gamma * KAPPA:.3g}; seen {seen:.4f}"
        yield Row(what, proved, tight, proved / tight, "seen ≤ tight ≤ proved", held, "")


def cases() -> list[Case]:
    """All with μ/κ = 1/5."""
    g = 0.2
    return [
        Case("forward-backward, μ and κ: pair", ez.ForwardBackward(g), g, _fb, pair=True),
        Case("forward-backward, μ and θ: pair", ez.ForwardBackward(1.0), 1.0, _fb, pair=True, cocoercive=True),
        Case("relaxed by ½, μ and θ: pair", ez.ForwardBackward(1.0, relaxation=0.5), 1.0, _half, True, True),
        Case("Douglas–Rachford: pair", ez.DouglasRachford(1.0), 1.0, _dr, pair=True),
        Case("forward-backward-forward: zero", ez.ForwardBackwardForward(0.5), 0.5, _fbf),
        Case("extragradient: zero", ez.Extragradient(0.5), 0.5, _eg, subdifferential=True),
        Case("past extragradient: zero", ez.PastExtragradient(0.25), 0.25, _peg, subdifferential=True),
        Case("forward-reflected-backward: zero", ez.ForwardReflectedBackward(0.25), 0.25, _frb),
        Case("golden ratio: zero", ez.GoldenRatio(0.5), 0.5, _gr, subdifferential=True),
    ]


# -- the methods, once more and by hand: J(v) is the resolvent of γA --------------------------------------------------


def _fb(x: Any, g: float, J: Any, B: Any, steps: int) -> Any:
    for _ in range(steps):
        x = J(x - g * B(x))
    return x


def _half(x: Any, g: float, J: Any, B: Any, steps: int) -> Any:
    for _ in range(steps):
        x = 0.5 * x + 0.5 * J(x - g * B(x))
    return x


def _dr(z: Any, g: float, J: Any, B: Any, steps: int) -> Any:
    for _ in range(steps):
        p = B.resolvent(z, g)
        z = z + J(2 * p - z) - p
    return z


def _fbf(x: Any, g: float, J: Any, B: Any, steps: int) -> Any:
    for _ in range(steps - 1):
        bar = J(x - g * B(x))
        x = bar - g * (B(bar) - B(x))
    return J(x - g * B(x))


def _eg(x: Any, g: float, J: Any, B: Any, steps: int) -> Any:
    for _ in range(steps):
        x = J(x - g * B(J(x - g * B(x))))
    return x


def _peg(x: Any, g: float, J: Any, B: Any, steps: int) -> Any:
    y = x
    for _ in range(steps):
        By = B(y)
        x = J(x - g * By)
        y = J(x - g * By)
    return y


def _frb(x: Any, g: float, J: Any, B: Any, steps: int) -> Any:
    before = B(x)
    for _ in range(steps):
        now = B(x)
        x, before = J(x - 2 * g * now + g * before), now
    return x


def _gr(x: Any, g: float, J: Any, B: Any, steps: int) -> Any:
    bar, phi = x, (1 + math.sqrt(5)) / 2
    for _ in range(steps):
        bar = ((phi - 1) * x + bar) / phi
        x = J(bar - g * B(x))
    return x


# -- the worst, by a program and by looking ----------------------------------------------------------------------------


class _Operator:
    """B of PEPit, evaluated once at each point."""

    def __init__(self, B: Any) -> None:
        self.B, self.known = B, []

    def __call__(self, x: Any) -> Any:
        for point, value in self.known:
            if point is x:
                return value
        self.known.append((x, self.B.gradient(x)))
        return self.known[-1][1]

    def resolvent(self, v: Any, gamma: float) -> Any:
        """J_{γB}."""
        return import_module("PEPit.primitive_steps").proximal_step(v, self.B, gamma)[0]


def by_pepit(case: Case) -> float:
    """The tight factor."""
    pep, operators, step = (import_module(f"PEPit{room}") for room in ("", ".operators", ".primitive_steps"))
    problem = pep.PEP()
    kind = import_module("PEPit.functions").ConvexFunction if case.subdifferential else operators.MonotoneOperator
    A = problem.declare_function(kind)
    effort = "Expensive" if case.pair else "Cheap"  # the first is exact for pairs, and takes very long for more points
    name, known = ("Cocoercive", {"beta": 1 / KAPPA}) if case.cocoercive else ("Lipschitz", {"L": KAPPA})
    B = _Operator(
        problem.declare_function(getattr(operators, f"{name}StronglyMonotoneOperator{effort}"), mu=MU, **known)
    )

    def J(v: Any) -> Any:
        return step.proximal_step(v, A, case.gamma)[0]

    x = problem.set_initial_point()
    if case.pair:
        other = problem.set_initial_point()
        ends = [case.run(start, case.gamma, J, B, 1) for start in (x, other)]
    else:
        other = pep.Point()
        A.add_point((other, -B(other), pep.Expression()))
        ends = [case.run(x, case.gamma, J, B, STEPS), other]
    problem.set_initial_condition((x - other) ** 2 <= 1)
    problem.set_performance_metric((ends[0] - ends[1]) ** 2)
    return math.sqrt(problem.solve(verbose=0))


class _Turn:
    """B = a + ib on the plane, as a complex number."""

    def __init__(self, number: complex) -> None:
        self.number = number

    def __call__(self, x: complex) -> complex:
        return self.number * x

    def resolvent(self, v: complex, gamma: float) -> complex:
        """J_{γB}."""
        return v / (1 + gamma * self.number)


def observed(case: Case, angles: int = 721) -> float:
    """Over B with exactly these constants, or fewer turns, and A = 0 or, for pairs, (R + Id)/2 of rotations R."""
    least = math.sqrt(MU * KAPPA - MU**2) if case.cocoercive else math.sqrt(KAPPA**2 - MU**2)
    turns = [complex(MU, b) for b in np.linspace(0.0, least, 61)] + [complex(KAPPA, 0.0)]
    reflections = np.exp(1j * np.linspace(-math.pi, math.pi, angles)) if case.pair else [1.0]
    return max(
        abs(case.run(1.0, case.gamma, lambda v, R=R: (1 + R) / 2 * v, _Turn(B), 1 if case.pair else STEPS))
        for B in turns
        for R in reflections
    )
