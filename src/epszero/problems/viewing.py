"""From a game to the view that suits its kind."""

from typing import Any

from epszero._types import PyTree
from epszero.problems.stacked import Stacked
from epszero.problems.views import Listed, View


def view_of(game: Any, data: PyTree, x: PyTree) -> View:
    """One view for a list of costs, another for one cost with stacked agents."""
    return Listed(game, data, x) if hasattr(game, "costs") else Stacked(game, data)
