"""epszero: zeros of sums of operators from samples, with certificates one can trust.

`import epszero` loads nothing: a name is fetched when it is first used, from the room that the table says. Type
checkers and editors read the plain imports; `tests/cli/test_processes.py` checks that table and imports agree.

`solve`, `audit` and `report` are functions here and rooms of the package too. Python puts a room that is imported among
the names of its package; here it leaves these three alone. A module needs a class of its own for that, not just the
functions of PEP 562.
"""

import difflib
import importlib
import sys
import types
import typing

if typing.TYPE_CHECKING:
    from epszero import certificates as certificates
    from epszero import datasets as datasets
    from epszero import experiments as experiments
    from epszero import functions as functions
    from epszero import methods as methods
    from epszero import models as models
    from epszero import oracles as oracles
    from epszero import sets as sets
    from epszero._checks import InputError as InputError
    from epszero._compiled import keep_compiled as keep_compiled
    from epszero.audit import Audit as Audit
    from epszero.audit import audit as audit
    from epszero.certificates import Certificate as Certificate
    from epszero.certificates import certify as certify
    from epszero.certificates import certify_many as certify_many
    from epszero.certificates import monitor as monitor
    from epszero.certificates import plan as plan
    from epszero.certificates import verify as verify
    from epszero.methods import AcceleratedReflectedGradient as AcceleratedReflectedGradient
    from epszero.methods import AdaptiveGoldenRatio as AdaptiveGoldenRatio
    from epszero.methods import Anderson as Anderson
    from epszero.methods import Asynchronous as Asynchronous
    from epszero.methods import ChambollePock as ChambollePock
    from epszero.methods import CondatVu as CondatVu
    from epszero.methods import DavisYin as DavisYin
    from epszero.methods import DouglasRachford as DouglasRachford
    from epszero.methods import ExtraAnchoredGradient as ExtraAnchoredGradient
    from epszero.methods import Extragradient as Extragradient
    from epszero.methods import FastForwardBackward as FastForwardBackward
    from epszero.methods import FastOptimisticGradient as FastOptimisticGradient
    from epszero.methods import ForwardBackward as ForwardBackward
    from epszero.methods import ForwardBackwardForward as ForwardBackwardForward
    from epszero.methods import ForwardReflectedBackward as ForwardReflectedBackward
    from epszero.methods import GoldenRatio as GoldenRatio
    from epszero.methods import LooplessVarianceReduction as LooplessVarianceReduction
    from epszero.methods import MiniBatchForwardBackward as MiniBatchForwardBackward
    from epszero.methods import PastExtragradient as PastExtragradient
    from epszero.methods import PreconditionedForwardBackward as PreconditionedForwardBackward
    from epszero.methods import ProjectedReflectedGradient as ProjectedReflectedGradient
    from epszero.methods import RandomBlock as RandomBlock
    from epszero.methods import Relaxed as Relaxed
    from epszero.problems import AffineConstraint as AffineConstraint
    from epszero.problems import AggregativeGame as AggregativeGame
    from epszero.problems import ConvexConstraint as ConvexConstraint
    from epszero.problems import ConvexityWarning as ConvexityWarning
    from epszero.problems import Game as Game
    from epszero.problems import Inclusion as Inclusion
    from epszero.problems import Minimization as Minimization
    from epszero.problems import VariationalInequality as VariationalInequality
    from epszero.problems import declare as declare
    from epszero.report import Page as Page
    from epszero.report import load as load
    from epszero.report import report as report
    from epszero.samples import Samples as Samples
    from epszero.solve import Solution as Solution
    from epszero.solve import SolveError as SolveError
    from epszero.solve import Status as Status
    from epszero.solve import reference_equilibrium as reference_equilibrium
    from epszero.solve import solve as solve
    from epszero.solve import solve_many as solve_many

    __version__: str

_PUBLIC = {
    "_checks": ("InputError",),
    "_compiled": ("keep_compiled",),
    "audit": ("Audit", "audit"),
    "certificates": ("Certificate", "certify", "certify_many", "monitor", "plan", "verify"),
    "methods": (
        *("AcceleratedReflectedGradient", "AdaptiveGoldenRatio", "Anderson", "Asynchronous", "ChambollePock"),
        *("CondatVu", "DavisYin", "DouglasRachford", "ExtraAnchoredGradient", "Extragradient", "FastForwardBackward"),
        *("FastOptimisticGradient", "ForwardBackward", "ForwardBackwardForward", "ForwardReflectedBackward"),
        *("GoldenRatio", "LooplessVarianceReduction", "MiniBatchForwardBackward", "PastExtragradient"),
        *("PreconditionedForwardBackward", "ProjectedReflectedGradient", "RandomBlock", "Relaxed"),
    ),
    "problems": (
        *("AffineConstraint", "AggregativeGame", "ConvexConstraint", "ConvexityWarning", "Game", "Inclusion"),
        *("Minimization", "VariationalInequality", "declare"),
    ),
    "report": ("Page", "load", "report"),
    "samples": ("Samples",),
    "solve": ("Solution", "SolveError", "Status", "reference_equilibrium", "solve", "solve_many"),
}
_HOMES = {name: room for room, names in _PUBLIC.items() for name in names}
_ROOMS = (
    *("certificates", "datasets", "experiments", "facts", "functions", "methods", "models", "oracles", "problems"),
    *("samples", "sets"),
)
__all__ = [*_HOMES, *_ROOMS]  # noqa: PLE0604  # pyright: ignore[reportUnsupportedDunderAll]  (strings, all of them)


class _Package(types.ModuleType):
    """A module that fetches a name when it is first used."""

    def __getattr__(self, name: str) -> typing.Any:
        if name in _HOMES:
            found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
            setattr(self, name, found)
            return found
        if name in _ROOMS:
            return importlib.import_module(f"{__name__}.{name}")
        if name == "__version__":  # of what is installed; reading it takes some milliseconds
            return importlib.import_module("importlib.metadata").version(__name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{_hint(name)}", name=name)

    def __setattr__(self, name: str, value: typing.Any) -> None:
        if not (name in _HOMES and isinstance(value, types.ModuleType)):  # a room would take the place of its function
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*__all__, *(name for name in vars(self) if name.startswith("_"))})


def _hint(name: str) -> str:
    """Where a class is that belongs to a room, or else the name that is spelt almost so."""
    if name[:1].isupper():
        for room in ("sets", "functions", "certificates", "oracles"):
            if hasattr(importlib.import_module(f"{__name__}.{room}"), name):
                return f" Did you mean '{__name__}.{room}.{name}'?"
    near = difflib.get_close_matches(name, __all__, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


sys.modules[__name__].__class__ = _Package
