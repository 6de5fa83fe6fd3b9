"""Wrong words in our sentences, whatever the parser of the command line says of them: option, rule, remedy.

What was typed is found in the line itself; which rule an option has is written here, for those that take numbers.
"""

import difflib
import re
import shlex
from typing import Any

WHOLE, SHARE, PROBABILITY = "a whole number", "a share between 0 and 1", "a probability between 0 and 1"
NUMBERS = {  # option: what it must be, and what to pass
    "--draws": (f"{WHOLE}, at least 1", "Pass --draws 3000, say"),
    "--seed": (f"{WHOLE}, at least 0", "Pass --seed 0, say"),
    "--size": (f"{WHOLE}, at least 1", "Pass --size 3000, say"),
    "--dim": (f"{WHOLE}, at least 1", "Pass --dim 14, say"),
    "--trials": (f"{WHOLE}, at least 2", "Pass --trials 50, say"),
    "--iterations": (f"{WHOLE}, at least 0", "Pass --iterations 1000, say"),
    "--delta": (PROBABILITY, "Pass --delta 0.05 for 95 %"),
    "--holdout": (SHARE, "Pass --holdout 0.3, say"),
    "--tol": ("a number above 0", "Pass --tol 1e-8, say"),
    "--step": ("a number above 0", "Pass --step 0.1, say"),
    "--target": ("a number above 0", "Pass --target 0.1, say"),
    "--budget": ("a number above 0", "Pass --budget 1, or more for tighter constants"),
    "--every": ("seconds, at least 0.01", "Pass --every 5, say"),
    "--cap": ("kWh an hour, at least 0", "Pass --cap 11, say"),
    "--capacity": ("kWh an hour, at least 0", "Pass --capacity 40, say"),
    "--reference": ("kWh an hour, at least 0", "Pass --reference 1.2, say"),
    "--weight": ("a number, at least 0", "Pass --weight 1, or 0 for prices alone"),
}


def told(error: Any) -> str:
    """One sentence of ours about an error of the parser's."""
    context = error.ctx if getattr(error, "ctx", None) is not None else None
    line = [] if context is None else shlex.split(str(context.find_root().obj or ""))
    path = "epszero" if context is None else str(context.command_path)
    kind, help_ = type(error).__name__, f"{path} --help has examples"
    option = getattr(error, "option_name", None)
    parameter = getattr(error, "param", None)
    if kind == "NoSuchOption" and option:
        known = (
            [] if context is None else [name for one in context.command.params for name in one.opts if name[:2] == "--"]
        )
        near = difflib.get_close_matches(option, known, n=1)
        return f"{option}: there is no such option. {f'Did you mean {near[0]}?' if near else help_ + '.'}"
    if kind == "BadOptionUsage" and option:
        alone = "not take a value" in str(error.message)
        return f"{option}: takes no value. Write it alone." if alone else f"{option}: needs a value. {help_}."
    if kind == "MissingParameter" and parameter is not None:
        name = _name(parameter)
        return f"{name}: is needed. Pass {_written(parameter)}; {help_}."
    if parameter is not None:
        return _bad_value(_name(parameter), _typed(parameter, line), str(error.message), help_)
    return _other(str(error.format_message()), context, help_)


def _bad_value(name: str, typed: str | None, said: str, help_: str) -> str:
    shown = "" if typed is None else f", but it is {typed!r}"
    if name in NUMBERS:
        rule, remedy = NUMBERS[name]
        return f"{name}: must be {rule}{shown}. {remedy}."
    choices = re.findall(r"'([^']*)'", said.partition(" one of ")[2])
    if choices:
        near = difflib.get_close_matches(typed or "", choices, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Pass one of {', '.join(choices)}."
        return f"{name}: must be one of {', '.join(choices)}{shown}. {hint}"
    return f"{name}: cannot be {typed!r} ({said.rstrip('.')}). {help_}."


def _other(said: str, context: Any, help_: str) -> str:
    """Commands that are not there, words that are too many."""
    word = re.search(r"[Nn]o such command '([^']*)'", said)
    if word is not None:
        known = [] if context is None else list(context.command.list_commands(context))
        near = difflib.get_close_matches(word[1], known, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        return f"{word[1]}: there is no such command. {hint}There are: {', '.join(known)}."
    extra = re.search(r"extra arguments?\S* \((.*)\)", said)
    if extra is not None:
        return f"{extra[1]}: more words than the command takes. Put quotes around what has blanks; {help_}."
    return f"{said.rstrip('.')}. {help_}."


def _name(parameter: Any) -> str:
    long = [name for name in parameter.opts if name.startswith("--")]
    return str(long[0] if long else parameter.metavar or parameter.human_readable_name)


def _written(parameter: Any) -> str:
    name = _name(parameter)
    return f"{name} {parameter.metavar or 'VALUE'}" if name.startswith("--") else f"{name}, as in model.py:game"


def _typed(parameter: Any, line: list[str]) -> str | None:
    """The last word that was given for an option."""
    found = None
    for place, word in enumerate(line):
        for name in parameter.opts:
            if word == name and place + 1 < len(line):
                found = line[place + 1]
            elif word.startswith(f"{name}="):
                found = word.partition("=")[2]
    return found
