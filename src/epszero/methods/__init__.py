"""Splitting methods: `init` and `step`. The loop, the stopping rule and the printing live in solve/."""

from epszero.methods._base import Method as Method
from epszero.methods._base import State as State
from epszero.methods.adaptive_golden_ratio import AdaptiveGoldenRatio as AdaptiveGoldenRatio
from epszero.methods.asynchronous import Asynchronous as Asynchronous
from epszero.methods.chambolle_pock import ChambollePock as ChambollePock
from epszero.methods.condat_vu import CondatVu as CondatVu
from epszero.methods.davis_yin import DavisYin as DavisYin
from epszero.methods.douglas_rachford import DouglasRachford as DouglasRachford
from epszero.methods.extragradient import Extragradient as Extragradient
from epszero.methods.forward_backward import ForwardBackward as ForwardBackward
from epszero.methods.forward_backward_forward import ForwardBackwardForward as ForwardBackwardForward
from epszero.methods.mini_batch import MiniBatchForwardBackward as MiniBatchForwardBackward
from epszero.methods.preconditioned import PreconditionedForwardBackward as PreconditionedForwardBackward
from epszero.methods.random_block import RandomBlock as RandomBlock
from epszero.methods.stability import Premises as Premises
from epszero.methods.stability import Stability as Stability
from epszero.methods.stability import Unstable as Unstable
from epszero.methods.variance_reduction import LooplessVarianceReduction as LooplessVarianceReduction
