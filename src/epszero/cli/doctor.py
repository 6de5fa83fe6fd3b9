"""`epszero doctor`: what is installed, what the computer has, and whether numbers come out right."""

import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import typer

import epszero as ez
from epszero.cli import options
from epszero.cli.endings import REFUSED, tell
from epszero.cli.output import emit, screen, show, working

NEEDED = ("jax", "jaxlib", "equinox", "numpy", "scipy", "clarabel", "polars", "matplotlib", "rich", "typer")
EXTRAS = {"cvxpy": "cvxpy", "entsoe-py": "entsoe", "fastexcel": "excel"}  # package: the extra that brings it
TOLERANCE = 1e-9


def doctor(*, as_json: options.Json = False) -> None:
    """Say which versions are here, how many cores, where compiled programs are kept; solve a small problem as a test.

    Paste what it prints into a report of a problem. Exit code 1 where a number comes out wrong.

    **Examples**

    `epszero doctor`

    `epszero doctor --json`
    """
    with working("looking and testing", as_json=as_json):
        found = {"epszero": version("epszero"), **_computer(), "packages": _versions(), "cache": _cache()}
        tests, seconds = _self_test()
    fine = all(one["fine"] for one in tests)
    if as_json:
        emit({**found, "self_test": {"fine": fine, "seconds": round(seconds, 3), "parts": tests}})
    else:
        _show(found, tests, seconds)
    if not fine:
        tell("Numbers come out wrong on this computer: please report it with the lines above.")
        raise typer.Exit(REFUSED)


def _computer() -> dict[str, Any]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": {"all": os.cpu_count(), "usable": usable},
        "encoding": sys.stdout.encoding,
    }


def _versions() -> dict[str, str | None]:
    """By package; None where an extra is not here."""
    return {name: _version(name) for name in (*NEEDED, *EXTRAS)}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cache() -> dict[str, Any]:
    """Where compiled programs are kept, how many files and bytes."""
    folder = ez.keep_compiled()
    if folder is None:
        return {"folder": None, "files": 0, "bytes": 0}
    sizes = [_size(path) for path in Path(folder).glob("*")]
    return {"folder": str(folder), "files": len(sizes), "bytes": sum(sizes)}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # another process made room
        return 0


def _self_test() -> tuple[list[dict[str, Any]], float]:
    """Products by JAX against NumPy; a small problem against its closed form; its certificate against its record."""
    import jax  # noqa: PLC0415  (--help needs none of it)
    import jax.numpy as jnp  # noqa: PLC0415  (the same)
    import numpy as np  # noqa: PLC0415  (the same)

    rng = np.random.default_rng(0)
    begun = time.perf_counter()
    left, right = rng.normal(size=(150, 200)), rng.normal(size=(200, 150))
    with jax.enable_x64(True):
        product = np.asarray(jnp.asarray(left) @ jnp.asarray(right))
    off = float(np.abs(product - left @ right).max())
    tests = [_part("products in float64, against NumPy", off)]
    data = rng.uniform(-1.0, 1.0, size=(50, 2))

    def loss(x: Any, xi: Any) -> Any:
        return jnp.sum((x - xi) ** 2)

    problem = ez.Minimization(loss, ez.sets.Box(0.0, 1.0, dim=2))
    samples = ez.Samples(data, support=ez.sets.Box(-1.0, 1.0))
    solution = ez.solve(problem, samples)
    tests.append(
        _part("a small problem, against its solution", float(np.abs(solution.x - data.mean(axis=0).clip(0, 1)).max()))
    )
    certificate = ez.certify(solution)
    verified = bool(ez.verify(certificate.to_json(), problem, samples))
    tests.append({"what": "its certificate, recomputed from its record", "fine": verified, "off": None})
    return tests, time.perf_counter() - begun


def _part(what: str, off: float) -> dict[str, Any]:
    return {"what": what, "fine": off <= TOLERANCE, "off": off}


def _show(found: dict[str, Any], tests: list[dict[str, Any]], seconds: float) -> None:
    console = screen()
    packages, cache, cores = found["packages"], found["cache"], found["cores"]
    show(console, f"epszero {found['epszero']}, Python {found['python']}, {found['system']}")
    show(console, f"cores     {cores['usable']} of {cores['all']}")
    show(console, "packages  " + ", ".join(f"{name} {packages[name]}" for name in NEEDED))
    for name, extra in EXTRAS.items():
        here = packages[name] or f"not here; pip install 'epszero[{extra}]' brings it"
        show(console, f"extra     {extra}: {name} {here}")
    where = cache["folder"] or "nowhere: no folder that can be written to"
    show(console, f"compiled  {where}, {cache['files']} files, {cache['bytes'] / 1e6:.1f} MB")
    for one in tests:
        off = "" if one["off"] is None else f", off by {one['off']:.1e}"
        show(console, f"{'fine' if one['fine'] else 'WRONG':8s}  {one['what']}{off}")
    show(console, f"          tested in {seconds:.1f} s")
