"""Seeded randomness everywhere: Hypothesis draws the same examples in every run, however slow the machine is."""

from hypothesis import settings

settings.register_profile("house", derandomize=True, deadline=None)
settings.load_profile("house")

LONGEST = ("validity", "methods", "problems", "certificates")  # directories whose files take long


def pytest_collection_modifyitems(items):
    """Long files first, so that no worker is left alone with one at the end."""
    place = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.parent.name, len(LONGEST)))
