"""`audit`: which assumption holds, which is declared, which is violated, and where every constant comes from."""

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np

from epszero._checks import InputError, count, known_arguments, one_positive, refuse
from epszero._doors import html_of
from epszero._double import double
from epszero._types import PyTree, Real
from epszero.audit import noise
from epszero.audit.findings import BY_PROVENANCE, Assumption, Standing
from epszero.audit.slopes import Slopes
from epszero.facts import (
    AverageFacts,
    Constant,
    Facts,
    Observed,
    Provenance,
    Structure,
    Unknown,
    average_facts,
    base_oracle,
    first_rows,
    has_costs,
)
from epszero.methods import Method
from epszero.oracles import strategies
from epszero.oracles.features import sample_rows
from epszero.problems import Problem
from epszero.problems.seen import Examination
from epszero.samples import Samples
from epszero.samples.independence import IN_ORDER, LEVEL, Order, examine_order
from epszero.solve.choice import Choice, chosen
from epszero.solve.request import Request
from epszero.solve.setup import (
    averaged,
    check_shapes,
    checked_samples,
    examined,
    facts_at,
    starting_point,
    values_of,
)

WIDTH = 118  # of a printed line
TOO_LARGE = "the domain is bounded, but its diameter is more than float64 can hold"
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
                name: {
                    "value": one.value if math.isfinite(one.value) else None,
                    "provenance": str(one.provenance),
                    "evidence": one.evidence,
                }
                for name, one in self.constants.items()
            },
            "assumptions": {name: one.as_record() for name, one in self.assumptions.items()},
            "method": self.method,
            "samples": self.samples,
            "order": None if self.order is None else {**vars(self.order), "p_value": self.order.p_value},
        }
        return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)

    _repr_html_ = html_of

    def __str__(self) -> str:
        lines = [f"structure   {self.structure}", "constants"]
        for name, one in self.constants.items():
            lines += _row(NAMES.get(name, name), _number(one.value), str(one.provenance), one.evidence)
        lines.append("assumptions")
        for name, one in self.assumptions.items():
            lines += _row(name, str(one.status), "", one.evidence)
        lines += _row("method", "", "", self.method)
        return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "none"


def _row(name: str, first: str, second: str, text: str) -> list[str]:
    head = f"  {name:<28}{first:<12}{second:<11}" if second else f"  {name:<28}{first:<18}"
    room = " " * len(head)
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=room, break_long_words=False) or [head]


@known_arguments
def audit(
    problem: Problem,
    samples: Samples | Sequence[Samples] | Real | None = None,
    *,
    method: Method | None = None,
    x0: PyTree = None,
    budget: float = 1.0,
    seed: int = 0,
) -> Audit:
    """Look at a problem and its samples: structure, constants with provenance, and every assumption with evidence.

    `method` and `x0` are looked at where they are given. `budget`: how much work verified constants of nonlinear
    problems are worth, as a multiple of what solving and certifying spend on them (up to 40 000 boxes each); the more
    the tighter. `seed` is that of the search for contradictions.
    """
    effort, seed = one_positive("budget", budget), count("seed", seed)
    request = Request(problem, method, None, None, None)
    data = checked_samples(problem, samples)
    with double():
        x, moved = starting_point(problem, data, x0)
        check_shapes(problem, data, x)
        point = strategies(x)
        values = values_of(data)
        row = None if values is None else first_rows(values)
        _refuse_undefined(problem, point, row)
        sets = data if isinstance(data, list) else [] if data is None else [data]
        facts = facts_at(problem, data, point, effort)
        observed = Observed(facts, values, sets, seed)
        slopes = Slopes(facts, observed)
        examination = _examination(facts, data, point)
        units = examination.unit_steps if isinstance(examination, Examination) else None
        average = averaged(problem, data, x)
        known = average_facts(facts_at(problem, data, point), average, values, point, prove=method is None)
        known = replace(known, unit_steps=units)
        choice = Choice(method, None, "") if method is not None else chosen(problem, known, point)
        constants = _constants(facts, observed, slopes)
        order = examine_order(sample_rows(sets[0].values), seed) if len(sets) == 1 else None
        assumptions = {
            "monotone": slopes.monotone(),
            "strongly monotone": slopes.strongly_monotone(),
            "cocoercive": slopes.cocoercive(),
            "average monotone": _average(known),
            "Lipschitz": slopes.lipschitz(),
            "convex costs": _convex(facts, examination, slopes),
            "defined": _defined(facts, examination),
            **({"gradient": slopes.gradient()} if problem.declared.gradient else {}),
            "compact domain": _compact(constants),
            "x0 in the domain": _start(moved, x0 is not None),
            "step": _step(request, choice, known, x),
            "unbiased": _unbiased(problem, sets),
            "bounded noise": noise.bounded(observed, sets, constants.get("R")),
            "support": noise.support(facts),
            "samples inside the support": noise.inside(facts, sets),
            "identically distributed": _identical(problem, sets, order, seed),
            "independent": _independent(problem, sets, order, seed),
        }
        title = f"nothing is proved to converge: {choice.doubt}" if choice.doubt else _title(request, choice, known, x)
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
        refuse(
            problem.uncertain_side,
            "is NaN or infinite at the start, for the first sample",
            "Pass x0 where it is defined, or mend the function or the sample",
        )


