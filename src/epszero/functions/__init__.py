"""Convex functions: value, `prox(v, step)`, `conjugate`. One file each; the calculus that joins them likewise."""

from epszero.functions._base import Function as Function
from epszero.functions.conjugate import Conjugate as Conjugate
from epszero.functions.elasticnet import ElasticNet as ElasticNet
from epszero.functions.groupl2 import GroupL2 as GroupL2
from epszero.functions.hinge import Hinge as Hinge
from epszero.functions.huber import Huber as Huber
from epszero.functions.indicator import Indicator as Indicator
from epszero.functions.l1 import L1 as L1
from epszero.functions.l2 import L2 as L2
from epszero.functions.linear import Linear as Linear
from epszero.functions.logbarrier import LogBarrier as LogBarrier
from epszero.functions.maxentry import MaxEntry as MaxEntry
from epszero.functions.negativeentropy import NegativeEntropy as NegativeEntropy
from epszero.functions.nuclearnorm import NuclearNorm as NuclearNorm
from epszero.functions.onblock import OnBlock as OnBlock
from epszero.functions.precomposed import Precomposed as Precomposed
from epszero.functions.quadratic import Quadratic as Quadratic
from epszero.functions.scaled import Scaled as Scaled
from epszero.functions.separablesum import SeparableSum as SeparableSum
from epszero.functions.squaredl2 import SquaredL2 as SquaredL2
from epszero.functions.tilted import Tilted as Tilted
from epszero.functions.totalvariation import TotalVariation1D as TotalVariation1D
from epszero.functions.translated import Translated as Translated
from epszero.functions.zero import Zero as Zero
