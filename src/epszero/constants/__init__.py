"""What is known of B in numbers, and what follows from it."""

from epszero.constants.steps import MANY_ROWS as MANY_ROWS
from epszero.constants.steps import StepRange as StepRange
from epszero.constants.steps import lipschitz_range as lipschitz_range
from epszero.constants.steps import said as said
from epszero.constants.steps import scaled_rows as scaled_rows
from epszero.constants.steps import spectrum as spectrum
from epszero.constants.steps import step_range as step_range
