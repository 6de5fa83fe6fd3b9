"""What is sure beside what is likely: coverage, width and price of both, on the same data sets and the same x.

Of each law (`_laws.py`) data sets of s samples are drawn, x is solved once, and every contender says how far it is from
x* (and, where there is one, how large the cost gap is). Coverage: the share of the data sets where that is true, with
an exact binomial interval (Clopper–Pearson, 99 %). Width: the mean bound over the true 95 % quantile, taken from SETS
further data sets. A refusal is counted by itself, and is no miss.
A further contender is one line of CONTENDERS.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

import epszero as ez
from epszero.experiments._charging import DELTA, FloatArray
from epszero.experiments._contest import answered, drawn_contest
from epszero.experiments._laws import HEAVY, Drawn, Law, laws
from epszero.experiments._outcome import Comparison, Outcome, Setting, size
from epszero.experiments._store import Arrays, Piece
from epszero.experiments.dependent import MIXING
from epszero.facts import Provenance
from epszero.report import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

C = ez.certificates
TITLE = "Sure and likely: coverage and width side by side (δ = 0.05)"
SIZES = (50, 200, 1000, 3000)
REPLICATIONS = 50  # of the bootstrap
BAGS = 50  # of bagging
COSTLY = 64  # data sets at most, for those that solve many times
AT_ONCE = 64  # data sets: what a kill can cost
SETS = 500  # data sets from which the true quantiles are taken
LEVEL = 0.99  # of the intervals of coverage
LINES = {"distance": "‖x − x*‖", "cost gap": "cost gap"}
DEPENDENT, GAP = ("dependent",), ("cost gap",)
BROWN, OLIVE, PINK, TEAL, INDIGO = "#8C510A", "#6B8E23", "#F781BF", "#35978F", "#542788"


@dataclasses.dataclass(frozen=True, eq=False)
class Contender:
    """Who says how far: a kind of certificate, "sure", "likely" or "misused", and its solves beside that of x.

    `laws`: keys of the laws that it is for, all unless told. `lines`: what it bounds. `shuffled`: it is given the data
    without their order. `fresh`: it is given as many further samples, which x was not found with. `promised`: its truth
    is what the past promised, not the law. `most`: so many of the data sets at most. A kind with a seed is given one of
    its own for every data set.
    """

    name: str
    kind: Any
    how: str
    colour: str
    solves: int = 0
    laws: tuple[str, ...] = ()
    lines: tuple[str, ...] = tuple(LINES)
    shuffled: bool = False
    fresh: bool = False
    promised: bool = False
    most: int | None = None

    def joins(self, law: Law, line: str) -> bool:
        """Whether it is asked."""
        return line in self.lines and (not self.laws or law.key in self.laws) and (law.has_cost or line != "cost gap")


CONTENDERS = [
    Contender("default", None, "sure", BLUE),
    Contender(
        "declared variance, median of means", C.MeanDeviation(C.MedianOfMeans(HEAVY)), "sure", SKY, laws=("heavy",)
    ),
    Contender("declared mixing, β(a) = ¾^a", MIXING, "sure", SKY, laws=DEPENDENT),
    Contender("prequential (its own truth)", C.Prequential(), "sure", GREEN, laws=DEPENDENT, promised=True),
    Contender("default, order destroyed", None, "misused", GREY, laws=DEPENDENT, shuffled=True),
    Contender("normal approximation", C.Asymptotic(), "likely", RED),
    Contender(
        "normal approximation, order destroyed", C.Asymptotic(), "misused", PURPLE, laws=DEPENDENT, shuffled=True
    ),
    Contender("bootstrap", C.Bootstrap(REPLICATIONS), "likely", ORANGE, REPLICATIONS + 1, most=COSTLY),
    *(
        Contender(name + how, kind, "likely", colours[fresh], solves, lines=GAP, fresh=fresh, most=most)
        for name, kind, colours, solves, most in (
            ("30 replications", C.MultipleReplications(), (BROWN, OLIVE), 30, COSTLY),
            ("two replications", C.TwoReplications(), (PINK, PURPLE), 2, None),
            (f"{BAGS} bags", C.Bagging(BAGS), (TEAL, INDIGO), BAGS, COSTLY),
        )
        for fresh, how in ((False, ""), (True, ", fresh samples"))
    ),
]


def asked() -> list[tuple[Law, int, Contender, str]]:
    """A row each: law, s, contender, line."""
    return [
        (law, s, one, line)
        for law in laws().values()
        for line in LINES
        for one in CONTENDERS
        for s in SIZES
        if one.joins(law, line)
    ]


def pieces(setting: Setting) -> Sequence[Piece]:
    """The truth of every law and s; then some trials of each, then more: a run that is cut off has as many of all."""
    cells = [(law, (7, place, s)) for place, law in enumerate(laws().values()) for s in SIZES]
    truths = [
        Piece(f"likely-{law.key}-s{at[-1]}-truth", lambda law=law, at=at: _truth(setting, law, at)) for law, at in cells
    ]
    trials = [
        Piece(_key(law, at[-1], batch), lambda law=law, at=at, batch=batch: _trials(setting, law, at, batch))
        for batch in setting.batches(AT_ONCE)
        for law, at in cells
    ]
    return [*truths, *trials]


def _key(law: Law, s: int, batch: range) -> str:
    return f"likely-{law.key}-s{s}-trials{batch.start}to{batch.stop}"


def _truth(setting: Setting, law: Law, numbers: tuple[int, ...]) -> Arrays:
    """Quantiles of the true errors, of an exact solver on SETS data sets; and the floor."""
    s = numbers[-1]
    means: list[FloatArray] = []
    promised: list[FloatArray] = []
    for trial in range(SETS):
        one = law.draw(setting.generator(*numbers, 1, trial), s)
        means.append(one.samples.values.mean(axis=0))
        promised += [] if one.promised is None else [one.promised]
    xs = law.under(means)
    away = [size(x - law.exact) for x in xs]
    gaps = [law.gap(x) for x in xs] if law.has_cost else [math.nan]
    own = [size(x - other) for x, other in zip(xs, law.under(promised), strict=True)] if promised else [math.nan]
    quantiles = {
        name: np.quantile(of, 1 - DELTA) for name, of in (("distance", away), ("cost gap", gaps), ("own", own))
    }
    return {name: np.array(value) for name, value in quantiles.items()} | {"floor": np.array(law.floor(s))}


def _trials(setting: Setting, law: Law, numbers: tuple[int, ...], batch: range) -> Arrays:
    """For every contender and line: the bounds and the truths, a column per trial, and what it leans on."""
    s = numbers[-1]
    draws = [law.draw(setting.generator(*numbers, 0, trial), s) for trial in batch]
    solved = ez.solve_many(law.problem, [one.samples for one in draws])
    mixed = [
        _without_order(one, setting.generator(*numbers, 2, trial)) for one, trial in zip(solved, batch, strict=True)
    ]
    apart = [
        dataclasses.replace(one, holdout=law.draw(setting.generator(*numbers, 3, trial), s).samples)
        for one, trial in zip(solved, batch, strict=True)
        if law.has_cost
    ]
    truth = _truths(law, solved, draws)
    found: Arrays = {}
    for place, one in enumerate(CONTENDERS):
        lines = [line for line in LINES if one.joins(law, line)]
        asked_of = [trial for trial in batch if one.most is None or trial < one.most]
        if not lines or not asked_of:
            continue
        given_to = (mixed if one.shuffled else apart if one.fresh else solved)[: len(asked_of)]
        certificates = _certified(one, given_to, asked_of)
        for line in lines:
            key = f"{place}-{line}"
            values = [c.distance if line == "distance" else c.cost_gap for c in certificates]
            found[f"{key}-bound"] = np.array([math.inf if value is None else value for value in values], dtype=float)
            found[f"{key}-true"] = truth["own" if one.promised else line][: len(asked_of)]
        given = next((c for c in certificates if math.isfinite(c.epsilon)), None)
        found[f"{place}-verdict"] = np.array("refused" if given is None else str(given.verdict))
        found[f"{place}-leans"] = np.array(certificates[0].reason if given is None else _leanings(given))
    return found


def _truths(law: Law, solved: Sequence[ez.Solution], draws: Sequence[Drawn]) -> dict[str, FloatArray]:
    xs = [one.x for one in solved]
    found = {"distance": np.array([size(x - law.exact) for x in xs])}
    if law.has_cost:
        found["cost gap"] = np.array([law.gap(x) for x in xs])
    promised = [one.promised for one in draws if one.promised is not None]
    if promised:
        found["own"] = np.array([size(x - other) for x, other in zip(xs, law.under(promised), strict=True)])
    return found


def _without_order(solution: ez.Solution, rng: np.random.Generator) -> ez.Solution:
    """The same x, with samples whose order tells nothing."""
    samples = solution.samples
    assert isinstance(samples, ez.Samples)
    return dataclasses.replace(solution, samples=ez.Samples(rng.permutation(samples.values), support=samples.support))


def _certified(one: Contender, solutions: Sequence[ez.Solution], trials: list[int]) -> list[ez.Certificate]:
    if not hasattr(one.kind, "seed"):
        return ez.certify_many(solutions, DELTA, one.kind)
    kinds = [dataclasses.replace(one.kind, seed=trial) for trial in trials]
    return [ez.certify(solution, DELTA, kind) for solution, kind in zip(solutions, kinds, strict=True)]


def _leanings(certificate: ez.Certificate) -> str:
    """What is not proved."""
    open_ = (Provenance.DECLARED, Provenance.ESTIMATED)
    return "; ".join(f"{one.what} ({one.provenance})" for one in certificate.leans_on if one.provenance in open_)


def outcome(setting: Setting, found: list[Arrays]) -> Outcome:
    """The table of all rows, and the panels."""
    parts = dict(zip([piece.key for piece in pieces(setting)], found, strict=True))
    table = pl.DataFrame([_row(setting, parts, *one) for one in asked()], infer_schema_length=None)
    colours = {one.name: one.colour for one in CONTENDERS}
    sheet = drawn_contest(table, colours, [law.title for law in laws().values()])
    return Outcome(table.drop("assumes"), _comparisons(table), sheet, text=_summary(table))


def _row(setting: Setting, parts: dict[str, Arrays], law: Law, s: int, one: Contender, line: str) -> dict[str, Any]:
    truth = parts[f"likely-{law.key}-s{s}-truth"]
    place = CONTENDERS.index(one)
    every = [parts[_key(law, s, batch)] for batch in setting.batches(AT_ONCE)]
    trials = [part for part in every if f"{place}-verdict" in part]
    bound, true = (np.concatenate([part[f"{place}-{line}-{name}"] for part in trials]) for name in ("bound", "true"))
    quantile = float(truth["own" if one.promised else line])
    given = np.isfinite(bound)
    said, held = int(given.sum()), int((true <= bound)[given].sum())
    exact = stats.binomtest(held, said).proportion_ci(LEVEL) if said else None
    told = next((part for part in trials if str(part[f"{place}-verdict"]) != "refused"), trials[0])
    mean = float(bound[given].mean()) if said else None
    floor = float(truth["floor"]) if line == "distance" and not one.promised else math.nan
    return {
        "law": law.title,
        "line": LINES[line],
        "by": one.name,
        "kind": one.how,
        "s": s,
        "data sets": len(bound),
        "refused": len(bound) - said,
        "coverage": held / said if said else None,
        "99 % interval, low": None if exact is None else float(exact.low),
        "99 % interval, high": None if exact is None else float(exact.high),
        "mean bound": mean,
        "true 95 % quantile": quantile,
        "width": None if mean is None else mean / quantile,
        "floor over quantile": None if math.isnan(floor) else floor / quantile,
        "further solves": one.solves,
        "verdict": str(told[f"{place}-verdict"]),
        "assumes": str(told[f"{place}-leans"]),
    }


def _summary(table: pl.DataFrame) -> str:
    """A line per law and contender: coverage / width at every s; then what each assumes, or why it refuses."""
    lines: list[str] = []
    keys = ["law", "line"]
    for (law, line), part in table.group_by(keys, maintain_order=True):
        sizes = part["s"].unique().sort().to_list()
        lines += ["", f"{law}, {line}: coverage in % / width (refused), at s = {', '.join(map(str, sizes))}"]
        for (how, by), rows in part.group_by(["kind", "by"], maintain_order=True):
            cells = "".join(f"{_cell(row):>16}" for row in rows.sort("s").iter_rows(named=True))
            lines.append(f"  {how:8}{by:38}{cells}")
    lines += ["", "What each assumes, or why it refuses:"]
    said = table.filter(pl.col("s") == pl.col("s").max()).unique(["law", "by"], keep="first", maintain_order=True)
    for row in said.iter_rows(named=True):
        further = f" [{row['further solves']} further solves]" if row["further solves"] else ""
        lines.append(f"  {row['law']}, {row['by']}: {row['assumes']}{further}")
    return "\n".join(lines).strip()


def _cell(row: dict[str, Any]) -> str:
    if row["coverage"] is None:
        return "refused"
    width = f"{row['width']:.2g}" if row["width"] < 100 else f"{row['width']:.0f}"
    return f"{100 * row['coverage']:.3g} / {width}" + (f" ({row['refused']})" if row["refused"] else "")


def _comparisons(table: pl.DataFrame) -> tuple[Comparison, ...]:
    distance = table.filter(pl.col("line") == LINES["distance"], answered())
    ours, theirs = (distance.filter(pl.col("kind") == kind) for kind in ("sure", "likely"))
    below = theirs.filter(pl.col("99 % interval, high") < 1 - DELTA)
    worst = theirs.sort("coverage").row(0, named=True)
    least = ours.sort("coverage").row(0, named=True)
    near = ours.filter(pl.col("floor over quantile").is_not_null()).with_columns(
        times=pl.col("width") / pl.col("floor over quantile")
    )
    closest = near.sort("times").row(0, named=True)
    return (
        Comparison(
            "what is likely: coverage, nominally 95 %",
            "—",
            f"least {100 * worst['coverage']:.3g} %: {worst['by']}, {worst['law']}, s = {worst['s']}; what is "
            f"sure: least {100 * least['coverage']:.3g} %",
            f"In {below.height} of {theirs.height} rows what is likely is below 95 % by more than chance. The data do "
            "not show what is rare, what lies beyond a kink, or that they depend.",
        ),
        Comparison(
            "what is sure: width over the true quantile",
            "—",
            f"{ours['width'].min():.3g} to {ours['width'].max():.3g}; what is likely: {theirs['width'].min():.3g} to "
            f"{theirs['width'].max():.3g}",
            f"It pays for what the data cannot exclude. Nearest to the floor: {closest['times']:.3g} times "
            f"({closest['law']}, s = {closest['s']}).",
        ),
    )
