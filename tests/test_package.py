"""What a user installs: the wheel and the sdist, built without a network, and the wheel where nothing else is.

The bare environment sees the distributions that the wheel's metadata ask for, and theirs, as links into the locked
environment, and nothing of it besides: a dependency that is used and not declared is missed here.
"""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from readme_renderer import markdown

import epszero as ez

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}


def ran(*words: object, cwd: Path, env: dict[str, str] = CLEAN) -> str:
    """What a command prints; its complaint, where it fails."""
    ended = subprocess.run([str(word) for word in words], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{words}:\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def build(source: Path, into: Path, *kinds: str) -> list[Path]:
    """The files that hatchling makes of a source tree."""
    targets = [word for kind in kinds for word in ("--target", kind)]
    ran(sys.executable, "-m", "hatchling", "build", "--directory", into, *targets, cwd=source)
    return sorted(into.iterdir())


def contents(wheel: Path) -> dict[str, bytes]:
    """What a wheel holds, by name."""
    with zipfile.ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist()}


def metadata(wheel: Path) -> bytes:
    """What a wheel says of itself."""
    (text,) = [data for name, data in contents(wheel).items() if name.endswith(".dist-info/METADATA")]
    return text


def needed(requirements: list[str]) -> set[str]:
    """The distributions that these requirements bring along, here."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        one = waiting.pop()
        if canonicalize_name(one.name) in found or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(canonicalize_name(one.name))
        waiting += [Requirement(text) for text in distribution(one.name).requires or []]
    return found


def linked(names: set[str], site: Path) -> None:
    """Make distributions of this environment visible in another one."""
    for name in names:
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))).resolve())


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """The sdist and the wheel."""
    sdist, wheel = sorted(build(ROOT, tmp_path_factory.mktemp("dist"), "sdist", "wheel"), key=lambda file: file.suffix)
    return sdist, wheel


@pytest.fixture(scope="module")
def bare(built, tmp_path_factory) -> Path:
    """An environment with the wheel, what it asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python3.*/site-packages")
    linked(needed(PROJECT["dependencies"]), site)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    ran(*pip, "install", "--quiet", "--no-index", built[1], cwd=folder)  # with dependencies: they must all be there
    return folder


def test_the_metadata_are_complete(built):
    told = Metadata.from_email(metadata(built[1]), validate=True)
    assert (told.name, str(told.version)) == ("epszero", PROJECT["version"])
    assert str(told.requires_python) == ">=3.11"
    assert told.license_expression == "Apache-2.0"
    assert told.author == "The epszero maintainers"
    assert told.summary
    assert told.keywords
    assert told.description_content_type == "text/markdown"
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)} <= set(told.classifiers or [])
    assert "Typing :: Typed" in (told.classifiers or [])


def test_the_readme_can_be_shown_by_an_index(built):
    """What `twine check --strict` looks at, by the library that it uses; twine itself would bring 19 packages along."""
    told = Metadata.from_email(metadata(built[1]), validate=True)
    shown = markdown.render(told.description or "")
    assert shown is not None
    assert "<h1>epszero</h1>" in re.sub(r"<h1[^>]*>", "<h1>", re.sub(r"<a [^>]*></a>", "", shown))


def test_the_wheel_holds_the_package_and_nothing_else(built):
    held = {name for name in contents(built[1]) if not name.split("/")[0].endswith(".dist-info")}
    source = ROOT / "src"
    there = {file.relative_to(source).as_posix() for file in (source / "epszero").rglob("*") if file.is_file()}
    assert held == {name for name in there if "__pycache__" not in name}
    assert {"epszero/py.typed", "epszero/datasets/data/ATTRIBUTION.txt"} <= held
    assert built[1].stat().st_size < 5e6


def test_the_sdist_builds_the_same_wheel(built, tmp_path):
    with tarfile.open(built[0]) as file:
        file.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    for name in (
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "Makefile",
        "tests/test_package.py",
        "docs/index.md",
    ):
        assert (source / name).read_bytes() == (ROOT / name).read_bytes()
    (wheel,) = build(source, tmp_path / "again", "wheel")
    assert contents(wheel) == contents(built[1])


def test_the_demo_runs_where_nothing_else_is_installed(bare, tmp_path):
    env = {name: value for name, value in CLEAN.items() if name != "VIRTUAL_ENV"}
    printed = ran(bare / "bin" / "epszero", "demo", cwd=tmp_path, env=env)
    assert "verdict: conditional" in printed
    assert "The certificate holds up" in " ".join(printed.split())
    made = {file.name for file in tmp_path.iterdir()}
    pictures = {f"{name}.{form}" for name in ("charging", "truth") for form in ("png", "pdf", "svg")}
    assert made == {"report.html", "certificate.json", *pictures}


def test_the_bare_environment_is_bare_and_complete(bare):
    look = (
        "import importlib.util as u, epszero as ez; "
        "print(ez.__file__); print(ez.__version__); print([n for n in ('pytest', 'cvxpy', 'pandas') if u.find_spec(n)])"
    )
    file, told, others = ran(bare / "bin" / "python", "-c", look, cwd=bare).splitlines()
    assert Path(file).resolve().is_relative_to(bare.resolve())
    assert (told, others) == (PROJECT["version"], "[]")
    pip = [sys.executable, "-m", "pip", "--python", bare / "bin" / "python", "--disable-pip-version-check"]
    assert ran(*pip, "check", cwd=bare).strip() == "No broken requirements found."


def test_the_version_is_that_of_what_is_installed():
    assert ez.__version__ == version("epszero")
    assert "__version__" not in ez.__all__
