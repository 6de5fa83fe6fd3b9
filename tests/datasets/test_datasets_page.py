"""The code of docs/datasets.md runs, and prints what the page shows."""

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL):
        exec(compile(block, "datasets.md", "exec"), names)  # our own text
    (shown,) = re.findall(r"^```text\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    printed = capsys.readouterr().out
    assert printed.startswith(shown)
    assert "1 hour: missing and filled from the neighbouring hours." in printed
    assert names["prices"].values.shape == (3649, 14)
    assert names["solar"].values.shape == (183, 3)