def _symmetric(facts: Facts) -> bool | None:
    known = facts.jacobian or facts.aggregate
    return None if known is None else known.symmetric


def _constants(facts: Facts, observed: Observed, slopes: Slopes) -> dict[str, Constant]:
    """Derived, declared, or as a search found them."""
    known = {"mu": observed.mu, "kappa": observed.kappa, "theta": observed.theta, "R": observed.R, "M": observed.M}
    constants = {name: one for name, one in known.items() if isinstance(one, Constant)}
    if not facts.structure.constant_jacobian:
        seen = observed.least_seen if "mu" not in constants and slopes.refuted is None else None
        if seen is not None and seen.value > 0:
            constants["mu"] = Constant(seen.value, Provenance.ESTIMATED, "the least slope that was found; not a bound")
        if "kappa" not in constants:
            constants["kappa"] = Constant(
                observed.steepest.value, Provenance.ESTIMATED, "the steepest found; not a bound"
            )
    for name, place in (("M", 0), ("R", 1)):
        if name not in constants and facts.row is not None:
            constants[name] = Constant(
                observed.sizes[place].value, Provenance.ESTIMATED, "the largest found; not a bound"
            )
    finite = {name: one for name, one in constants.items() if math.isfinite(one.value)}  # not beyond float64
    finite["diameter"] = _diameter(facts)
    return {name: finite[name] for name in ("mu", "kappa", "theta", "R", "M", "diameter") if name in finite}


def _diameter(facts: Facts) -> Constant:
    found = facts.diameter
    if isinstance(found, Constant):
        return found
    if facts.domain.bounded:
        return Constant(math.inf, Provenance.ESTIMATED, TOO_LARGE)
    return Constant(math.inf, Provenance.EXACT, found.reason)


def _average(known: AverageFacts) -> Assumption:
    """Whether B̂ is monotone, which methods need."""
    if isinstance(known.monotone, Unknown):
        return Assumption(Standing.OPEN, known.monotone.reason)
    return Assumption(BY_PROVENANCE[known.monotone], known.because or str(known.monotone))


def _examination(facts: Facts, data: Samples | list[Samples] | None, x: PyTree) -> Examination | Unknown:
    """What a closer look near x finds, or what it refuses."""
    try:
        return examined(facts, data, x)
    except InputError as error:
        return Unknown(str(error))


def _convex(  # noqa: PLR0911  (one line for each thing that can be said)
    facts: Facts, examination: Examination | Unknown, slopes: Slopes
) -> Assumption:
    """Whether every agent's cost is convex in its own strategy, or the loss convex."""
    if not has_costs(facts.problem):
        return Assumption(Standing.HOLDS, "there are none")
    if isinstance(examination, Unknown) or examination.bent:
        said = examination.reason if isinstance(examination, Unknown) else str(examination.bent[0])
        return Assumption(Standing.VIOLATED, said)
    convex, derivative, monotone = facts.convex, facts.derivative, slopes.monotone()
    if isinstance(convex, Unknown) or isinstance(derivative, Unknown):
        return Assumption(Standing.OPEN, convex.reason if isinstance(convex, Unknown) else "the derivative is unknown")
    if convex.provenance is Provenance.EXACT:
        return Assumption(Standing.HOLDS, convex.evidence)
    if monotone.status is Standing.VIOLATED and facts.problem.is_gradient:
        return Assumption(Standing.VIOLATED, "the loss is convex where its gradient is monotone", monotone.witness)
    if monotone.status is Standing.HOLDS and derivative.provenance is Provenance.EXACT:
        return Assumption(Standing.HOLDS, "B is their derivative, and monotone, so each is convex in its own strategy")
    if facts.problem.declared.convex:
        return Assumption(Standing.DECLARED, convex.evidence)
    said = derivative.evidence if derivative.provenance is Provenance.DECLARED else ""
    return Assumption(Standing.UNREFUTED, f"at the points that were looked at{said and '; '}{said}")


