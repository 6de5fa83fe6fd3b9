"""Confidence sets for the mean of a random vector, from samples and what is known of their law."""

from epszero.certificates.mean._base import MeanBound as MeanBound
from epszero.certificates.mean._base import MeanSet as MeanSet
from epszero.certificates.mean.bernstein import Bernstein as Bernstein
from epszero.certificates.mean.betting import Betting as Betting
from epszero.certificates.mean.empirical_bernstein import EmpiricalBernstein as EmpiricalBernstein
from epszero.certificates.mean.hoeffding import Hoeffding as Hoeffding
from epszero.certificates.mean.hoeffding import Stitched as Stitched
from epszero.certificates.mean.mcdiarmid import McDiarmid as McDiarmid
from epszero.certificates.mean.median_of_means import MedianOfMeans as MedianOfMeans
from epszero.certificates.mean.subgaussian import SubGaussian as SubGaussian
from epszero.facts.region import Region as Region
