"""Extreme eigenvalues of S = blockdiag(S_1, …, S_N) + U M Uᵀ, which is never written down.

With S_i = Q_i Λ_i Q_iᵀ and M diagonalised, S is orthogonally similar to D + V diag(σ) Vᵀ, D diagonal, σ_j ∈ {−1, 1},
V with r ≤ k columns (zero eigenvalues of M dropped). For λ not in D, Haynsworth's inertia additivity for
[[D − λ, V], [Vᵀ, −diag(σ)]] says that S − λ is positive definite if and only if
    #positive(F) = #{σ_j = −1} + #{p : D_p < λ},    F = −diag(σ) − Vᵀ(D − λ)⁻¹V,
a matter of an r × r matrix. A bound is claimed where that count is proved. Where to look is told by Ritz values on the
span of (D − λ)⁻¹V, where the eigenvectors lie: a Newton step and better, so a few λ are enough; they prove nothing.

Rounding. Eigenvectors, V and M are exact for a matrix near S (backward stability of LAPACK's eigensolver; c · n · eps
times the norm, c = 40), and the claim is lowered by the norm of the difference. F is scaled by 1 + Σ_p V_pj²/|D_p − λ|
for each j, a congruence, which changes no count: each entry is then known up to (length of the sums) · eps, so an
eigenvalue counts for positive where it exceeds r times that and the backward error of its own computation, twice over.
Cost: one batched `eigh`, then N n r² per λ. Up to `DENSE` rows S is written down after all, which is faster.
Sources: Haynsworth, Linear Algebra Appl. 1 (1968); Golub & Van Loan, §8.1, §8.4.3; Higham, Accuracy and Stability §3.1.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from os import cpu_count

import numpy as np

from epszero._types import FloatArray

DENSE = 200  # rows of S up to which it is written down
TOLERANCE = 1e-9  # of the spread of S: how far below λ_min the bound may be
LOOSE = 1e-5  # the same after `PATIENCE` shifts, where each takes more than `EXPENSIVE` multiplications
PATIENCE, EXPENSIVE = 12, 1e8
SHIFTS = 80
BACKWARD = 40.0  # times n · eps · norm
CHUNK = 1 << 16  # entries of the blocks at a time
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class _DiagonalAndLowRank:
    """diag(values) + Vᵀ diag(signs) V up to `slack` in norm; V lies on its side, (r, rows)."""

    values: FloatArray
    V: FloatArray
    signs: FloatArray
    slack: float

    def least(self, enough: float = inf) -> float:
        """A lower bound of min(λ_min, enough)."""
        lo, top, spread = self.bracket
        top, step = min(top, enough), TOLERANCE * spread + 2 * self.slack
        tol = step
        expensive = self.V.size * len(self.signs) > EXPENSIVE
        for tried in range(SHIFTS):
            if top - lo <= (LOOSE * spread if expensive and tried >= PATIENCE else 1.5 * tol):
                break
            at = top - min(step, (top - lo) / 2)
            if not lo < at < top:
                break
            proved, ritz = self.seen_from(at)
            if proved:
                lo, top, step = at, max(at, min(top, ritz)), tol
            else:
                step = tol if ritz < at - step else 8 * step
                top = max(lo, min(at, ritz))
        return float(np.nextafter(min(lo, enough) - self.slack, -inf))

    @cached_property
    def bracket(self) -> tuple[float, float, float]:
        """A proved bound of λ_min by Weyl, a guess from above that no eigenvalue reaches, and the spread of S."""
        least, largest = float(self.values.min()), float(self.values.max())
        if not len(self.signs):
            return least, least, largest - least

        plus, minus = self.signs > 0, self.signs < 0
        H, H1, _ = self.grams(None)
        down = float(np.linalg.eigvalsh(H[np.ix_(minus, minus)])[-1]) if minus.any() else 0.0
        up = float(np.linalg.eigvalsh(H[np.ix_(plus, plus)])[-1]) if plus.any() else 0.0
        floor = least - max(down, 0.0) * (1 + 1e-9)  # the sums in H are right to far better than that
        ritz = _ritz(H1 + H @ (self.signs[:, None] * H), H)
        unit = min(float((d + np.einsum("j,jp,jp->p", self.signs, V, V)).min()) for d, V in self.chunks)
        ceiling = min(ritz, unit, _smallest(self.values, int(plus.sum())))
        return floor, max(floor, ceiling), largest - least + max(up, 0.0) + max(down, 0.0)

    def seen_from(self, shift: float) -> tuple[bool, float]:
        """Whether it is proved that no eigenvalue lies below the shift, and the least Ritz value."""
        below = np.count_nonzero(self.values <= shift)
        if below and (self.values == shift).any():
            return False, inf
        with np.errstate(all="ignore"):
            G, G2, absolute = self.grams(shift)
            scale = 1 / np.sqrt(1 + absolute)
            F = -(np.diag(self.signs) + G) * scale * scale[:, None]
        if not (np.isfinite(F).all() and np.isfinite(G2).all()):
            return False, inf

        r, rows = len(F), len(self.values)
        length = min(rows, self.chunk) + rows // self.chunk + 10
        margin = 2 * r * _EPS * (length + BACKWARD * float(np.linalg.norm(F)))
        positive = np.count_nonzero(np.linalg.eigvalsh(F) > margin)
        proved = positive >= np.count_nonzero(self.signs < 0) + below
        return bool(proved), shift + _ritz(G + G @ (self.signs[:, None] * G), G2)

    @property
    def chunk(self) -> int:
        """Rows of V at a time: they stay in the cache, sums stay short, and BLAS starts no threads."""
        return min(1 << 14, max(64, (1 << 18) // max(1, len(self.signs)) ** 2))

    @property
    def chunks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """D and V, piece by piece."""
        for i in range(0, len(self.values), self.chunk):
            yield self.values[i : i + self.chunk], self.V[:, i : i + self.chunk]

    def grams(self, shift: float | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """V w Vᵀ, V w² Vᵀ for w = (D − shift)⁻¹, and the diagonal of V |w| Vᵀ; without a shift, V Vᵀ and V D Vᵀ."""
        r = len(self.signs)
        once, twice, absolute = np.zeros((r, r)), np.zeros((r, r)), np.zeros(r)
        for d, V in self.chunks:
            if shift is None:
                once += V @ V.T
                twice += (V * d) @ V.T
                continue
            weight = 1 / (d - shift)
            weighted = V * weight
            part = weighted @ V.T
            once += part
            twice += weighted @ weighted.T
            absolute += np.diag(part) if weight.min() > 0 else np.abs(weighted * V).sum(-1)
        return (once + once.T) / 2, (twice + twice.T) / 2, absolute

    def inverse_iteration(self, shift: float) -> FloatArray:
        """A unit vector near the eigenvector of the eigenvalue nearest to the shift, by the Woodbury formula."""
        gap = self.values - shift
        if not gap.all():
            return self.inverse_iteration(float(np.nextafter(shift, -inf)))
        G = self.grams(shift)[0]
        inverse = np.linalg.pinv(-np.diag(self.signs) - G, rcond=1e-16)
        x = np.random.default_rng(0).normal(size=len(gap))
        for _ in range(6):
            x = x / gap
            x += (inverse @ (self.V @ x)) @ self.V / gap
            x /= np.linalg.norm(x)
        return x


def _smallest(values: FloatArray, q: int) -> float:
    """The (q + 1)-th smallest; ∞ where there are fewer."""
    if q >= len(values):
        return inf
    sample = values[:: max(1, len(values) // (64 * (q + 1)))]  # its (q + 1)-th smallest is not below that of all
    few = values[values <= np.partition(sample, q)[q]]
    return float(np.partition(few, q)[q])


def _ritz(A: FloatArray, B: FloatArray) -> float:
    """The least ratio ⟨w, Aw⟩ / ⟨w, Bw⟩, over the w for which B is beyond rounding."""
    if not len(B):
        return inf
    scale = 1 / np.sqrt(np.maximum(np.diag(B), 1e-300))
    values, vectors = np.linalg.eigh(B * scale * scale[:, None])
    kept = values > 1e-13 * max(float(values[-1]), 1e-300)
    if not kept.any():
        return inf
    basis = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
    ratio = basis.T @ A @ basis
    return float(np.linalg.eigvalsh((ratio + ratio.T) / 2)[0]) if np.isfinite(ratio).all() else inf


@dataclass(frozen=True, eq=False)
class BlocksAndLowRank:
    """S = blockdiag(S_1, …, S_N) + U M Uᵀ."""

    blocks: FloatArray  # (N, n, n), symmetric
    U: FloatArray  # (N, n, k), rows of the (N n) × k matrix
    M: FloatArray  # (k, k), symmetric
    slack: float = 0.0  # a bound on the norm of what the three lack, by rounding before

    def least(self) -> float:
        """A lower bound of λ_min(S)."""
        return self.rotated.least()

    def largest(self) -> float:
        """An upper bound of λ_max(S)."""
        return -self.negated.least()

    def lowest_vector(self) -> FloatArray:
        """A unit vector (N, n) whose Rayleigh quotient is near λ_min(S)."""
        N, n, _ = self.shape
        if N * n <= DENSE:
            return np.linalg.eigh(self._written()[0])[1][:, 0].reshape(N, n)
        x = self.rotated.inverse_iteration(self.rotated.least() + self.rotated.slack).reshape(N, n, 1)
        for i, j in self._pieces:
            x[i:j] = np.linalg.eigh(self.piece(i, j)[0])[1] @ x[i:j]
        return x[..., 0]

    @property
    def shape(self) -> tuple[int, int, int]:
        """N, n and k."""
        N, n, k = self.U.shape
        return N, n, k

    def piece(self, i: int, j: int) -> tuple[FloatArray, FloatArray]:
        """Blocks and rows of U of the agents from i to j."""
        return self.blocks[i:j], self.U[i:j]

    @property
    def _pieces(self) -> Iterator[tuple[int, int]]:
        """All agents, a few at a time: fresh memory costs more than the arithmetic."""
        N, n, k = self.shape
        few = max(1, CHUNK // (n * max(n, k)))
        return ((i, min(i + few, N)) for i in range(0, N, few))

    @cached_property
    def negated(self) -> _DiagonalAndLowRank:
        """The same as `rotated`, for −S."""
        return replace(self.rotated, values=-self.rotated.values, signs=-self.rotated.signs)

    @cached_property
    def rotated(self) -> _DiagonalAndLowRank:
        """S in the eigenvectors of its blocks; or in its own, where it is small."""
        N, n, k = self.shape
        if N * n <= DENSE:
            S, size = self._written()
            slack = BACKWARD * (N * n + k) * _EPS * size + self.slack
            return _DiagonalAndLowRank(
                np.asarray(np.linalg.eigvalsh(S), float), np.empty((0, N * n)), np.empty(0), slack
            )

        length, size = np.zeros(k), 0.0
        for i, j in self._pieces:
            blocks, U = self.piece(i, j)
            length += np.square(U).sum((0, 1))
            size = max(size, float(np.square(blocks).sum((1, 2)).max()))
        T, signs, largest = _halves(self.M, np.sqrt(length))
        values, V = np.empty((N, n)), np.empty((len(signs), N * n))

        def turn(of: tuple[int, int]) -> None:
            i, j = of
            blocks, U = self.piece(i, j)
            values[i:j], Q = np.linalg.eigh(blocks)
            if len(signs):
                V[:, i * n : j * n] = (np.swapaxes(Q, 1, 2) @ U @ T).reshape(-1, len(signs)).T

        with ThreadPoolExecutor(min(4, cpu_count() or 1)) as pool:  # NumPy lets others run meanwhile
            list(pool.map(turn, self._pieces))
        slack = BACKWARD * _EPS * (n * float(np.sqrt(size)) + (n + k) * k * largest) + self.slack
        return _DiagonalAndLowRank(values.reshape(-1), V, signs, slack)

    def _written(self) -> tuple[FloatArray, float]:
        """S itself, and the norm of the sum of what it is added up from."""
        N, n, k = self.shape
        blocks, U = self.piece(0, N)
        rows, agents = U.reshape(N * n, k), np.arange(N)
        S, absolute = rows @ self.M @ rows.T, np.abs(rows) @ np.abs(self.M) @ np.abs(rows).T
        S.reshape(N, n, N, n)[agents, :, agents, :] += blocks
        absolute.reshape(N, n, N, n)[agents, :, agents, :] += np.abs(blocks)
        return (S + S.T) / 2, float(np.linalg.norm(absolute))


def _halves(M: FloatArray, length: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """T and signs with M = T diag(signs) Tᵀ, from M scaled by the lengths of U's columns; and the norm of that."""
    weights, R = np.linalg.eigh(M * length * length[:, None])
    largest = float(np.abs(weights).max(initial=0.0))
    kept = np.abs(weights) > len(M) * _EPS * largest
    T = R[:, kept] * np.sqrt(np.abs(weights[kept])) / np.where(length > 0, length, 1.0)[:, None]
    return T, np.sign(weights[kept]), largest


