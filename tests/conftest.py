"""Seeded randomness everywhere: Hypothesis draws the same examples in every run, however slow the machine is."""

from collections import Counter

import pytest
from hypothesis import settings

settings.register_profile("house", derandomize=True, deadline=None)
settings.load_profile("house")

LONGEST = (
    "validity",
    "problems",
    "experiments",
    "audit",
    "methods",
    "certificates",
    "cli",
    "models",
)  # directories whose files take long


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of tests marked `some(n)` every n-th runs now and the others with the long ones. Long files first, so that no
    worker is left alone with one at the end."""
    seen = Counter()
    for item in items:
        marker = item.get_closest_marker("some")
        if marker is not None:
            name = item.nodeid.split("[")[0]
            if seen[name] % marker.args[0]:
                item.add_marker(pytest.mark.long)
            seen[name] += 1
    place = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.parent.name, len(LONGEST)))
