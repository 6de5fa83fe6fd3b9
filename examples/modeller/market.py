"""Three generators sell into two markets over one line: a game of one's own, from costs to certified prices. Run it:

    python examples/modeller/market.py

Generator i sells qᵢ = (home, away) and pays cᵢ·(home + away) + ½ dᵢ‖qᵢ‖² − p·qᵢ. The price of a market is
p = ξ − b Σⱼ qⱼ, with a random intercept ξ. What all send away passes one line of limited capacity, and its price is the
multiplier. The law of ξ is known here, so the truth is, too, and the last lines hold it against the certificate.
"""

import numpy as np

import epszero as ez

MARGINAL, CURVED = (3.0, 4.0, 5.0), (0.5, 0.4, 0.3)  # €/MWh, €/MWh²
SLOPE = np.array([1.0, 0.8])  # how much a MWh lowers the price of each market
LINE = 9.0  # MWh
LOW, HIGH = np.array([16.0, 20.0]), np.array([24.0, 30.0])  # where intercepts lie, uniformly


def cost_of(i):
    """What generator i pays; x are all strategies, in a list."""

    def cost(x, intercept):
        price = intercept - SLOPE * sum(x)
        return MARGINAL[i] * x[i].sum() + 0.5 * CURVED[i] * x[i] @ x[i] - price @ x[i]

    return cost


def away(x):
    """MWh on the line."""
    return sum(q[1:] for q in x)


strategies = [ez.sets.Box(0.0, 10.0, dim=2)] * 3
game = ez.Game([cost_of(i) for i in range(3)], strategies, shared=ez.AffineConstraint(away, LINE))


def main() -> None:
    """Audit, solve, check, certify, compare with the truth."""
    drawn = np.random.default_rng(0).uniform(LOW, HIGH, size=(2000, 2))
    samples = ez.Samples(drawn, support=ez.sets.Box(LOW, HIGH))
    audit = ez.audit(game, samples)
    print(f"μ = {audit.constants['mu'].value:.3g} ({audit.constants['mu'].provenance}), {audit.structure.form}")
    solution = ez.solve(game, samples)
    print(solution)
    print(solution.check_equilibrium())
    certificate = ez.certify(solution)
    print(certificate)
    truth = ez.solve(game, np.array([(LOW + HIGH) / 2]))  # B is affine in ξ: its mean says all
    true = np.linalg.norm(np.concatenate(solution.x) - np.concatenate(truth.x))
    print(f"true distance {true:.4f}, certified {certificate.distance:.4f}")


if __name__ == "__main__":
    main()