@dataclass(frozen=True, eq=False)
class _Aggregative(BlocksAndLowRank):
    """The symmetric part of J, or JᵀJ: `blocks` are D, `U` is E, the rest is made where it is needed."""

    squared: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        N, n, _ = self.U.shape
        return N, n, 2 * n

    def piece(self, i: int, j: int) -> tuple[FloatArray, FloatArray]:
        D, E = self.blocks[i:j], self.U[i:j]
        turned = np.swapaxes(D, 1, 2)
        blocks, first = (turned @ D, turned @ E) if self.squared else (D, E)
        identities = np.broadcast_to(np.eye(D.shape[1]), D.shape)
        return (blocks + np.swapaxes(blocks, 1, 2)) / 2, np.concatenate([first, identities], -1)


def aggregative_mu_kappa(own: FloatArray, average: FloatArray) -> tuple[float, float]:
    """μ ≤ λ_min((J + Jᵀ)/2) and κ ≥ ‖J‖₂ for J = blockdiag(D_i) + [E_i] (1ᵀ ⊗ I) / N, the Jacobian of (g(x_i, x̄))_i.

    `own` is D = ∂g/∂x_i and `average` is E = ∂g/∂x̄, (N, n, n), or (N, n) where all are diagonal. With 1 the
    stacked identities, (J + Jᵀ)/2 = blockdiag(sym D_i) + [E, 1] (1/2N) [[0, I], [I, 0]] [E, 1]ᵀ, and
    JᵀJ = blockdiag(D_iᵀD_i) + [DᵀE, 1] (1/N) [[0, I], [I, Σ E_iᵀE_i / N]] [DᵀE, 1]ᵀ. Diagonal blocks decouple into n
    games with one coordinate each; the games in which the extreme cannot lie are dismissed with one λ each, or none.
    """
    own, average = np.asarray(own, float), np.asarray(average, float)
    D, E = _diagonals(own), _diagonals(average)
    top = max(_top(own if D is None else D), _top(average if E is None else E))
    if not 0 < top < inf:
        return (0.0, 0.0) if top == 0 else (-inf, inf)
    if not 1e-100 < top < 1e100:  # squares must not be lost
        scale = 2.0 ** -int(np.frexp(top)[1])
        mu, kappa = aggregative_mu_kappa(own * scale, average * scale)
        return float(np.nextafter(mu / scale, -inf)), float(np.nextafter(kappa / scale, inf))
    if D is None or E is None or own.shape[0] * own.shape[1] <= DENSE:
        own, average = (x if x.ndim > 2 else x[..., None] * np.eye(x.shape[1]) for x in (own, average))
        return _symmetric_part(own, average).least(), _root(_square(own, average).largest())

    room = np.empty((4, len(own)))
    mu = kappa = inf
    for d, e in sorted(zip(D, E, strict=True), key=_promise):
        mu = min(mu, _line(d, e, 0.0, 0.5, room[2:]).least(mu))
    for d, e in sorted(zip(D, E, strict=True), key=lambda game: -_size(game)):
        values, first = np.multiply(d, -d, out=room[0]), np.multiply(d, -e, out=room[1])
        square = float(np.square(e, out=room[2]).sum()) / len(own)  # in pairs
        kappa = min(kappa, _line(values, first, -square, 1.0, room[2:]).least(kappa))
    return mu, _root(-kappa)


