"""The version in the header and in the folder, and the reports of three real runs, made while the pages are built.

- Pages go to `site/VERSION`, and `site/index.html` leads there; versions that were built before stay beside.
- `reports.md` has three blocks that begin with `epszero …`. Each command is run as printed, in a folder with a copy of
  `examples/`, and the page that it writes with `--report NAME.html` (or, of `epszero demo`, its report.html) goes to
  `reports/` of the site. A command that fails stops the build.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parent.parent.parent
LEADS = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>epszero</title>
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<p>The documentation of epszero: {links}.</p></html>
"""


def on_config(config: Any) -> Any:
    """Say the version, and build into its folder."""
    config.site_name = f"epszero {version('epszero')}"
    config.site_dir = str(Path(config.site_dir) / version("epszero"))
    return config


def commands(page: str) -> dict[str, list[str]]:
    """The commands of the page by the report that they write, each as words."""
    blocks = re.findall(r"^```sh\n(epszero .*?)^```$", page, re.MULTILINE | re.DOTALL)
    split = [shlex.split(re.sub(r"\\\n", " ", block)) for block in blocks]
    return {
        Path(words[words.index("--report") + 1] if "--report" in words else "demo.html").stem: words for words in split
    }


def on_post_build(config: Any) -> None:
    """Run the commands, and lead from the root to the newest version."""
    page = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    into = Path(config.site_dir) / "reports"
    into.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        for name, words in commands(page).items():
            command = [sys.executable, "-m", *words]
            ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if ended.returncode != 0:
                raise PluginError(f"reports.md: `{shlex.join(words)}` ended with {ended.returncode}: {ended.stderr}")
            written = "report.html" if words[1] == "demo" else f"{name}.html"
            shutil.copy(Path(folder) / written, into / f"{name}.html")
    root = Path(config.site_dir).parent
    there = sorted((one.name for one in root.iterdir() if (one / "index.html").is_file()), key=_order, reverse=True)
    links = ", ".join(f'<a href="{name}/index.html">{name}</a>' for name in there)
    (root / "index.html").write_text(LEADS.format(newest=there[0], links=links), encoding="utf-8")


def _order(name: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", name)]
