"""The code on the page about models runs as it stands; tests go on from what it leaves behind."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "models.md"
START = "import numpy as np\nimport epszero as ez\n"  # the first block of the page has them


@pytest.fixture(scope="module")
def example():
    """example("Cournot"): the names that the code of that section makes."""

    def run(title):
        section = PAGE.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
        names = {}
        blocks = re.findall(r"^```python\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)
        exec(compile(START + "".join(blocks), f"models.md, {title}", "exec"), names)  # our own text
        return names

    return run
