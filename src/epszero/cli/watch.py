"""`epszero watch`: follow a growing file, and tell when an answer no longer fits what comes in."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

import epszero as ez
from epszero.cli import options
from epszero.cli.data import PARQUET, Data, box, check_delta
from epszero.cli.endings import REFUSED, refuse
from epszero.cli.output import emit, screen, show
from epszero.cli.run import problem_of

CertificateFile = Annotated[
    Path,
    typer.Option("--certificate", metavar="FILE", help="The record that `certify --json` wrote.", show_default=False),
]
Once = Annotated[bool, typer.Option("--once", help="Look at what is there, and leave; else until Ctrl-C or an alarm.")]
Every = Annotated[float, typer.Option(metavar="SECONDS", min=0.01, help="How long to wait between two looks.")]
Level = Annotated[
    float | None,
    typer.Option(metavar="P", help="Probability of a false alarm, ever; the certificate's unless told."),
]


def watch(  # noqa: PLR0913  (one per option)
    model: options.Model,
    *,
    certificate: CertificateFile,
    samples: options.SamplesFiles = None,
    columns: options.Columns = None,
    support: options.Support = None,
    delta: Level = None,
    once: Once = False,
    every: Every = 5.0,
    as_json: options.Json = False,
) -> None:
    """Follow a growing file of samples, and raise an alarm when x is no longer an ε-zero of what they say.

    The file may begin with the samples that the certificate was made from: these are recognised and left out. Rows are
    only ever added. An alarm ends the command with exit code 1.

    **Examples**

    `epszero watch model.py:game --certificate certificate.json --samples days.csv --support=-0.5,4`
    """
    if delta is not None:
        check_delta(delta)
    if not samples:
        refuse("--samples", "is needed: the file that grows", "Pass a CSV file")
    if len(samples) > 1:
        refuse("--samples", f"is given {len(samples)} times, but one file is watched", "Pass one CSV file")
    if samples[0].suffix.lower() in PARQUET:
        refuse("--samples", "a Parquet file does not grow row by row", "Pass a CSV file")
    claimed = ez.Certificate.from_json(certificate.read_text(encoding="utf-8"))
    console = screen()
    with problem_of(model, "watching", as_json=as_json) as problem:
        known = None if not support else box(support[0])
        monitor = ez.monitor(claimed, problem, known, delta=delta)
        follower = _Follower(Data(samples, columns, None, False, None, 0), problem, claimed.record or {})
        while monitor.alarm is None:
            new = follower.new_rows()
            if new is not None:
                monitor = monitor.update(new)
                if not as_json:
                    show(console, str(monitor))
            if once:
                break
            if monitor.alarm is None:
                time.sleep(every)
    if as_json:
        told = None if monitor.alarm is None else {"kind": monitor.alarm.kind.name.lower(), "at": monitor.alarm.at}
        emit({"seen": monitor.seen, "e": monitor.e, "epsilon": monitor.epsilon, "delta": monitor.delta, "alarm": told})
    elif not monitor.seen:
        show(console, "No new samples.")
    if monitor.alarm is not None:
        raise typer.Exit(REFUSED)


class _Follower:
    """Rows of a file beyond those that were read before."""

    def __init__(self, data: Data, problem: Any, record: dict[str, Any]) -> None:
        self.data, self.problem = data, problem
        self.seen = record.get("data", {}).get("seen", [])
        self.read, self.digest = 0, ""

    def new_rows(self) -> "ez.Samples | None":
        """Those that have come in since; None where there are none."""
        rows = self._whole_lines()
        if rows is None:
            return None
        if self.read == 0 and len(self.seen) == 1 and len(rows) >= self.seen[0]["samples"]:
            first = rows[: self.seen[0]["samples"]]
            if first.digest() == self.seen[0]["digest"]:  # what x was computed from
                self.read, self.digest = len(first), first.digest()
        if len(rows) < self.read or (self.read and rows[: self.read].digest() != self.digest):
            refuse("--samples", "rows that were read before have changed, or are gone", "Only add rows to the file")
        if len(rows) == self.read:
            return None
        new = rows[self.read :]
        self.read, self.digest = len(rows), rows.digest()
        return ez.Samples(new.values, columns=new.columns)

    def _whole_lines(self) -> "ez.Samples | None":
        """What is there up to the last line that has an end: the next one may still be written."""
        assert self.data.samples
        path = self.data.samples[0]
        head, end, _ = path.read_bytes().rpartition(b"\n")
        if not head.strip().count(b"\n"):
            return None  # the names of the columns at most
        with TemporaryDirectory() as folder:
            whole = Path(folder) / path.name
            whole.write_bytes(head + end)
            read = self.data._replace(samples=[whole]).read(self.problem)
            assert not isinstance(read, list)
            return read
