"""The application: its commands and `--version`."""

from importlib.metadata import version
from typing import Annotated

import typer

from epszero.cli.audit import audit
from epszero.cli.certify import certify
from epszero.cli.demo import demo
from epszero.cli.doctor import doctor
from epszero.cli.endings import EXIT_CODES, Door
from epszero.cli.ev import ev
from epszero.cli.plan import plan
from epszero.cli.reproduce import reproduce
from epszero.cli.solve import solve
from epszero.cli.watch import watch

app = typer.Typer(
    name="epszero",
    cls=Door,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)
PANELS = {
    "Start here": (demo, ev),
    "Your own model": (solve, certify, audit, plan, watch),
    "The paper": (reproduce,),
    "This computer": (doctor,),
}
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel, epilog=EXIT_CODES)(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"epszero {version('epszero')}")
        raise typer.Exit


@app.callback()
def _epszero(  # pyright: ignore[reportUnusedFunction]  (Typer calls it)
    _: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Equilibria and optima from samples, with certificates one can trust."""
