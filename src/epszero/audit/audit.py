"""`audit`: which assumption holds, which is declared, which is violated, and where every constant comes from."""

import json
import math
import textwrap
import warnings
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from epszero._checks import InputError, count, known_arguments, one_positive, refuse
from epszero._types import PyTree
from epszero.audit import noise
from epszero.audit.findings import BY_PROVENANCE, Assumption, Standing
from epszero.audit.order import LEVEL, Order, examine_order
from epszero.audit.slopes import Slopes
from epszero.constants import (
    Constant,
    Knowledge,
    Known,
    Provenance,
    Structure,
    Witness,
    base_oracle,
    domain_diameter,
    knowledge,
    sizes,
)
from epszero.constants.linear import first_rows
from epszero.methods import Method
from epszero.oracles import PrimalDual
from epszero.oracles.features import sample_rows
from epszero.problems import AggregativeGame, ConvexityWarning, Game, Problem
from epszero.samples import Samples
from epszero.solve.choice import Choice
from epszero.solve.setup import averaged, check_shapes, checked_samples, starting_point, supports_of, values_of
from epszero.solve.solve import Plan

WIDTH = 118  # of a printed line
NAMES = {"mu": "μ", "kappa": "κ", "theta": "θ", "R": "R", "M": "M", "diameter": "diameter"}


@dataclass(frozen=True, eq=False)
class Audit:
    """What is known of a problem and its samples; print it for a table."""

    structure: Structure
    constants: dict[str, Constant]  # of every O(·, ξ) over the support, on the domain
    assumptions: dict[str, Assumption]
    method: str  # what ez.solve would use, or why nothing is proved to converge
    samples: int | None  # how many; None where nothing is uncertain
    order: Order | None  # what their order says; None where there is one data set per agent, or none

    def violated(self) -> dict[str, Assumption]:
        """The assumptions that are."""
        return {name: one for name, one in self.assumptions.items() if one.status is Standing.VIOLATED}

    def to_json(self) -> str:
        """All of it."""
        record = {
            "structure": self.structure.as_record(),
            "constants": {
                name: {"value": one.value if math.isfinite(one.value) else None, "provenance": str(one.provenance),
                       "evidence": one.evidence}
                for name, one in self.constants.items()
            },
            "assumptions": {name: one.as_record() for name, one in self.assumptions.items()},
            "method": self.method,
            "samples": self.samples,
            "order": None if self.order is None else {**vars(self.order), "p_value": self.order.p_value},
        }  # fmt: skip
        return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        lines = [f"structure   {self.structure}", "constants"]
        for name, one in self.constants.items():
            lines += _row(NAMES.get(name, name), f"{one.value:.4g}", str(one.provenance), one.evidence)
        lines.append("assumptions")
        for name, one in self.assumptions.items():
            lines += _row(name, str(one.status), "", one.evidence)
        lines += _row("method", "", "", self.method)
        return "\n".join(lines)


def _row(name: str, first: str, second: str, text: str) -> list[str]:
    head = f"  {name:<28}{first:<12}{second:<11}" if second else f"  {name:<28}{first:<18}"
    room = " " * len(head)
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=room, break_long_words=False) or [head]


@known_arguments
def audit(
    problem: Problem, samples: Any = None, *, method: Method | None = None, x0: PyTree = None, budget: float = 5.0,
    seed: int = 0,
) -> Audit:  # fmt: skip
    """Look at a problem and its samples: structure, constants with provenance, and every assumption with evidence.

    `method` and `x0` are looked at where they are given. `budget`: seconds for verified constants of nonlinear
    problems, and the more of them the tighter; `seed` is that of the search for contradictions.
    """
    seconds, seed = one_positive("budget", budget), count("seed", seed)
    plan = Plan(problem, method, None, None, None)
    data = checked_samples(problem, samples)
    with jax.enable_x64(True):
        x, moved = starting_point(problem, data, x0)
        check_shapes(problem, data, x)
        point = x.x if isinstance(x, PrimalDual) else x
        values = values_of(data)
        row = None if values is None else first_rows(values)
        _refuse_undefined(problem, point, row)
        facts = knowledge(problem, supports_of(problem, data), row, point)
        slopes = Slopes(facts, values, 0.35 * seconds, seed)
        sets = data if isinstance(data, list) else [] if data is None else [data]
        known = plan.all_known(averaged(problem, data, x), data, x)
        choice = plan.choice(known, x)
        largest = sizes(problem, values, point, seed)
        constants = _constants(facts, slopes, seconds, largest)
        order = examine_order(sample_rows(sets[0].values), seed) if len(sets) == 1 else None
        assumptions = {
            "monotone": slopes.monotone(),
            "strongly monotone": slopes.strongly_monotone(),
            "cocoercive": slopes.cocoercive(),
            "average monotone": _average(known),
            "Lipschitz": slopes.lipschitz(),
            "convex costs": _convex(facts, values, slopes),
            **({"gradient": slopes.gradient()} if problem.declared.gradient else {}),
            "compact domain": _compact(constants),
            "x0 in the domain": _start(moved, x0 is not None),
            "step": _step(plan, choice, known, x),
            "unbiased": _unbiased(problem, sets),
            "bounded noise": noise.bounded(facts, sets, constants.get("R"), largest),
            "support": noise.support(facts),
            "samples inside the support": noise.inside(facts, sets),
            "identically distributed": _identical(problem, sets, order, seed),
            "independent": _independent(problem, sets, order, seed),
        }
        for name, of in (("mu", "strongly monotone"), ("theta", "cocoercive"), ("kappa", "Lipschitz")):
            one, told = constants.get(name), assumptions[of]
            if one is not None and one.provenance is Provenance.DECLARED and told.status is Standing.VIOLATED:
                constants[name] = Constant(one.value, Provenance.VIOLATED, told.evidence)
        title = (
            f"nothing is proved to converge: {choice.doubts[0]}" if choice.doubts else _title(plan, choice, known, x)
        )
    return Audit(
        replace(facts.structure, symmetric=_symmetric(facts)),
        constants,
        assumptions,
        title,
        len(sets[0]) if sets else None,
        order,
    )


