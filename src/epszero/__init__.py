"""epszero: zeros of sums of operators from samples, with certificates one can trust."""

from epszero import certificates as certificates
from epszero import functions as functions
from epszero import oracles as oracles
from epszero import sets as sets
from epszero._checks import InputError as InputError
from epszero.audit import Audit as Audit
from epszero.audit import audit as audit
from epszero.certificates import Certificate as Certificate
from epszero.certificates import certify as certify
from epszero.certificates import certify_many as certify_many
from epszero.certificates import plan as plan
from epszero.certificates import verify as verify
from epszero.methods import Extragradient as Extragradient
from epszero.methods import ForwardBackward as ForwardBackward
from epszero.methods import ForwardBackwardForward as ForwardBackwardForward
from epszero.methods import PreconditionedForwardBackward as PreconditionedForwardBackward
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
from epszero.report import report as report
from epszero.samples import Samples as Samples
from epszero.solve import Solution as Solution
from epszero.solve import SolveError as SolveError
from epszero.solve import Status as Status
from epszero.solve import reference_equilibrium as reference_equilibrium
from epszero.solve import solve as solve
from epszero.solve import solve_many as solve_many

# isort: split
# Outer rooms, built on the names above.
from epszero import datasets as datasets
from epszero import experiments as experiments
from epszero import models as models
