"""Convex sets: `project`, `contains`, `support`, `diameter`, `point`. One file each."""

from epszero.sets._base import Set as Set
from epszero.sets.box import Box as Box
from epszero.sets.boxbudget import BoxBudget as BoxBudget
