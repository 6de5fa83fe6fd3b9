"""The version is told alike everywhere, and a release that disagrees with itself is stopped."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
FILES = ("pyproject.toml", "CITATION.cff", "CHANGELOG.md")


def release(root: Path, version: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "tools" / "release.py"), version]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path):
    """A copy of what a release looks at."""
    (tmp_path / "tools").mkdir()
    for name in (*FILES, "tools/release.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_this_tree_could_be_released():
    ended = release(ROOT, VERSION)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("The first release.")
    assert "\n## " not in ended.stdout


def test_another_version_is_not_this_one():
    ended = release(ROOT, "9.9.9")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert [name for name in FILES if f"{name}:" in ended.stderr] == list(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_forgotten_is_named(tree, name):
    file = tree / name
    file.write_text(file.read_text(encoding="utf-8").replace(VERSION, "0.0.1"), encoding="utf-8")
    ended = release(tree, VERSION)
    assert ended.returncode == 1
    assert f"{name}:" in ended.stderr


def test_another_date_is_named(tree):
    file = tree / "CITATION.cff"
    file.write_text(
        file.read_text(encoding="utf-8").replace("date-released: 2026", "date-released: 2025"), encoding="utf-8"
    )
    assert "dated otherwise" in release(tree, VERSION).stderr
