"""`report`: a certificate, an answer, an audit, a plan, as one page for people: HTML that needs nothing but a browser.

No time stamp, no network, no file but itself: the same inputs give the same page. All text is escaped, and the page
forbids every script but its own.
"""

import base64
import hashlib
import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from markupsafe import Markup

from epszero._checks import known_arguments, refuse
from epszero._types import PyTree
from epszero.audit import Audit
from epszero.certificates import Certificate, Plan, Verdict
from epszero.problems import AggregativeGame, Game, Minimization
from epszero.report import answer, bars, charts, facts, forecast_view, words
from epszero.report.files import checked_place, write_file
from epszero.report.forecast import forecast
from epszero.solve import Solution

TEMPLATES = Path(__file__).parent / "templates"
LARGEST_RECORD = 1_000_000  # characters of a record that the page carries
KINDS: dict[str, type[Any]] = {"certificate": Certificate, "solution": Solution, "audit": Audit, "plan": Plan}


@dataclass(frozen=True)
class Page:
    """One self-contained page."""

    html: str

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it, whole or not at all."""
        return write_file(checked_place(path, "report.html"), self.html)

    def __repr__(self) -> str:
        return f"Page({len(self.html):,} characters)"


@known_arguments
def report(
    *parts: Certificate | Solution | Audit | Plan | None,
    title: str | None = None,
    seed: int | str | None = None,
    command: str | list[str] | None = None,
) -> Page:
    """A page about what is given: a certificate, a solution, an audit, a plan, at most one of each, in any order.

    A certificate brings its solution. `seed` and `command` are shown in the block on reproducibility.
    `page.html` is the text, `page.save(path)` writes it.
    """
    given = _sorted_out(parts)
    heading = _text("title", title) if title is not None else _own_title(given)
    called = shlex.join(str(word) for word in command) if isinstance(command, list | tuple) else command
    asked = facts.Line("command", _text("command", called)) if called is not None else None
    drawn = facts.Line("seed", _text("seed", seed)) if seed is not None else None
    certificate, solution = given.get("certificate"), given.get("solution")
    told = None if certificate is None else certificate.to_json()
    record = None if told is None else json.loads(told)
    context = {
        "title": heading,
        "certificate": None if certificate is None else certificate_view(certificate, solution),
        "forecast": forecast_view.view(None if certificate is None else forecast(certificate, solution)),
        "solution": None if solution is None else _solution(solution, certificate),
        "audit": None if given.get("audit") is None else audit_view(given["audit"]),
        "plan": None if given.get("plan") is None else plan_view(given["plan"]),
        "asked": [row for row in (asked, drawn) if row is not None],
        "data": facts.data(record, solution),
        "versions": facts.versions(record),
        "record": record_of(told),
        **assets(),
    }
    return Page(rendered("page.html", context))


def rendered(template: str, context: dict[str, Any]) -> str:
    """A template, filled in; text that no page may hold is replaced."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  (for those who make a page)

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    text = environment.get_template(template).render(context)
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def _sorted_out(parts: tuple[object, ...]) -> dict[str, Any]:
    """The parts by kind; a certificate's solution is among them."""
    given: dict[str, Any] = {}
    for part in parts:
        if part is None:
            continue
        name = next((name for name, kind in KINDS.items() if isinstance(part, kind)), None)
        if name is None:
            refuse(
                "parts",
                f"must be what ez.certify, ez.solve, ez.audit or ez.plan returned, but one is a {type(part).__name__}",
                "Pass such objects",
            )
        if name in given and given[name] is not part:
            refuse("parts", f"there are two of the kind {name}", "Make a page for each")
        given[name] = part
    if not given:
        refuse("parts", "there is nothing to report on", "Pass a certificate, a solution, an audit or a plan")
    certificate = given.get("certificate")
    if certificate is not None:
        own = certificate.solution
        if "solution" in given and not _speaks_of(certificate, given["solution"]):
            refuse("parts", "the certificate speaks of another solution", "Pass the solution that was certified")
        if own is not None:
            given["solution"] = own
    return given


def _speaks_of(certificate: Certificate, solution: Solution) -> bool:
    """Whether the certificate is of this very point."""
    if certificate.solution is not None:
        return certificate.solution is solution or _bytes(certificate.solution.point) == _bytes(solution.point)
    packed = (certificate.record or {}).get("point", [])
    return b"".join(base64.b64decode(one["float64"]) for one in packed) == _bytes(solution.point)


