"""House rules that are cheap to check: sizes of files, no addresses of machines, a lock file of plain pins."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKESHIFT = {".git", ".venv", "site", "dist", "build", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis"}

# Package indices, and the home of somebody's machine. Written in pieces, so as not to find itself.
ADDRESSES = re.compile("index" + r"-url|https?://[^\s\"]+/(simple|packages)/|(?<![\w.])/(work|root|home|tmp)/[a-z.]")


def committed() -> list[Path]:
    """The files that are, or would be, committed."""
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    return [file for file in ROOT.rglob("*") if file.is_file() and not MAKESHIFT & set(file.relative_to(ROOT).parts)]


def addresses(text: str) -> list[str]:
    """The lines that name a package index or a machine's own path."""
    return [line for line in text.splitlines() if ADDRESSES.search(line)]


def lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def test_no_file_outgrows_its_room():
    sizes = {file.relative_to(ROOT): lines(file) for file in (ROOT / "src").rglob("*.py")}
    assert {str(name): size for name, size in sizes.items() if size > 400} == {}


def test_no_committed_file_names_an_index_or_a_machine():
    found = {}
    for file in committed():
        try:
            hits = addresses(file.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue
        if hits:
            found[str(file.relative_to(ROOT))] = hits
    assert found == {}


@pytest.mark.parametrize(
    "line", ["--index" + "-url x", "see https://example.org" + "/simple/jax", "open('/ho" + "me/me/data.csv')"]
)
def test_a_planted_address_is_found(line):
    assert addresses(f"fine\n{line}\nfine") == [line]


LOCKS = ["requirements.lock", "requirements-browser.lock", "requirements-tools.lock"]


@pytest.mark.parametrize("name", LOCKS)
def test_lock_files_are_plain_pins(name):
    pins = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [pin for pin in pins if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][0-9a-z.]*", pin)] == []
    names = [pin.split("==")[0] for pin in pins]
    assert names == sorted(set(names))
    assert pins


def test_the_lock_files_do_not_overlap():
    names = [pin.split("==")[0] for name in LOCKS for pin in (ROOT / name).read_text(encoding="utf-8").split()]
    assert len(names) == len(set(names))