def _promise(game: tuple[FloatArray, FloatArray]) -> float:
    """About the least eigenvalue, so that the least of all comes early."""
    return min(float(game[0].min()), float(game[0].mean() + game[1].mean()))


def _size(game: tuple[FloatArray, FloatArray]) -> float:
    """About the norm."""
    return max(abs(float(game[0].min())), float(game[0].max()), abs(float(game[0].mean() + game[1].mean())))


def _line(d: FloatArray, first: FloatArray, corner: float, half: float, room: FloatArray) -> _DiagonalAndLowRank:
    """diag(d) + [first, 1] (half / N) [[0, 1], [1, corner]] [first, 1]ᵀ, right to a few ulp; V is put into room."""
    N = len(d)
    M = np.array([[0.0, 1.0], [1.0, corner]]) * (half / N)
    T, signs, largest = _halves(M, np.sqrt(np.array([float(np.einsum("i,i->", first, first)), float(N)])))
    V = np.multiply(T[0][:, None], first, out=room[: len(signs)])
    np.add(V, T[1][:, None], out=V)
    own = max(abs(float(d.min())), abs(float(d.max())))
    slack = _EPS * (8 * BACKWARD * largest + 4 * own + 64 * half * abs(corner))
    return _DiagonalAndLowRank(d, V, signs, slack)


