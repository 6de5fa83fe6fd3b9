"""Do the tests notice a wrong sign? `python tools/mutants.py [--room facts] [--many 60] [--seed 1] [--write]`

A mutant is the library with one thing changed in one place: an operator, a number, a comparison, a condition (the
operators of cosmic-ray). Tests that fail have killed it. Of each room, as many places as `--many` says are drawn at
random, then one change for each. Places that no bound depends on are left out by the rules in `idle` and by the names
in mutants.toml, with the reason; so are changes that are no Python, and a bit operator in place of an arithmetic one,
which fails at the first call and would only flatter the share. mutants.toml says which tests should notice what.

The working tree is never touched: each worker has a copy of it. What runs longer than five times the tests without a
mutant is killed. Survivors are printed as file:line, with the change. `--write` puts the table into docs/validity.md.
"""

import argparse
import compileall
import difflib
import os
import py_compile
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src") / "epszero"
PAGE = ROOT / "docs" / "validity.md"
BEGIN, END = "<!-- mutants: begin, written by make mutants -->", "<!-- mutants: end -->"
SETTINGS = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text(encoding="utf-8"))
WORKERS = 2
BITS = ("RShift", "LShift", "BitOr", "BitAnd", "BitXor")
TYPES = "isinstance"  # its second argument is types
MESSAGES = ("refuse", "cannot", "Unknown")  # their arguments are sentences


@dataclass(frozen=True)
class Mutant:
    """One change: which operator of cosmic-ray, and which of the places that it applies to."""

    file: str  # inside src/epszero
    operator: str
    occurrence: int
    place: tuple[int, int]  # line and column

    @property
    def code(self) -> tuple[str, str | None]:
        """The file before and after."""
        before = (ROOT / SOURCE / self.file).read_text(encoding="utf-8")
        return before, mutate_code(before, get_operator(self.operator)(), self.occurrence)

    def __str__(self) -> str:
        before, after = self.code
        lines = difflib.unified_diff(before.splitlines(), (after or "").splitlines(), n=0, lineterm="")
        changed = "\n".join(f"    {line}" for line in list(lines)[3:])
        return f"{SOURCE / self.file}:{self.place[0]} {self.operator.split('/')[1]}\n{changed}"


@dataclass(frozen=True)
class Outcome:
    """Of one mutant: which tests noticed it, "" if none did."""

    mutant: Mutant
    killed_by: str
    seconds: float

    @property
    def equivalent(self) -> str:
        """Why it is no matter that no test noticed, by somebody's judgement in mutants.toml; "" where it matters."""
        before, after = (code or "" for code in self.mutant.code)
        new = {" ".join(line.split()) for line in after.splitlines()} - {
            " ".join(line.split()) for line in before.splitlines()
        }
        judged = (one for one in SETTINGS.get("equivalent", []) if one["file"] == self.mutant.file)
        return next((one["why"] for one in judged if " ".join(one["change"].split()) in new), "")


# -- which mutants there are -------------------------------------------------------------------------------------------


