"""Maths at build time: `$…$` and `$$…$$` in a page become MathML, which browsers show without any script.

Runs before Markdown, so that underscores and stars in formulas are left alone: each formula is put aside behind a
placeholder and comes back in the finished page. Code is not touched. A formula that cannot be read stops the build, and
so does one in a heading (it would not reach the table of contents: write ε there, not $\\varepsilon$).
The font, STIX Two Math, is the one that the package ziamath carries; the pages bring their own compressed copy along.
"""

import importlib.resources
import re
from pathlib import Path
from typing import Any

from fontTools.ttLib import TTFont
from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

CODE = r"(?P<code>^ {0,3}(?P<fence>```+|~~~+).*?^ {0,3}(?P=fence)\s*$|(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))"
DISPLAY = r"\$\$(?P<display>.+?)\$\$"
INLINE = r"(?<![\\$\w])\$(?P<inline>[^\s$](?:[^$\n]*[^\s$\\])?)\$(?![\d$])"
PATTERN = re.compile("|".join((CODE, DISPLAY, INLINE)), re.DOTALL | re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put each formula aside, as MathML."""
    page.formulas = []

    def aside(found: re.Match[str]) -> str:
        if found["code"]:
            return found[0]
        display = found["display"]
        kind = "block" if display else "inline"
        page.formulas.append(tidied(convert((display or found["inline"]).strip(), display=kind)))
        return f"MATHS{len(page.formulas) - 1}HERE"

    return PATTERN.sub(aside, markdown)


def tidied(formula: str) -> str:
    """Bars of norms that do not grow (they would, beyond all measure); primes as operators, which keeps their size."""
    formula = re.sub(r"<mo>(&#x02016;|&#x0007C;)</mo>", r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', formula)
    return formula.replace("<mi>&#x02032;</mi>", '<mo lspace="0" rspace="0">&#x02032;</mo>')


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Put them back."""
    if any("MATHS" in title for title in _titles(page.toc)):
        raise PluginError(f"{page.file.src_path}: a heading holds a formula. Write it in plain characters.")
    return re.sub(r"MATHS(\d+)HERE", lambda found: page.formulas[int(found[1])], html)


def on_post_build(config: Any, **_: Any) -> None:
    """Write the font next to the style sheet that asks for it."""
    source = importlib.resources.files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"
    with importlib.resources.as_file(source) as file, TTFont(file) as font:
        font.flavor = "woff"
        font.save(Path(config.site_dir) / "_style" / "maths.woff")


def _titles(items: Any) -> list[str]:
    return [title for item in items for title in (item.title, *_titles(item.children))]
