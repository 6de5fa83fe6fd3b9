"""The command `epszero`: thin files over the public names, one per command.

The first thing is an ear for Ctrl-C; all that takes time to load comes after it.
"""

import os
import signal
import typing

if typing.TYPE_CHECKING:
    from epszero.cli.commands import app as app

INTERRUPTED = 130


def main() -> None:
    """Run the command line. Ctrl-C ends it with one line and exit code 130, while it loads and ever after."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else somebody wants none, as `nohup` does
            signal.signal(signal.SIGINT, _end)
    except ValueError:  # not in the main thread: signals are somebody else's
        pass
    from epszero.cli.process import run  # noqa: PLC0415  (see above)

    run()


def _end(*_: object) -> None:
    """While everything loads there is nothing to put in order."""
    os.write(2, b"Interrupted.\n")
    os._exit(INTERRUPTED)


def __getattr__(name: str) -> typing.Any:
    if name == "app":
        from epszero.cli.commands import app  # noqa: PLC0415  (see above)

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
