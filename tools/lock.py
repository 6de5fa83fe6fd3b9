"""Write the lock files: `name==version` for everything needed, and nothing else (no addresses, no hashes).

requirements.lock holds the library's dependencies and what `make test` and `make demo` need; requirements-browser.lock
what `make test-browser` needs on top, requirements-tools.lock what the other targets need. All come from one
resolution, so they agree. Run by `make lock`.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE, BROWSER, TOOLS = (ROOT / f"requirements{part}.lock" for part in ("", "-browser", "-tools"))


def resolved(requirements: list[str], constraints: dict[str, str]) -> dict[str, str]:
    """What pip would install for `requirements`, as name → version."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(lines(constraints))
        file.flush()
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--report", "-", "--constraint", file.name, *requirements]
        report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    found = (item["metadata"] for item in report["install"])
    return {re.sub(r"[-_.]+", "-", item["name"]).lower(): item["version"] for item in found}


def lines(versions: dict[str, str]) -> str:
    """The lock file's text."""
    return "".join(f"{name}=={version}\n" for name, version in sorted(versions.items()))


def main() -> None:
    """Resolve everything at once, then see which part the core needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    core = [*project["project"]["dependencies"], *groups["test"]]
    everything = resolved([*core, *(one for group in groups.values() for one in group)], {})
    needed = resolved(core, everything)
    browser = resolved([*core, *groups["browser"]], everything).keys() - needed.keys()
    tools = everything.keys() - needed.keys() - browser
    CORE.write_text(lines(needed), encoding="utf-8")
    for file, names in ((BROWSER, browser), (TOOLS, tools)):
        file.write_text(lines({name: everything[name] for name in names}), encoding="utf-8")


if __name__ == "__main__":
    main()
