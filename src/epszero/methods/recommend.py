"""`recommend`: which method suits a problem, and why. `ez.solve` takes the same one where none is named.

The table, from what is known of B̂ (docs/methods.md):
    strongly monotone or cocoercive   forward-backward, preconditioned where affine constraints are shared
    merely monotone, or turning much  forward-backward-forward, which evaluates B twice a step: where it gains more
                                      than two steps of forward-backward
    a gradient, nothing more          forward-backward with backtracking, and the other where that finds no step
    monotone or not, nothing more     the adaptive golden ratio, which needs no constant
Cost: that of reading the constants off the problem, as `ez.audit` does; nothing is solved.
"""

from typing import Any, NamedTuple

import jax

from epszero._checks import known_arguments, refuse
from epszero._double import double
from epszero._types import PyTree
from epszero.facts import AverageFacts, Provenance, average_facts, declared_only, facts_of, lipschitz_range, step_range
from epszero.methods._base import Method
from epszero.methods.adaptive_golden_ratio import AdaptiveGoldenRatio
from epszero.methods.extragradient import Extragradient
from epszero.methods.forward_backward import ForwardBackward
from epszero.methods.forward_backward_forward import ForwardBackwardForward
from epszero.methods.preconditioned import PreconditionedForwardBackward
from epszero.oracles import strategies
from epszero.problems import Problem
from epszero.samples import Samples

FLAT = "B is merely monotone, and only between points of the domain, which extragradient never leaves"
TURNS = "B is monotone and Lipschitz, and not known to be cocoercive"
CONVEX = "convex constraints are shared, so B is monotone in strategies and multipliers together, and no more"
NOTHING = "no constant of B is known, and this method needs none"
SHARED = "affine constraints are shared, and B is cocoercive in the strategies"
FASTER = "B turns so much that one step of it, with two B̂, gains more than two steps of forward-backward"
PLAIN = "B is strongly monotone or cocoercive: one B̂ and one resolvent a step, and the sharpest stability"
GRADIENT = "B is the gradient of a convex function: the step is found by backtracking where κ is not known"


class Suited(NamedTuple):
    """The method for what is known, the one to try where it fails, and why."""

    method: Method
    second: Method | None
    why: str


def suited(problem: Problem, known: AverageFacts, x: PyTree) -> Suited:
    """By the table of the header."""
    no = known.monotone is Provenance.VIOLATED
    tseng, convex = ForwardBackwardForward(), problem.coupling is not None and not problem.coupling.affine
    merely = (known.monotone is Provenance.EXACT or known.kappa is not None) and not known.cocoercive
    if known.flat and (convex or merely):  # the other method leaves the domain
        return Suited(Extragradient(), None, FLAT)
    if convex or merely:
        return Suited(tseng, None, CONVEX if convex else TURNS)
    if not known.cocoercive and (problem.coupling is None or known.doubt) and not no:
        return Suited(AdaptiveGoldenRatio(), tseng, NOTHING)
    if problem.coupling is not None:
        return Suited(PreconditionedForwardBackward(), tseng, SHARED)
    one, two = step_range(known), lipschitz_range(known, None, x)
    if one is not None and two is not None and two.rate < one.rate**2 and known.unit_steps is None and not known.flat:
        return Suited(tseng, None, FASTER)
    second = AdaptiveGoldenRatio() if known.gradient else tseng
    return Suited(ForwardBackward(), second, GRADIENT if known.gradient and one is None else PLAIN)


class Recommendation(NamedTuple):
    """A method, why it suits, what it leans on, and what else may be tried: name → when."""

    method: Method
    why: str
    leans_on: str
    others: dict[str, str]

    def __str__(self) -> str:
        lines = [f"ez.{type(self.method).__name__}(): {self.why}.", f"Known of B: {self.leans_on}."]
        return "\n".join([*lines, *(f"Or ez.{name}: {when}." for name, when in self.others.items())])


@known_arguments
def recommend(problem: Problem, samples: Samples | None = None, x0: Any = None) -> Recommendation:
    """The method for this problem by the table of docs/methods.md, and why.

    With samples, from all that is known of their average; without, where some are needed, from what is declared.
    """
    if not isinstance(problem, Problem):  # pyright: ignore[reportUnnecessaryIsInstance]
        refuse("problem", f"must be a problem such as ez.Minimization, but it is {problem!r}", "Pass a problem")
    if samples is not None and not isinstance(samples, Samples):  # pyright: ignore[reportUnnecessaryIsInstance]
        refuse("samples", "must be ez.Samples", "Wrap the data in ez.Samples")
    with double():
        x = _point(problem, x0)
        known = _known(problem, samples, x)
    method, _, why = suited(problem, known, strategies(x))
    leans_on = known.doubt or known.because or "nothing"
    return Recommendation(method, why, leans_on.rstrip("."), _others(problem, known, method))


def _point(problem: Problem, x0: Any) -> PyTree:
    start = problem.start if x0 is None else problem.strategies.as_point("x0", x0)
    if any(leaf is None for leaf in jax.tree.leaves(start, is_leaf=lambda leaf: leaf is None)):
        refuse("x0", "A does not fix the shape of x in every block", "Pass x0, or dim= to each set")
    return problem.A.as_point("x0", problem.lifted(start))


def _known(problem: Problem, samples: Samples | None, x: PyTree) -> AverageFacts:
    if problem.oracle.uncertain and samples is None:
        return declared_only(problem)
    data = None if samples is None else samples.values
    support = [] if samples is None else [samples.support]
    facts = facts_of(problem, support, jax.tree.map(lambda leaf: leaf[0], data), strategies(x), 1.0)
    return average_facts(facts, problem.oracle.average(data, x), data, strategies(x), prove=True)


def _others(problem: Problem, known: AverageFacts, method: Method) -> dict[str, str]:
    """What else is proved to converge, and when it is worth a try."""
    found: dict[str, str] = {}
    if isinstance(method, ForwardBackward):
        found["Anderson(ez.ForwardBackward())"] = "where runs are long; the residual decides, so nothing is lost"
        if known.gradient and known.kappa is not None:
            found["FastForwardBackward()"] = "where κ/μ is large: about its root as many steps, with two B̂ each"
    if known.kappa is not None and not isinstance(method, ForwardBackward):
        found["ForwardReflectedBackward()"] = "where B̂ is costly: one B̂ and one resolvent a step"
        if problem.coupling is None:
            found["GoldenRatio()"] = "the same with steps up to φ/(2κ), for sets and functions"
        found["ExtraAnchoredGradient()"] = "where a residual of order 1/k must be proved at the last iterate"
    return found
