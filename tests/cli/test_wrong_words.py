"""Wrong command lines and wrong files: one sentence that says what to do, exit code 2, nothing left behind."""

from pathlib import Path

import pytest

GAME = ("model.py:game", "--samples", "data.csv")
COMMANDS = {"solve": (), "certify": (), "audit": (), "plan": ("--size", "100")}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.py:game", "--samples", "data.csv"), "no file 'nothing.py'"),
        (("model.py", "--samples", "data.csv"), "MODEL.py:NAME"),
        (("model.py:", "--samples", "data.csv"), "MODEL.py:NAME"),
        ((".:game", "--samples", "data.csv"), "is a folder"),
        (("model.py:gaem", "--samples", "data.csv"), "Did you mean 'game'?"),
        (("model.py:game", "--samples", "nothing.csv"), "--samples: there is no file 'nothing.csv'"),
        (("model.py:game",), "--samples: is needed"),
        (("model.py:sure", "--samples", "data.csv"), "--samples: is given, but nothing"),
        ((*GAME, "--columns", "a,c"), "--columns: 'data.csv' has no column 'c'"),
        ((*GAME, "--columns", "a,,b"), "--columns: 'a,,b' has an empty name"),
        ((*GAME, "--support", "0"), "--support: '0' is not two numbers"),
        ((*GAME, "--support", "4,-0.5"), "nothing lies between 4 and -0.5"),
        ((*GAME, "--support", "nan,1"), "nothing lies between nan and 1"),
        ((*GAME, "--support", "0:1,0:1,0:1"), "--support: does not fit the samples"),
        ((*GAME, "--support", "0,0.1"), "outside the support"),
        ((*GAME, "--draws", "0"), "--draws: must be a whole number, at least 1, but it is '0'. Pass --draws 3000, say"),
        ((*GAME, "--draws=1.5"), "--draws: must be a whole number, at least 1, but it is '1.5'"),
        ((*GAME, "--seed", "-1"), "--seed: must be a whole number, at least 0, but it is '-1'"),
        ((*GAME, "--report", "."), "--report: '.' is a folder"),
        ((*GAME, "--report", "data.csv/page.html"), "is not a folder"),
        ((*GAME, "--report", "./data.csv"), "is also given as --samples"),
        ((*GAME, "--report", "model.py"), "is also given as MODEL"),
        ((*GAME, "--colour"), "--colour: there is no such option."),
        ((*GAME, "--drws", "3"), "--drws: there is no such option. Did you mean --draws?"),
        ((*GAME, "--json=yes"), "--json: takes no value. Write it alone."),
        ((*GAME, "data.csv"), "data.csv: more words than the command takes."),
        ((*GAME, "--samples", "data.csv"), "--samples: is given 2 times"),
        ((*GAME, "--support", "0,1", "--support", "0,2"), "--support: is given 2 times, for 1 files of --samples"),
        ((*GAME, "--columns", "a,b", "--columns", "a"), "--columns: is given 2 times"),
        ((), "MODEL.py:NAME: is needed. Pass MODEL.py:NAME, as in model.py:game"),
    ],
)
def test_of_all_commands_on_models(refused, command, words, said):
    told = refused(command, *words, *COMMANDS[command])
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *((("certify", *GAME, f"--delta={delta}"), "--delta") for delta in ("0", "1", "-0.1", "2", "nan", "many")),
        *((("solve", *GAME, f"--holdout={share}"), "--holdout") for share in ("0", "1", "-1", "inf")),
        (("solve", "model.py:sure", "--holdout", "0.5"), "--holdout: is given, but nothing"),
        (("solve", *GAME, "--iterations", "-1"), "--iterations"),
        (("solve", *GAME, "--tol", "-1"), "--tol"),
        (("certify", *GAME, "--step", "-1"), "--step"),
        (("solve", *GAME, "--out", "x", "--report", "x"), "is also given as --out"),
        (("certify", *GAME, "--using", "magic"), "magic"),
        (("certify", *GAME, "--using", "dependent"), "--beta"),
        (("certify", *GAME, "--using", "dependent", "--beta", "2,1.5"), "--beta"),
        (("certify", *GAME, "--using", "prequential", "--beta", "2,0.5"), "--beta"),
        (("certify", *GAME, "--beta", "2,0.5"), "--beta"),
        (("audit", *GAME, "--budget", "0"), "--budget"),
        (("plan", *GAME), "--target, --size: exactly one"),
        (("plan", *GAME, "--target", "1", "--size", "3"), "--target, --size: exactly one"),
        (("plan", *GAME, "--target", "0"), "--target"),
        (("plan", *GAME, "--target", "1", "--of", "time"), "time"),
        (("plan", "model.py:game", "--support", "0,1", "--size", "3"), "--dim: is needed"),
        (("plan", *GAME, "--dim", "2", "--size", "3"), "--dim: is for"),
        (("plan", "model.py:sure", "--size", "3"), "does not depend on samples"),
        (("reproduce", "fig9"), "There are: fig1"),
        (("reproduce", "fig1", "--trials", "0"), "--trials"),
        (("reproduce", "fig1", "--out", "data.csv"), "--out: 'data.csv' is not a folder"),
        (("demo", "--out", "data.csv"), "--out: "),
        (("dance",), "dance"),
    ],
)
def test_of_one_command(refused, words, said):
    told = refused(*words)
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("a,b\n", "no rows"),
        ("a,b\n0.1,much\n", "has 'much' in row 0 (line 2 of the file)"),
        ("a,b\n0.1,\n", "--drop-missing"),
        ("a,b\n0.1,inf\n", "infinite"),
        ("a,b\n0.1,0.2,0.3\n", "cannot be read"),
    ],
)
def test_of_data_files(refused, content, said):
    Path("bad.csv").write_text(content)
    assert said in refused("certify", "model.py:game", "--samples", "bad.csv")


def test_a_file_that_only_looks_like_parquet(refused):
    Path("bad.parquet").write_text("a,b\n")
    assert "cannot be read as a table" in refused("solve", "model.py:game", "--samples", "bad.parquet")


def test_a_folder_in_place_of_data(refused):
    Path("days").mkdir()
    assert "no file 'days'" in refused("solve", "model.py:game", "--samples", "days")


def test_data_of_another_width_are_told_with_the_line_of_the_model(refused):
    Path("wide.csv").write_text("a,b,c\n1,2,3\n")
    told = refused("solve", "model.py:game", "--samples", "wide.csv")
    assert "cannot be evaluated" in told


def test_nothing_at_all_is_answered_with_help(run):
    result = run()
    assert "Usage" in result.output
    assert run("--version").stdout.startswith("epszero ")
