"""`python tests/attacks/rules_in_full.py [cases [first]]`: the attack on the rules of convexity, as often as asked.

Eight of ten cases are losses, one is a game, one an operator (test_rules_of_convexity.py). Prints every wrong claim
with its seed, and at the end how many claims were made and how many of them were wrong; ends with 1 if any was.
"""

import gc
import sys
import time
from collections import Counter

import jax
from rich.console import Console
from test_rules_of_convexity import claims, game_is_wrong, operator_is_wrong, wrong

TOLD = 2000  # cases between two lines of progress


def main(cases: int, first: int = 0) -> int:
    """So many cases from seed `first` on."""
    tell = Console(width=140, highlight=False).print
    tally, start = Counter[str](), time.monotonic()
    for seed in range(first, first + cases):
        kind = "game" if seed % 10 == 8 else "operator" if seed % 10 == 9 else "loss"
        if kind == "loss":
            said = claims(seed)
            bad = wrong(seed, said)
        else:
            bad, said = (game_is_wrong if kind == "game" else operator_is_wrong)(seed)
        tally[kind] += 1
        if said is not None:
            tally["slopes"] += said.slope is not None
            tally["convex"] += bool(said.convex)
            tally["sizes"] += said.M is not None
        if bad:
            tally["wrong"] += 1
            tell(f"WRONG {kind} {seed}: {bad}: {said}")
        if (seed + 1 - first) % TOLD == 0:
            jax.clear_caches()
            gc.collect()
            tell(f"{seed + 1} {time.monotonic() - start:.0f} s {dict(tally)}")
    tell(f"done: {cases} cases, {dict(tally)}")
    return 1 if tally["wrong"] else 0


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(given or [100_000])))
