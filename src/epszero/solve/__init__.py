"""The only loop: stopping, trace, status, progress; and what can be asked of a solution."""

from epszero.solve.equilibrium import EquilibriumCheck as EquilibriumCheck
from epszero.solve.many import solve_many as solve_many
from epszero.solve.reference import Reference as Reference
from epszero.solve.reference import reference_equilibrium as reference_equilibrium
from epszero.solve.solution import Check as Check
from epszero.solve.solution import Solution as Solution
from epszero.solve.solution import Trace as Trace
from epszero.solve.solutions import Solutions as Solutions
from epszero.solve.solve import HOLDOUT_SEED as HOLDOUT_SEED
from epszero.solve.solve import solve as solve
from epszero.solve.status import SolveError as SolveError
from epszero.solve.status import Status as Status
