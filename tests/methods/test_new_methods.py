"""Methods with a memory and wrappers: one loop for many runs, steps by block, bad arguments, certificates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

n = 4
RNG = np.random.default_rng(2)
ROOT = RNG.normal(size=(n, n))
H = ROOT @ ROOT.T / n + 0.5 * np.eye(n) + 0.4 * (ROOT - ROOT.T)
KAPPA = float(np.linalg.norm(H, 2))
BOX = ez.sets.Box(-np.ones(n), 0.7)
DATA = [ez.Samples(RNG.uniform(-1, 1, size=(30, n)), support=ez.sets.Box(-np.ones(n), 1.0)) for _ in range(3)]
PROBLEM = ez.Inclusion(BOX, lambda x, xi: H @ x - xi)
LEAST = ez.Minimization(lambda x, xi: 0.5 * x @ (H @ H.T) @ x - xi @ x, BOX)
METHODS = {
    "past extragradient": ez.PastExtragradient(),
    "forward-reflected-backward": ez.ForwardReflectedBackward(),
    "projected reflected gradient": ez.ProjectedReflectedGradient(),
    "golden ratio": ez.GoldenRatio(),
    "extra-anchored gradient": ez.ExtraAnchoredGradient(),
    "accelerated reflected gradient": ez.AcceleratedReflectedGradient(),
    "fast optimistic gradient": ez.FastOptimisticGradient(),
    "fast forward-backward": ez.FastForwardBackward(),
    "relaxed": ez.Relaxed(ez.ForwardBackwardForward(), 0.8),
    "Anderson": ez.Anderson(ez.ForwardBackward(), memory=2),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("name", METHODS)
def test_many_runs_in_one_loop_are_the_same_as_one_by_one(name):
    problem = LEAST if name.startswith("fast forward") else PROBLEM
    many = ez.solve_many(problem, DATA, METHODS[name], iterations=30)
    for data, together in zip(DATA, many, strict=True):
        alone = ez.solve(problem, data, METHODS[name], iterations=30)
        np.testing.assert_allclose(together.x, alone.x, atol=1e-12)
        np.testing.assert_allclose(together.z, alone.z, atol=1e-10)
        assert together.check().residual == pytest.approx(together.residual, abs=1e-12)


def _halves(x):
    v = H @ jnp.concatenate(x) - 0.3
    return [v[:2], v[2:]]


BLOCKS = ez.Inclusion([ez.sets.Box(-np.ones(2), 1.0), ez.functions.L1(0.2 * np.ones(2))], _halves)


@pytest.mark.some(4)
@pytest.mark.parametrize("name", [name for name in METHODS if not name.startswith(("fast forward", "Anderson"))])
def test_steps_by_block_are_one_step_in_other_units(name):
    """u = Γ^{-½}x turns Γ into 1: the set is scaled, the weight of the ℓ1 norm too, and B becomes Γ^½B(Γ^½u)."""
    sides = [ez.sets.Box(-np.ones(2) / 2.0, 0.5), ez.functions.L1(0.1 * np.ones(2))]
    scaled = ez.Inclusion(sides, lambda u: [2.0 * _halves(_back(u))[0], 0.5 * _halves(_back(u))[1]])
    step, steps = 0.05 / KAPPA, [0.2 / KAPPA, 0.0125 / KAPPA]
    kind = type(METHODS[name])
    one, other = (
        (ez.Relaxed(ez.Extragradient(size), 0.8) if kind is ez.Relaxed else kind(size)) for size in (step, steps)
    )
    u = ez.solve(scaled, None, one, x0=[np.zeros(2), np.ones(2)], iterations=20).x
    x = ez.solve(BLOCKS, None, other, x0=[np.zeros(2), np.full(2, 0.5)], iterations=20).x
    np.testing.assert_allclose(np.concatenate(x), np.concatenate(_back(u)), atol=1e-12)


def _back(u):
    return [2.0 * u[0], 0.5 * u[1]]


STEPPED = [type(method) for name, method in METHODS.items() if name not in ("relaxed", "Anderson")]


@pytest.mark.parametrize("kind", STEPPED, ids=lambda kind: kind.__name__)
def test_bad_steps_are_refused_in_a_sentence(kind):
    for step in (0.0, -1.0, np.nan, "long"):
        with pytest.raises(ez.InputError, match=r"^step"):
            ez.solve(LEAST, DATA[0], kind(step))
    with pytest.raises(ez.InputError, match=r"^step: cannot change with k here"):
        kind(lambda k: 0.1)
    with pytest.raises(ez.InputError, match=r"step.*no such argument"):
        kind(steps=0.1)
    vouched = ez.Minimization(lambda x, xi: 0.5 * x @ x - xi @ x, BOX, declared=ez.declare(kappa=1.0))
    with pytest.raises(ez.InputError, match=r"^step: must be below .* the limit for the constants"):
        ez.solve(vouched, DATA[0], kind(1.5))
    unknown = ez.Minimization(lambda x: jnp.sum(jnp.exp(x) * x**2), ez.sets.WholeSpace(dim=n))
    with pytest.raises(ez.InputError, match=r"^step: is left out, and no Lipschitz constant.*AdaptiveGoldenRatio"):
        ez.solve(unknown, None, kind(), x0=np.zeros(n))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ez.GoldenRatio(phi=1.0), r"^phi: must lie in \(1"),
        (lambda: ez.GoldenRatio(phi=1.7), r"^phi: must lie in \(1"),
        (lambda: ez.FastOptimisticGradient(alpha=2.0), r"^alpha: must exceed 2"),
        (lambda: ez.FastForwardBackward(restart="yes"), r"^restart: must be True or False"),
        (lambda: ez.Relaxed(ez.ForwardBackward(0.1), 0.0), r"^relaxation: must lie in \(0, 1\]"),
        (lambda: ez.Relaxed(ez.ForwardBackward(0.1), 1.5), r"^relaxation: must lie in \(0, 1\]"),
        (lambda: ez.Relaxed(0.5, 0.5), r"^of: must be a method"),
        (lambda: ez.Anderson(ez.ForwardBackward, 3), r"^of: must be a method"),
        (lambda: ez.Anderson(ez.ForwardBackward(0.1), memory=-1), r"^memory: "),
        (lambda: ez.Anderson(ez.ForwardBackward(0.1), memory=2.5), r"^memory: "),
    ],
)
def test_other_bad_arguments_too(make, said):
    with pytest.raises(ez.InputError, match=said):
        make()


def test_wrappers_refuse_what_is_no_map_of_x():
    searched = ez.Inclusion(ez.sets.WholeSpace(dim=n), lambda x: x**3 + x)
    for of in (ez.GoldenRatio(0.05), ez.AdaptiveGoldenRatio(), ez.Anderson(ez.ForwardBackward(0.05))):
        for wrapper in (ez.Relaxed(of, 0.5), ez.Anderson(of)):
            with pytest.raises(ez.InputError, match=r"^of: must be a map of x alone"):
                ez.solve(PROBLEM, DATA[0], wrapper)
    with pytest.raises(ez.InputError, match=r"^of: must be a map of x alone.*searches for its step"):
        ez.solve(searched, None, ez.Relaxed(ez.ForwardBackward(), 0.5), x0=np.ones(n))


CERTIFIED = {
    "forward-reflected-backward": ez.ForwardReflectedBackward(0.3 / KAPPA),
    "golden ratio": ez.GoldenRatio(0.5 / KAPPA),
    "relaxed": ez.Relaxed(ez.ForwardBackward(0.1), 0.8),
}


def mixed(x, xi):
    """Of random slope, so that stability matters: L_Δ > 0."""
    return H @ x + 0.05 * xi * x - xi


@pytest.mark.some(3)
@pytest.mark.parametrize("name", CERTIFIED)
def test_certificates_read_the_stability_and_records_bring_the_run_back(name):
    problem = ez.VariationalInequality(mixed, BOX, declared=ez.declare(independent=True))
    solution = ez.solve(problem, DATA[0], CERTIFIED[name], iterations=200)
    certificate = ez.certify(solution, using=ez.certificates.VectorStability())
    assert np.isfinite(certificate.epsilon)
    again = ez.verify(certificate.to_json(), problem, DATA[0])
    assert again.agrees, str(again.differences)


def test_where_nothing_is_known_other_certificates_hold():
    problem = ez.VariationalInequality(mixed, BOX, declared=ez.declare(independent=True))
    solution = ez.solve(problem, DATA[0], ez.ExtraAnchoredGradient(0.2 / KAPPA), iterations=200)
    assert np.isfinite(ez.certify(solution, using=ez.certificates.MeanDeviation()).epsilon)


@pytest.mark.long
def test_anderson_goes_back_where_an_accelerated_point_is_no_better():
    """log exists for x > 0 only, and accelerated points may lie elsewhere: such steps are not kept."""
    problem = ez.Inclusion(ez.sets.Box(0.01 * np.ones(1), 10.0), lambda x: 0.2 * jnp.log(x) * x + 0.001)
    found = ez.solve(problem, None, ez.Anderson(ez.ForwardBackward(0.9), memory=4), x0=np.full(1, 9.0), tol=1e-10)
    assert found.status is ez.Status.CONVERGED
    assert jax.tree.leaves(found.x)[0] > 0
