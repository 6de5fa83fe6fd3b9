"""Random functions of x and ξ, written for JAX and for NumPy alike, with traps among them.

A function is a tree; `value(tree, xp, x, xi)` evaluates it for one point (JAX) or for rows of points (NumPy). Leaves
are affine maps of x with coefficients that may depend on ξ. What is drawn is mostly convex, so that claims are made,
and often not, so that claims could be wrong: negative multiples, decreasing outer functions, kinks, jumps, poles.
"""

import jax
import jax.numpy as jnp
import numpy as np

OUTER = ("exp", "softplus", "logaddexp", "log1pexp", "log of 1 + exp", "square", "cube", "fourth", "cosh", "root",
         "huber", "tanh", "logistic", "sin", "atan", "neg exp", "xlogx", "entr", "log", "sqrt", "reciprocal", "power",
         "abs", "relu", "hinge", "clip", "where", "expm1", "asinh", "erf", "rsqrt", "silu", "max", "min",
         "half where")  # fmt: skip
GROUPS = ("logsumexp", "log of sum of exp", "norm", "root of squares", "quadratic", "largest", "over linear", "product",
          "entropy of sum")  # fmt: skip
TAME = (
    "exp",
    "softplus",
    "log1pexp",
    "square",
    "fourth",
    "cosh",
    "root",
    "huber",
    "tanh",
    "logistic",
    "neg exp",
    "hinge",
)
TAME_GROUPS = ("logsumexp", "root of squares", "quadratic", "product")


def draw(rng, n, d, tame=False):
    """A tree for points of n entries and samples of d; tame: of functions that are smooth everywhere."""
    many = 1 if tame else int(rng.integers(1, 4))
    terms = [_term(rng, n, d, (TAME, TAME_GROUPS) if tame else (OUTER, GROUPS)) for _ in range(many)]
    if rng.random() < 0.6:
        terms.append(("ridge", float(rng.uniform(0.05, 2.0)), rng.normal(size=n)))
    if rng.random() < 0.5:
        terms.append(("linear", _affine(rng, n, d)))
    return ("sum", terms)


def _affine(rng, n, d):
    a = rng.normal(size=n) * rng.choice([0.3, 1.0, 3.0])
    a[rng.random(n) < 0.3] = 0.0
    if not a.any():
        a[0] = 1.0
    random = d > 0 and rng.random() < 0.5
    C = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5) if random else np.zeros((n, d))
    c = rng.normal(size=d) * (rng.random(d) < 0.5) if d else np.zeros(0)
    return a, float(rng.normal()), C, c


def _term(rng, n, d, names):
    weight = float(rng.uniform(0.1, 3.0)) * (-1.0 if rng.random() < 0.2 else 1.0)
    noisy = bool(d and rng.random() < 0.2)
    kind = rng.random()
    if kind < 0.5:
        inner = ("affine", _affine(rng, n, d))
        return ("scaled", weight, noisy, ("outer", str(rng.choice(names[0])), float(rng.uniform(0.5, 2.5)), inner))
    if kind < 0.7:
        parts = [_affine(rng, n, d) for _ in range(int(rng.integers(2, 4)))]
        return ("scaled", weight, noisy, ("group", str(rng.choice(names[1])), float(rng.uniform(0.0, 1.5)), parts))
    if rng.random() < 0.3:
        inner = ("outer", str(rng.choice(names[0])), float(rng.uniform(0.5, 2.5)), ("affine", _affine(rng, n, d)))
    else:
        parts = [_affine(rng, n, d) for _ in range(2)]
        inner = ("group", str(rng.choice(names[1])), float(rng.uniform(0.0, 1.5)), parts)
    moved = ("shifted", float(rng.choice([-1.0, 0.5, 1.0])), float(rng.normal()), inner)
    return ("scaled", weight, noisy, ("outer", str(rng.choice(names[0])), float(rng.uniform(0.5, 2.5)), moved))


