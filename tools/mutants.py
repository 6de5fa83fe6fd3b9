"""Do the tests notice a wrong sign? `python tools/mutants.py [--room facts] [--many 60] [--seed 1] [--write]`

A mutant is the library with one thing changed in one place (changes.py). Tests that fail have killed it. Of each room,
as many places as `--many` says are drawn at random, then one change for each. mutants.toml says which tests should
notice what; of these run the ones that execute the changed statement, those of the file first, quick ones first, up to
the first that fails. Which test executes what is followed once, without a mutant.

The working tree is never touched: each worker has a copy of it. What runs longer than five times the tests without a
mutant is killed. Survivors are printed as file:line, with the change. `--write` puts the table into docs/validity.md.
What was found is kept beside the compiled programs: a mutant is not tried again as long as the library and the file of
the test that killed it, or all that let it pass, stay as they are.
"""

import argparse
import compileall
import hashlib
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

from changes import ROOT, SETTINGS, SOURCE, Mutant, drawn
from rich.console import Console

PAGE = ROOT / "docs" / "validity.md"
BEGIN, END = "<!-- mutants: begin, written by make mutants -->", "<!-- mutants: end -->"
WORKERS = 2
LONGEST = 3600  # seconds for a file of tests without a mutant


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


# -- which tests notice ------------------------------------------------------------------------------------------------


def stages(file: str) -> list[tuple[str, ...]]:
    """The files of tests to try, one run of pytest after the other: those of the file, then those of its room."""
    near = next(tests for pattern, tests in SETTINGS["tests"].items() if fnmatch(file, pattern))
    rest = next(tests for pattern, tests in SETTINGS["more"].items() if fnmatch(file, pattern))
    return [tests for tests in (tuple(near), tuple(test for test in rest if test not in near)) if tests]


