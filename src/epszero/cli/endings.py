"""How a command ends: an exit code for scripts, one sentence for people, a traceback only where epszero is at fault."""

import re
import shlex
import sys
import traceback
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

import epszero as ez

REFUSED, BAD_INPUT, BUG, INTERRUPTED = 1, 2, 3, 130
EXIT_CODES = (
    "**Exit codes**: 0 fine; 1 certificate refused, or the run did not converge; 2 bad input; "
    "3 a fault of epszero itself; 130 interrupted."
)

# Arguments of the library that have another name, or none, on the command line.
OPTIONS = {"path": "samples", "n": "draws", "values": "samples"}
KNOWN = ("samples", "columns", "support", "delta", "holdout", "iterations", "tol", "step", "draws", "seed", "target",
         "size", "of", "fleet", "prices", "hours", "capacity", "start", "end", "trials", "out")  # fmt: skip


class ModelError(Exception):
    """Something is wrong in a user's Python file; the message names the file and the line."""


class Door(TyperGroup):
    """All commands pass here, on their way in and out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the line as it was typed, for reports."""
        ctx.obj = shlex.join(["epszero", *args])
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error becomes a sentence and an exit code."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
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
    raise ez.InputError(f"{argument}: {rule}. {remedy}.")


def _told(error: Exception) -> int:
    """Tell what happened; the exit code."""
    code = BAD_INPUT
    if isinstance(error, ModelError):
        tell(str(error))
    elif isinstance(error, ez.InputError):
        tell(as_options(str(error)))
    elif isinstance(error, ez.SolveError):
        tell(str(error))
        code = REFUSED
    elif isinstance(error, OSError):
        tell(f"{error.filename or 'a file'}: {error.strerror or error}.")
    elif isinstance(error, MemoryError):
        tell("There is not enough memory for that. Pass less data, or fewer --draws.")
    elif hasattr(error, "format_message"):  # a usage error of Typer's
        tell(f"{error.format_message()} See --help.")  # pyright: ignore[reportAttributeAccessIssue]
    else:
        traceback.print_exception(error, file=sys.stderr)
        tell("This is a fault of epszero: please report it with the lines above.")
        code = BUG
    return code


def as_options(sentence: str) -> str:
    """A sentence of the library in the words of the command line: `path: …` is about --samples, and so on."""
    head, colon, rest = sentence.partition(": ")
    names = [OPTIONS.get(name, name) for name in re.split(r", |\[", head, maxsplit=1)[:1]] if colon else []
    if names and names[0] in KNOWN and re.fullmatch(r"[a-z_]+(\[.*\])?", head):
        sentence = f"--{names[0]}: {rest}"
    sentence = sentence.replace('pass missing="drop"', "pass --drop-missing")
    return re.sub(r"columns=\[([^\]]*)\]", lambda found: f"--columns {_listed(found[1])}", sentence)


def _listed(names: str) -> str:
    return ",".join(name.strip(" '\"") for name in names.split(","))
