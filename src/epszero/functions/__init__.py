"""Convex functions: value, `prox(v, step)`, `conjugate`. One file each."""

from epszero.functions._base import Function as Function
from epszero.functions.l1 import L1 as L1
