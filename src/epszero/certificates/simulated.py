"""What `AtTheTruth` will say of s samples, from a pilot: by making its certificates of data sets that are drawn.

Its radii depend on the samples through Jacobians, second moments and searches, for which there is no formula before the
data. So certificates are made: of WORLDS laws that the pilot leaves plausible, each a data set drawn from the pilot
with replacement and as large as it, s samples are drawn, solved and certified. Sizes are powers of 2, so that programs
are compiled once for each; between two of them the bound is taken to be a power of s. The largest of all worlds counts:
a further one exceeds it in one case of WORLDS + 1, and the CARE of forecast.py is for that too. Beyond LARGEST numbers
in all samples the last two sizes are continued, where the bound still falls.
It is expected, and not promised. Cost: a run and a certificate for each world and size; some seconds.
"""

import math
import warnings
from collections.abc import Callable
from functools import cached_property

import jax
import numpy as np

from epszero._checks import InputError
from epszero._points import entries
from epszero.certificates._base import Kind, cannot, check_independent
from epszero.certificates.case import Case
from epszero.certificates.certify import certificate_of
from epszero.samples import Samples
from epszero.solve import solve

WORLDS = 9
LEAST = 64  # samples
LARGEST = 4_000_000  # numbers of all samples, times entries of x
MOST_SAMPLES = 1 << 17
FALLS = 0.15  # a bound that falls more slowly than s to this power is not continued
MOST = 10**15
SEED = 16


class Simulated:
    """Certificates of one kind, on data sets like those to come."""

    def __init__(self, pilot: Case, kind: Kind, delta: float, of: str) -> None:
        self.pilot, self.kind, self.delta, self.of = pilot, kind, delta, of
        self.because = ""  # why there was no bound, at the size that was asked for last
        self._known: dict[int, float] = {}

    @property
    def _largest(self) -> int:
        """Samples that are drawn at most."""
        row = sum(np.size(leaf) // len(leaf) for leaf in jax.tree.leaves(self.pilot.data(self.pilot.samples)))
        return int(min(MOST_SAMPLES, max(LEAST, LARGEST // max(1, row * entries(self.pilot.x)))))

    def given(self, size: int) -> float:
        """What so many samples will give, in the worst of the worlds."""
        if size <= self._largest:
            return self._worst(size)
        top = 1 << (self._largest.bit_length() - 1)
        return self._worst(top) * (size / top) ** -self._power(top)

    def needed(self, goal: float) -> float:
        """How many samples; ∞ where no number will do."""
        size, top = self._start(goal), 1 << (self._largest.bit_length() - 1)
        while size > LEAST and self._worst(size) <= goal:
            size //= 2
        while self._worst(size) > goal:
            if size >= top:
                return self._continued(size, goal)
            size *= 2
        low = size // 2
        if size <= LEAST or not math.isfinite(self._worst(low)):
            return float(size)
        above, below = self._worst(low), self._worst(size)
        share = math.log(above / goal) / math.log(above / below) if below > 0 else 1.0
        return float(math.ceil(low * (size / low) ** share))

    def _start(self, goal: float) -> int:
        """A power of 2 near the answer, if the bound falls like 1/√s from what one world has at the pilot's size."""
        size = 1 << max(LEAST, min(self._largest, len(self.pilot.samples[0]))).bit_length() - 1
        found = self._worlds[0](size)
        power = 0.5 if self.of in ("residual", "distance") else 1.0
        times = (found / goal) ** (1 / power) if math.isfinite(found) else 4.0
        steps = round(math.log2(min(max(times, 2**-30), 2**30)))
        most = self._largest.bit_length() - 1
        return 1 << min(max(size.bit_length() - 1 + steps, LEAST.bit_length() - 1), most)

    def _continued(self, size: int, goal: float) -> float:
        power, last = self._power(size), self._worst(size)
        if power < FALLS or not math.isfinite(last):
            return math.inf
        exponent = math.log(last / goal) / power
        return float(math.ceil(size * math.exp(exponent))) if exponent < math.log(MOST / size) else math.inf

    def _power(self, size: int) -> float:
        """At which the bound falls, at most ½, as it does in the end."""
        before, last = self._worst(size // 2), self._worst(size)
        if not (0 < last < math.inf and before < math.inf):
            return 0.0
        return min(0.5 if self.of in ("residual", "distance") else 1.0, math.log2(before / last))

    def _worst(self, size: int) -> float:
        if size not in self._known:
            self._known[size] = max(one(size) for one in self._worlds)
        return self._known[size]

    @cached_property
    def _worlds(self) -> list[Callable[[int], float]]:
        check_independent(self.pilot.samples)
        return [self._world(seed) for seed in range(WORLDS)]

    def _world(self, seed: int) -> Callable[[int], float]:
        (samples,) = self.pilot.samples
        rng = np.random.default_rng([SEED, seed])
        law = rng.integers(len(samples), size=len(samples))

        def value(size: int) -> float:
            rows = law[np.random.default_rng([SEED, seed, size]).integers(len(law), size=size)]
            drawn = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], samples.values)
            return self._value(Samples.from_arrays(drawn, samples.support))

        return value

    def _value(self, drawn: Samples) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = solve(self.pilot.problem, drawn, throw=False)
            except InputError as error:  # what no run is for
                cannot(str(error))
        if found.status.is_failure:
            cannot(f"a run on samples like the pilot's ended as {found.status.value}: ez.solve says more")
        said = certificate_of(Case.of(found), self.delta, self.kind)
        lines = {"residual": said.epsilon, "distance": said.distance, "cost gap": said.cost_gap}
        value = said.exploitability if self.of == "exploitability" else lines[self.of]
        if value is None or said.verdict == "refused":
            self.because = said.reason if said.verdict == "refused" else said.notes[self.of.replace(" ", "_")]
            return math.inf
        return float(np.max(value))
