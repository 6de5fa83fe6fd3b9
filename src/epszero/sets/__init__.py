"""Convex sets: `project`, `contains`, `support`, `diameter`, `point`. One file each."""

from epszero.sets._base import Set as Set
from epszero.sets.affine import AffineSubspace as AffineSubspace
from epszero.sets.ball import Ball as Ball
from epszero.sets.box import Box as Box
from epszero.sets.boxbudget import BoxBudget as BoxBudget
from epszero.sets.cappedsimplex import CappedSimplex as CappedSimplex
from epszero.sets.ellipsoid import Ellipsoid as Ellipsoid
from epszero.sets.from_cvxpy import CvxpySet as CvxpySet
from epszero.sets.from_cvxpy import from_cvxpy as from_cvxpy
from epszero.sets.halfspace import HalfSpace as HalfSpace
from epszero.sets.hyperplane import Hyperplane as Hyperplane
from epszero.sets.intersection import Intersection as Intersection
from epszero.sets.intersection import NotConvergedError as NotConvergedError
from epszero.sets.nonnegative import NonNegative as NonNegative
from epszero.sets.polyhedron import Polyhedron as Polyhedron
from epszero.sets.product import Product as Product
from epszero.sets.scaled import Scaled as Scaled
from epszero.sets.secondordercone import SecondOrderCone as SecondOrderCone
from epszero.sets.semidefinite import PositiveSemidefinite as PositiveSemidefinite
from epszero.sets.simplex import Simplex as Simplex
from epszero.sets.singleton import Singleton as Singleton
from epszero.sets.slab import Slab as Slab
from epszero.sets.translated import Translated as Translated
from epszero.sets.wholespace import WholeSpace as WholeSpace
