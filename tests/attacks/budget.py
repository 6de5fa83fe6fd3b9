"""How long an attack searches: a few examples in `make test`, many and other ones in `make validity`."""

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("EPSZERO_ATTACKS", "1"))  # as often as in `make test`


def budget(examples: int) -> settings:
    """For `@budget(10) @given(…)`: ten examples in `make test`, always the same ones."""
    return settings(
        max_examples=examples * TIMES,
        derandomize=TIMES == 1,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
