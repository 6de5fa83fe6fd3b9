"""Loops of Python, rolled up again: Σ_k t(x_k, a_k) and (t(x_1, a_1), …, t(x_K, a_K)) as one operation each.

A loop over hundreds of strategies is traced into as many copies of its body. Terms of a sum (a chain of additions whose
parts nobody else uses) and of a concatenation that are computed alike, by operations of one kind in one order, become
one body that is mapped over what they read. Values are the same, but for the order in which a sum is taken.
Cost: O(operations).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from epszero._trace.steps import ARRAY, INPUT, LITERAL, SCALAR, SHARED, VALUE, Ref, Step

LEAST = 4  # terms that are rolled up
DEEP = 30  # operations one after another in a term; what lies deeper is taken for given


class Rolled(NamedTuple):
    """Terms computed alike."""

    body: tuple[Step, ...]
    end: Ref  # of the body
    inputs: tuple[tuple[int, ...], ...]  # for each input of the body: where each term reads
    scalars: tuple[tuple[int, ...], ...]
    starts: tuple[tuple[int, ...], ...]
    rest: tuple[Ref, ...]  # a sum: what else is added
    joined: tuple[str, int] | None  # "concatenate" or "stack", and the axis; None: a sum
    first: int  # the value that it makes
    operands: tuple[Ref, ...]  # all that is read

    @property
    def outputs(self) -> int:
        """How many values it makes."""
        return 1


class _Term(NamedTuple):
    """One term: its shape, which is equal where it is computed alike, and what it reads."""

    key: Any
    steps: tuple[int, ...]
    inputs: tuple[int, ...]
    scalars: tuple[int, ...]
    starts: tuple[int, ...]


def rolled(steps: Sequence[Step], keys: Sequence[Any], ends: Sequence[Ref], kinds: Any) -> tuple[list[Any], list[Any]]:
    """Steps and their keys, with loops rolled up. `kinds`: a key for each place that reads an argument."""
    return _Roller(steps, keys, ends, kinds).run()


class _Roller:
    def __init__(self, steps: Sequence[Step], keys: Sequence[Any], ends: Sequence[Ref], kinds: Any) -> None:
        self.steps, self.keys, self.kinds = list(steps), list(keys), kinds
        self.maker = {step.first + k: place for place, step in enumerate(steps) for k in range(step.outputs)}
        self.uses: dict[Ref, int] = {}
        for ref in [*(ref for step in steps for ref in step.operands), *ends]:
            self.uses[ref] = self.uses.get(ref, 0) + 1
        self.values = max((step.first + step.outputs for step in steps), default=0)  # the next free place
        self.gone: set[int] = set()
        self.tried: set[int] = set()

    def run(self) -> tuple[list[Any], list[Any]]:
        new: dict[int, list[tuple[Any, Any]]] = {}
        for place in reversed(range(len(self.steps))):
            if place in self.gone:
                continue
            found = self._sum(place) or self._concatenation(place)
            if found:
                new[place] = found
        kept = [place for place in range(len(self.steps)) if place not in self.gone]
        pairs = [pair for place in kept for pair in new.get(place, [(self.steps[place], self.keys[place])])]
        return [step for step, _ in pairs], [key for _, key in pairs]

    def _sum(self, place: int) -> list[tuple[Rolled, Any]]:
        """A chain of additions that ends here."""
        if self.steps[place].primitive.name != "add" or place in self.tried:
            return []
        adds, terms, todo = [place], list[Ref](), list(self.steps[place].operands[::-1])
        while todo:
            ref = todo.pop()
            at = self._only(ref)
            if at is not None and self._alike_add(at, place):
                adds.append(at)
                todo += self.steps[at].operands[::-1]
            else:
                terms.append(ref)
        self.tried.update(adds)
        groups = self._groups(terms)
        shape = self.steps[place].made[0][0]
        long = [group for group in groups if len(group) >= LEAST and self._shape(terms[group[0][0]]) == shape]
        if not long:
            return []
        rolled = {number for group in long for number, _ in group}
        rest = [ref for number, ref in enumerate(terms) if number not in rolled]
        self.gone.update(at for at in adds if at != place)
        found: list[tuple[Rolled, Any]] = []
        for group in long[1:]:
            found.append(self._made(place, group, terms, (), None, self.values))
            rest.append((VALUE, self.values))
            self.values += 1
        return [*found, self._made(place, long[0], terms, tuple(rest), None, self.steps[place].first)]

    def _alike_add(self, at: int, place: int) -> bool:
        return self.steps[at].primitive.name == "add" and self.steps[at].made == self.steps[place].made

    def _concatenation(self, place: int) -> list[tuple[Rolled, Any]]:
        """All of its parts, as their order counts."""
        step = self.steps[place]
        name = {"concatenate": "dimension", "stack": "axis"}.get(step.primitive.name)
        if name is None or len(step.operands) < LEAST:
            return []
        refs = list(step.operands)
        (group, *others) = self._groups(refs)
        if others or not any(getattr(group[0][1], read) for read in READ):
            return []
        how = step.primitive.name, int(step.params[name])
        return [self._made(place, group, refs, (), how, step.first)]

    def _groups(self, refs: list[Ref]) -> list[list[tuple[int, _Term]]]:
        """Terms computed alike, which read something each: largest groups first."""
        groups: dict[Any, list[tuple[int, _Term]]] = {}
        for number, ref in enumerate(refs):
            term = self._term(ref)
            alone = not any(getattr(term, read) for read in READ)
            groups.setdefault((number,) if alone else term.key, []).append((number, term))
        return sorted(groups.values(), key=len, reverse=True)

    def _made(
        self, place: int, group: list[tuple[int, _Term]], refs: list[Ref], rest: tuple[Ref, ...], how: Any, first: int
    ) -> tuple[Rolled, Any]:
        """The operation in the place of a group, and its key."""
        terms = [term for _, term in group]
        self.gone.update(at for term in terms for at in term.steps)
        body, end = self._body(refs[group[0][0]], terms[0])
        inputs, scalars, starts = (tuple(zip(*(getattr(term, read) for term in terms), strict=True)) for read in READ)
        read = [(INPUT, one) for column in inputs for one in column]
        every = [ref for step in body for ref in step.operands if ref[0] in (SHARED, ARRAY, LITERAL)]
        outer = [(VALUE, ref[1]) if ref[0] == SHARED else ref for ref in every]
        whole = Rolled(body, end, inputs, scalars, starts, rest, how, first, (*rest, *read, *outer))
        return whole, ("rolled", terms[0].key, (inputs, scalars, starts), rest, how, first, self.steps[place].made)

    def _shape(self, ref: Ref) -> Any:
        kind, place = ref
        if kind == VALUE:
            step = self.steps[self.maker[place]]
            return step.made[place - step.first][0]
        return self.kinds[place][0] if kind == INPUT else ()

    def _only(self, ref: Ref) -> int | None:
        """The step that makes a value which is used once, and is all that the step makes."""
        if ref[0] != VALUE or self.uses[ref] != 1:
            return None
        at = self.maker[ref[1]]
        return at if self.steps[at].outputs == 1 and at not in self.gone else None

    def _term(self, ref: Ref, depth: int = 0) -> _Term:
        kind, place = ref
        if kind == INPUT:
            return _Term((INPUT, self.kinds[place]), (), (place,), (), ())
        if kind == SCALAR:
            return _Term((SCALAR,), (), (), (place,), ())
        at = self._only(ref)
        if at is None or depth >= DEEP:
            return _Term(ref, (), (), (), ())  # one and the same for all terms that read it
        step = self.steps[at]
        parts = [self._term(operand, depth + 1) for operand in step.operands]
        _, _, told, made, weak = self.keys[at]
        joined = [tuple(one for part in parts for one in getattr(part, name)) for name in ("steps", *READ)]
        key = step.primitive, tuple(part.key for part in parts), told, made, weak
        return _Term(key, (*joined[0], at), joined[1], joined[2], (*joined[3], *step.starts))

    def _body(self, ref: Ref, term: _Term) -> tuple[tuple[Step, ...], Ref]:
        """The steps of one term, with local places in what it reads."""
        made = {self.steps[at].first: number for number, at in enumerate(term.steps)}
        counts = {INPUT: 0, SCALAR: 0}
        starts = iter(range(len(term.starts)))
        local: dict[int, Step] = {}

        def of(ref: Ref) -> Ref:
            kind, place = ref
            if kind in counts:
                counts[kind] += 1
                return kind, counts[kind] - 1
            if kind != VALUE:
                return ref
            if place not in made:
                return SHARED, place
            step = self.steps[self.maker[place]]
            operands = tuple(of(operand) for operand in step.operands)
            begin = tuple(next(starts) for _ in step.starts)
            local[made[place]] = step._replace(operands=operands, starts=begin, first=made[place])
            return VALUE, made[place]

        end = of(ref)
        return tuple(local[number] for number in sorted(local)), end


READ = ("inputs", "scalars", "starts")
