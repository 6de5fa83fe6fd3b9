"""The runner of the documentation's blocks notices what does not run."""

import pytest

from blocks import Run, blocks, shows

PAGE = """
```python
x = 2
print(x, 1.5e-12)
```

```text
2 9.9e-11
```

- in a list

  ```csv title="data/a.csv"
  a,b
  ```
"""


def test_a_page_is_taken_apart_and_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(PAGE)
    assert [(one.language, one.title) for one in found] == [("python", None), ("text", None), ("csv", "data/a.csv")]
    run = Run("page.md")
    for one in found:
        run.block(one)
    assert (tmp_path / "data" / "a.csv").read_text() == "a,b\n"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a … c\n", "a b b c\n", True),
        ("a …\n…\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a 0.12\n", "a 0.13\n", False),
        ("a 1e-5\n", "a 2e-5\n", False),
        ("a 1e-12\n", "a 2e-14\n", True),
        ("…\nd\n", "a\nb\n", False),
    ],
)
def test_what_is_shown_is_what_is_printed(shown, printed, same):
    assert shows(shown, printed) is same


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf x",
        "make nothing",
        "pip install epszero",
        "epszero demo | head -1",
        "epszero certify nothing.py:game",
        "python nothing.txt",
    ],
)
def test_a_command_that_does_not_run_is_told(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="page.md:7"):
        Run("page.md").command(line, "page.md:7")


def test_an_exit_code_that_the_page_tells_is_expected(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Run("page.md").command("epszero certify nothing.py:game  # exit code 2", "page.md:1")
