"""What is known of B in numbers, and what follows from it."""

from epszero.constants.steps import StepRange as StepRange
from epszero.constants.steps import step_range as step_range
