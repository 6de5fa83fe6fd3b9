"""The paper's figures and tables, and ours beyond them: one module each, run by `reproduce`."""

from epszero.experiments._outcome import Comparison as Comparison
from epszero.experiments._outcome import Result as Result
from epszero.experiments._run import NAMES as NAMES
from epszero.experiments._run import TITLES as TITLES
from epszero.experiments._run import reproduce as reproduce
