"""The only loop: stopping, trace, status, progress."""

from epszero.solve.many import solve_many as solve_many
from epszero.solve.solution import Check as Check
from epszero.solve.solution import Solution as Solution
from epszero.solve.solve import solve as solve
from epszero.solve.status import SolveError as SolveError
from epszero.solve.status import Status as Status
