"""Bounded noise, and the support of ξ."""

import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._types import FloatArray, PyTree
from epszero.audit.findings import Assumption, Standing
from epszero.facts import Constant, Facts, Observed, Provenance, base_oracle, brief_support
from epszero.facts.domains import support_box
from epszero.oracles.features import sample_rows
from epszero.samples import Samples, inside_support

MANY = 500  # samples from which the shape of a law can be told
LOOKED = 20  # entries of ξ, at most
ALIKE = 0.05  # p-value above which samples are like those of a normal law


def bounded(observed: Observed, samples: list[Samples], R: Constant | None) -> Assumption:
    """‖O(x, ξ) − O(x, ξ′)‖ ≤ R for all x in the domain and ξ, ξ′ in the support."""
    facts, declared = observed.facts, observed.problem.declared
    if not samples or facts.structure.degree.v == 0:
        return Assumption(Standing.HOLDS, "O does not depend on ξ")
    for name, word, place in (("M", declared.M, 0), ("R", declared.R, 1)):
        if word is not None and observed.sizes[place].value > word * (1 + 1e-9):
            seen = observed.sizes[place]
            return Assumption(Standing.VIOLATED, f"{name} = {word:.4g} is declared, but {seen}", seen)
    if R is not None and R.provenance in (Provenance.EXACT, Provenance.VERIFIED):
        return Assumption(Standing.HOLDS, f"R = {R.value:.4g}: {R.evidence}")
    if declared.R is not None or declared.M is not None:
        said = f"R = {declared.R:.4g}" if declared.R is not None else f"M = {declared.M:.4g}"
        return Assumption(Standing.DECLARED, f"{said}; no contradiction found")
    return _unbounded(facts, samples, observed.sizes[1].x)


def _unbounded(facts: Facts, samples: list[Samples], x: PyTree) -> Assumption:
    """Where nothing bounds the noise: whether anything can. Where O is affine in ξ, entries that move it have none."""
    missing = "no support is known: Samples(values, support=…) or ez.declare(support=…)"
    nothing = Assumption(Standing.OPEN, missing if None in facts.supports else "no bound over domain and support found")
    moving = _moving(facts, x) if facts.structure.own_features and facts.structure.degree.v == 1 else []
    if None not in facts.supports:
        box, _ = support_box(facts.supports, facts.row)
        moving = [entry for entry in moving if not (np.isfinite(box.lower[entry]) and np.isfinite(box.upper[entry]))]
    if not moving:
        return nothing
    if None not in facts.supports:
        entry = moving[0]
        values = np.concatenate([sample_rows(one.values)[: min(map(len, samples))] for one in samples], axis=1)[
            :, entry
        ]
        far = int(np.argmax(np.abs(values)))
        along = samples[0].called(entry) if len(samples) == 1 else f"entry {entry}"
        said = f"the support is unbounded along {along} of ξ, which moves O; sample {far} is at {values[far]:.4g}"
        return Assumption(Standing.VIOLATED, said, sample=far)
    normal = _normal(samples[0], moving) if len(samples) == 1 else None
    if normal is None:
        return nothing
    entry, p, sample, far = normal
    said = (
        f"no support is declared, and as far as {len(samples[0])} samples can tell ξ is normal, which has no bound "
        f"({samples[0].called(entry)}: p = {p:.2g}; sample {sample} is {far:.3g} standard deviations out). "
        "If a bound is known: Samples(values, support=…)"
    )
    return Assumption(Standing.VIOLATED, said, sample=sample)


def _moving(facts: Facts, x: PyTree) -> list[int]:
    """Entries of ξ that move O at x."""
    flat, unravel = ravel_pytree(facts.row)
    here = _value(facts, x, facts.row)
    moved = [unravel(flat.at[entry].add(1.0 + abs(float(flat[entry])))) for entry in range(min(len(flat), LOOKED))]
    return [entry for entry, there in enumerate(moved) if not np.array_equal(_value(facts, x, there), here)]


def _value(facts: Facts, x: PyTree, row: PyTree) -> FloatArray:
    return np.asarray(ravel_pytree(base_oracle(facts.problem)(x, row))[0])


def _normal(samples: Samples, entries: list[int]) -> tuple[int, float, int, float] | None:
    """(entry, p-value, sample farthest out, how far) where one of these entries cannot be told from a normal law."""
    rows = sample_rows(samples.values)
    if len(rows) < MANY:
        return None
    from scipy.stats import kstest  # noqa: PLC0415  (needed here only, and slow to import)

    spread = rows.std(axis=0)
    for entry in entries:
        if not spread[entry] > 0:
            continue
        scores = (rows[:, entry] - rows[:, entry].mean()) / spread[entry]
        p = float(kstest(scores[:: max(1, len(scores) // 5000)], "norm").pvalue)
        far = int(np.argmax(np.abs(scores)))
        if p > ALIKE and np.abs(scores[far]) > np.sqrt(np.log(len(scores))):
            return entry, p, far, float(np.abs(scores[far]))
    return None


def support(facts: Facts) -> Assumption:
    """Whether a set is known that holds ξ."""
    if not facts.supports:
        return Assumption(Standing.HOLDS, "nothing is uncertain")
    if any(one is None for one in facts.supports):
        if facts.problem.declared.support is not None:
            return Assumption(Standing.VIOLATED, "samples lie outside the declared support")
        return Assumption(Standing.OPEN, "give it by Samples(values, support=…) or ez.declare(support=…)")
    return Assumption(
        Standing.DECLARED, ", ".join(dict.fromkeys(brief_support(one) for one in facts.supports if one is not None))
    )


def inside(facts: Facts, samples: list[Samples]) -> Assumption:
    """Whether every sample lies in its support."""
    declared = facts.problem.declared.support
    for place, one in enumerate(samples):
        given = declared if one.support is None else one.support
        if given is None:
            return Assumption(Standing.OPEN, "no support is known")
        outside = np.flatnonzero(~inside_support(given, one.values).astype(bool))
        if len(outside):
            which = f" of data set {place}" if len(samples) > 1 else ""
            said = f"{len(outside)} of {len(one)} samples{which} lie outside, the first is sample {outside[0]}"
            return Assumption(Standing.VIOLATED, said, sample=int(outside[0]))
    return Assumption(Standing.HOLDS, "every sample was looked at" if samples else "there are none")
