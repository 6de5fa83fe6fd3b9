"""Sentences for people who decide: what a certificate, an answer, an audit or a plan says, and what its words mean."""

import math

import numpy as np

from epszero._points import flat_of, length
from epszero.audit import Audit
from epszero.certificates import Certificate, Known, Plan, Verdict
from epszero.certificates.remedies import Part, parts
from epszero.samples import Samples
from epszero.solve import Solution

VERDICTS = {
    Verdict.GUARANTEED: ("✓", "Everything it rests on is proved: nobody's word is needed."),
    Verdict.CONDITIONAL: (
        "◆",
        "It holds if what was declared is true. Each such thing is named below, with whoever vouches for it.",
    ),
    Verdict.HEURISTIC: (
        "≈",
        "It leans on something that was only estimated from the data: a good guess, not a guarantee.",
    ),
    Verdict.REFUSED: ("✗", "No bound can be given. The reason below says what stands in the way and what would help."),
}

PROVENANCES = {
    "exact": ("=", "derived in closed form"),
    "verified": ("✓", "a rigorous enclosure"),
    "declared": ("◆", "somebody's word"),
    "estimated": ("≈", "read off the data: a guess"),
    "violated": ("✗", "seen to be false"),
}

STANDINGS = {
    "violated": ("✗", "seen or proved to be false"),
    "open": ("?", "nothing is known"),
    "not contradicted": ("≈", "looked for, nothing found; nobody vouches for it"),
    "declared": ("◆", "somebody's word, not contradicted"),
    "holds": ("✓", "proved"),
}


def number(value: float | None, digits: int = 4) -> str:
    """2.28, 0.0009, 6 533 157, 1.2 · 10⁻⁹, ∞."""
    if value is None or math.isnan(value):
        return "—"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    if float(value).is_integer() and 1e3 <= abs(value) < 1e15:
        return f"{value:,.0f}".replace(",", "\u202f").replace("-", "−")
    if 1e-4 <= abs(value) < 1e7:
        text = f"{value:,.{digits}g}"
        if "e" in text:
            text = f"{float(text.replace(',', '')):,.0f}"
        return text.replace(",", "\u202f").replace("-", "−")
    mantissa, power = f"{value:.{max(digits - 1, 1)}g}".split("e") if "e" in f"{value:.3g}" else (f"{value:.3g}", "0")
    return f"{mantissa.replace('-', '−')} · 10{_raised(int(power))}"


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def upward(value: float, digits: int = 4) -> float:
    """Rounded so that what is at most `value` is at most this too."""
    if value == 0 or not math.isfinite(value):
        return value
    near = float(f"{value:.{digits - 1}e}")
    if near >= value:
        return near
    step = 10.0 ** (math.floor(math.log10(abs(near))) - digits + 1)
    return float(f"{near + step:.{digits - 1}e}")


def bound(value: float | None, digits: int = 4) -> str:
    """A number that bounds something from above: rounded up, never down."""
    return number(None if value is None else upward(float(value), digits), digits)


def lower_bound(value: float, digits: int = 4) -> str:
    """A number that bounds something from below: rounded down, never up."""
    return number(-upward(-float(value), digits), digits)


def percent(share: float, digits: int = 3) -> str:
    """13 %, rounded up."""
    return f"{bound(100 * share, digits)}\u00a0%"


def confidence(delta: float) -> str:
    """95 %."""
    return f"{100 * (1 - delta):.6g}\u00a0%"


def certificate_headline(certificate: Certificate) -> str:
    """What the certificate says, in a sentence or two."""
    if certificate.verdict is Verdict.REFUSED:
        return "How far this answer is from the truth cannot be said: the certificate is refused."
    if isinstance(certificate.using, Known):
        sure = "Nothing is uncertain here:"
    elif certificate.verdict is Verdict.HEURISTIC:
        sure = f"As a guess, not a guarantee, at {confidence(certificate.delta)}:"
    else:
        sure = f"With {confidence(certificate.delta)} confidence,"
    if certificate.distance is not None:
        share = certificate.relative_distance
        size = "" if share is None else f": {percent(share)} of the answer's size"
        first = f"{sure} the answer is within {bound(certificate.distance, 3)} of the true one{size}."
    else:
        first = f"{sure} the answer solves the true problem up to a residual of {bound(certificate.epsilon, 3)}."
    more: list[str] = []
    if certificate.notes.get("truth"):
        more.append("“True” is what these samples promised on average, given those before each, not those to come.")
    if certificate.exploitability is not None:
        most = bound(float(np.max(certificate.exploitability)), 2)
        more.append(f"No agent can save more than {most} alone.")
    if certificate.cost_gap is not None:
        more.append(f"Its cost is at most {bound(certificate.cost_gap, 2)} above the least possible.")
    return " ".join([first, *more])


