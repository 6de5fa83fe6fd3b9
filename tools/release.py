"""Is this tree ready to be released as the version that is named? Prints the changelog's section of it.

    python tools/release.py 0.2.0

The version stands in pyproject.toml, in CITATION.cff with its date, and as a dated section of CHANGELOG.md. Where
one of them says something else, a sentence names it and the exit code is 1. Run by the release
workflow; needs no package.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def section(version: str, changelog: str) -> tuple[str, str]:
    """The date and the text of a version in a changelog; two empty strings where there is none."""
    found = re.search(
        rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    return (found[1], found[2].strip()) if found else ("", "")


def disagreements(version: str, root: Path) -> list[str]:
    """What does not speak of this version."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    cited = dict(re.findall(r"^([\w-]+): (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE))
    day, text = section(version, (root / "CHANGELOG.md").read_text(encoding="utf-8"))
    return [
        sentence
        for wrong, sentence in (
            (project != version, f"pyproject.toml: has the version {project}."),
            (cited.get("version") != version, f"CITATION.cff: has the version {cited.get('version')}."),
            (not text, f"CHANGELOG.md: has no dated section [{version}] with text."),
            (text and cited.get("date-released") != day, f"CITATION.cff: is dated otherwise than CHANGELOG.md, {day}."),
        )
        if wrong
    ]


def main(version: str) -> int:
    """Print the section, or what is wrong."""
    wrong = disagreements(version, ROOT)
    for sentence in wrong:
        print(f"{version} cannot be released. {sentence}", file=sys.stderr)  # noqa: T201
    if not wrong:
        print(section(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))[1])  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Say which version: python tools/release.py 0.2.0")
    sys.exit(main(sys.argv[1]))
