"""B's side: oracles O(x, ξ), and what becomes of them when they are averaged over samples."""

from epszero.oracles._base import Average as Average
from epszero.oracles._base import Opaque as Opaque
from epszero.oracles._base import Oracle as Oracle
from epszero.oracles.affine import Additive as Additive
from epszero.oracles.affine import AffineInFeatures as AffineInFeatures
from epszero.oracles.blocks import Blocks as Blocks
from epszero.oracles.blocks import OwnData as OwnData
from epszero.oracles.exact import Exact as Exact
from epszero.oracles.general import General as General
from epszero.oracles.recognise import as_oracle as as_oracle
