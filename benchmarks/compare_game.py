"""One game in three libraries: when do five vehicles charge? docs/compare.md shows what it prints.

    python -m benchmarks.compare_game

Vehicle i pays wearᵢ‖xᵢ‖² + feeᵢ Σxᵢ + ξ·xᵢ + ‖x̄ − 1‖² with a random price ξ. 500 days are given; the law is known
(uniform), so that the truth is, too. All find the same equilibrium of the data. The question is how far that is from
the truth.
"""

import numpy as np

import epszero as ez
from benchmarks._absent import peer

CARS, HOURS, DAYS = 5, 6, 500
LOW, HIGH = np.zeros(HOURS), np.linspace(0.1, 0.4, HOURS)
PRICES = np.random.default_rng(0).uniform(LOW, HIGH, size=(DAYS, HOURS))
RNG = np.random.default_rng(1)
FLEET = {
    "wear": RNG.uniform(0.02, 0.05, CARS), "fee": RNG.uniform(0.02, 0.075, CARS), "need": RNG.uniform(5, 8, CARS),
}  # fmt: skip


def charging(price):
    """The game at one price, as peers take it."""
    from benchmarks._peers import Charging  # noqa: PLC0415  (needs CVXPY)

    return Charging(FLEET["wear"], FLEET["fee"], FLEET["need"], price)


def by_cvxpy():
    """Best responses in turn, until nobody moves."""
    from benchmarks import _peers  # noqa: PLC0415

    data = charging(PRICES.mean(axis=0))
    return _peers.best_response(data, _peers.gauss_seidel_setup(data))[0]


def by_nashopt():
    """Its solver of linear-quadratic games."""
    from benchmarks import _peers  # noqa: PLC0415

    return _peers.nashopt(charging(PRICES.mean(axis=0)), "dr_daqp")


def main() -> None:
    """All of them, and the truth."""
    game = ez.models.ev_charging(fleet=FLEET, hours=HOURS, cap=2.5)
    truth = ez.solve(game, ((LOW + HIGH) / 2)[None]).x
    for name, install, solve in (
        ("CVXPY, best responses in turn", "pip install cvxpy", by_cvxpy),
        ("NashOpt, GNEP_LQ", "pip install nashopt qpsolvers", by_nashopt),
    ):
        with peer(name, install):
            print(f"{name}: x found; {np.linalg.norm(solve() - truth):.4f} from the truth, of which it says nothing")
    solution = ez.solve(game, ez.Samples(PRICES, support=ez.sets.Box(LOW, HIGH)))
    print(f"epszero: x found; {np.linalg.norm(solution.x - truth):.4f} from the truth. It says:")
    print(ez.certify(solution, of="distance"))


if __name__ == "__main__":
    main()
