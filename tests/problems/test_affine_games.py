"""Random affine games against an independent solution of their KKT system: interior point, active set, then verified.

F(x) = Mx + q over {Ax ≤ b}, with μ the least eigenvalue of (M + Mᵀ)/2. A point that meets the KKT conditions up to r is
within r/μ of the equilibrium, so the verification of the reference is itself a proof of how accurate it is.
"""

import clarabel
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import epszero as ez

pytestmark = pytest.mark.some(2)

SIZES = (3, 2, 3, 2)
OWN = [slice(sum(SIZES[:i]), sum(SIZES[: i + 1])) for i in range(4)]
N = sum(SIZES)
NEED = 1.2
STRATEGIES = [
    ez.sets.Box(-1.0, 1.0, dim=3),
    ez.sets.BoxBudget(0.0, 1.0, at_least=NEED, dim=2),
    ez.sets.Simplex(dim=3),
    ez.sets.NonNegative(dim=2),
]


def cost(i):
    """½ x_iᵀM_ii x_i + x_iᵀ Σ_{j≠i} M_ij x_j + q_iᵀx_i, with M and q in the sample."""

    def f(x, xi):
        others = jnp.concatenate([jnp.zeros(SIZES[j]) if j == i else x[j] for j in range(4)])
        own = xi["M"][OWN[i], OWN[i]]
        return x[i] @ (0.5 * own @ x[i] + xi["M"][OWN[i]] @ others + xi["q"][OWN[i]])

    return f


COSTS = [cost(i) for i in range(4)]


def local_constraints():
    """The strategy sets above as (A, b) of Ax ≤ b and (E, e) of Ex = e."""
    eye = np.eye(N)
    rows = [*(-eye[OWN[0]]), *eye[OWN[0]], *(-eye[OWN[1]]), *eye[OWN[1]], -eye[OWN[1]].sum(axis=0)]
    bounds = [1.0] * 6 + [0.0] * 2 + [1.0] * 2 + [-NEED]
    rows += [*(-eye[OWN[2]]), *(-eye[OWN[3]])]
    bounds += [0.0] * 5
    return np.array(rows), np.array(bounds), eye[OWN[2]].sum(axis=0)[None], np.ones(1)


def random_operator(rng, n, blocks, symmetric):
    """M with symmetric blocks of its own on the diagonal and least eigenvalue of the symmetric part in [½, 2]."""
    M = rng.normal(size=(n, n))
    for own in blocks:
        M[own, own] = (M[own, own] + M[own, own].T) / 2
    if symmetric:
        M = (M + M.T) / 2
    else:
        M += 0.5 * (np.triu(M, 1) - np.triu(M, 1).T) * (1 - sum(np.outer(_in(own, n), _in(own, n)) for own in blocks))
    return M + (rng.uniform(0.5, 2.0) - np.linalg.eigvalsh((M + M.T) / 2)[0]) * np.eye(n)


def _in(own, n):
    return np.isin(np.arange(n), np.arange(n)[own])


def interior_point(M, q, A, b, E, e):
    """0 = Mx + q + Aᵀz + Eᵀy, Ax + s = b, Ex = e, s, z ≥ 0, sz = 0, for M + Mᵀ ⪰ 0: predictor and corrector."""
    n, m, p = len(q), len(b), len(e)
    x, y, z, s = np.zeros(n), np.zeros(p), np.ones(m), np.ones(m)
    for _ in range(60):
        dual, primal, equal = M @ x + q + A.T @ z + E.T @ y, A @ x + s - b, E @ x - e
        if max(np.abs(dual).max(), np.abs(primal).max(), np.abs(equal).max(initial=0.0), z @ s / m) < 1e-9:
            break
        K = np.block([[M + A.T @ ((z / s)[:, None] * A), E.T], [E, np.zeros((p, p))]])
        target = np.zeros(m)
        for _ in range(2):
            slack = (target - z * s) / s
            right = np.concatenate([-dual - A.T @ (slack + z / s * primal), -equal])
            dx, dy = np.split(np.linalg.solve(K, right), [n])
            ds = -primal - A @ dx
            dz = slack - z / s * ds
            length = min(1.0, 0.99 / max(np.max(-ds / s), np.max(-dz / z), 1e-300))
            gap = (z + length * dz) @ (s + length * ds) / m
            target = np.full(m, (gap / (z @ s / m)) ** 3 * (z @ s / m)) - ds * dz
        x, y, z, s = x + length * dx, y + length * dy, z + length * dz, s + length * ds
    return x, z, s


def quadratic_programme(M, q, A, b, E, e):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(len(e)), clarabel.NonnegativeConeT(len(b))]
    rows = sp.csc_matrix(np.vstack([E, A]))
    answer = clarabel.DefaultSolver(sp.csc_matrix(np.triu(M)), q, rows, np.concatenate([e, b]), cones, settings).solve()
    return np.asarray(answer.x), np.asarray(answer.z)[len(e) :], np.asarray(answer.s)[len(e) :]


