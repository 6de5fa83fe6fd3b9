"""What the parser refuses is told in our words, for every option that takes a number; help has examples."""

import re

import pytest
import typer

from epszero.cli import app
from epszero.cli.usage import NUMBERS

COMMANDS = vars(typer.main.get_command(app))["commands"]
NUMERIC = sorted({name for one in COMMANDS.values() for param in one.params for name in param.opts if name in NUMBERS})


@pytest.mark.parametrize("option", NUMERIC)
@pytest.mark.parametrize("typed", ["many", "1.5.2", ""])
def test_numbers_that_are_none(refused, option, typed):
    command = next(name for name, one in COMMANDS.items() if any(option in param.opts for param in one.params))
    words = {"ev": ("--prices", "p.csv", "--fleet", "f.csv"), "reproduce": ("fig1",)}.get(command, ("model.py:game",))
    told = refused(command, *words, f"{option}={typed}")
    rule, remedy = NUMBERS[option]
    assert told == f"{option}: must be {rule}, but it is {typed!r}. {remedy}.\n"


def test_every_number_has_its_rule():
    wrong = []
    for name, command in COMMANDS.items():
        for param in command.params:
            kind = str(getattr(param, "type", "")).lower() + str(getattr(param, "annotation", "")).lower()
            if re.search(r"\b(int|float)", kind) and param.opts[0].startswith("--") and param.opts[0] not in NUMBERS:
                wrong.append((name, param.opts[0]))
    assert wrong == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command):
    assert re.search(rf"\*\*Examples?\*\*\s+`epszero {command}[ `]", COMMANDS[command].help or "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--verison",), "--verison: there is no such option. Did you mean --version?"),
        (("--quiet", "solve"), "--quiet: there is no such option. epszero --help has examples."),
        (("dance",), "dance: there is no such command. There are: demo, ev, solve"),
        (("certfy", "model.py:game"), "certfy: there is no such command. Did you mean certify? There are:"),
        (("ev", "--prices", "p.csv"), "--fleet: is missing. Pass a file with a row per vehicle: --fleet fleet.csv."),
        (("watch", "model.py:game"), "--certificate: is needed. Pass --certificate FILE; epszero watch --help"),
        (("solve", "model.py:game", "--tol"), "--tol: needs a value."),
        (("solve", "model.py:game", "other.py:game"), "other.py:game: more words than the command takes."),
        (("plan", "model.py:game", "--of", "tme"), "--of: must be one of residual, distance, exploitability, cost-gap"),
    ],
)
def test_words_that_are_wrong(refused, words, said):
    told = refused(*words)
    assert said in told
    assert told.count("\n") == 1
