"""What a mutant is, and which are drawn: the operators of cosmic-ray, at places that a bound can depend on.

Places that no bound depends on are left out by the rules in `idle` and by the names in mutants.toml, with the reason;
so are changes that are no Python, and a bit operator in place of an arithmetic one, which fails at the first call and
would only flatter the share.
"""

import ast
import difflib
import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src") / "epszero"
SETTINGS = tomllib.loads((ROOT / "tools" / "mutants.toml").read_text(encoding="utf-8"))
BITS = ("RShift", "LShift", "BitOr", "BitAnd", "BitXor")
TYPES = "isinstance"  # its second argument is types
MESSAGES = ("refuse", "cannot", "Unknown")  # their arguments are sentences


@dataclass(frozen=True)
class Mutant:
    """One change: which operator of cosmic-ray, and which of the places that it applies to."""

    file: str  # inside src/epszero
    operator: str
    occurrence: int
    place: tuple[int, int]  # line and column

    @property
    def code(self) -> tuple[str, str | None]:
        """The file before and after."""
        before = (ROOT / SOURCE / self.file).read_text(encoding="utf-8")
        return before, mutate_code(before, get_operator(self.operator)(), self.occurrence)

    @property
    def lines(self) -> range | None:
        """Those of the statement that it changes, without what is nested in it; None outside of functions."""
        found, inside = None, False
        for node in ast.walk(ast.parse(self.code[0])):  # parents first
            if isinstance(node, ast.stmt) and node.lineno <= self.place[0] <= (node.end_lineno or node.lineno):
                inside = inside or isinstance(found, ast.FunctionDef)
                found = node
        assert found is not None
        body = getattr(found, "body", None)
        last = max(found.lineno, body[0].lineno - 1) if body else found.end_lineno or found.lineno
        return range(found.lineno, last + 1) if inside else None

    def __str__(self) -> str:
        before, after = self.code
        lines = difflib.unified_diff(before.splitlines(), (after or "").splitlines(), n=0, lineterm="")
        changed = "\n".join(f"    {line}" for line in list(lines)[3:])
        return f"{SOURCE / self.file}:{self.place[0]} {self.operator.split('/')[1]}\n{changed}"


def mutants_of(file: str) -> dict[tuple[int, int], list[Mutant]]:
    """By place, all changes that matter."""
    nodes = list(ast_nodes(get_ast((ROOT / SOURCE / file).read_text(encoding="utf-8"))))
    left_out = [name for pattern, names in SETTINGS["idle"].items() if fnmatch(file, pattern) for name in names]
    found: dict[tuple[int, int], list[Mutant]] = {}
    for name in operator_names():
        if get_operator(name).arguments() or _only_fails(name):
            continue
        operator = get_operator(name)()
        places = ((node, start) for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (node, place) in enumerate(places):
            if not idle(node, name, left_out):
                found.setdefault(place, []).append(Mutant(file, name, occurrence, place))
    return found


def _only_fails(operator: str) -> bool:
    """An arithmetic operator turned into one for bits, which no float has."""
    parts = operator.split("_")
    return "BinaryOperator" in operator and parts[-1] in BITS and parts[-2] not in BITS


def idle(node: Any, operator: str, left_out: list[str]) -> bool:
    """Whether no bound can depend on this place: types, decorators, sentences, names in mutants.toml."""
    if "RemoveDecorator" in operator or _same_thing(node, operator):
        return True
    chain = [node, *_ancestors(node)]
    return any(_is_idle(above, below, operator, left_out) for below, above in pairwise([node, *chain]))


def _is_idle(above: Any, below: Any, operator: str, left_out: list[str]) -> bool:
    """Whether nothing inside `above` matters, `below` being the part of it in question."""
    kind = above.type
    if kind in ("decorator", "fstring", "fstring_expr", "assert_stmt", "raise_stmt") or _annotates(above, below):
        return True
    if kind == "trailer":
        called = _called(above)
        return called in MESSAGES or (called == TYPES and "BitOr" in operator)
    if kind == "if_stmt":
        return "TYPE_CHECKING" in above.children[1].get_code()
    if kind in ("comparison", "term", "arith_expr"):  # with a budget
        return any(getattr(leaf, "value", "") in left_out for leaf in ast_nodes(above))
    names = [above.name.value] if kind == "funcdef" else _assigned(above) if kind == "expr_stmt" else []
    return any(name in left_out for name in names)


def _ancestors(node: Any) -> Iterator[Any]:
    while node.parent is not None:
        node = node.parent
        yield node


def _annotates(above: Any, below: Any) -> bool:
    """Whether `below` stands where a type does."""
    if above.type == "annassign":
        return above.children[1] is below
    if above.type == "tfpdef":
        return above.children[-1] is below
    return above.type == "funcdef" and above.annotation is below


def _assigned(statement: Any) -> list[str]:
    return [name.value for name in statement.get_defined_names()]


def _called(trailer: Any) -> str:
    before = trailer.get_previous_leaf()
    return before.value if trailer.children[0].value == "(" and before is not None else ""


def _same_thing(node: Any, operator: str) -> bool:
    """`is` and `==` say the same of members of an enum and of words."""
    if not operator.endswith(("_Is_Eq", "_Eq_Is", "_IsNot_NotEq", "_NotEq_IsNot")):
        return False
    return re.fullmatch(r"([\w.]+\.[A-Z_]+|[\"'].*[\"'])", node.children[-1].get_code().strip()) is not None


def drawn(room: str, many: int, seed: int) -> tuple[list[Mutant], int]:
    """As many mutants as asked for, each in a place of its own; and how many places there are."""
    generator = random.Random(f"{room} {seed}")
    files = sorted(path.relative_to(ROOT / SOURCE).as_posix() for path in (ROOT / SOURCE / room).rglob("*.py"))
    places = [mutants for file in files for _, mutants in sorted(mutants_of(file).items())]
    generator.shuffle(places)
    chosen: list[Mutant] = []
    for mutants in places:
        if len(chosen) == many:
            break
        generator.shuffle(mutants)
        chosen += [mutant for mutant in mutants if _is_python(mutant)][:1]
    return chosen, len(places)


def _is_python(mutant: Mutant) -> bool:
    before, after = mutant.code
    try:
        return after is not None and before != after and compile(after, mutant.file, "exec") is not None
    except SyntaxError:
        return False
