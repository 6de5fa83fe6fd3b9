"""A general oracle over a million samples: memory in a fresh process each, and time against s."""

import json
import subprocess
import sys

from benchmarks._measure import Row

SCRIPT = """
import json, sys, threading, time
import jax.numpy as jnp, numpy as np
import epszero as ez
from benchmarks._measure import best_of

s, d = int(sys.argv[1]), 14
samples = ez.Samples(np.random.default_rng(0).uniform(size=(s, d)))
problem = ez.VariationalInequality(lambda x, xi: jnp.tanh(x - xi) + 0.1 * x, over=ez.sets.Box(0.0, 1.0, dim=d))

def steps(count, data=samples):
    return ez.solve(problem, data, ez.ForwardBackward(step=0.5), iterations=count - 1)

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20

def watch():
    while watching:
        peak[0] = max(peak[0], resident())
        time.sleep(0.002)

steps(2, samples[:1000])  # load what does not depend on s
before, peak, watching = resident(), [0.0], True
watcher = threading.Thread(target=watch)
watcher.start()
steps(5)
watching = False
watcher.join()
few, many = best_of(3, lambda: steps(1)), best_of(3, lambda: steps(11))
print(json.dumps({"growth": peak[0] - before, "iteration": (many - few) / 10}))
"""


def measured(s: int) -> dict[str, float]:
    return json.loads(subprocess.run([sys.executable, "-c", SCRIPT, str(s)], check=True, capture_output=True).stdout)


def rows() -> list[Row]:
    """Linux only: it reads /proc."""
    small, large = measured(250_000), measured(1_000_000)
    growth, slope = large["growth"], large["iteration"] / small["iteration"]
    return [
        Row(
            "general oracle, s = 10⁶, d = 14: MB that memory grows",
            growth,
            300,
            growth / 300,
            "≤ 1",
            growth <= 300,
            "MB",
        ),
        Row(
            "one iteration at s = 10⁶ against s/4",
            large["iteration"],
            small["iteration"],
            slope,
            "≈ 4",
            3 <= slope <= 5,
        ),
    ]
