"""The documentation keeps up: each public name has its place, and each block of each page runs as it is printed."""

import inspect
import re
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import epszero
from blocks import Run, blocks, wheel_name
from epszero import datasets, experiments, functions, models, sets

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ON_THE_API_PAGE = set(re.findall(r"^::: \S+\.(\w+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE))


def public(room) -> list[str]:
    return [name for name, value in vars(room).items() if not name.startswith("_") and not inspect.ismodule(value)]


@pytest.mark.parametrize("room", [sets, functions])
def test_every_set_and_function_has_its_row(room):
    title = room.__name__.removeprefix("epszero.").capitalize()
    page = (DOCS / "sets-and-functions.md").read_text(encoding="utf-8")
    section = page.split(f"## {title}")[1].split("\n## ")[0]
    rows = set(re.findall(r"^\| `(\w+)\(", section, re.MULTILINE))
    others = {"Set", "Function", "CvxpySet", "NotConvergedError"}  # bases, what from_cvxpy builds, an error
    assert set(public(room)) - others == rows


@pytest.mark.parametrize("room", [epszero, sets, functions, models, datasets, experiments])
def test_every_public_name_is_on_the_api_page(room):
    assert set(public(room)) - ON_THE_API_PAGE == set()


PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("examples/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
SLOW = {  # more than two seconds, warm; README's Python runs in tests/test_readme.py, the demo in tests/test_package.py
    *("README.md", "examples/README.md", "docs/analysts.md", "docs/audit.md", "docs/certificates.md"),
    *(
        "docs/command-line.md",
        "docs/modellers.md",
        "docs/models.md",
        "docs/report.md",
        "docs/reports.md",
        "docs/start.md",
    ),
}
LANGUAGES = {"python", "sh", "text", "csv", "json"}


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_says_what_it_is(page):
    """A block without a language would not be run."""
    assert [
        f"{named(page)}:{one.line}" for one in blocks(page.read_text(encoding="utf-8")) if one.language not in LANGUAGES
    ] == []


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.long] if named(page) in SLOW else []) for page in PAGES], ids=named
)
def test_every_block_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    run = Run(named(page))
    for one in blocks(page.read_text(encoding="utf-8")):
        if not (one.language == "python" and re.fullmatch(r"\w+", one.rest)):  # templates: tests/test_contributing.py
            run.block(one)
    plt.close("all")


def test_the_wheel_that_pages_name_is_the_one_that_is_built():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"dist/epszero-[^\s`*]+\.whl", text)) == {wheel_name()}


def test_every_example_is_on_a_page():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    files = [file for file in (ROOT / "examples").rglob("*") if file.suffix in (".py", ".csv")]
    assert [file.name for file in files if file.name not in text] == []
