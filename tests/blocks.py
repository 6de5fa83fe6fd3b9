"""The blocks of a page of documentation, and a way to run them as they are printed.

- ```` ```python ```` runs; all blocks of a page share their names. With `title="model.py"` it is a file that the page's
  commands find instead, and so is any other language with a title.
- ```` ```sh ```` runs too: `epszero …` and `python file.py` in this process, with `>` and `NAME=value`. Of `make …` the
  target must exist, and of `pip install …` what it names; `tests/test_package.py` installs. There is no other command.
  A comment `# exit code 1` says what a command ends with, where that is not 0.
- ```` ```text ```` right after one of these is what it prints: `…` stands for anything, and a line of it for any lines.
  Numbers of rounding size (1.2e-10) may differ.
"""

import io
import re
import runpy
import shlex
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from epszero.cli import app

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)(?P<rest>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
TARGETS = re.compile(r"^([a-z-]+):", re.MULTILINE)
ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, what stands behind that, its text, and the line that it begins at."""

    language: str
    rest: str
    text: str
    line: int

    @property
    def title(self) -> str | None:
        found = re.search(r'title="([^"]+)"', self.rest)
        return found[1] if found else None


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page."""
    return [
        Block(
            found["language"],
            found["rest"].strip(),
            re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE),
            text[: found.start()].count("\n") + 1,
        )
        for found in FENCE.finditer(text)
    ]


@dataclass
class Run:
    """Runs the blocks of one page, one after the other, in the working directory."""

    page: str
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    words: dict[str, str] = field(default_factory=dict)
    printed: str | None = None  # by the block before, if that ran

    def block(self, block: Block) -> None:
        """Run it, write it, or compare it with what was printed."""
        where = f"{self.page}:{block.line}"
        before, self.printed = self.printed, None
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            out = io.StringIO()
            with redirect_stdout(out):
                exec(compile("\n" * block.line + block.text, self.page, "exec"), self.names)  # our own text
            self.printed = out.getvalue()
        elif block.language == "sh":
            outputs = [self.command(line, where) for line in lines(block.text)]
            self.printed = None if None in outputs else "".join(filter(None, outputs))
        elif block.language == "text" and before is not None:
            assert shows(block.text, before), f"{where} shows\n{block.text}\nbut this is printed:\n{before}"

    def command(self, line: str, where: str) -> str | None:
        """What a line of a shell prints; None where it is not run."""
        expected = int(found[1]) if (found := re.search(r"# exit code (\d+)", line)) else 0
        line = re.sub(r"\$(\w+)", lambda found: self.words[found[1]], line)
        words = shlex.split(line, comments=True)
        if not words:
            return ""
        assert not any(re.search(r"[|&;<`]", word) for word in words), f"{where}: the test knows no such shell: {line}"
        into = words[words.index(">") + 1] if ">" in words else None
        words = words[: words.index(">")] if into else words
        if len(words) == 1 and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            self.words |= [words[0].split("=", 1)]
            return ""
        printed, ended = self.called(words, where)
        assert ended == expected, f"{where}: {line} ended with {ended}:\n{printed}"
        if into:
            Path(into).write_text(printed or "", encoding="utf-8")
        return "" if into else printed

    def called(self, words: list[str], where: str) -> tuple[str | None, int]:
        """What a command prints, and what it ends with."""
        match words:
            case ["epszero", *rest]:
                result = CliRunner().invoke(app, rest, prog_name="epszero")
                return (result.stdout if result.exit_code == 0 else result.output), result.exit_code
            case ["python", file, *_] if file.endswith(".py"):
                out = io.StringIO()
                with redirect_stdout(out):
                    runpy.run_path(file, run_name="__main__")
                return out.getvalue(), 0
            case ["python", "-m", module] if module.startswith("benchmarks."):  # tests/test_compare.py runs them
                assert find_spec(module), f"{where}: no such module: {module}"
                return None, 0
            case ["make", *targets]:
                known = set(TARGETS.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
                assert set(targets) <= known, f"{where}: no such target: {targets}"
                return None, 0
            case ["pip", "install", what]:
                assert what in (".", "'.[cvxpy]'", wheel_name()), f"{where}: nobody has tried to install {what}"
                return None, 0
            case _:
                raise AssertionError(f"{where}: the test does not know how to run {words}")


def wheel_name() -> str:
    """What `make wheel` builds, from the root."""
    project = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    return f"dist/epszero-{project[0]}-py3-none-any.whl"


def lines(text: str) -> list[str]:
    """Lines of a shell, with those that end in a backslash joined to the next."""
    return re.sub(r"\\\n\s*", " ", text).splitlines()


def shows(shown: str, printed: str) -> bool:
    """Is this what was printed?"""
    rounding = re.compile(r"\d(\.\d+)?e-(0[7-9]|[1-9]\d+)")  # 1e-7 and below
    pattern = []
    for line in shown.rstrip().splitlines():
        if line.strip() == "…":
            pattern.append(r"(?:.*\n)*?")
        else:
            open_ended = re.sub(r" …$", "…", rounding.sub("…", line.rstrip()))  # what is cut off may begin a new line
            pattern.append(re.escape(open_ended).replace("…", ".*") + r"[ ]*\n")
    return re.fullmatch("".join(pattern), rounding.sub("…", printed.rstrip()) + "\n") is not None
