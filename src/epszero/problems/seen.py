"""What a closer look at a problem finds, besides what it refuses: a value, for those who decide by it."""

from dataclasses import dataclass

from epszero._types import PyTree


@dataclass(frozen=True)
class NotConvex:
    """A cost or a shared constraint that was seen not to be convex where it should be."""

    what: str  # the argument that holds it
    agent: int | None  # whose cost it is; None for a loss or a shared constraint
    evidence: str  # a sentence

    def __str__(self) -> str:
        return f"{self.what}: {self.evidence}"


@dataclass(frozen=True, eq=False)
class Examination:
    """Of a problem near a point."""

    unit_steps: PyTree = None  # of each agent relative to the others, where their units differ much
    bent: tuple[NotConvex, ...] = ()  # what was seen not to be convex
    notes: tuple[str, ...] = ()  # what else a user should know
    undefined: bool = False  # a cost was NaN at a point of the domain
    finite: bool = True  # every number that was looked at is