def likely(certificate: Certificate, solution: Solution | None) -> str:
    """What is probable, beside what is sure; empty where nothing is said of it."""
    away = certificate.likely if certificate.beside else None
    if away is None or solution is None:
        return ""
    size = length(flat_of(solution.x))
    share = f", {number(100 * away / size, 2)}\u00a0% of its size" if 0 < size < math.inf else ""
    return (
        f"the answer is probably within {number(away, 2)} of the true one{share}. That is a guess at "
        f"{confidence(certificate.delta)}, by the normal approximation, and no part of the certificate: rare outcomes, "
        "kinks and heavy tails make it too small."
    )


def helps_most(certificate: Certificate) -> str:
    """What the largest part of the distance asks for."""
    made = parts(certificate)
    if not made:
        return ""
    most = max(made, key=lambda part: made[part])
    return {
        Part.VARIANCE: "Most of it is variance: more samples help most.",
        Part.RANGE: "Most of it is range: the narrowest support that can be vouched for helps most, and more samples.",
        Part.SPLIT: "Most of it is the split of δ: asking for this line alone helps most.",
    }[most]


def caption(certificate: Certificate) -> str:
    """Over the table of numbers."""
    if isinstance(certificate.using, Known):
        return "What holds"
    guess = certificate.verdict is Verdict.HEURISTIC
    return f"{'What is guessed' if guess else 'What holds'}, at {confidence(certificate.delta)} confidence"


def together(certificate: Certificate) -> str:
    """In which sense the numbers hold."""
    if isinstance(certificate.using, Known):
        return "Nothing in the problem is uncertain, so these hold as they stand."
    if certificate.verdict is Verdict.HEURISTIC:
        return (
            "They would hold together, with that probability, if what was guessed from the data were true. Nobody "
            "promises that."
        )
    share = confidence(certificate.delta)
    return (
        f"All of these hold together, with probability at least {share} (δ = {number(certificate.delta)}): draw "
        "the data anew, solve and certify again, and they are all true in at least so many cases."
    )


def law(certificate: Certificate, solution: Solution | None) -> str:
    """Whose law the truth is, where the data are draws from a pool; or what takes the place of a law."""
    if certificate.notes.get("truth"):
        return f"What “true” means here: {certificate.notes['truth']}."
    samples = None if solution is None else solution.samples
    pools = {one.drawn_from for one in (samples if isinstance(samples, list) else [samples]) if one is not None}
    if certificate.verdict is Verdict.REFUSED or not pools or None in pools:
        return ""
    rows = " or ".join(number(pool) for pool in sorted(pool or 0 for pool in pools))
    return (
        f"The samples were drawn at random from {rows} rows, so “true” means: under the law of one of these rows, "
        "picked at random. Of what lies beyond them nothing is said, and more samples are more draws."
    )


def size_of(samples: Samples | list[Samples] | None) -> str:
    """3 000 samples; or of each agent's."""
    if samples is None:
        return "no samples: nothing is uncertain"
    if isinstance(samples, list):
        sizes = [len(one) for one in samples]
        many = number(min(sizes)) if min(sizes) == max(sizes) else f"{number(min(sizes))} to {number(max(sizes))}"
        return f"{len(sizes)} data sets of {many} samples each"
    return f"{number(len(samples))} sample{'s' if len(samples) != 1 else ''}"


def solution_headline(solution: Solution) -> str:
    """What was found, where no certificate speaks of it."""
    if solution.status.is_failure:
        return f"The run did not end well: {solution.status.value}. This is not an answer to act on."
    data = "" if solution.samples is None else f" from {size_of(solution.samples)}"
    fit = f"it fits the {'problem' if solution.samples is None else 'data'} up to a residual of"
    last = "" if solution.samples is None else " How far it is from the truth behind them is not certified here."
    return f"An answer was found{data}; {fit} {bound(solution.residual, 2)}.{last}"


def audit_headline(audit: Audit) -> str:
    """How many assumptions stand."""
    counts = {name: sum(one.status == name for one in audit.assumptions.values()) for name in STANDINGS}
    wrong = list(audit.violated())
    first = (
        f"{_many(len(wrong), 'assumption is', 'assumptions are')} violated: {', '.join(wrong)}."
        if wrong
        else "No assumption is violated."
    )
    rest = [f"{count} {name}" for name, count in reversed(counts.items()) if name != "violated" and count]
    return f"{first} Of {len(audit.assumptions)}: {', '.join(rest)}." if rest else first


def plan_headline(plan: Plan) -> str:
    """What to go by."""
    return f"For {plan.asked}: {plan.advice}" if plan.advice else f"Nothing can be said: {plan.question}."


def _many(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"
