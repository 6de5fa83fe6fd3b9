"""`python -m benchmarks.profile [--out FOLDER] [--budget S] [--only WORD …] [--read CSV …]`: who solves what, how fast.

Time to a natural residual of 1e-8 · scale (`benchmarks/collection/_case.py` says of what, and how it is judged), second
call, for our default, each of our methods by name and peers where they apply (`_contenders.py`). A run gets S seconds
(twice that the first time, when it compiles) and is cut then. Written into the folder: `results.csv`, `table.md` and
`profile.png`, after Dolan & Moré, Math. Prog. 91 (2002): for every contender the share of the problems that it solves
within τ times the time of the fastest. Printed: whether the default solves all that are monotone, how often it is
within 2 × of the best of our methods and within 3 × of the best peer, and what it fails on.
"""

import argparse
import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from benchmarks._contenders import CONTENDERS, OURS, PEERS
from benchmarks._measure import Row, shown
from benchmarks._workers import Outcome, Worker
from benchmarks.collection import CASES
from epszero.report import COLOURS, GREY, beside, drawn, figure, tidy

Results = dict[str, dict[str, Outcome]]  # problem → contender → outcome


def measure(problems: Iterable[str], contenders: Sequence[str], budget: float, file: Path) -> Results:
    """One process for each problem; every outcome is written as soon as it is there."""
    results: Results = {}
    with file.open("w", newline="") as sheet:
        writer = csv.DictWriter(sheet, [one.name for one in fields(Outcome)])
        writer.writeheader()
        for problem in problems:
            worker = Worker(problem)
            found = results[problem] = {}
            for contender in contenders:
                outcome = worker.run(contender, budget)
                if outcome is not None:
                    found[contender] = outcome
                    writer.writerow(asdict(outcome))
                    sheet.flush()
            worker.close()
            said = ", ".join(f"{name} {cell(one)}" for name, one in found.items())
            print(f"{problem}: {said}", flush=True)
    return results


def read(files: Iterable[Path]) -> Results:
    """Results of earlier runs; of what is there twice, the later."""
    results: Results = {}
    for file in files:
        with file.open(newline="") as sheet:
            for row in csv.DictReader(sheet):
                numbers = {name: float(row[name]) for name in ("seconds", "residual", "first")}
                results.setdefault(row["problem"], {})[row["contender"]] = Outcome(**(row | numbers))
    return results


def cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    return shown(outcome.seconds, "s") if outcome.status == "solved" else outcome.status


def seconds(found: dict[str, Outcome], names: Iterable[str]) -> float:
    """The fastest of these."""
    return min((found[name].seconds for name in names if name in found), default=np.inf)


