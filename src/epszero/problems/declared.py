"""What a user knows of B and vouches for. Nothing here is checked beyond consistency: it is the user's word."""

from dataclasses import dataclass

from epszero._checks import known_arguments, positive, refuse


@dataclass(frozen=True)
class Declared:
    """Constants of B and of every O(·, ξ) on the domain of A, None where nothing is said."""

    mu: float | None = None  # strong monotonicity: ⟨B(x) − B(y), x − y⟩ ≥ μ‖x − y‖²
    kappa: float | None = None  # Lipschitz: ‖B(x) − B(y)‖ ≤ κ‖x − y‖
    theta: float | None = None  # cocoercivity: ⟨B(x) − B(y), x − y⟩ ≥ θ‖B(x) − B(y)‖²
    gradient: bool = False  # B is the gradient of a convex function: the game has a potential
    M: float | None = None  # ‖O(x, ξ)‖ ≤ M
    R: float | None = None  # ‖O(x, ξ) − O(x, ξ′)‖ ≤ R


@known_arguments
def declare(
    *, mu: float | None = None, kappa: float | None = None, theta: float | None = None, gradient: bool = False,
    M: float | None = None, R: float | None = None,
) -> Declared:  # fmt: skip
    """Constants that you vouch for: strong monotonicity μ, Lipschitz κ, cocoercivity θ of every O(·, ξ) on dom A.

    `M` bounds ‖O(x, ξ)‖ and `R` bounds ‖O(x, ξ) − O(x, ξ′)‖, for x in the domain and ξ, ξ′ in the support: what some
    certificates need to know of the noise where no support is given, or where O is not affine in ξ.

    `gradient=True` says that B is the gradient of a convex function, as in a game with a potential: longer steps are
    then known to converge. Where constraints are shared, all this speaks of the pseudogradient alone.
    """
    given = {"mu": mu, "kappa": kappa, "theta": theta}
    values = {name: float(positive(name, value)) for name, value in given.items() if value is not None}
    sizes = {
        name: float(positive(name, value, strict=False)) for name, value in (("M", M), ("R", R)) if value is not None
    }
    m, k, t = values.get("mu"), values.get("kappa"), values.get("theta")
    if m is not None and k is not None and m > k:
        refuse(
            "mu, kappa",
            f"strong monotonicity never exceeds the Lipschitz constant, but mu = {m:g} > kappa = {k:g}",
            "Exchange or correct them",
        )
    if m is not None and t is not None and m * t > 1 + 1e-12:
        refuse("mu, theta", f"mu · theta ≤ 1 for every operator, but {m:g} · {t:g} = {m * t:g}", "Correct one of them")
    return Declared(m, k, t, bool(gradient), **sizes)
