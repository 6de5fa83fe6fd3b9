"""Which tests notice a change, asked many times: `python tools/noticing.py` in the folder of a tree; one line, one run.

It loads what tests import from others once (JAX, SciPy, pytest), and forks for each question, a line of JSON:
`files` of tests; `names`, the tests to run, in this order, or null for all; `lines`, whether to follow which lines of
`rooms` each test executes; `seconds`, after which it is ended. The answer is a line of JSON: `failed`, the first test
that fails ("" if none does, "time" or "import" where there is no such test), and `tests`: of each test that ran, the
seconds and, if asked for, the lines. What is executed while modules are imported is no test's line.
"""

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import hypothesis
import jax
import pytest
import scipy.optimize
import scipy.sparse.linalg
import scipy.stats

LOADED = (hypothesis, jax, scipy)
PAUSE = 0.02  # seconds between looks at a run


class Watched:
    """A plugin of pytest: the order of tests, which one failed, and what each of them executed."""

    def __init__(self, names: list[str] | None, rooms: tuple[str, ...]) -> None:
        self.place = None if names is None else {name: place for place, name in enumerate(names)}
        self.rooms = rooms
        self.failed = ""
        self.tests: dict[str, dict[str, Any]] = {}
        self.followed: dict[CodeType, set[int] | None] = {}  # lines of the test that runs; None for code elsewhere

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        place = self.place
        if place is not None:
            items[:] = sorted((one for one in items if one.nodeid in place), key=lambda one: place[one.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or "import"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None]:
        self.followed = {}
        start = time.process_time()
        if self.rooms:
            sys.settrace(self._called)
        yield
        sys.settrace(None)
        lines: dict[str, set[int]] = {}
        for code, seen in self.followed.items():
            if seen:
                lines.setdefault(code.co_filename, set()).update(seen)
        here = f"{Path.cwd()}/"
        reached = {name.removeprefix(here): sorted(seen) for name, seen in lines.items()}
        self.tests[item.nodeid] = {"seconds": time.process_time() - start, "lines": reached}

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code not in self.followed:
            self.followed[code] = set() if any(room in code.co_filename for room in self.rooms) else None
        return None if self.followed[code] is None else self._executed

    def _executed(self, frame: FrameType, event: str, argument: Any) -> Any:
        seen = self.followed.get(frame.f_code)
        if seen is not None and event == "line":
            seen.add(frame.f_lineno)
        return self._executed


def run(asked: dict[str, Any], answer: Path) -> None:
    """In the child: pytest, and what it found."""
    watched = Watched(asked["names"], tuple(asked["rooms"]) if asked["lines"] else ())
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "--tb=no"]
    ignored = [f"-Wignore::{kind}" for kind in ("SyntaxWarning", "pytest.PytestAssertRewriteWarning")]
    code = pytest.main([*quiet, *ignored, *asked["files"]], plugins=[watched])
    failed = watched.failed or ("" if code == 0 else "import")
    answer.write_text(json.dumps({"failed": failed, "tests": watched.tests}), encoding="utf-8")


def forked(asked: dict[str, Any], folder: Path) -> str:
    """The answer of a child."""
    answer = folder / "answer.json"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        said = os.open(folder / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(said, stream)
        try:
            run(asked, answer)
        finally:
            os._exit(0)
    end = time.monotonic() + asked["seconds"]
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return json.dumps({"failed": "time", "tests": {}})
        time.sleep(PAUSE)
    return answer.read_text(encoding="utf-8") if answer.exists() else json.dumps({"failed": "import", "tests": {}})


def main() -> None:
    """Until there are no more questions."""
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            sys.stdout.write(forked(json.loads(line), Path(folder)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