def reference(M, q, A, b, E, e, solver=interior_point):
    """(x, multipliers of Ax ≤ b, whether these are unique) with the KKT conditions verified."""
    _, z, s = solver(M, q, A, b, E, e)
    for _ in range(20):  # the active set, corrected until it answers for itself
        active = z > s
        rows = np.vstack([A[active], E])
        K = np.block([[M, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
        right = np.concatenate([-q, b[active], e])
        both = np.linalg.lstsq(K, right, rcond=1e-12)[0]
        both += np.linalg.lstsq(K, right - K @ both, rcond=1e-12)[0]
        x, z = both[: len(q)], np.zeros(len(b))
        z[active] = both[len(q) : len(q) + active.sum()]
        s = np.where(active, 0.0, b - A @ x)
        if min(s.min(), z.min()) > -1e-12:
            break
    y = both[len(q) + active.sum() :]
    assert np.abs(M @ x + q + A.T @ z + E.T @ y).max() < 1e-11
    assert (A @ x - b).max() < 1e-12
    assert np.abs(E @ x - e).max(initial=0.0) < 1e-12
    assert z.min() > -1e-12
    touched = np.vstack([A[A @ x - b > -1e-9], E])
    unique = len(touched) <= len(q) and np.linalg.svd(touched, compute_uv=False).min() > 0.05
    return x, z, unique


@pytest.mark.parametrize("TRIALS", [5, pytest.param(110, marks=pytest.mark.long)])
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
def test_random_affine_games_agree_with_their_kkt_system(shared, TRIALS):
    """Half of them rotate (by interior point), half have a potential (a quadratic programme by Clarabel)."""
    rng = np.random.default_rng([3, shared])
    A, b, E, e = local_constraints()
    own_rows, constraint = len(b), None
    if shared:
        inside = np.concatenate([np.asarray(part.point()) for part in STRATEGIES])
        G = rng.normal(size=(4, N)) * rng.uniform(0.3, 3.0, size=(4, 1))
        constraint = (G, G @ inside + 0.1)
        A, b = np.vstack([A, G]), np.concatenate([b, G @ inside + 0.1])
    operators = [random_operator(rng, N, OWN, symmetric=trial % 2 == 1) for trial in range(TRIALS)]
    linear = 2.0 * rng.normal(size=(TRIALS, N))
    data = [ez.Samples.from_arrays({"M": M[None], "q": q[None]}) for M, q in zip(operators, linear, strict=True)]
    solutions = ez.solve_many(ez.Game(COSTS, STRATEGIES, constraint), data, tol=2e-11)
    unique_ones, binding = 0, 0
    for trial, (M, q, solution) in enumerate(zip(operators, linear, solutions, strict=True)):
        x, multipliers, unique = reference(M, q, A, b, E, e, quadratic_programme if trial % 2 else interior_point)
        assert solution.status is ez.Status.CONVERGED, solution.message
        np.testing.assert_allclose(np.concatenate(solution.x), x, atol=1e-8)
        if shared and unique:
            np.testing.assert_allclose(solution.multipliers, multipliers[own_rows:], atol=1e-6)
            unique_ones += 1
            binding += int(multipliers[own_rows:].max() > 1e-3)
    if shared:  # the comparison of multipliers is not an empty one
        assert unique_ones > TRIALS // 2
        assert binding > TRIALS // 2


# -- agents alike, each instance with sets, parameters and constraints of its own --------------------------------------

CARS, HOURS = 4, 3


def car_cost(own, average, car):
    """A quadratic whose coupling through the average is not symmetric."""
    return own @ (0.5 * car["H"] @ own + car["C"] @ average + car["q"])


def random_cars(rng):
    root = rng.normal(size=(CARS, HOURS, HOURS))
    H = root @ root.transpose(0, 2, 1) + 0.5 * np.eye(HOURS)
    C = rng.normal(size=(CARS, HOURS, HOURS))
    blocks = np.array([[C[i] / CARS for _ in range(CARS)] for i in range(CARS)])
    for i in range(CARS):
        blocks[i, i] += H[i] + C[i].T / CARS
    M = blocks.transpose(0, 2, 1, 3).reshape(CARS * HOURS, CARS * HOURS)
    lift = max(0.0, 0.5 - np.linalg.eigvalsh((M + M.T) / 2)[0])
    return {"H": H + lift * np.eye(HOURS), "C": C, "q": rng.normal(size=(CARS, HOURS))}, M + lift * np.eye(M.shape[0])


@pytest.mark.parametrize("TRIALS", [2, pytest.param(10, marks=pytest.mark.long)])
@pytest.mark.some(4)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_random_games_of_agents_alike_with_sets_of_their_own(sparse, TRIALS):
    rng = np.random.default_rng(11 + sparse)
    for _ in range(TRIALS):
        cars, M = random_cars(rng)
        need, cap = rng.uniform(0.5, 1.5, CARS), rng.uniform(0.8, 1.2, (CARS, HOURS))
        G = rng.normal(size=(3, CARS * HOURS))
        if sparse:
            G[np.abs(G) < np.sort(np.abs(G), axis=None)[-6]] = 0.0  # few enough to be kept as a list of entries
        b = G @ (0.5 * cap * (1 + need / cap.sum(axis=1))[:, None]).ravel() + rng.uniform(0.0, 0.3, 3)
        eye, each = np.eye(CARS * HOURS), np.kron(np.eye(CARS), np.ones(HOURS))
        rows = np.vstack([-eye, eye, -each, G])
        bounds = np.concatenate([np.zeros(len(eye)), cap.ravel(), -need, b])
        x, multipliers, unique = reference(
            M, cars["q"].ravel(), rows, bounds, np.zeros((0, len(eye))), np.zeros(0)
        )  # fmt: skip
        strategies = ez.sets.BoxBudget(0.0, cap, at_least=need)
        game = ez.AggregativeGame(car_cost, cars, strategies, shared=(sp.csr_matrix(G) if sparse else G, b))
        solution = ez.solve(game, tol=2e-11)
        np.testing.assert_allclose(solution.x.ravel(), x, atol=1e-8)
        if unique:
            np.testing.assert_allclose(solution.multipliers, multipliers[-3:], atol=1e-6)
