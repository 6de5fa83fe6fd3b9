"""One regression in two libraries. docs/compare.md shows what it prints.

    python -m benchmarks.compare_regression

Ridge regression, ½(a·x − b)² + ½ λ‖x‖² on average: 2000 rows with five features in a ball of radius 1 and a label
between −1 and 1. The law is known: the truth is the coefficients of two million rows.
"""

import numpy as np

import epszero as ez
from benchmarks._absent import peer

ROWS, FEATURES, RIDGE = 2000, 5, 0.1
SECRET = np.array([0.6, -0.4, 0.3, 0.0, 0.0])


def drawn(rows: int, seed: int) -> np.ndarray:
    """Features in the ball, then the label."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rows, FEATURES))
    points *= (rng.uniform(size=rows) ** (1 / FEATURES) / np.linalg.norm(points, axis=1))[:, None]
    return np.column_stack([points, np.clip(points @ SECRET + rng.uniform(-0.2, 0.2, rows), -1, 1)])


def closed(rows: np.ndarray) -> np.ndarray:
    """The coefficients, by the normal equations."""
    points, labels = rows[:, :-1], rows[:, -1]
    return np.linalg.solve(points.T @ points / len(rows) + RIDGE * np.eye(FEATURES), points.T @ labels / len(rows))


def loss(x, row):
    """Of one row."""
    point, label = row
    return 0.5 * (point @ x - label[0]) ** 2 + 0.5 * RIDGE * x @ x


def main() -> None:
    """Both, and the truth."""
    rows, truth = drawn(ROWS, 0), closed(drawn(2_000_000, 1))
    with peer("scikit-learn, Ridge", "pip install scikit-learn"):
        from sklearn.linear_model import Ridge  # noqa: PLC0415
        from sklearn.model_selection import cross_val_score  # noqa: PLC0415

        model = Ridge(alpha=RIDGE * ROWS, fit_intercept=False).fit(rows[:, :-1], rows[:, -1])
        score = cross_val_score(model, rows[:, :-1], rows[:, -1]).mean()
        off = f"{np.linalg.norm(model.coef_ - truth):.4f} from the truth, of which it says nothing"
        print(f"scikit-learn, Ridge: coefficients found, R² {score:.3f}; {off}")
    support = ez.sets.Product([ez.sets.Ball(1.0, dim=FEATURES), ez.sets.Box(-1.0, 1.0, dim=1)])
    samples = ez.Samples.from_arrays([rows[:, :-1], rows[:, -1:]], support=support)
    solution = ez.solve(ez.Minimization(loss, ez.sets.Ball(5.0, dim=FEATURES)), samples)
    print(f"epszero: coefficients found; {np.linalg.norm(solution.x - truth):.4f} from the truth. It says:")
    print(ez.certify(solution))


if __name__ == "__main__":
    main()
