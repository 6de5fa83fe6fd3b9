"""How a command ends: an exit code for scripts, one sentence for people, a traceback only where epszero is at fault."""

import re
import shlex
import sys
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

import epszero as ez
from epszero.cli import INTERRUPTED, usage

REFUSED, BAD_INPUT, BUG = 1, 2, 3
EXIT_CODES = (
    "**Exit codes**: 0 fine; 1 certificate refused, or the run did not converge; 2 bad input; "
    "3 a fault of epszero itself; 130 interrupted. A pipe that is closed early is no error."
)

# Arguments of the library as options; what is not here is no option, and keeps its name.
OPTIONS = {
    "path": "--samples",
    "values": "--samples",
    "n": "--draws",
    "samples": "--samples",
    "columns": "--columns",
    "support": "--support",
    "delta": "--delta",
    "holdout": "--holdout",
    "iterations": "--iterations",
    "tol": "--tol",
    "step": "--step",
    "draws": "--draws",
    "seed": "--seed",
    "target": "--target",
    "size": "--size",
    "of": "--of",
    "fleet": "--fleet",
    "prices": "--prices",
    "hours": "--hours",
    "capacity": "--capacity",
    "start": "--start",
    "end": "--end",
    "trials": "--trials",
    "out": "--out",
}
SPOKEN = {  # where an option is not spelt as its argument
    'missing="drop"': "--drop-missing",
    'hour_labels="beginning"': "--hour-beginning",
    'hour_labels="ending"': "--hour-ending",
    "time_column=…": "--time-column NAME",
    "price_column=…": "--price-column NAME",
}
KEYWORD = re.compile(r"""\b([a-z_]+)=(?:"([^"]*)"|('[^']*')|\[([^\]]*)\])""")  # name="a", name='a', name=['a', 'b']


class ModelError(Exception):
    """Something is wrong in a user's Python file; the message names the file and the line."""


class Door(TyperGroup):
    """All commands pass here, on their way in and out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the line as it was typed, for reports."""
        words = list(args)
        ctx.obj = shlex.join(["epszero", *words])
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if not words or not hasattr(error, "format_message"):  # no words at all are answered with help
                raise
            raise typer.Exit(_told(error)) from error

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error becomes a sentence and an exit code."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            tell("Interrupted.")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            raise typer.Exit(_told(error)) from error


def tell(sentence: str) -> None:
    """A sentence on stderr, without colours or line breaks of ours."""
    typer.echo(sentence, err=True)


def refuse(argument: str, rule: str, remedy: str) -> NoReturn:
    """Raise `ez.InputError` with one sentence and its remedy."""
    raise ez.InputError.about(argument, rule, remedy)


def _told(error: Exception) -> int:
    """Tell what happened; the exit code."""
    code = BAD_INPUT
    if isinstance(error, ModelError):
        tell(str(error))
    elif isinstance(error, OSError):
        tell(f"{error.filename or 'a file'}: {error.strerror or error}.")
    elif isinstance(error, MemoryError):
        tell("There is not enough memory for that. Pass less data, or fewer --draws.")
    elif hasattr(error, "format_message"):  # a usage error of Typer's
        tell(usage.told(error))
    elif isinstance(error, ez.InputError):
        tell(as_options(error))
    elif isinstance(error, ez.SolveError):
        tell(str(error))
        code = REFUSED
    else:
        traceback.print_exception(error, file=sys.stderr)
        tell("This is a fault of epszero: please report it with the lines above.")
        code = BUG
    return code


def as_options(error: "ez.InputError", options: Mapping[str, str] = OPTIONS) -> str:
    """An error of the library in the words of the command line: `path` is --samples, and so on."""
    if error.argument is None or error.rule is None or error.remedy is None:
        return str(error)
    option = options.get(named(error), error.argument)
    return str(ez.InputError.about(option, error.rule, spelt(error.remedy, options)))


def named(error: "ez.InputError") -> str:
    """The argument that is at fault, without the index of an entry."""
    return (error.argument or "").partition("[")[0]


def spelt(remedy: str, options: Mapping[str, str]) -> str:
    """A remedy with keywords of Python as options: columns=['a', 'b'] is --columns a,b."""

    def option(found: re.Match[str]) -> str:
        name, bare, quoted, listed = found.groups()
        if name not in options:
            return found[0]
        value = quoted or (bare if listed is None else ",".join(one.strip(" '\"") for one in listed.split(",")))
        return f"{options[name]} {value}"

    for python, words in SPOKEN.items():
        remedy = remedy.replace(python, words)
    return KEYWORD.sub(option, remedy)
