"""The comparisons run, and docs/compare.md shows what epszero prints there; a peer that is absent gets a sentence."""

import builtins
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks._absent import peer

PAGE = (Path(__file__).parent.parent / "docs" / "compare.md").read_text(encoding="utf-8")
PEERS = ("CVXPY", "NashOpt", "scikit-learn", "mpi-sppy")


def plain(text: str) -> list[str]:
    """The lines that are epszero's, without numbers of rounding size."""
    return [
        re.sub(r"\d(\.\d+)?e-(0[7-9]|[1-9]\d+)", "…", line.rstrip())
        for line in text.splitlines()
        if not line.startswith(PEERS)
    ]


@pytest.mark.long
@pytest.mark.parametrize("task", ["game", "regression", "stock"])
def test_what_we_print_is_on_the_page(task, capsys, monkeypatch):
    """Without any peer, which the tests need not have."""
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.split(".")[0] in ("cvxpy", "nashopt", "sklearn", "mpisppy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest, **more)

    module = import_module(f"benchmarks.compare_{task}")
    monkeypatch.delitem(sys.modules, "benchmarks._peers", raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", without)
        module.main()
    printed = capsys.readouterr().out
    absent = [line for line in printed.splitlines() if line.startswith(PEERS)]
    assert absent
    assert all("not installed" in line for line in absent)
    shown = re.findall(rf"^```sh\npython -m benchmarks.compare_{task}\n```\n\n```text\n(.*?)^```$", PAGE, re.M | re.S)[
        0
    ]
    assert plain(printed) == plain(shown)


def test_another_error_of_a_peer_is_not_hidden(capsys):
    with peer("Somebody", "pip install somebody"):
        raise ModuleNotFoundError("No module named 'somebody'", name="somebody")
    assert capsys.readouterr().out.startswith("Somebody: not installed (somebody is missing). pip install somebody")
    with pytest.raises(ImportError, match="broken"), peer("Somebody", "pip install somebody"):
        raise ImportError("broken")
