"""`python -m tests.validity.full [trials [words]]`: studies in full, on two cores; writes tables into docs/validity.md.

`words`: a pattern that "study: task" must hold, such as "certificates: memory"; tables of other studies stay as they
are. Ends with 1 if any count of misses is too many. A further study is a class with `name`, `tasks` and `run` in
STUDIES: its rows join the tables. Tasks are handed to other processes, so they are plain values.
What was counted is kept beside the compiled programs (in JAX_COMPILATION_CACHE_DIR), by the library, the studies and
the trials: a run that was cut off, or that counted some tasks only, goes on from there; tables hold all that is known.
"""

import hashlib
import json
import math
import os
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from .at_the_truth import AtTruth
from .certificates import Certificates
from .certified_pieces import Pieces
from .coverage import Row, allowed
from .days import Days
from .means import SHOWN, Anytime, Means

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
PAGE = ROOT / "docs" / "validity.md"
BEGIN, END = "<!-- tables: begin, written by make validity -->", "<!-- tables: end -->"
TRIALS = 5000
WORKERS = 2
MANY_ROWS = 10  # of one task: the page is written at once


class Study(Protocol):
    """A family of trials."""

    @property
    def name(self) -> str: ...

    def tasks(self) -> Sequence[Any]:
        """Pieces of work that may run side by side."""
        ...

    def run(self, task: Any, trials: int) -> list[Row]:
        """One of them."""
        ...


STUDIES: dict[str, Study] = {
    study.name: study for study in (Means(), Anytime(), Certificates(), Pieces(), AtTruth(), Days())
}


def work(study: str, task: Any, trials: int) -> list[Row]:
    return STUDIES[study].run(task, trials)


class Kept:
    """Rows that were counted before, by task; of this library, these studies and so many trials only."""

    def __init__(self, trials: int) -> None:
        files = [*(ROOT / "src").rglob("*.py"), *(one for one in HERE.glob("*.py") if not one.name.startswith("test_"))]
        key = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:16]
        folder = Path(os.environ.get("JAX_COMPILATION_CACHE_DIR") or ROOT / ".venv" / "compiled")
        folder.mkdir(parents=True, exist_ok=True)
        self.place = folder / f"validity-{key}-{trials}.json"
        known = json.loads(self.place.read_text(encoding="utf-8")) if self.place.exists() else {}
        self.rows: dict[str, list[Row]] = {task: [Row(**row) for row in rows] for task, rows in known.items()}

    def put(self, task: str, rows: list[Row]) -> None:
        self.rows[task] = rows
        known = {task: [asdict(row) for row in rows] for task, rows in self.rows.items()}
        self.place.write_text(json.dumps(known), encoding="utf-8")


def gather(trials: int, words: str, console: Console) -> list[Row]:
    """All rows, in the order of the tasks, whichever was done first; the page is written on the way."""
    kept = Kept(trials)
    every = [(name, task) for name, study in STUDIES.items() for task in study.tasks()]
    jobs = [job for job in every if re.search(words, _said(*job)) and _said(*job) not in kept.rows]
    asked = {name for name, task in every if re.search(words, _said(name, task))}
    start = time.monotonic()

    def known() -> list[Row]:
        return [row for job in every if job[0] in asked for row in kept.rows.get(_said(*job), [])]

    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(work, study, task, trials): (study, task) for study, task in jobs}
        for done, future in enumerate(as_completed(futures), 1):
            study, task = futures[future]
            found = future.result()
            kept.put(_said(study, task), found)
            console.print(f"{done}/{len(jobs)} {time.monotonic() - start:.0f} s, {study}: {task}", highlight=False)
            for row in (row for row in found if row.failed):
                console.print(f"  [red]TOO MANY[/red] {row}", highlight=False)
            if len(found) > MANY_ROWS or done % 10 == 0:
                write(known(), trials)
    return known()


def _said(study: str, task: Any) -> str:
    return f"{study}: {task}"


