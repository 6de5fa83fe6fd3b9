"""Seeded randomness everywhere: Hypothesis draws the same examples in every run, however slow the machine is."""

from hypothesis import settings

settings.register_profile("house", derandomize=True, deadline=None)
settings.load_profile("house")