def _bytes(point: PyTree) -> bytes:
    return b"".join(np.ascontiguousarray(leaf, dtype="<f8").tobytes() for leaf in jax.tree.leaves(point))


def _text(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | np.integer) or not str(value).strip():
        refuse(
            name,
            f"must be a line of text{' or a number' if name == 'seed' else ''}, but it is {value!r}",
            "Pass text, or leave it out",
        )
    return str(value)


def _own_title(given: dict[str, Any]) -> str:
    names = {"certificate": "Certificate", "solution": "Solution", "audit": "Audit", "plan": "Plan"}
    solution = given.get("solution")
    what = "" if solution is None else f" of a {_kind(solution)}"
    first = next(name for name in ("certificate", "solution", "audit", "plan") if name in given)
    return f"{names[first]}{what}"


def _kind(solution: Solution) -> str:
    problem = solution.problem
    if isinstance(problem, Game | AggregativeGame):
        agents = problem.agents
        return f"game of {words.number(agents)} agent{'s' if agents != 1 else ''}"
    return {"Minimization": "minimisation", "VariationalInequality": "variational inequality"}.get(
        type(problem).__name__, "monotone inclusion"
    )


def certificate_view(certificate: Certificate, solution: Solution | None) -> dict[str, Any]:
    """All that a template needs of it."""
    symbol, means = words.VERDICTS[certificate.verdict]
    refused = certificate.verdict is Verdict.REFUSED
    problem = None if solution is None else solution.problem
    game = None if problem is None else isinstance(problem, Game | AggregativeGame)
    loss = None if problem is None else isinstance(problem, Minimization)
    rows = facts.leanings(certificate)
    return {
        "headline": words.certificate_headline(certificate),
        "verdict": str(certificate.verdict),
        "symbol": symbol,
        "means": means,
        "refused": refused,
        "reason": certificate.reason,
        "by": certificate.by,
        "numbers": [] if refused else facts.numbers(certificate, game, loss),
        "made": facts.made_of(certificate),
        "remedies": facts.remedies(certificate),
        "most": words.helps_most(certificate),
        "leanings": rows,
        "words": [row.name for row in rows if row.value == "declared"],
        "guesses": [row.name for row in rows if row.value == "estimated"],
        "caption": words.caption(certificate),
        "together": words.together(certificate),
        "law": words.law(certificate, solution),
        "likely": words.likely(certificate, solution),
    }


def _solution(solution: Solution, certificate: Certificate | None) -> dict[str, Any]:
    trace = solution.trace
    return {
        "headline": words.solution_headline(solution),
        "failed": solution.status.is_failure,
        "run": facts.run(solution),
        "convergence": charts.convergence(trace.iterations, trace.residual),
        "parts": answer.parts(solution, certificate),
        "picture": answer.picture(solution, certificate),
        "bars": bars.said(certificate),
        "tables": bars.tables(certificate, solution, answer.entry_names(solution)),
    }


def audit_view(audit: Audit) -> dict[str, Any]:
    """All that a template needs of it."""
    return {
        "headline": words.audit_headline(audit),
        "structure": str(audit.structure),
        "method": audit.method,
        "constants": facts.constants(audit),
        "assumptions": facts.assumptions(audit),
        "standings": [(symbol, word, means) for word, (symbol, means) in words.STANDINGS.items()],
        "violated": bool(audit.violated()),
    }


def plan_view(plan: Plan) -> dict[str, Any]:
    """All that a template needs of it."""
    return {"headline": words.plan_headline(plan), "question": plan.question, "rows": facts.plans(plan)}


def record_of(told: str | None) -> dict[str, Any] | None:
    """The certificate's record, safe inside a script element; only its digest where it is too large."""
    if told is None:
        return None
    digest = hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()
    small = len(told) <= LARGEST_RECORD
    return {"json": forecast_view.inert(told) if small else "", "digest": digest, "size": words.number(len(told))}


def assets() -> dict[str, Any]:
    """Style and script, and the hash by which the page allows this script and no other."""
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("style.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"style": Markup(style), "script": Markup(script), "script_hash": f"sha256-{digest}"}
