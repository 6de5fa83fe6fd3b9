"""Seeded randomness everywhere: Hypothesis draws the same examples in every run, however slow the machine is."""

import gc
from collections import Counter
from pathlib import Path

import jax
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


MAPS = Path("/proc/self/maps")
MANY_MAPS = 20_000  # each compiled program takes some; Linux kills a process that has more than 65 530


@pytest.fixture(autouse=True, scope="module")
def compiled_programs_are_forgotten_before_they_are_too_many():
    yield
    if MAPS.exists() and len(MAPS.read_bytes().splitlines()) > MANY_MAPS:
        jax.clear_caches()
        gc.collect()


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
