"""Splitting methods: `init` and `step`. The loop, the stopping rule and the printing live in solve/."""

from epszero.methods._base import Method as Method
from epszero.methods._base import State as State
from epszero.methods.adaptive_golden_ratio import AdaptiveGoldenRatio as AdaptiveGoldenRatio
from epszero.methods.extragradient import Extragradient as Extragradient
from epszero.methods.forward_backward import ForwardBackward as ForwardBackward
from epszero.methods.forward_backward_forward import ForwardBackwardForward as ForwardBackwardForward
from epszero.methods.preconditioned import PreconditionedForwardBackward as PreconditionedForwardBackward
