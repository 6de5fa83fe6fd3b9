"""Slow packages that many rooms use, loaded when first used and not when they are imported."""

import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any


def lazily(name: str) -> ModuleType:
    """The module of that name; its code runs at the first look at one of its attributes."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    import scipy.linalg
    import scipy.sparse
    import scipy.special

    linalg, sp, special = scipy.linalg, scipy.sparse, scipy.special
    Sparse = sp.spmatrix | sp.sparray
else:
    linalg, sp, special = lazily("scipy.linalg"), lazily("scipy.sparse"), lazily("scipy.special")
    Sparse = Any  # to name its classes would load it


def expit(t: Any) -> Any:
    """1/(1 + e^−t)."""
    return special.expit(t)


def erf(t: Any) -> Any:
    """The error function."""
    return special.erf(t)
