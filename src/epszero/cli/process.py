"""The process around a command: where it writes, what ends it from outside, and in which order it then goes.

- A pipe that nobody reads any more (`epszero … | head -1`) ends it without a word and with 0: whoever closed it has
  what was wanted, and files are written before anything is printed. A full disk behind stdout is bad input, with a
  sentence.
- Ctrl-C ends it with one line and 128 + 2. A thread hears of it at once, while the main one may be inside a compilation
  or a long run, so nothing can swallow it and a second Ctrl-C finds nobody.
- Either way a file that is being written is written to its end first: it is whole or not there.
"""

import contextlib
import errno
import gc
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Generator
from typing import Any, NoReturn, TextIO

from epszero.cli import INTERRUPTED

CLOSED, BAD_INPUT = 0, 2
GONE = (errno.EPIPE, errno.ESHUTDOWN, errno.ECONNRESET)
COMPLETING = "_EPSZERO_COMPLETE"  # set by a shell that asks how a word may go on
NAMES = {1: "stdout", 2: "stderr"}
PATIENCE = 10.0  # seconds for a file that is being written when the process must end
_ending = threading.Lock()  # taken once and never given back: one line, one exit code


class Outlet(io.FileIO):
    """A descriptor that ends the process where nobody reads it, or nothing fits in any more."""

    def write(self, data: Any, /) -> int:
        """As it is; where that fails, the end."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno in GONE:
                leave(CLOSED)
            name = NAMES.get(self.fileno(), "output")
            leave(BAD_INPUT, f"{name}: {error.strerror or error}." if self.fileno() != 2 else "")


def leave(code: int, line: str = "") -> NoReturn:
    """End the process now: threads of compiled programs may still be at work, and would crash on the usual way out."""
    if not _ending.acquire(blocking=False):
        threading.Event().wait()  # somebody else is about to
    writing = getattr(sys.modules.get("epszero.report.files"), "WRITING", None)
    if writing is not None:
        writing.acquire(timeout=PATIENCE)
    if line:
        shown = b"\r\x1b[2K\x1b[?25h" if os.isatty(2) and "rich" in sys.modules else b""  # after a sign of life
        with contextlib.suppress(OSError):
            os.write(2, shown + line.encode() + b"\n")
    os._exit(code)


def run() -> None:
    """Run the command line, whatever letters the terminal can show."""
    _open_all()
    sys.stdout, sys.stderr = _outlet(sys.stdout, 1), _outlet(sys.stderr, 2)
    with _listening():
        from epszero import keep_compiled  # noqa: PLC0415  (it loads while somebody listens)
        from epszero.cli.commands import app  # noqa: PLC0415  (the same)

        if COMPLETING in os.environ:
            gc.disable()  # a shell waits, and nothing large is made
        else:
            keep_compiled()
        try:
            app(prog_name="epszero")
        except SystemExit as end:
            sys.stdout.flush()
            sys.stderr.flush()
            if end.code == INTERRUPTED:
                leave(INTERRUPTED)
            raise


def _open_all() -> None:
    """Give stdin, stdout and stderr, where they are closed, to nobody: else the next file would be taken for one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def _outlet(stream: TextIO | None, number: int) -> TextIO:
    """A stream over its descriptor that ends as said above, and writes `?` for letters that it cannot."""
    if stream is not None and not _is_of(stream, number):
        return stream  # in memory: a test, or a program that runs the command
    encoding = "utf-8" if stream is None else stream.encoding
    if stream is not None:
        stream.flush()
    raw = Outlet(number, "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="replace", line_buffering=number == 2 or raw.isatty()
    )


def _is_of(stream: TextIO, number: int) -> bool:
    try:
        return isinstance(stream, io.TextIOWrapper) and stream.fileno() == number
    except (OSError, ValueError):  # closed, or without a descriptor
        return False


@contextlib.contextmanager
def _listening() -> Generator[None]:
    """While the body runs, a thread ends the process at the first Ctrl-C."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)

    def listen() -> None:
        while heard := ear.recv(1):
            if heard[0] == signal.SIGINT:
                leave(INTERRUPTED, "Interrupted.")

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    old = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, lambda *_: None)  # the thread does it
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(old)
        mouth.close()
        thread.join()
        ear.close()