def _refuse_undefined(problem: Problem, x: PyTree, row: PyTree) -> None:
    values = jax.tree.leaves(base_oracle(problem)(x, row))
    if not all(np.isfinite(leaf).all() for leaf in values):
        refuse(problem.uncertain_side, "is NaN or infinite at the start, for the first sample",
               "Pass x0 where it is defined, or mend the function or the sample")  # fmt: skip


def _symmetric(facts: Knowledge) -> bool | None:
    known = facts.linear or facts.aggregate
    return None if known is None else known.symmetric


def _constants(
    facts: Knowledge, slopes: Slopes, seconds: float, largest: tuple[Witness, Witness]
) -> dict[str, Constant]:
    """Derived, declared, or as a search found them."""
    share = 0.35 * seconds
    found = {"kappa": facts.kappa(share), "mu": facts.mu(share), "theta": facts.theta(share)}
    if not facts.structure.constant_jacobian:
        if found["mu"] is None and slopes.refuted is None:
            seen = slopes.least_seen
            if seen is not None and seen.value > 0:
                found["mu"] = Constant(seen.value, Provenance.ESTIMATED, "the least slope that was found; not a bound")
        if found["kappa"] is None:
            found["kappa"] = Constant(slopes.steepest.value, Provenance.ESTIMATED, "the steepest found; not a bound")
    found["R"] = facts.R(0.15 * seconds)
    found["M"] = facts.M(0.15 * seconds)
    declared = facts.problem.declared
    for name, value, seen in (("M", declared.M, largest[0]), ("R", declared.R, largest[1])):
        derived = found[name]
        if value is not None and seen.value > value * (1 + 1e-9):
            found[name] = Constant(value, Provenance.VIOLATED, f"declared, but {seen}")
        elif value is not None and (derived is None or derived.value > value):
            found[name] = Constant(value, Provenance.DECLARED, "ez.declare")
        elif derived is None and facts.row is not None:
            found[name] = Constant(seen.value, Provenance.ESTIMATED, "the largest found; not a bound")
    diameter = domain_diameter(facts.problem.strategies, facts.x)
    found["diameter"] = Constant(diameter, Provenance.EXACT, "of the domain of A" if math.isfinite(diameter) else
                                 "the domain of A is unbounded")  # fmt: skip
    order = ("mu", "kappa", "theta", "R", "M", "diameter")
    return {name: constant for name in order if (constant := found[name]) is not None}


def _average(known: Known) -> Assumption:
    """Whether B̂ is monotone, which methods need."""
    if known.monotone is None:
        return Assumption(Standing.OPEN, known.why)
    said = known.why if known.monotone is Provenance.VIOLATED else known.because
    return Assumption(BY_PROVENANCE[known.monotone], said or str(known.monotone))


def _convex(facts: Knowledge, values: PyTree, slopes: Slopes) -> Assumption:
    """Whether every agent's cost is convex in its own strategy, or the loss convex."""
    problem = facts.problem
    monotone = slopes.monotone()
    if not isinstance(problem, Game | AggregativeGame):
        if problem.is_gradient:
            return Assumption(monotone.status, "the loss is convex where its gradient is monotone", monotone.witness)
        return Assumption(Standing.HOLDS, "there are none")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ConvexityWarning)
        try:
            problem.examine(values, facts.x)
        except InputError as error:
            return Assumption(Standing.VIOLATED, str(error))
    if seen:
        return Assumption(Standing.VIOLATED, str(seen[0].message))
    if monotone.status is Standing.HOLDS:
        return Assumption(Standing.HOLDS, "the pseudogradient is monotone, so each cost is convex in its own strategy")
    return Assumption(Standing.UNREFUTED, "at the points that were looked at")