class Copy:
    """A copy of the tree, in which one mutant at a time lives, and a server of tests in it (noticing.py)."""

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
        environment = {**os.environ, **own, **cache, "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
        command = [sys.executable, "-c", "import epszero; print(epszero.__file__)"]
        found = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        if not Path(found.stdout.decode().strip()).is_relative_to(folder):
            sys.exit(f"Python finds another epszero than that in {folder}")
        self.server = subprocess.Popen(
            [sys.executable, "tools/noticing.py"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, files: list[str], names: list[str] | None, seconds: float, lines: bool = False) -> dict[str, Any]:
        """What the server answers."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        rooms = [f"/{SOURCE.as_posix()}/{room}/" for room in SETTINGS["rooms"]]
        asked = {"files": files, "names": names, "lines": lines, "rooms": rooms, "seconds": seconds}
        self.server.stdin.write(json.dumps(asked) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def close(self) -> None:
        """No more questions."""
        self.server.communicate()


class Kept:
    """What was found before, by what it depends on."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
        self.lock = Lock()
        self.library = digest(*sorted((ROOT / SOURCE).rglob("*.py")))

    def get(self, *key: str) -> Any:
        return self.found.get(" ".join(key))

    def put(self, value: Any, *key: str) -> None:
        with self.lock:
            self.found[" ".join(key)] = value
            self.place.write_text(json.dumps(self.found), encoding="utf-8")


def digest(*files: Path) -> str:
    """Of what they hold."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def tests_digest(tests: str) -> str:
    """Of files of tests, with spaces between them, and what each shares with those beside it."""
    found: list[str] = []
    for path in (ROOT / test for test in tests.split()):
        beside = [one for one in sorted(path.parent.glob("*.py")) if not one.name.startswith("test_")]
        found.append(digest(path, ROOT / "tests" / "conftest.py", *beside))
    return " ".join(found)


class Copies:
    """One for each worker."""

    def __init__(self, folder: Path, compiled: Path) -> None:
        compiled.mkdir(parents=True, exist_ok=True)
        self.all = [Copy(folder / str(number), compiled) for number in range(WORKERS)]
        self.free: SimpleQueue[Copy] = SimpleQueue()
        for copy in self.all:
            self.free.put(copy)
        self.kept = Kept(compiled / "mutants.json")
        self.tests: dict[str, dict[str, dict[str, Any]]] = {}  # by file and name: seconds, and lines that are executed

    def close(self) -> None:
        for copy in self.all:
            copy.close()

    def follow(self, test: str) -> None:
        """Which lines the tests of a file execute without a mutant, and how long they take; they must pass."""
        key = ("followed", test, tests_digest(test), self.kept.library)
        known = self.kept.get(*key)
        if known is None:
            copy = self.free.get()
            try:
                answer = copy.ask([test], None, LONGEST, lines=True)
            finally:
                self.free.put(copy)
            if answer["failed"]:
                sys.exit(f"without a mutant, {answer['failed']} fails in {test}")
            known = answer["tests"]
            self.kept.put(known, *key)
        self.tests[test] = known

    def reaching(self, mutant: Mutant, files: tuple[str, ...]) -> list[str]:
        """Tests that execute what is changed: quick files first, and in each quick tests first."""
        file, lines = (SOURCE / mutant.file).as_posix(), mutant.lines
        chosen: list[tuple[float, list[str]]] = []
        for test in files:
            known = self.tests[test]
            reached = {name: set(one["lines"].get(file, ())) for name, one in known.items()}
            names = [name for name, seen in reached.items() if (seen if lines is None else seen & set(lines))]
            names.sort(key=lambda name: known[name]["seconds"])
            chosen.append((sum(known[name]["seconds"] for name in names), names))
        return [name for _, names in sorted(chosen) for name in names]

    def outcome(self, mutant: Mutant) -> Outcome:
        """Whether any test notices."""
        key = (mutant.file, mutant.operator, str(mutant.occurrence), self.kept.library)
        known = self.kept.get(*key)
        asked = " ".join(test for tests in stages(mutant.file) for test in tests)
        still = known is not None and (known["killed_by"] or known["file"] == asked)
        if still and known["tests"] == tests_digest(known["file"]):
            return Outcome(mutant, known["killed_by"], 0.0)
        copy = self.free.get()
        start = time.monotonic()
        before, after = mutant.code
        place = copy.folder / SOURCE / mutant.file
        try:
            place.write_text(after or before, encoding="utf-8")
            killed = next((name for files in stages(mutant.file) if (name := self._fails(copy, mutant, files))), "")
        finally:
            place.write_text(before, encoding="utf-8")
            self.free.put(copy)
        file = killed.split("::")[0] if "::" in killed else asked
        self.kept.put({"killed_by": killed, "file": file, "tests": tests_digest(file)}, *key)
        return Outcome(mutant, killed, time.monotonic() - start)

    def _fails(self, copy: Copy, mutant: Mutant, files: tuple[str, ...]) -> str:
        names = self.reaching(mutant, files)
        if not names:
            return ""
        asked = list(dict.fromkeys(name.split("::")[0] for name in names))
        seconds = sum(self.tests[name.split("::")[0]][name]["seconds"] for name in names)
        return copy.ask(asked, names, 60 + 5 * seconds)["failed"]


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
        list(pool.map(copies.follow, wanted))
        seconds = sum(one["seconds"] for tests in copies.tests.values() for one in tests.values())
        console.print(f"{len(wanted)} files of tests pass without a mutant: {seconds:.0f} s")
        futures = [pool.submit(copies.outcome, one) for one in chosen]
        for done, future in enumerate(as_completed(futures), 1):
            one = future.result()
            outcomes.append(one)
            said = f"killed by {one.killed_by}" if one.killed_by else "SURVIVED"
            where = f"{one.mutant.file}:{one.mutant.place[0]} {one.mutant.operator.split('/')[1]}"
            console.print(f"{done}/{len(chosen)} {one.seconds:.0f} s, {where}: {said}", soft_wrap=True)
        copies.close()
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
