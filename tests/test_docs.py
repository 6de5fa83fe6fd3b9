"""The documentation keeps up: each public name has its place in the tables and on the API page."""

import inspect
import re
from pathlib import Path

import pytest

import epszero
from epszero import datasets, experiments, functions, models, sets

DOCS = Path(__file__).parent.parent / "docs"
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
