"""The user's Python file: loaded by MODEL.py:NAME, and wherever it raises, the line is shown."""

import contextlib
import difflib
import importlib.util
import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Generator, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

import epszero as ez
from epszero.cli.endings import ModelError, refuse

if TYPE_CHECKING:
    from epszero.problems import Problem

FORM = "Pass a Python file and a name in it, as in model.py:game"
PROBLEMS = "ez.Game, ez.AggregativeGame, ez.VariationalInequality, ez.Minimization or ez.Inclusion"
LIBRARIES = ("site-packages", "dist-packages")
LONGEST = 500  # letters of a message
OURS = (TypeError, ValueError)  # what wrong shapes raise


class EndedError(Exception):
    """The file called sys.exit."""


def split(model: str) -> tuple[Path, str]:
    """The file and the name, divided at the last colon: drives have one too."""
    file, colon, name = model.rpartition(":")
    if not (colon and file and name.isidentifier()):
        refuse("MODEL", f"{model!r} is not of the form MODEL.py:NAME", FORM)
    path = Path(file)
    if any("\ud800" <= letter <= "\udfff" for letter in str(path.absolute())):  # on which JAX stumbles
        refuse("MODEL", f"the name {file!r} has letters that the system does not know", "Rename the file or its folder")
    if path.is_dir():
        refuse("MODEL", f"{file!r} is a folder", FORM)
    if not path.is_file():
        refuse("MODEL", f"there is no file {file!r}", "Check the name and the working directory")
    return path, name


@contextlib.contextmanager
def loaded(model: str) -> "Generator[Problem]":
    """The problem, for as long as the body runs: meanwhile the file can import its neighbours.

    Whatever goes wrong in the user's lines, now or when they are called in the body, is a `ModelError`.
    """
    path, name = split(model)
    with _imports_from(path.resolve().parent):
        try:
            with _without_exit():
                yield _problem(_module(path), path, name)
        except Exception as error:
            where = _place(error, path)
            if where is None:
                raise
            raise ModelError(_told(*where, path)) from error


@contextlib.contextmanager
def _without_exit() -> Generator[None]:
    """`sys.exit` in the user's lines, on loading or in a cost, is an error: it would look like our own end."""
    try:
        yield
    except SystemExit as stop:
        sentence = f"the file ends the program, with exit code {stop.code}"
        raise EndedError(sentence).with_traceback(stop.__traceback__) from None


@contextlib.contextmanager
def _imports_from(folder: Path) -> Generator[None]:
    """The folder first on the path; afterwards nothing of it stays, and no compiled files lie beside the source."""
    path, modules, compiled = list(sys.path), set(sys.modules), sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, compiled
        for name in set(sys.modules) - modules:
            if _is_of(getattr(sys.modules[name], "__file__", None), folder):
                del sys.modules[name]


def _module(path: Path) -> ModuleType:
    name = path.stem if path.stem not in sys.modules else f"_{path.stem}_of_the_user"
    loader = SourceFileLoader(name, str(path.resolve()))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def _problem(module: ModuleType, path: Path, name: str) -> "Problem":
    if not hasattr(module, name):
        known = [other for other, value in vars(module).items() if _is_problem(value)]
        others = [other for other, value in vars(module).items() if inspect.isfunction(value)]
        near = difflib.get_close_matches(name, [*known, *others], n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        have = f"Its problems are: {', '.join(known)}" if known else f"It must be {PROBLEMS}, or return one"
        refuse("MODEL", f"{str(path)!r} has no {name!r}", hint + have)
    found = getattr(module, name)
    if not _is_problem(found) and callable(found):
        needed = _required(found)
        if needed:
            refuse("MODEL", f"{name!r} needs arguments ({', '.join(needed)})", "Give them defaults")
        found = found()
    if not _is_problem(found):
        refuse(
            "MODEL",
            f"{name!r} of {str(path)!r} is a {type(found).__name__}, not a problem",
            f"It must be {PROBLEMS}, or return one",
        )
    return found


def _is_problem(value: object) -> "TypeGuard[Problem]":
    return isinstance(value, ez.Game | ez.AggregativeGame | ez.VariationalInequality | ez.Minimization | ez.Inclusion)


def _required(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # built in, without a signature
        return []
    return [
        one.name
        for one in parameters
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]


# -- where it went wrong -----------------------------------------------------------------------------------------------


def _place(error: Exception, path: Path) -> tuple[BaseException, str, int, str] | None:
    """What was raised, with file, line number and line of the user's that it came from, if it did.

    Our own sentence about it is better where shapes or traced values are at fault; else what the user's lines raised.
    """
    folder = path.resolve().parent
    for one in _chain(error):
        if isinstance(one, SyntaxError) and (one.filename is None or _is_of(one.filename, folder)):
            file, number = one.filename or str(path.resolve()), one.lineno or 1
            return one, file, number, (one.text or linecache.getline(file, number)).strip()
        frames = [frame for frame in traceback.extract_tb(one.__traceback__) if _is_of(frame.filename, folder)]
        if frames:
            last = frames[-1]
            told = error if isinstance(one, OURS) or type(one).__module__.startswith("jax") else one
            return told, last.filename, last.lineno or 1, (last.line or "").strip()
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _is_of(file: str | None, folder: Path) -> bool:
    """Whether a file is the user's: in the folder, and not of a library or of epszero."""
    if file is None or not Path(file).is_absolute():  # "<frozen importlib>", "<string>", names in compiled libraries
        return False
    path = Path(file).resolve()
    inside = path.is_relative_to(folder) and not path.is_relative_to(Path(ez.__file__).parent)
    return inside and not any(part in LIBRARIES for part in path.parts)


def _told(error: BaseException, file: str, number: int, line: str, model: Path) -> str:
    """The sentence, then the line."""
    shown = model if Path(file) == model.resolve() else Path(file)
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    lines = [one.strip() for one in said.splitlines() if one.strip()]
    kind = [] if isinstance(error, ez.InputError | EndedError) else [type(error).__name__]
    what = ": ".join([*kind, *lines[:1]])
    what = what if len(what) <= LONGEST else f"{what[:LONGEST]}…"
    return f"{shown}, line {number}: {what}" + (f"\n    {line}" if line else "")
