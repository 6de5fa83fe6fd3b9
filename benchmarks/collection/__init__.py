"""A collection of seeded problems that a solver of monotone problems should solve, each with its own judge.

`python -m benchmarks.collection` lists them, and checks what can be checked without a solver: that planted solutions
are solutions, and that no two points contradict monotonicity where it is claimed.
"""

from benchmarks.collection import affine, agents, conditioned, kinked, literature, matrices, regressions, traffic
from benchmarks.collection._case import Case as Case
from benchmarks.collection._case import Posed as Posed

CASES: dict[str, Case] = {
    case.name: case
    for room in (affine, conditioned, matrices, literature, traffic, agents, regressions, kinked)
    for case in room.CASES
}
