"""Draw the picture of README and of the documentation's first page: docs/first-screen.png. Run by `make pictures`.

The charging game on 3000 draws of ten years of prices. The law is known here, each of the 3649 days with the same
weight, so the truth can be drawn beside what was found, what is likely and what is sure.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import epszero as ez

mpl.use("Agg")
from matplotlib import pyplot as plt

OUT = Path(__file__).resolve().parent.parent / "docs" / "first-screen.png"
TEAL, GREY, RED = "#00796b", "#8a8f94", "#b23b2e"


def main() -> None:
    """Solve, certify, compare with the truth, draw."""
    days = ez.datasets.day_ahead_prices(hours=range(14))
    game = ez.models.ev_charging(vehicles=20, seed=0)
    solution = ez.solve(game, days.take(3000, seed=1))
    certificate = ez.certify(solution)
    truth = ez.solve(game, days)  # the average over the whole pool is the law's own
    band, likely = certificate.aggregate, certificate.likely
    if band is None or likely is None or certificate.distance is None:
        raise SystemExit("No band, no likely distance or no distance: there is nothing to draw.")
    size, cars = float(np.linalg.norm(solution.x)), len(solution.x)
    gaps = {
        "true": float(np.linalg.norm(solution.x - truth.x)),
        "likely, a guess": float(likely),
        "sure, 95 %": float(certificate.distance),
    }
    plt.rcParams.update({"font.size": 9.5, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 2.9), width_ratios=(1.7, 1.0), layout="constrained")
    hours = np.arange(14)
    left.bar(hours, (band.upper - band.lower) / cars, bottom=band.lower / cars, width=0.9, color=TEAL, alpha=0.28,
             label="sure, 95 %, all hours together")  # fmt: skip
    left.plot(
        hours, solution.x.mean(axis=0), "_", color=TEAL, markersize=13, markeredgewidth=2, label="found, from 3000 days"
    )
    left.plot(hours, truth.x.mean(axis=0), ".", color=RED, markersize=5, label="the truth, known here")
    left.set(xlabel="hour of the day", ylabel="kWh per vehicle", xticks=hours, ylim=(0, None))
    left.set_title("When do twenty vehicles charge?", loc="left", fontweight="bold", fontsize=10.5)
    left.legend(frameon=False, loc="lower left", fontsize=8.5)
    names = list(gaps)[::-1]
    shares = [100 * gaps[name] / size for name in names]
    right.barh(names, shares, color=[TEAL, GREY, RED], height=0.6)
    for row, share in enumerate(shares):
        right.text(share + 0.06, row, f"{share:.2f} %", va="center", fontsize=9)
    right.set(xlim=(0, 1.22 * max(shares)), xlabel="of the answer's size, ‖x − x*‖ / ‖x‖")
    right.set_title("How far off is that?", loc="left", fontweight="bold", fontsize=10.5)
    figure.savefig(OUT, dpi=130, facecolor="white", metadata={"Software": None})


if __name__ == "__main__":
    main()