def worst(rows: Sequence[Row], trials: int) -> str:
    """Per bound and δ, the law and the size where it misses most often."""
    lines = ["| bound | δ | cases | misses at worst | allowed | rate | law | m |", "|---|---|---|---|---|---|---|---|"]
    counted = [row for row in rows if row.trials >= trials]
    for bound, delta in sorted({(row.bound, row.delta) for row in counted}, key=lambda pair: (pair[0], -pair[1])):
        group = [row for row in counted if (row.bound, row.delta) == (bound, delta)]
        top = max(group, key=lambda row: row.rate)
        where = f"{top.law} | {top.size}" if top.misses else "| "
        most = allowed(top.trials, delta)
        lines.append(f"| {bound} | {delta} | {len(group)} | {top.misses} | {most} | {top.rate:.2%} | {where} |")
    return "\n".join(lines)


def widths(rows: Sequence[Row], size: str) -> str:
    """Per law and bound, the width over the truth."""
    chosen = {(row.law, row.bound): row.ratio for row in rows if row.delta == 0.05 and row.size == size}
    laws, bounds = (sorted({key[i] for key in chosen}) for i in (0, 1))
    lines = ["| law | " + " | ".join(bounds) + " |", "|---" * (len(bounds) + 1) + "|"]
    for law in laws:
        cells = [cell(chosen.get((law, bound), math.nan)) for bound in bounds]
        if any(cells):
            lines.append(f"| {law} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def worlds(rows: Sequence[Row]) -> str:
    """Per world and what was asked for: misses at each δ, how often the piece was certified, and the width."""
    counted = [row for row in rows if not math.isnan(row.certified)]
    deltas = sorted({row.delta for row in counted}, reverse=True)
    heads = [f"misses, δ = {delta} | allowed | certified | distance over the truth" for delta in deltas]
    lines = [f"| world | s | lines | {' | '.join(heads)} |", "|---" * (3 + 4 * len(deltas)) + "|"]
    for law, bound in dict.fromkeys((row.law, row.bound) for row in counted):
        mine = {row.delta: row for row in counted if (row.law, row.bound) == (law, bound)}
        size = next(iter(mine.values())).size
        cells = [
            f"{row.misses} | {allowed(row.trials, delta)} | {row.certified:.1%} | {cell(row.ratio)}"
            if (row := mine.get(delta))
            else " | | | "
            for delta in deltas
        ]
        lines.append(f"| {law} | {size} | {bound} | {' | '.join(cells)} |")
    return "\n".join(lines)


def twins(rows: Sequence[Row]) -> str:
    """What was broken on purpose, beside its sound half."""
    lines = ["| twin | world | δ | misses | allowed | convicted |", "|---|---|---|---|---|---|"]
    for row in (row for row in rows if math.isnan(row.certified)):
        most = allowed(row.trials, row.delta)
        convicted = "yes" if row.misses > most else "no"
        lines.append(f"| {row.bound} | {row.law} | {row.delta} | {row.misses} | {most} | {convicted} |")
    return "\n".join(lines)


def cell(ratio: float) -> str:
    if math.isnan(ratio):
        return ""
    return "∞" if math.isinf(ratio) else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def section(name: str, rows: Sequence[Row], trials: int) -> str:
    """The tables of one study."""
    mine = [row for row in rows if row.study == name]
    if any(not math.isnan(row.certified) for row in mine):
        return "\n\n".join([f"### Misses {name}, {trials} trials each", worlds(mine), twins(mine)])
    parts = [f"### Misses {name}, {trials} trials each", worst(mine, trials)]
    for m in SHOWN:
        if any(row.size == str(m) and row.delta == 0.05 for row in mine):
            parts += [f"### Width over the truth {name}, m = {m}, δ = 0.05", widths(mine, str(m))]
    return "\n\n".join(parts)


def write(rows: Sequence[Row], trials: int) -> None:
    """The tables into the page, each study's between marks of its own."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    inside, after = rest.split(END)
    _, *pieces = re.split(r"<!-- study: (.+?) -->", inside)
    known = {name: body.strip() for name, body in zip(pieces[::2], pieces[1::2], strict=True)}
    known |= {name: section(name, rows, trials) for name in {row.study for row in rows}}
    body = "\n\n".join(f"<!-- study: {name} -->\n\n{known[name]}" for name in STUDIES if name in known)
    PAGE.write_text(f"{before}{BEGIN}\n\n{body}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    console = Console(width=140)
    rows = gather(trials, " ".join(sys.argv[2:]), console)
    failed = [row for row in rows if row.failed]
    write(rows, trials)
    console.print(f"{len(rows)} counts of misses, {len(failed)} too many", highlight=False)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
