"""What a user knows of B and vouches for. Nothing here is checked beyond consistency: it is the user's word."""

from dataclasses import dataclass
from typing import Any

from epszero._checks import known_arguments, one_positive, refuse
from epszero.sets import Set


@dataclass(frozen=True)
class Declared:
    """Constants of B and of every O(·, ξ) on the domain of A, None where nothing is said."""

    mu: float | None = None  # strong monotonicity: ⟨B(x) − B(y), x − y⟩ ≥ μ‖x − y‖²
    kappa: float | None = None  # Lipschitz: ‖B(x) − B(y)‖ ≤ κ‖x − y‖
    theta: float | None = None  # cocoercivity: ⟨B(x) − B(y), x − y⟩ ≥ θ‖B(x) − B(y)‖²
    gradient: bool = False  # B is the gradient of a convex function: the game has a potential
    M: float | None = None  # ‖O(x, ξ)‖ ≤ M
    R: float | None = None  # ‖O(x, ξ) − O(x, ξ′)‖ ≤ R
    monotone: bool = False  # every O(·, ξ) is
    support: Set | None = None  # of ξ, where the samples come without one
    independent: bool = False  # the samples are independent draws of one law
    convex: bool = False  # every cost is convex in the own strategy, every shared constraint in all of them


@known_arguments
def declare(  # noqa: PLR0913  (each is one thing to say)
    *,
    mu: float | None = None,
    kappa: float | None = None,
    theta: float | None = None,
    gradient: bool = False,
    M: float | None = None,
    R: float | None = None,
    monotone: bool = False,
    support: Set | None = None,
    independent: bool = False,
    convex: bool = False,
) -> Declared:
    """Constants that you vouch for: strong monotonicity μ, Lipschitz κ, cocoercivity θ of every O(·, ξ) on dom A.

    `M` bounds ‖O(x, ξ)‖ and `R` bounds ‖O(x, ξ) − O(x, ξ′)‖, for x in the domain and ξ, ξ′ in the support: what some
    certificates need to know of the noise where no support is given, or where O is not affine in ξ.

    `monotone=True` says that every O(·, ξ) is monotone. `support` is a set that holds every sample, for samples that
    come without one; `independent=True` says that they are independent draws of one law. What is declared is checked
    against what can be derived or tested, and violated where that says otherwise (`ez.audit`).

    `convex=True` says that every cost is convex in the own strategy (the loss of a minimisation in x), every function
    among the shared constraints in all strategies, and that the derivatives which are used are subgradients of them:
    for costs whose values cannot be followed, such as those with branches (`jnp.where`), and for derivatives of your
    own making.

    `gradient=True` says that B is the gradient of a convex function, as in a game with a potential: longer steps are
    then known to converge. Where constraints are shared, all this speaks of the pseudogradient alone.
    """
    words: dict[str, Any] = {"gradient": gradient, "monotone": monotone, "independent": independent, "convex": convex}
    for name, word in words.items():
        if not isinstance(word, bool):
            refuse(name, f"must be True or False, but it is {word!r}", "Leave it out where you do not vouch for it")
    given = {"mu": mu, "kappa": kappa, "theta": theta}
    values = {name: one_positive(name, value) for name, value in given.items() if value is not None}
    sizes = {name: one_positive(name, value, strict=False) for name, value in (("M", M), ("R", R)) if value is not None}
    m, k, t = values.get("mu"), values.get("kappa"), values.get("theta")
    if m is not None and k is not None and m > k:
        refuse(
            "mu, kappa",
            f"strong monotonicity never exceeds the Lipschitz constant, but mu = {m:g} > kappa = {k:g}",
            "Exchange or correct them",
        )
    if m is not None and t is not None and m * t > 1 + 1e-12:
        refuse("mu, theta", f"mu · theta ≤ 1 for every operator, but {m:g} · {t:g} = {m * t:g}", "Correct one of them")
    _check_support(support)
    said = {"monotone": monotone, "independent": independent, "convex": convex}
    return Declared(m, k, t, gradient, **sizes, support=support, **said)


def _check_support(support: Any) -> None:
    if support is not None and not isinstance(support, Set):
        refuse("support", f"must be a set, but it is a {type(support).__name__}", "Pass ez.sets.Box(lower, upper), say")