def _compact(constants: dict[str, Constant]) -> Assumption:
    if math.isfinite(constants["diameter"].value):
        return Assumption(Standing.HOLDS, f"its diameter is {constants['diameter'].value:.4g}")
    return Assumption(Standing.VIOLATED, "the domain is unbounded: bound the strategies where a certificate needs it")


def _start(moved: list[str], given: bool) -> Assumption:
    if moved:
        return Assumption(Standing.VIOLATED, moved[0])
    return Assumption(Standing.HOLDS, "it is" if given else "a point of the domain is taken")


def _step(plan: Plan, choice: Choice, known: Known, x: PyTree) -> Assumption:
    """Whether the step is one for which the method is proved to converge."""
    if choice.doubts:
        return Assumption(Standing.OPEN, f"no step is proved to converge: {choice.doubts[0]}")
    try:
        settled = choice.method.prepared(plan.problem, x, known)
    except InputError as error:
        return Assumption(Standing.VIOLATED, str(error))
    if choice.method.open:
        return Assumption(Standing.HOLDS, settled.description)
    found = settled.limits(plan.problem, x, known)
    if found is None:
        return Assumption(Standing.OPEN, f"{settled.description}: too little is known for a range")
    longest, limits = found
    fits = longest < limits.limit
    said = f"{longest:.4g} is {'below' if fits else 'not below'} {limits.limit:.4g}, the limit for {limits.because}"
    return Assumption(Standing.HOLDS if fits else Standing.VIOLATED, said)


def _title(plan: Plan, choice: Choice, known: Known, x: PyTree) -> str:
    try:
        return choice.method.prepared(plan.problem, x, known).description
    except InputError as error:
        return str(error)


def _unbiased(problem: Problem, sets: list[Samples]) -> Assumption:
    if not sets:
        return Assumption(Standing.HOLDS, "nothing is uncertain")
    return Assumption(Standing.DECLARED, "the samples are taken for draws of the law that is meant")


def _orders(sets: list[Samples], order: Order | None, seed: int) -> list[Order]:
    return [order] if order is not None else [examine_order(sample_rows(one.values), seed) for one in sets]


def _identical(problem: Problem, sets: list[Samples], order: Order | None, seed: int) -> Assumption:
    """Against drift and changes of the law, by a conformal test martingale."""
    if not sets:
        return Assumption(Standing.HOLDS, "nothing is uncertain")
    worst = max(_orders(sets, order, seed), key=lambda one: one.e_value)
    p = min(1.0, 1 / worst.e_value)
    if p <= LEVEL:
        where = "" if worst.change is None else f"; it changes near sample {worst.change}"
        return Assumption(Standing.VIOLATED, f"a test martingale grew to e = {worst.e_value:.3g}{where}",
                          sample=worst.change, p_value=p)  # fmt: skip
    standing = Standing.DECLARED if problem.declared.independent else Standing.UNREFUTED
    return Assumption(standing, f"a test martingale reached e = {worst.e_value:.3g} only", p_value=p)


def _independent(problem: Problem, sets: list[Samples], order: Order | None, seed: int) -> Assumption:
    """Of neighbours, by Ljung and Box; repeated rows are one sample."""
    if not sets:
        return Assumption(Standing.HOLDS, "nothing is uncertain")
    repeated = [one for one in sets if one.repeated]
    if repeated:
        return Assumption(Standing.VIOLATED, f"{repeated[0].repeated} of {len(repeated[0])} rows are repetitions")
    worst = min(_orders(sets, order, seed), key=lambda one: one.ljung_box)
    said = (
        f"lag-1 autocorrelation {worst.lag_one:.2f} (entry {worst.column}), Ljung–Box p = "
        f"{max(worst.ljung_box, 1e-300):.2g} over {worst.lags} lags, effective sample size {worst.effective:.0f} "
        f"of {worst.samples}"
    )
    if worst.ljung_box <= LEVEL:
        return Assumption(Standing.VIOLATED, f"{said}. ez.certificates.Dependent is made for such samples",
                          p_value=worst.ljung_box)  # fmt: skip
    standing = Standing.DECLARED if problem.declared.independent else Standing.UNREFUTED
    return Assumption(standing, said, p_value=worst.ljung_box)
