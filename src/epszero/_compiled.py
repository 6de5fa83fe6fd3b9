"""Compiled programs kept in a folder, so that the next process need not compile them again.

`ez.keep_compiled()` asks JAX for its own cache on disk; the command line does so by itself. Nothing else changes: not a
number, and nothing at all where the folder cannot be written to. Source: JAX, "Persistent compilation cache".

XLA (seen in JAX 0.10) writes to stderr, for each program that it loads, that the processor does not know the "features"
prefer-no-gather and prefer-no-scatter, which are only preferences of its compiler. It can be told to be silent before
it is loaded, not after.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

QUICK = 0.1  # seconds: what compiles faster is not worth a file
MOST = 1 << 30  # bytes in the folder; what was not used for longest goes first


def keep_compiled(folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Keep compiled programs in `folder`, by default the user's cache folder, from now on and for later processes.

    Returns the folder; None where it cannot be written to, which changes nothing. A cache that was asked of JAX before,
    by `jax.config` or the environment, is left as it is unless a folder is given. JAX is not loaded for it: where it is
    not there yet, it is told by its environment variables. Best called first: XLA may note on stderr that it loads
    programs, and does not do so where it hears of it before it is loaded itself.
    """
    before = _asked_before()
    if folder is None and before:
        return Path(before)
    chosen = usable(folder)
    if chosen is not None and "jax" in sys.modules:
        import jax  # noqa: PLC0415  (it is loaded)
        from jax.experimental.compilation_cache import compilation_cache  # noqa: PLC0415  (the same)

        jax.config.update("jax_compilation_cache_dir", str(chosen))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", QUICK)
        compilation_cache.reset_cache()  # which JAX may have looked for before
    elif chosen is not None:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(chosen)
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = str(QUICK)
        if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1") == "1":  # what JAX sets, and leaves to processes that it starts
            os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # see the header
    return chosen


def _asked_before() -> str | None:
    if "jax" in sys.modules:
        import jax  # noqa: PLC0415  (it is loaded)

        return jax.config.values["jax_compilation_cache_dir"]
    return os.environ.get("JAX_COMPILATION_CACHE_DIR")


def usable(folder: str | os.PathLike[str] | None) -> Path | None:
    """The folder, made where it is not there, with room in it; None where it cannot be written to."""
    try:
        chosen = Path(cache_folder() if folder is None else folder).expanduser().absolute()
        chosen.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=chosen):
            pass
        _make_room(chosen)
    except (OSError, RuntimeError, ValueError):  # no right to write, no home, not a path
        return None
    return chosen


def cache_folder() -> Path:
    """Where the platform keeps what can be made again: $XDG_CACHE_HOME, %LOCALAPPDATA%, ~/Library/Caches, ~/.cache."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if given and Path(given).is_absolute():
        return Path(given) / "epszero" / "compiled"
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        home = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return home / "epszero" / "compiled"


def _make_room(folder: Path) -> None:
    """Drop what was not used for longest, beyond `MOST`; another process may do so at the same time."""
    files = [(path, path.stat()) for path in folder.glob("jit_*") if path.is_file()]
    used = sum(told.st_size for _, told in files)
    for path, told in sorted(files, key=lambda pair: max(pair[1].st_atime, pair[1].st_mtime)):
        if used <= MOST:
            return
        used -= told.st_size
        with contextlib.suppress(OSError):
            path.unlink()
