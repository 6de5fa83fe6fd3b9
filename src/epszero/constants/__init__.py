"""What is known of B in numbers, and what follows from it."""

from epszero.constants.linear import DENSE as DENSE
from epszero.constants.linear import Linear as Linear
from epszero.constants.linear import affine_in_features as affine_in_features
from epszero.constants.linear import collapsed_by_proof as collapsed_by_proof
from epszero.constants.linear import first_rows as first_rows
from epszero.constants.linear import linear_part as linear_part
from epszero.constants.linear import noise_is_additive as noise_is_additive
from epszero.constants.provenance import Constant as Constant
from epszero.constants.provenance import Provenance as Provenance
from epszero.constants.provenance import worst as worst
from epszero.constants.steps import MANY_ROWS as MANY_ROWS
from epszero.constants.steps import StepRange as StepRange
from epszero.constants.steps import lipschitz_range as lipschitz_range
from epszero.constants.steps import said as said
from epszero.constants.steps import scaled_rows as scaled_rows
from epszero.constants.steps import spectrum as spectrum
from epszero.constants.steps import step_range as step_range