def _defined(facts: Facts, examination: Examination | Unknown) -> Assumption:
    """Whether B and the costs have values on all of the domain."""
    if isinstance(examination, Examination) and examination.undefined:
        return Assumption(Standing.VIOLATED, "a cost is NaN at a point of the domain that was looked at")
    doubt = "" if facts.structure.affine else facts.operator.undefined
    return Assumption(Standing.OPEN, doubt) if doubt else Assumption(Standing.HOLDS, "by following the operations")


def _compact(constants: dict[str, Constant]) -> Assumption:
    if math.isfinite(constants["diameter"].value):
        return Assumption(Standing.HOLDS, f"its diameter is {constants['diameter'].value:.4g}")
    if constants["diameter"].evidence == TOO_LARGE:
        return Assumption(Standing.OPEN, TOO_LARGE)
    return Assumption(Standing.VIOLATED, "the domain is unbounded: bound the strategies where a certificate needs it")


def _start(moved: list[str], given: bool) -> Assumption:
    if moved:
        return Assumption(Standing.VIOLATED, moved[0])
    return Assumption(Standing.HOLDS, "it is" if given else "a point of the domain is taken")


def _step(request: Request, choice: Choice, known: AverageFacts, x: PyTree) -> Assumption:
    """Whether the step is one for which the method is proved to converge."""
    if choice.doubt:
        return Assumption(Standing.OPEN, f"no step is proved to converge: {choice.doubt}")
    try:
        settled = choice.method.prepared(request.problem, x, known)
    except InputError as error:
        return Assumption(Standing.VIOLATED, str(error))
    if choice.method.open:
        return Assumption(Standing.HOLDS, settled.description)
    step_and_limits = settled.limits(request.problem, x, known)
    if step_and_limits is None:
        return Assumption(Standing.OPEN, f"{settled.description}: too little is known for a range")
    longest, limits = step_and_limits
    fits = longest < limits.limit
    said = f"{longest:.4g} is {'below' if fits else 'not below'} {limits.limit:.4g}, the limit for {limits.because}"
    return Assumption(Standing.HOLDS if fits else Standing.VIOLATED, said)


def _title(request: Request, choice: Choice, known: AverageFacts, x: PyTree) -> str:
    try:
        return choice.method.prepared(request.problem, x, known).description
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
        return Assumption(
            Standing.VIOLATED,
            f"a test martingale grew to e = {worst.e_value:.3g}{where}",
            sample=worst.change,
            p_value=p,
        )
    standing = Standing.DECLARED if problem.declared.independent else Standing.UNREFUTED
    return Assumption(standing, f"a test martingale reached e = {worst.e_value:.3g} only", p_value=p)


def _independent(problem: Problem, sets: list[Samples], order: Order | None, seed: int) -> Assumption:
    """Of neighbours, by Ljung and Box; repeated rows are one sample."""
    if not sets:
        return Assumption(Standing.HOLDS, "nothing is uncertain")
    repeated = [one for one in sets if one.repeated]
    if repeated:
        return Assumption(Standing.VIOLATED, f"{repeated[0].repeated} of {len(repeated[0])} rows are repetitions")
    place, worst = min(enumerate(_orders(sets, order, seed)), key=lambda one: one[1].ljung_box)
    said = (
        f"lag-1 autocorrelation {worst.lag_one:.2f} ({sets[place].called(worst.column)}), Ljung–Box p = "
        f"{max(worst.ljung_box, 1e-300):.2g} over {worst.lags} lags, effective sample size {worst.effective:.0f} "
        f"of {worst.samples}"
    )
    if worst.ljung_box <= LEVEL:
        return Assumption(Standing.VIOLATED, f"{said}. {IN_ORDER}", p_value=worst.ljung_box)
    standing = Standing.DECLARED if problem.declared.independent else Standing.UNREFUTED
    return Assumption(standing, said, p_value=worst.ljung_box)