def _top(x: FloatArray) -> float:
    """The largest |entry|; ∞ where one is not a number."""
    largest = max(float(x.max(initial=0.0)), -float(x.min(initial=0.0)))
    return largest if largest < inf else inf


def _root(square: float) -> float:
    return float(np.nextafter(np.sqrt(max(square, 0.0)), inf))


def _diagonals(blocks: FloatArray) -> FloatArray | None:
    """The diagonals of all blocks, (n, N), where they hold all that is not zero."""
    N, n = blocks.shape[:2]
    found = np.empty((n, N))
    chunk = max(1, CHUNK // n**2)
    for i in range(0, N, chunk):
        part = blocks[i : i + chunk]
        diagonal = part if blocks.ndim == 2 else np.diagonal(part, axis1=1, axis2=2)
        if blocks.ndim > 2 and np.count_nonzero(part) != np.count_nonzero(diagonal):
            return None
        found[:, i : i + chunk] = diagonal.T
    return found


def _symmetric_part(D: FloatArray, E: FloatArray) -> BlocksAndLowRank:
    N, n = D.shape[:2]
    M = np.kron([[0.0, 1.0], [1.0, 0.0]], np.eye(n)) * (0.5 / N)
    return _Aggregative(D, E, M, 4 * _EPS * _size_of(D, E))


def _square(D: FloatArray, E: FloatArray) -> BlocksAndLowRank:
    N, n = D.shape[:2]
    rows, chunk = E.reshape(N * n, n), max(64, (1 << 18) // n**2)
    corner = np.zeros((n, n))
    for i in range(0, N * n, chunk):
        corner += rows[i : i + chunk].T @ rows[i : i + chunk]
    M = np.block([[np.zeros((n, n)), np.eye(n)], [np.eye(n), corner / N]]) / N
    length = min(N * n, chunk) + N * n // chunk + n + 10  # of sums of products, which add up to at most size² each
    return _Aggregative(D, E, M, length * _EPS * _size_of(D, E) ** 2, squared=True)


def _size_of(D: FloatArray, E: FloatArray) -> float:
    """The largest ‖D_i‖_F plus the root mean square of ‖E_i‖_F, a bound of ‖J‖₂."""
    own, average = np.einsum("nij,nij->n", D, D).max(), np.einsum("nij,nij->", E, E) / len(E)
    return float(np.sqrt(own) + np.sqrt(average))
