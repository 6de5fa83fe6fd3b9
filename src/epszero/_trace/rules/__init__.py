"""Rules in the manner of disciplined convex programming: a traced function as a sum of functions of affine maps."""

from epszero._trace.rules.forms import Form as Form
from epszero._trace.rules.walk import decomposed as decomposed
