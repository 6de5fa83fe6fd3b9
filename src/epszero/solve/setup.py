"""Everything that is looked at before the first iteration: data, starting point, shapes."""

from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import InputError, refuse
from epszero._points import norm, shapes, subtract
from epszero._shaped import Shaped
from epszero._types import PyTree
from epszero.oracles import AffineInFeatures, Average, Blocks, Oracle, OwnData
from epszero.problems import Problem
from epszero.problems.backward import is_part
from epszero.samples import Samples

MOST_GUESSED = 64  # dimensions tried when neither the set nor x0 says how long x is


def checked_samples(problem: Problem, samples: Any) -> Samples | list[Samples] | None:
    """The samples that the oracle needs: none, one data set, or one per block."""
    oracle = problem.oracle
    if not oracle.uncertain:
        if samples is not None:
            refuse("samples", "are given, but nothing in the problem depends on them: its function takes x alone",
                   "Leave samples out, or write the function as f(x, xi)")  # fmt: skip
        return None
    if samples is None:
        refuse("samples", "are needed: the problem's function takes a sample as its second argument",
               "Pass ez.Samples(values)")  # fmt: skip
    if isinstance(samples, list | tuple) and any(isinstance(one, Samples) for one in samples):
        return _one_per_block(oracle, list(samples))
    return samples if isinstance(samples, Samples) else Samples(samples)


def averaged(problem: Problem, samples: Samples | list[Samples] | None, x: PyTree) -> Average:
    """B̂, from data that has been checked."""
    data = OwnData(one.values for one in samples) if isinstance(samples, list) else samples and samples.values
    return problem.oracle.average(data, x)


def starting_point(problem: Problem, samples: Samples | list[Samples] | None, x0: Any) -> tuple[PyTree, list[str]]:
    """x⁰ in the domain of A, and a note where it had to be moved there."""
    if x0 is None:
        return problem.A.as_point("x0", _own_start(problem, samples)), []
    x = problem.A.as_point("x0", x0)
    problem.A.check_shapes("x0", x)
    inside = problem.A.into_domain(x)
    moved = float(norm(subtract(x, inside)))
    return inside, [f"x0 was outside the domain and was projected on it (moved by {moved:.3g})."] if moved else []


def _one_per_block(oracle: Oracle, samples: list[Any]) -> list[Samples]:
    if not isinstance(oracle, Blocks):
        refuse("samples", "one data set per block needs a problem defined by blocks, that is, a list of functions",
               "Pass one Samples, or give one function per block")  # fmt: skip
    if len(samples) != len(oracle.leaves):
        refuse("samples", f"{len(samples)} data sets for {len(oracle.leaves)} blocks", "Give one per block, in order")
    if not all(isinstance(one, Samples) for one in samples):
        refuse("samples", "in a list must all be ez.Samples", "Wrap each data set in ez.Samples")
    return samples


# -- shapes ------------------------------------------------------------------------------------------------------------

_checked: "WeakKeyDictionary[Problem, dict[Any, list[str]]]" = WeakKeyDictionary()


def check_oracle(problem: Problem, samples: Samples | list[Samples] | None, x: PyTree) -> list[str]:
    """Trace O once at x and one sample: it must return something like x. Gives notes; remembered per shape."""
    rows = [_row(one) for one in samples] if isinstance(samples, list) else _row(samples)
    leaves, structure = jax.tree.flatten((x, rows))
    key = structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)
    seen = _checked.setdefault(problem, {})
    if key not in seen:
        notes = _trace(problem, x, rows, one_each=isinstance(samples, list))
        _refuse_bent(problem, samples, x)
        seen[key] = notes
    return seen[key]


def _trace(problem: Problem, x: PyTree, rows: PyTree, one_each: bool) -> list[str]:
    name, oracle = problem.uncertain_side, problem.oracle
    where = f"x of shape {shapes(x)}" + (f" and a sample of shape {shapes(rows)}" if oracle.uncertain else "")
    tracer = jax.make_jaxpr(lambda x, row: oracle(x, OwnData(row) if one_each else row), return_shape=True)
    try:
        traced, returned = tracer(x, rows)
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
    single = any(getattr(constant, "dtype", None) == jnp.float32 for constant in traced.consts)
    note = f"{name} holds float32 arrays, exact to 1e-7 only: build its constants with NumPy instead of jax.numpy."
    return [note] if single else []


def _refuse_bent(problem: Problem, samples: Samples | list[Samples] | None, x: PyTree) -> None:
    """Refuse an oracle declared affine in features that is not so between its first and last sample."""
    oracle = problem.oracle
    parts = oracle.leaves if isinstance(oracle, Blocks) else [oracle]
    data = samples if isinstance(samples, list) else [samples] * len(parts)
    for part, own in zip(parts, data, strict=True):
        if isinstance(part, AffineInFeatures) and own is not None:
            first, last = (jax.tree.map(lambda leaf, i=i: leaf[i], own.values) for i in (0, -1))
            bends = [part.bend(point, first, last) for point in _two_points(x)]
            bend = max(bend if bend > 0 else 0.0 for bend in bends)
            if bend > 1e-9:
                refuse(
                    problem.uncertain_side,
                    "is declared affine in features, but halfway between two samples' features it is off by "
                    f"{bend:.2g} of its size",
                    "Make C(x, f) linear in f, or pass the plain function of x and a sample",
                )


def _two_points(x: PyTree) -> tuple[PyTree, PyTree]:
    """x, and a point beside it where nothing vanishes by chance; off the domain it may be NaN, which says nothing."""

    def beside(leaf: Any) -> Any:
        return leaf + 0.1 * (1 + jnp.abs(leaf)) * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape)

    return jax.tree.map(jnp.asarray, x), jax.tree.map(beside, x)


def _row(samples: Samples | None) -> PyTree:
    if samples is None:
        return ()
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), samples.values)


def _own_start(problem: Problem, samples: Samples | list[Samples] | None) -> PyTree:
    """A point of the domain, of the shape that A knows, or else of the one length at which the oracle makes sense."""
    start = problem.A.start()
    if all(leaf is not None for leaf in jax.tree.leaves(start, is_leaf=lambda leaf: leaf is None)):
        return start
    parts = jax.tree.leaves(problem.A.parts, is_leaf=is_part)
    if len(parts) > 1 or not isinstance(parts[0], Shaped):
        refuse("x0", "A does not fix the shape of x in every block", "Pass x0, or dim= to each set")
    width = [leaf.shape[-1] for leaf in jax.tree.leaves(samples.values)] if isinstance(samples, Samples) else []
    answers = {n: _fit(problem, samples, (*parts[0].batch_shape, n)) for n in {*range(1, MOST_GUESSED + 1), *width}}
    fitting = [n for n, error in answers.items() if error is None]
    if len(fitting) == 1:
        return problem.A.into_domain(np.zeros((*parts[0].batch_shape, *fitting)))
    why = "of several lengths" if fitting else f"of no length that was tried ({answers[max(width, default=1)]})"
    refuse("x0", f"the dimension of x is open: A fits vectors of any length, and the oracle fits vectors {why}",
           "Pass x0, or dim= to the set")  # fmt: skip


def _fit(problem: Problem, samples: Samples | list[Samples] | None, shape: tuple[int, ...]) -> InputError | None:
    try:
        problem.A.check_shapes("x0", np.zeros(shape))
        check_oracle(problem, samples, np.zeros(shape))
    except InputError as error:
        return error
    return None