def mutants_of(file: str) -> dict[tuple[int, int], list[Mutant]]:
    """By place, all changes that matter."""
    nodes = list(ast_nodes(get_ast((ROOT / SOURCE / file).read_text(encoding="utf-8"))))
    left_out = [name for pattern, names in SETTINGS["idle"].items() if fnmatch(file, pattern) for name in names]
    found: dict[tuple[int, int], list[Mutant]] = {}
    for name in operator_names():
        if get_operator(name).arguments() or _only_fails(name):
            continue
        operator = get_operator(name)()
        places = ((node, start) for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (node, place) in enumerate(places):
            if not idle(node, name, left_out):
                found.setdefault(place, []).append(Mutant(file, name, occurrence, place))
    return found


def _only_fails(operator: str) -> bool:
    """An arithmetic operator turned into one for bits, which no float has."""
    parts = operator.split("_")
    return "BinaryOperator" in operator and parts[-1] in BITS and parts[-2] not in BITS


def idle(node: Any, operator: str, left_out: list[str]) -> bool:
    """Whether no bound can depend on this place: types, decorators, sentences, names in mutants.toml."""
    if "RemoveDecorator" in operator or _same_thing(node, operator):
        return True
    chain = [node, *_ancestors(node)]
    return any(_is_idle(above, below, operator, left_out) for below, above in pairwise([node, *chain]))


def _is_idle(above: Any, below: Any, operator: str, left_out: list[str]) -> bool:
    """Whether nothing inside `above` matters, `below` being the part of it in question."""
    kind = above.type
    if kind in ("decorator", "fstring", "fstring_expr", "assert_stmt", "raise_stmt") or _annotates(above, below):
        return True
    if kind == "trailer":
        called = _called(above)
        return called in MESSAGES or (called == TYPES and "BitOr" in operator)
    if kind == "if_stmt":
        return "TYPE_CHECKING" in above.children[1].get_code()
    if kind in ("comparison", "term", "arith_expr"):  # with a budget
        return any(getattr(leaf, "value", "") in left_out for leaf in ast_nodes(above))
    names = [above.name.value] if kind == "funcdef" else _assigned(above) if kind == "expr_stmt" else []
    return any(name in left_out for name in names)


def _ancestors(node: Any) -> Iterator[Any]:
    while node.parent is not None:
        node = node.parent
        yield node


def _annotates(above: Any, below: Any) -> bool:
    """Whether `below` stands where a type does."""
    if above.type == "annassign":
        return above.children[1] is below
    if above.type == "tfpdef":
        return above.children[-1] is below
    return above.type == "funcdef" and above.annotation is below


def _assigned(statement: Any) -> list[str]:
    return [name.value for name in statement.get_defined_names()]


def _called(trailer: Any) -> str:
    before = trailer.get_previous_leaf()
    return before.value if trailer.children[0].value == "(" and before is not None else ""


def _same_thing(node: Any, operator: str) -> bool:
    """`is` and `==` say the same of members of an enum and of words."""
    if not operator.endswith(("_Is_Eq", "_Eq_Is", "_IsNot_NotEq", "_NotEq_IsNot")):
        return False
    return re.fullmatch(r"([\w.]+\.[A-Z_]+|[\"'].*[\"'])", node.children[-1].get_code().strip()) is not None


def drawn(room: str, many: int, seed: int) -> tuple[list[Mutant], int]:
    """As many mutants as asked for, each in a place of its own; and how many places there are."""
    generator = random.Random(f"{room} {seed}")
    files = sorted(path.relative_to(ROOT / SOURCE).as_posix() for path in (ROOT / SOURCE / room).rglob("*.py"))
    places = [mutants for file in files for _, mutants in sorted(mutants_of(file).items())]
    generator.shuffle(places)
    chosen: list[Mutant] = []
    for mutants in places:
        if len(chosen) == many:
            break
        generator.shuffle(mutants)
        chosen += [mutant for mutant in mutants if _is_python(mutant)][:1]
    return chosen, len(places)


def _is_python(mutant: Mutant) -> bool:
    before, after = mutant.code
    try:
        return after is not None and before != after and compile(after, mutant.file, "exec") is not None
    except SyntaxError:
        return False


# -- which tests notice ------------------------------------------------------------------------------------------------


def stages(file: str) -> list[tuple[str, ...]]:
    """The tests to try, one run of pytest after the other: those of the file, then those of its room."""
    near = next(tests for pattern, tests in SETTINGS["tests"].items() if fnmatch(file, pattern))
    rest = next(tests for pattern, tests in SETTINGS["more"].items() if fnmatch(file, pattern))
    return [tests for tests in (tuple(near), tuple(test for test in rest if test not in near)) if tests]


class Copy:
    """A copy of the tree, in which one mutant at a time lives."""

    def __init__(self, folder: Path, compiled: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
        )
        for name in listed.stdout.decode().splitlines():
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        # Compiled files go by their content: two mutants of one second and one size are not the same.
        compileall.compile_dir(folder, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        own = {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
        cache = {"JAX_COMPILATION_CACHE_DIR": str(compiled), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        self.environment = {**os.environ, **own, **cache, "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}

    def is_imported(self) -> bool:
        """Whether Python finds the library here, not one that is installed."""
        command = [sys.executable, "-c", "import epszero; print(epszero.__file__)"]
        found = subprocess.run(command, cwd=self.folder, env=self.environment, check=True, capture_output=True)
        return Path(found.stdout.decode().strip()).is_relative_to(self.folder)

    def fails(self, tests: tuple[str, ...], seconds: float) -> str:
        """The first test that fails, "" if none does."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "--tb=no",
            "-W",
            "ignore::SyntaxWarning",
            *tests,
        ]
        with tempfile.TemporaryFile() as said:
            run = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=said, stderr=said, start_new_session=True
            )
            try:
                code = run.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
                return "time"
            said.seek(0)
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said.read().decode(errors="replace"), re.MULTILINE)
        return "" if code == 0 else failed.group(1) if failed else "import"

    def outcome(self, mutant: Mutant, seconds: dict[str, float]) -> Outcome:
        """Whether any test notices."""
        start = time.monotonic()
        before, after = mutant.code
        place = self.folder / SOURCE / mutant.file
        try:
            place.write_text(after or before, encoding="utf-8")
            tries = (self.fails(tests, 60 + 5 * sum(seconds[test] for test in tests)) for tests in stages(mutant.file))
            killed = next((name for name in tries if name), "")
        finally:
            place.write_text(before, encoding="utf-8")
        return Outcome(mutant, killed, time.monotonic() - start)


class Copies:
    """One for each worker."""

    def __init__(self, folder: Path, compiled: Path) -> None:
        self.free: SimpleQueue[Copy] = SimpleQueue()
        for number in range(WORKERS):
            self.free.put(Copy(folder / str(number), compiled))

    def baseline(self, test: str) -> float:
        """How long tests take without a mutant; they must pass."""
        copy = self.free.get()
        try:
            if not copy.is_imported():
                sys.exit(f"Python finds another epszero than that in {copy.folder}")
            start = time.monotonic()
            failed = copy.fails((test,), 3600)
            if failed:
                sys.exit(f"without a mutant, {failed} fails")
            return time.monotonic() - start
        finally:
            self.free.put(copy)

    def outcome(self, mutant: Mutant, seconds: dict[str, float]) -> Outcome:
        copy = self.free.get()
        try:
            return copy.outcome(mutant, seconds)
        finally:
            self.free.put(copy)


# -- what is said of it ------------------------------------------------------------------------------------------------


def table(outcomes: list[Outcome], places: dict[str, int], seed: int) -> str:
    """Per room: places, mutants, killed, survived, of these equivalent, and two shares."""
    lines = [
        "| room | places | mutants drawn | killed | survived | judged equivalent | killed | of the others |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for room, many in places.items():
        mine = [one for one in outcomes if one.mutant.file.startswith(f"{room}/")]
        killed, equal = (sum(bool(one.killed_by) for one in mine), sum(_judged(one) for one in mine))
        left = len(mine) - killed
        shares = f"{killed / max(1, len(mine)):.1%} | {killed / max(1, len(mine) - equal):.1%}"
        lines.append(f"| {room} | {many} | {len(mine)} | {killed} | {left} | {equal} | {shares} |")
    return "\n".join([*lines, "", f"Drawn with the seed {seed}."])


def _judged(one: Outcome) -> bool:
    return not one.killed_by and bool(one.equivalent)


def write(text: str) -> None:
    """The table into the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def asked() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="mutation testing of the rooms that bounds come from")
    parser.add_argument("--room", action="append", choices=SETTINGS["rooms"], help="by default all of them")
    parser.add_argument("--many", type=int, default=SETTINGS["many"], help="mutants of each room")
    parser.add_argument("--seed", type=int, default=SETTINGS["seed"])
    parser.add_argument("--file", default="*", help="a pattern: of the mutants drawn, try those of such files")
    parser.add_argument("--list", action="store_true", help="say which mutants are drawn, and end")
    parser.add_argument("--write", action="store_true", help="put the table into docs/validity.md")
    return parser.parse_args()


def main() -> int:
    """0 if the share that is killed is large enough in each room."""
    warnings.simplefilter("ignore", SyntaxWarning)  # of mutants
    given, console = asked(), Console(width=160, highlight=False, markup=False)
    rooms = given.room or SETTINGS["rooms"]
    found = {room: drawn(room, given.many, given.seed) for room in rooms}
    chosen = [one for mutants, _ in found.values() for one in mutants if fnmatch(one.file, given.file)]
    if given.list:
        for one in chosen:
            console.print(str(one))
        return 0
    compiled = Path(os.environ.get("JAX_COMPILATION_CACHE_DIR") or ROOT / ".venv" / "compiled")
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        copies = Copies(Path(folder), compiled)
        wanted = sorted({test for one in chosen for tests in stages(one.file) for test in tests})
        seconds = dict(zip(wanted, pool.map(copies.baseline, wanted), strict=True))
        console.print(f"{len(wanted)} files of tests pass without a mutant: {sum(seconds.values()):.0f} s")
        futures = [pool.submit(copies.outcome, one, seconds) for one in chosen]
        for done, future in enumerate(as_completed(futures), 1):
            one = future.result()
            outcomes.append(one)
            said = f"killed by {one.killed_by}" if one.killed_by else "SURVIVED"
            where = f"{one.mutant.file}:{one.mutant.place[0]} {one.mutant.operator.split('/')[1]}"
            console.print(f"{done}/{len(chosen)} {one.seconds:.0f} s, {where}: {said}", soft_wrap=True)
    console.print("\nSurvivors:\n")
    for one in sorted((one for one in outcomes if not one.killed_by), key=lambda one: str(one.mutant)):
        console.print(str(one.mutant), f"    equivalent: {one.equivalent}" if one.equivalent else "", soft_wrap=True)
    text = table(outcomes, {room: places for room, (_, places) in found.items()}, given.seed)
    console.print("\n" + text)
    if given.write:
        write(text)
    return (
        0 if all(_enough([one for one in outcomes if one.mutant.file.startswith(f"{room}/")]) for room in rooms) else 1
    )


def _enough(outcomes: list[Outcome]) -> bool:
    """Whether the wanted share of those that are not equivalent is killed."""
    killed = sum(bool(one.killed_by) for one in outcomes)
    return killed >= SETTINGS["wanted"] * (len(outcomes) - sum(_judged(one) for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
