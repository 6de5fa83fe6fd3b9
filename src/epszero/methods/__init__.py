"""Splitting methods: `init` and `step`. The loop, the stopping rule and the printing live in solve/."""

from epszero.methods._base import Method as Method
from epszero.methods._base import State as State
from epszero.methods.accelerated_reflected_gradient import AcceleratedReflectedGradient as AcceleratedReflectedGradient
from epszero.methods.adaptive_golden_ratio import AdaptiveGoldenRatio as AdaptiveGoldenRatio
from epszero.methods.anderson import Anderson as Anderson
from epszero.methods.extra_anchored_gradient import ExtraAnchoredGradient as ExtraAnchoredGradient
from epszero.methods.extragradient import Extragradient as Extragradient
from epszero.methods.fast_forward_backward import FastForwardBackward as FastForwardBackward
from epszero.methods.fast_optimistic_gradient import FastOptimisticGradient as FastOptimisticGradient
from epszero.methods.forward_backward import ForwardBackward as ForwardBackward
from epszero.methods.forward_backward_forward import ForwardBackwardForward as ForwardBackwardForward
from epszero.methods.forward_reflected_backward import ForwardReflectedBackward as ForwardReflectedBackward
from epszero.methods.golden_ratio import GoldenRatio as GoldenRatio
from epszero.methods.past_extragradient import PastExtragradient as PastExtragradient
from epszero.methods.preconditioned import PreconditionedForwardBackward as PreconditionedForwardBackward
from epszero.methods.projected_reflected_gradient import ProjectedReflectedGradient as ProjectedReflectedGradient
from epszero.methods.recommend import Recommendation as Recommendation
from epszero.methods.recommend import recommend as recommend
from epszero.methods.relaxed import Relaxed as Relaxed
