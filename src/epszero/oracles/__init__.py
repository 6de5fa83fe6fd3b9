"""B's side: oracles O(x, ξ), and what becomes of them when they are averaged over samples."""

from epszero.oracles._base import Average as Average
from epszero.oracles._base import Collapsed as Collapsed
from epszero.oracles._base import Opaque as Opaque
from epszero.oracles._base import Oracle as Oracle
from epszero.oracles._base import OwnData as OwnData
from epszero.oracles.affine import Additive as Additive
from epszero.oracles.affine import Affine as Affine
from epszero.oracles.affine import AffineInFeatures as AffineInFeatures
from epszero.oracles.agents import Agents as Agents
from epszero.oracles.blocks import Blocks as Blocks
from epszero.oracles.coupled import Coupled as Coupled
from epszero.oracles.coupled import CoupledMean as CoupledMean
from epszero.oracles.coupled import Coupling as Coupling
from epszero.oracles.coupled import PrimalDual as PrimalDual
from epszero.oracles.coupled import strategies as strategies
from epszero.oracles.exact import Exact as Exact
from epszero.oracles.general import General as General
from epszero.oracles.recognise import as_oracle as as_oracle
