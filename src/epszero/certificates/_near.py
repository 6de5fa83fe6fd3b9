"""`Near`: what bounds on the noise at the truth say of x̂, besides what follows from residuals."""

from dataclasses import dataclass

from epszero.certificates._base import Leaning


@dataclass(frozen=True, eq=False)
class Near:
    """Where x* is, and how dear x̂, besides what follows from residuals."""

    distance: float
    cost_gap: float  # ∞ where there is none
    because: str
    leans_on: tuple[Leaning, ...]
