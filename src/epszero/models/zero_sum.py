"""Matrix games: two players, mixed strategies on simplices, one pays what the other gets.

Player 0 chooses x ∈ Δ_m to minimise E[xᵀAy], player 1 chooses y ∈ Δ_n to maximise it. The pseudogradient
F(x, y) = (Ay, −Aᵀx) is linear and skew: merely monotone, never strongly, with Lipschitz constant ‖A‖₂ and no potential.
Plain forward-backward does not converge on it; forward-backward-forward and extragradient do. By von Neumann's theorem
all equilibria have the same value xᵀAy.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

import epszero as ez
from epszero.models._inputs import FloatArray, count, number, numbers, refuse
from epszero.models._pictures import bars, note, sample_rows, strategies_of, with_bands
from epszero.problems import Declared
from epszero.report import BLUE, ORANGE, figure, tidy, whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Shape = tuple[int, int]
Cost = Callable[..., Any]  # of both strategies, and of a sample where there are any


def zero_sum(
    matrix: ArrayLike | None = None,
    shape: Shape | None = None,
    *,
    norm: float | None = None,
    declared: Declared | None = None,
) -> ez.Game:
    """Player 0 pays xᵀAy to player 1; x and y are probabilities over the rows and the columns of A.

    `matrix`: A, where it is known; the game is then solved without samples. Without it, `shape=(m, n)`, and each
    sample is a matrix: a row of m·n numbers (row after row of A), or an m × n array by `ez.Samples.from_arrays`.

    Merely monotone, with Lipschitz constant ‖A‖₂, which is declared where A is known: `ez.solve` then takes
    forward-backward-forward by itself. For samples, `norm`, a bound on ‖A‖₂ of every matrix that can occur, does the
    same; a loose one makes the steps short, and without it method and step are found on the way. `declared`: what else
    you vouch for, see `ez.declare`.
    `game.plot(solution)` shows both strategies and the value; `rows=[...]` and `columns=[...]` name them,
    `certificate=…` draws error bars, or says why there are none: samples that multiply x have none.
    """
    if matrix is None:
        if shape is None:
            refuse("matrix, shape", "neither is given", "Pass matrix=A, or shape=(m, n) for matrices from samples")
        m, n = _shape(shape)
        pays = _uncertain(m, n)
        kappa = 0.0 if norm is None else number("norm", norm, above=0.0)
        costs = [ez.oracles.Affine(pays), ez.oracles.Affine(_negative(pays))]
        return _game(costs, (m, n), None, _with(declared, kappa))
    if norm is not None:
        refuse("norm", "is computed where the matrix is known", "Leave it out")
    A = numbers("matrix", matrix)
    if A.ndim != 2:
        refuse("matrix", f"must have rows and columns, but its shape is {A.shape}", "Pass a list of rows")
    m, n = A.shape
    if shape is not None and _shape(shape) != (m, n):
        refuse("shape", f"is {tuple(shape)}, but the matrix is {m} × {n}", "Leave shape out")
    kappa = float(np.linalg.norm(A, 2))
    return _game([lambda x: x[0] @ A @ x[1], lambda x: -(x[0] @ A @ x[1])], (m, n), A, _with(declared, kappa))


def _with(declared: Any, kappa: float) -> Declared | None:
    """What is declared, and the Lipschitz constant where that says nothing of it."""
    if kappa == 0 or (declared is not None and (not isinstance(declared, Declared) or declared.kappa is not None)):
        return declared
    return ez.declare(kappa=kappa) if declared is None else dataclasses.replace(declared, kappa=kappa)


def _game(costs: Sequence[Cost], shape: Shape, matrix: FloatArray | None, declared: Declared | None) -> ez.Game:
    simplices = [ez.sets.Simplex(dim=n) for n in shape]
    return ez.Game(costs, simplices, declared=declared, picture=functools.partial(_draw, matrix=matrix, shape=shape))


@functools.lru_cache(maxsize=128)
def _uncertain(m: int, n: int) -> Cost:
    return lambda x, xi: x[0] @ xi.reshape(m, n) @ x[1]


@functools.lru_cache(maxsize=128)
def _negative(cost: Cost) -> Cost:
    return lambda x, xi: -cost(x, xi)


def _shape(shape: object) -> Shape:
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        refuse("shape", f"must be (rows, columns), but it is {shape!r}", "Pass for instance shape=(3, 3)")
    return count("shape[0]", shape[0]), count("shape[1]", shape[1])


def _draw(
    solution: ez.Solution,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    certificate: ez.Certificate | None = None,
    matrix: FloatArray | None,
    shape: Shape,
) -> "Figure":
    x, y = strategies_of(solution, [(shape[0],), (shape[1],)])
    whose, paid = "", matrix
    if paid is None:
        seen = sample_rows(solution, shape[0] * shape[1])
        paid = np.mean(seen, axis=0, dtype=np.float64).reshape(shape)
        whose = f" under the mean of {len(seen):,} matrices"
    sure = with_bands(certificate, solution)
    sheet = figure(8.0, 3.4 if certificate is None else 3.7)
    axes = sheet.subplots(1, 2, sharey=True)
    sides = (("player 0, who pays", "row", rows, x, BLUE), ("player 1, who gets", "column", columns, y, ORANGE))
    for side, (ax, (title, what, names, strategy, colour)) in enumerate(zip(axes, sides, strict=True)):
        if names is not None and len(names) != len(strategy):
            refuse(f"{what}s", f"has {len(names)} names for {len(strategy)}", f"Give one name per {what}")
        ax.bar(np.arange(len(strategy)), strategy, color=colour)
        if sure is not None:
            bars(ax, np.arange(len(strategy)), sure.intervals.lower[side], sure.intervals.upper[side])
        ax.set_title(title, fontsize=10)
        ax.set_xlabel(what)
        if names is not None:
            ax.set_xticks(np.arange(len(strategy)), names)
        else:
            whole(ax)
    axes[0].set_ylabel("probability")
    axes[0].set_ylim(0.0, 1.0)
    value = float(x @ paid @ y)
    value = 0.0 if abs(value) < 1e-9 * np.abs(paid).max() else value  # rounding
    sheet.suptitle(f"value {value:.4g}{whose}", fontsize=11)
    tidy(*axes)
    note(sheet, certificate)
    return sheet
