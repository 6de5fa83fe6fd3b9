"""Everything that is looked at before the first iteration: data, starting point, shapes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import InputError, refuse
from epszero._memory import key_of, remembered
from epszero._points import as_data, norm, shapes, subtract
from epszero._trace.programs import equations_in
from epszero._types import Array, PyTree, Real
from epszero.facts import Facts, Known, Provenance, facts_of
from epszero.oracles import Average, Oracle, OwnData, PrimalDual, strategies
from epszero.oracles.sampled import sampled
from epszero.problems import Minimization, Problem
from epszero.problems.seen import Examination
from epszero.samples import Samples, inside_support

GivenSamples = Samples | Sequence[Samples] | Real | None
"""What users may pass as data: one data set, one for each agent, or the bare numbers of one."""

MOST_GUESSED = 64  # dimensions tried when neither the set nor x0 says how long x is


def checked_samples(problem: Problem, samples: Any) -> Samples | list[Samples] | None:
    """The samples that the oracle needs: none, one data set, or one per block."""
    oracle = problem.oracle
    if not oracle.uncertain:
        if samples is not None:
            refuse(
                "samples",
                "are given, but nothing in the problem depends on them: its function takes x alone",
                "Leave samples out, or write the function as f(x, xi)",
            )
        return None
    if samples is None:
        refuse(
            "samples",
            "are needed: the problem's function takes a sample as its second argument",
            "Pass ez.Samples(values)",
        )
    if isinstance(samples, list | tuple) and any(isinstance(one, Samples) for one in samples):
        return _one_per_block(oracle, list(samples))
    if isinstance(samples, Samples):
        return samples
    try:
        return Samples(samples)
    except InputError as error:
        if error.rule is None or error.remedy is None:
            raise
        name = "samples" + (error.argument or "").removeprefix("values")
        raise InputError.about(name, error.rule, error.remedy) from error


def averaged(problem: Problem, samples: Samples | list[Samples] | None, x: PyTree) -> Average:
    """B̂, from data that has been checked."""
    return problem.oracle.average(values_of(samples), x)


def with_samples(problem: Problem, samples: Samples | list[Samples] | None, x: PyTree) -> Average:
    """B̂ with the samples at hand, for a method that draws batches from one data set for all."""
    if isinstance(samples, list):
        refuse(
            "method", "draws batches from one data set that all agents see, but each has its own", "Pass one Samples"
        )
    B = averaged(problem, samples, x)
    return B if samples is None else sampled(problem.oracle, samples.values, x, B)


def values_of(samples: Samples | list[Samples] | None) -> PyTree:
    """The data as oracles take them."""
    return OwnData(one.values for one in samples) if isinstance(samples, list) else samples and samples.values


def supports_of(problem: Problem, samples: Samples | list[Samples] | None) -> list[Any]:
    """The support of each data set; where it comes without, the declared one, unless samples lie outside."""
    sets = samples if isinstance(samples, list) else [] if samples is None else [samples]
    return [_declared_support(problem, one) if one.support is None else one.support for one in sets]


def _declared_support(problem: Problem, samples: Samples) -> Any:
    support = problem.declared.support
    if support is None:
        return None
    try:
        held = inside_support(support, samples.values)
    except (InputError, ValueError, TypeError) as error:
        raise InputError(f"support: the declared one does not fit the samples. {error}") from error
    return support if np.shape(held) == (len(samples),) and np.all(held) else None


def starting_point(problem: Problem, samples: Samples | list[Samples] | None, x0: Any) -> tuple[PyTree, list[str]]:
    """x⁰ in the domain of A, with multipliers where constraints are shared, and a note where it had to be moved."""
    if x0 is None:
        return problem.A.as_point("x0", problem.lifted(_own_start(problem, samples))), []
    given = x0 if isinstance(x0, PrimalDual) and problem.coupling is not None else PrimalDual(x0, None)
    x = problem.strategies.as_point("x0", given.x)
    problem.check_point("x0", x)
    if not all(np.size(leaf) for leaf in jax.tree.leaves(x)):
        refuse("x0", "has no entries", "Pass one number for each entry of x")
    x = problem.A.as_point("x0", problem.lifted(given._replace(x=x) if given.multipliers is not None else x))
    inside = problem.A.into_domain(x)
    moved = float(norm(subtract(x, inside)))
    return inside, [f"x0 was outside the domain and was projected on it (moved by {moved:.3g})."] if moved else []


def _one_per_block(oracle: Oracle, samples: list[Any]) -> list[Samples]:
    if oracle.data_sets is None:
        refuse(
            "samples",
            "one data set per agent needs a game, or a problem defined by a list of functions",
            "Pass one Samples, or give one function per block",
        )
    if len(samples) != oracle.data_sets:
        refuse("samples", f"{len(samples)} data sets for {oracle.data_sets} agents or blocks", "Give one for each")
    if not all(isinstance(one, Samples) for one in samples):
        refuse("samples", "in a list must all be ez.Samples", "Wrap each data set in ez.Samples")
    return samples


# -- before a run ------------------------------------------------------------------------------------------------------


class Setting(NamedTuple):
    """What a run starts from."""

    samples: Samples | list[Samples] | None
    kept_aside: Samples | None
    x: PyTree  # x⁰, with multipliers where constraints are shared
    facts: Facts
    examination: Examination
    notes: tuple[str, ...]  # what a user should know

    @property
    def wrong(self) -> str:
        """Where a derivative is seen not to be that of a cost; empty where none is."""
        return "" if self.facts.costs is None else self.facts.costs.wrong

    @property
    def point(self) -> PyTree:
        """The strategies of x⁰."""
        return strategies(self.x)


def setting_of(problem: Problem, samples: Samples | list[Samples] | None, kept: Samples | None, x0: Any) -> Setting:
    """From data that has been checked: the starting point, and what is known of the problem there."""
    x, moved = starting_point(problem, samples, x0)
    shape_notes = check_shapes(problem, samples, x)
    facts = facts_at(problem, samples, strategies(x))
    if samples is not None and facts.structure.declared:
        _refuse_bent(problem, samples, x)
    examination = examined(facts, samples, strategies(x))
    notes = (*moved, *shape_notes, *map(str, examination.bent), *examination.notes)
    setting = Setting(samples, kept, x, facts, examination, notes)
    return setting._replace(notes=(*notes, f"{setting.wrong}.")) if setting.wrong else setting


def facts_at(problem: Problem, samples: Samples | list[Samples] | None, x: PyTree, effort: float = 1.0) -> Facts:
    """What is known of the problem, for points like x and samples like these."""
    data = values_of(samples)
    row = (
        OwnData(jax.tree.map(_first, own) for own in data) if isinstance(data, OwnData) else jax.tree.map(_first, data)
    )
    return facts_of(problem, supports_of(problem, samples), row, x, effort)


def _first(leaf: Any) -> Any:
    return leaf[0]


def check_shapes(problem: Problem, samples: Samples | list[Samples] | None, x: PyTree) -> list[str]:
    """Trace O once at x and one sample: it must return something like x. Gives notes."""
    rows, one_each = _rows(samples), isinstance(samples, list)
    return remembered(
        problem, ("shapes", one_each, _typed_shapes((x, rows))), lambda: _trace(problem, x, rows, one_each)
    )


def examined(facts: Facts, samples: Samples | list[Samples] | None, x: PyTree) -> Examination:
    """A closer look at the problem near x, by as little of x and the data as matters.

    Where costs are proved to be convex, with constant own Hessians, neither does. Where these do not know the data,
    one sample is as good as all, unless something is not finite there.
    """
    problem = facts.problem
    if not problem.examined:
        return Examination()
    convex = facts.convex
    proved = isinstance(convex, Known) and convex.provenance is Provenance.EXACT
    affine = problem.coupling is None or problem.coupling.affine
    if proved and isinstance(problem, Minimization):
        return Examination()
    if remembered(problem, ("judges", facts.shapes), lambda: problem.judges(facts.row, facts.x)):
        return _judged(problem, samples, x, proved)
    if proved and affine:
        x = facts.x
    key = "examination", proved, facts.shapes, key_of(x)
    found = remembered(problem, key, lambda: problem.examine(as_data(facts.row), x, proved=proved))
    return found if found.finite else _judged(problem, samples, x, proved)


def _judged(problem: Problem, samples: Samples | list[Samples] | None, x: PyTree, proved: bool) -> Examination:
    """The same, where the values of the data matter."""
    sets = samples if isinstance(samples, list) else [] if samples is None else [samples]
    key = "examination of data", proved, key_of(x), tuple(one.digest() for one in sets)
    found = remembered(problem, key, lambda: problem.examine(values_of(samples), x, proved=proved))
    if not found.finite:
        problem.refuse_undefined(values_of(samples), x)
    return found


def _typed_shapes(tree: PyTree) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)


def _trace(problem: Problem, x: PyTree, rows: PyTree, one_each: bool) -> list[str]:
    name, oracle = problem.uncertain_side, problem.oracle
    where = f"x of shape {shapes(x)}" + (f" and a sample of shape {shapes(rows)}" if oracle.uncertain else "")
    sample = OwnData(rows) if one_each else rows
    try:
        problem.check_costs(sample, strategies(x))
        traced, returned = jax.make_jaxpr(oracle.traced(x, sample), return_shape=True)(x, sample)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{name}: cannot be evaluated at {where}: {str(error).splitlines()[0].rstrip('.')}. "
            "Make the dimensions of the function, the set, x0 and the samples agree, and compute with jax.numpy."
        ) from error
    if jax.tree.structure(returned) != jax.tree.structure(x) or shapes(returned) != shapes(x):
        refuse(
            name,
            f"must return a value shaped like x, {shapes(x)}, but at {where} it returns {shapes(returned)}",
            "Return one number per entry of x",
        )
    if not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(returned)):
        refuse(name, "must return real numbers", "Return a float array")
    if any(equation.params["vmap_method"] is None for equation in equations_in(traced.jaxpr, "pure_callback")):
        refuse(
            name,
            "calls Python in a way that fits one sample and one point only",
            'Pass vmap_method="sequential" to jax.pure_callback',
        )
    single = any(getattr(constant, "dtype", None) == jnp.float32 for constant in traced.consts)
    note = f"{name} holds float32 arrays, exact to 1e-7 only: build its constants with NumPy instead of jax.numpy."
    return [note] if single else []


def _refuse_bent(problem: Problem, samples: Samples | list[Samples] | None, x: PyTree) -> None:
    """Refuse an oracle declared affine in features that is not so between its first and last sample."""
    if samples is None:
        return
    first, last = (_sample(samples, i) for i in (0, -1))
    oracle = problem.oracle.traced(x, first)
    bends = [float(_bend(oracle, point, first, last)) for point in _two_points(x)]
    bend = max(bend if bend > 0 else 0.0 for bend in bends)
    if bend > 1e-9:
        refuse(
            problem.uncertain_side,
            f"is declared affine in features, but halfway between two samples' features it is off by {bend:.2g} "
            "of its size",
            "Make it affine in the features, or pass the plain function of x and a sample",
        )


@eqx.filter_jit
def _bend(oracle: Oracle, x: PyTree, xi: PyTree, other: PyTree) -> Array:
    return oracle.bend(x, xi, other)


def _sample(samples: Samples | list[Samples], i: int) -> PyTree:
    if isinstance(samples, list):
        return OwnData(_sample(one, i) for one in samples)
    return jax.tree.map(lambda leaf: leaf[i], samples.values)


def _two_points(x: PyTree) -> tuple[PyTree, PyTree]:
    """x, and a point beside it where nothing vanishes by chance; off the domain it may be NaN, which says nothing."""

    def beside(leaf: Any) -> Any:
        return leaf + 0.1 * (1 + np.abs(leaf)) * np.cos(np.arange(np.size(leaf))).reshape(np.shape(leaf))

    return x, jax.tree.map(beside, x)


def _rows(samples: Samples | list[Samples] | None) -> PyTree:
    """The shape of one sample, or of one per agent."""
    if samples is None:
        return ()
    if isinstance(samples, list):
        return [_rows(one) for one in samples]
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), samples.values)


def _own_start(problem: Problem, samples: Samples | list[Samples] | None) -> PyTree:
    """A point of the domain, of the shape that A knows, or else of the one length at which the oracle makes sense."""
    start = problem.start
    if all(leaf is not None for leaf in jax.tree.leaves(start, is_leaf=lambda leaf: leaf is None)):
        return start
    leading = problem.leading
    if leading is None:
        refuse("x0", "A does not fix the shape of x in every block", "Pass x0, or dim= to each set")
    width = [leaf.shape[-1] for leaf in jax.tree.leaves(samples.values)] if isinstance(samples, Samples) else []
    rows = _rows(samples)

    def tried() -> tuple[list[int], str]:
        answers = {n: _fit(problem, samples, (*leading, n)) for n in {*range(1, MOST_GUESSED + 1), *width}}
        return [n for n, error in answers.items() if error is None], str(answers[max(width, default=1)])

    fitting, error = remembered(problem, ("lengths", isinstance(samples, list), _typed_shapes(rows)), tried)
    if len(fitting) == 1:
        return problem.strategies.into_domain(np.zeros((*leading, *fitting)))
    why = "of several lengths" if fitting else f"of no length that was tried ({error})"
    refuse(
        "x0",
        f"the dimension of x is open: A fits vectors of any length, and the oracle fits vectors {why}",
        "Pass x0, or dim= to the set",
    )


def _fit(problem: Problem, samples: Samples | list[Samples] | None, shape: tuple[int, ...]) -> InputError | None:
    try:
        problem.strategies.check_shapes("x0", np.zeros(shape))
        _trace(problem, problem.lifted(np.zeros(shape)), _rows(samples), one_each=isinstance(samples, list))
    except InputError as error:
        return error
    return None
