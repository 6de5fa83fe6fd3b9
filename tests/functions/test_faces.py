"""Faces of functions, and of functions made of them, against their prox.

x = prox(v) has the element z = v − x, and near v it moves by Z(Zᵀ(I + Q)Z)⁻¹Zᵀd for v + d as long as no slack and no
value of the face changes sign.
"""

import numpy as np
import pytest

import epszero as ez

F, S = ez.functions, ez.sets
FUNCTIONS = {
    "l1": F.L1(0.5),
    "hinge": F.Hinge(0.7, 0.2),
    "largest entry": F.MaxEntry(1.0),
    "total variation": F.TotalVariation1D(0.4),
    "elastic net": F.ElasticNet(0.5, 0.8),
    "translated": F.Translated(F.L1(0.5), 0.25),
    "scaled": F.Scaled(F.Hinge(0.7, 0.2), 1.5),
    "scaled elastic net": F.Scaled(F.ElasticNet(0.5, 0.8), 2.0),
    "tilted": F.Tilted(F.TotalVariation1D(0.4), [0.1, 0.0, -0.1]),
    "mirrored": F.Precomposed(F.ElasticNet(0.5, 0.8), -2.0),
    "indicator": F.Indicator(S.Box(-0.4, 0.4, dim=3)),
    "scaled indicator": F.Scaled(F.Indicator(S.Simplex(dim=3)), 3.0),
    "linear": F.Linear([0.3, 0.0, -0.2]),
    "zero": F.Zero(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_near_a_point_the_prox_moves_as_the_face_says(name):
    f, rng = FUNCTIONS[name], np.random.default_rng(4)
    assert f.polyhedral
    for _ in range(6):
        v, d = rng.normal(size=(2, 3))
        x = np.asarray(f.prox(v))
        face = f.face(x, v - x)
        assert face is not None
        margins = np.concatenate([face.slacks, face.values])
        assert (margins > 0).all()
        N = face.normals
        Z = np.linalg.svd(N, full_matrices=True)[2][len(N) :].T if len(N) else np.eye(3)
        Q = np.diag(np.broadcast_to(face.curvature, 3))
        u = Z @ np.linalg.solve(Z.T @ (np.eye(3) + Q) @ Z, Z.T @ d)
        losses = np.concatenate([face.rows @ u, -face.duals @ (d - u - Q @ u)])
        end = min([a / b for a, b in zip(margins, losses, strict=True) if b > 1e-12], default=2.0)
        for t in (0.5, 0.95):
            np.testing.assert_allclose(f.prox(v + t * end * d), x + t * end * u, atol=1e-9)
        if face.lifts is not None and len(face.lifts):
            np.testing.assert_allclose(np.sum(face.duals * face.lifts, axis=1), 1.0, atol=1e-9)
        if end < 2.0:
            far = v + (1.2 * end + 1e-3) * d
            y = np.asarray(f.prox(far))
            assert np.abs(y - x - (1.2 * end + 1e-3) * u).max() > 1e-9
