"""The code in the README runs as it stands, and does what the comments say."""

import re
from pathlib import Path

import epszero as ez

TEXT = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_readme_runs(capsys):
    names = {}
    first, *blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
    exec(compile(first, "README.md", "exec"), names)  # our own text
    shown = re.findall(r"^```text\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)[0].splitlines()
    printed = capsys.readouterr().out.splitlines()
    assert [re.sub(r"[\d.]+e-\d+", "…", line) for line in printed[:8]] == [
        re.sub(r"[\d.]+e-\d+", "…", line) for line in shown[:8]
    ]
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    check, *multipliers, first, second = capsys.readouterr().out.splitlines()
    assert re.match(r"the largest saving of 20 agents, each deviating alone, is \S+; for convex costs", check)
    assert float(re.findall(r"is (\S+);", check)[0]) < 1e-9
    assert "[" in multipliers[0]
    assert names["shared"].multipliers.max() > 0
    assert (names["shared"].x.sum(axis=0) < 22 + 1e-6).all()
    assert re.match(
        r"converged at iteration \d+, residual \S+ \(forward-backward, step \S+ from the exact constants .*\)\.", first
    )
    assert re.match(r"x in the domain, z in A\(x\) up to \S+, residual \S+", second)
    narrow = ez.Samples(names["days"], support=ez.sets.Box(0.0, 0.3))
    narrower = ez.plan(names["game"], target=1.0, of="distance", samples=narrow)
    for number in (names["need"], names["sure"].answer, narrower.samples, narrower.promised[0].answer):
        assert f"{number:,.0f}".replace(",", " ") in TEXT
    assert names["plan"].status is ez.Status.CONVERGED
    assert len(names["plans"]) == 50
    assert all(plan.iterations == 200 for plan in names["plans"])
