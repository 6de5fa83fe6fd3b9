"""A peer that is not installed gets a sentence, and the comparison goes on."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def peer(name: str, install: str) -> Iterator[None]:
    """Whatever needs the peer goes inside; its absence is told, with what would bring it."""
    try:
        yield
    except ModuleNotFoundError as error:
        print(f"{name}: not installed ({error.name} is missing). {install} brings it; the rest does without.")
