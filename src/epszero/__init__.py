"""epszero: zeros of sums of operators from samples, with certificates one can trust."""

from epszero import functions as functions
from epszero import sets as sets
from epszero._checks import InputError as InputError