def value(tree, xp, x, xi):  # noqa: PLR0911  (one line per kind)
    """At one point and sample, or at rows of both."""
    kind = tree[0]
    if kind == "sum":
        return sum(value(part, xp, x, xi) for part in tree[1])
    if kind == "ridge":
        return 0.5 * tree[1] * xp.sum((x - tree[2]) ** 2, axis=-1)
    if kind in ("linear", "affine"):
        return _at(tree[1], xp, x, xi)
    if kind == "shifted":
        return tree[1] * value(tree[3], xp, x, xi) + tree[2]
    if kind == "scaled":
        factor = tree[1] * (0.5 + 0.4 * xi[..., 0]) if tree[2] else tree[1]
        return factor * value(tree[3], xp, x, xi)
    if kind == "outer":
        return _outer(tree[1], tree[2], xp, value(tree[3], xp, x, xi))
    return _grouped(tree[1], tree[2], xp, [_at(part, xp, x, xi) for part in tree[3]])


def _at(parts, xp, x, xi):
    a, b, C, c = parts
    slopes = a + (xi @ C.T if C.any() else 0.0)
    return xp.sum(slopes * x, axis=-1) + b + (xi @ c if len(c) else 0.0)


def _outer(name, c, xp, t):  # noqa: PLR0911, PLR0912  (one line per function)
    jax_like = xp is jnp
    if name == "softplus":
        return jax.nn.softplus(t) if jax_like else np.logaddexp(t, 0.0)
    if name == "logaddexp":
        return xp.logaddexp(t, c)
    if name == "log1pexp":
        return xp.log1p(xp.exp(t))
    if name == "log of 1 + exp":
        return xp.log(1.0 + xp.exp(-t))
    if name == "cube":
        return t**3
    if name == "fourth":
        return t**4
    if name == "root":
        return xp.sqrt(c + t**2)
    if name == "huber":
        return xp.where(xp.abs(t) <= c, 0.5 * t**2, c * (xp.abs(t) - 0.5 * c))
    if name == "half where":  # as Huber's loss, with a jump
        return xp.where(xp.abs(t) <= c, 0.5 * t**2, c * (xp.abs(t) - 0.4 * c))
    if name == "logistic":
        return jax.nn.sigmoid(t) if jax_like else 1 / (1 + np.exp(-t))
    if name == "atan":
        return xp.arctan(t)
    if name == "asinh":
        return xp.arcsinh(t)
    if name == "erf":
        return jax.scipy.special.erf(t) if jax_like else _erf(t)
    if name == "neg exp":
        return xp.exp(-c * t)
    if name == "xlogx":
        return t * xp.log(t)
    if name == "entr":
        return -jax.scipy.special.entr(t) if jax_like else np.where(t >= 0, _xlogx(t), np.inf)
    if name == "reciprocal":
        return 1.0 / t
    if name == "rsqrt":
        return 1.0 / xp.sqrt(t)
    if name == "power":
        return t**c
    if name in ("relu", "max"):
        return jax.nn.relu(t) if jax_like and name == "relu" else xp.maximum(t, 0.0)
    if name == "min":
        return xp.minimum(t, c)
    if name == "hinge":
        return xp.maximum(t, 0.0) ** 2
    if name == "clip":
        return xp.clip(t, -c, c)
    if name == "where":
        return xp.where(t > 0, c * t, -t)
    if name == "silu":
        return jax.nn.silu(t) if jax_like else t / (1 + np.exp(-t))
    return getattr(xp, name)(t)


def _grouped(name, c, xp, parts):  # noqa: PLR0911  (one line per function)
    t = xp.stack(parts, axis=-1)
    if name == "logsumexp":
        return jax.nn.logsumexp(t, axis=-1) if xp is jnp else np.logaddexp.reduce(t, axis=-1)
    if name == "log of sum of exp":
        return xp.log(c + xp.sum(xp.exp(t), axis=-1))
    if name == "norm":
        return xp.sqrt(xp.sum(t**2, axis=-1))
    if name == "root of squares":
        return xp.sqrt(c + xp.sum(t**2, axis=-1))
    if name == "quadratic":
        return parts[0] * parts[-1] + c * parts[0] ** 2
    if name == "largest":
        return xp.max(t, axis=-1)
    if name == "over linear":
        return parts[0] ** 2 / parts[-1]
    if name == "product":
        return xp.exp(0.3 * parts[0]) * parts[-1]
    total = xp.sum(xp.exp(t), axis=-1)
    return total * xp.log(total)


def _erf(t):
    from scipy.special import erf  # noqa: PLC0415

    return erf(t)


def _xlogx(t):
    from scipy.special import xlogy  # noqa: PLC0415

    return xlogy(np.maximum(t, 0.0), np.maximum(t, 0.0))