def table(results: Results) -> str:
    """Markdown: problems by contenders."""
    names = [name for name in CONTENDERS if any(name in found for found in results.values())]
    lines = ["| family | problem | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 2)]
    for problem, found in results.items():
        cells = " | ".join(cell(found.get(name)) for name in names)
        lines.append(f"| {CASES[problem].family} | {problem} | {cells} |")
    return "\n".join(lines) + "\n"


def summary(results: Results) -> list[str]:
    """What the issue asks of the default."""
    monotone = [problem for problem in results if CASES[problem].monotone]
    failed = [problem for problem in monotone if not np.isfinite(seconds(results[problem], ["default"]))]
    lines = [f"the default solves {len(monotone) - len(failed)} of {len(monotone)} monotone problems"]
    for what, factor, names in (("our best method", 2, OURS), ("the best peer", 3, tuple(PEERS))):
        rivals = [problem for problem in monotone if np.isfinite(seconds(results[problem], names))]
        near = [problem for problem in rivals
                if seconds(results[problem], ["default"]) <= factor * seconds(results[problem], names)]  # fmt: skip
        share = 100 * len(near) / max(len(rivals), 1)
        lines.append(f"within {factor} × of {what} on {share:.0f} % ({len(near)} of {len(rivals)}, target 90 %)")
        quick = sum(seconds(results[problem], ["default"]) <= 1e-3 for problem in rivals if problem not in near)
        lines[-1] += f"; of the others {quick} take the default less than 1 ms" if quick else ""
        lines += [
            f"  not: {problem} ({_against(results[problem], names)})" for problem in rivals if problem not in near
        ]
    lines.append("fails on:" if failed else "fails on nothing")
    for problem in failed:
        outcome = results[problem]["default"]
        solved = [name for name, one in results[problem].items() if one.status == "solved"]
        others = f"; solved by {', '.join(solved)}" if solved else "; solved by nobody"
        gap = f", residual {outcome.residual:.1e} × tolerance" if np.isfinite(outcome.residual) else ""
        lines.append(f"  {problem}: {outcome.status}{gap} {outcome.note}{others}")
    return lines


def _against(found: dict[str, Outcome], names: Iterable[str]) -> str:
    best = min((name for name in names if name in found), key=lambda name: found[name].seconds)
    return f"{cell(found.get('default'))}, {best} {cell(found[best])}"


def picture(results: Results, file: Path) -> None:
    """Left: our methods. Right: the default and the peers, over the problems that some peer takes."""
    sheet = figure(14.0, 4.2)
    sides = (
        ("our methods", OURS, list(results)),
        (
            "the default and peers",
            ("default", *PEERS),
            [p for p in results if any(name in PEERS for name in results[p])],
        ),
    )
    for ax, (title, names, problems) in zip(sheet.subplots(1, 2), sides, strict=True):
        ratios = np.logspace(0, 4, 400)
        for place, name in enumerate(names):
            if not any(name in results[problem] for problem in problems):
                continue
            best = np.array([seconds(results[problem], names) for problem in problems])
            mine = np.array([seconds(results[problem], [name]) for problem in problems])
            with np.errstate(invalid="ignore"):
                within = np.array([np.mean(np.isfinite(mine) & (mine <= ratio * best)) for ratio in ratios])
            colour = COLOURS[place % len(COLOURS)] if place < len(COLOURS) else GREY
            takes = sum(name in results[problem] for problem in problems)
            ax.step(
                ratios, within, where="post", color=colour, label=f"{name} ({takes})", lw=2.2 if place == 0 else 1.2
            )
        ax.set(xscale="log", xlim=(1, 1e4), ylim=(0, 1.01), xlabel="τ, times the fastest",
               ylabel="share of problems solved", title=f"{title}, {len(problems)} problems")  # fmt: skip
        beside(ax)
        tidy(ax)
    file.write_bytes(drawn(sheet, "png"))


def rows() -> list[Row]:
    """For `python -m benchmarks`: two matrix games against linprog, and condition 1e8 with 500 entries in seconds."""
    found = []
    for name in ("uniform 50 × 50", "uniform 300 × 300"):
        one, peer = _pair(name, "linprog")
        found.append(Row(f"matrix game, {name}, against linprog", one, peer, one / peer, "≤ 2", one <= 2 * peer))
    for name in ("dense, condition 1e+08 on the whole space, n = 500", "dense, condition 1e+08 on a box, n = 500",
                 "diagonal in units from 1 to 1e8, n = 500"):  # fmt: skip
        one, _ = _pair(name, "NumPy")
        found.append(Row(name, one, 0.2, one / 0.2, "≤ 1", one <= 0.2))
    return found


def _pair(problem: str, peer: str) -> tuple[float, float]:
    worker = Worker(problem)
    outcomes = [worker.run(name, 20.0) for name in ("default", peer)]
    worker.close()
    one, other = (float("inf") if outcome is None else outcome.seconds for outcome in outcomes)
    return one, other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/profile"))
    parser.add_argument("--budget", type=float, default=20.0, help="seconds for one run")
    parser.add_argument("--only", nargs="*", default=[], help="words, of which a problem's name or family has one")
    parser.add_argument("--contenders", nargs="*", default=list(CONTENDERS))
    parser.add_argument(
        "--read", nargs="*", type=Path, default=[], help="results.csv of earlier runs, instead of a run"
    )
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    wanted = [name for name, case in CASES.items()
              if not given.only or any(word in f"{case.family} {name}" for word in given.only)]  # fmt: skip
    results = read(given.read) if given.read else measure(
        wanted, given.contenders, given.budget, given.out / "results.csv")  # fmt: skip
    (given.out / "table.md").write_text(table(results))
    picture(results, given.out / "profile.png")
    print("\n".join(summary(results)))
    print(f"{given.out}: table.md and profile.png" + ("" if given.read else ", from results.csv"))


if __name__ == "__main__":
    main()
