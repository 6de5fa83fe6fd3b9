"""Problems as people state them; all become one `Inclusion`."""

from epszero.problems._base import Problem as Problem
from epszero.problems.aggregative import AggregativeGame as AggregativeGame
from epszero.problems.declared import Declared as Declared
from epszero.problems.declared import declare as declare
from epszero.problems.examination import ConvexityWarning as ConvexityWarning
from epszero.problems.game import Game as Game
from epszero.problems.inclusion import Inclusion as Inclusion
from epszero.problems.minimization import Minimization as Minimization
from epszero.problems.shared import AffineConstraint as AffineConstraint
from epszero.problems.shared import ConvexConstraint as ConvexConstraint
from epszero.problems.variational import VariationalInequality as VariationalInequality
