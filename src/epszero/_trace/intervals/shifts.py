"""Whether what a function returns depends on a value of which it stops the gradient.

logsumexp and softmax subtract the largest entry before they exponentiate, and stop its gradient, since it cancels. To
see that it does: a value either does not depend on the stopped s, or is a sum v + c s, or a product v exp(c s), with v
free of s. These forms are followed through the program; whatever else happens to s, it is taken to matter.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

ELEMENTWISE = ("add", "add_any", "sub", "mul", "div", "neg", "exp", "log", "abs", "sign", "copy", "integer_pow")
RESHAPES = ("reshape", "squeeze", "expand_dims")


class ShiftForm(NamedTuple):
    """v + c s, or v exp(c s); and along which dimension of s each dimension runs (None: the same s all along)."""

    product: bool
    c: float
    along: tuple[int | None, ...]


class Matters(Exception):
    """It may depend on s."""


def matters(jaxpr: Any, stopped: Any, inside: Callable[[Any], tuple[Any, Any] | None]) -> bool:
    """Whether an output of `jaxpr` may depend on the variable `stopped`; `inside` opens the calls there are."""
    first = ShiftForm(False, 1.0, tuple(k if length > 1 else None for k, length in enumerate(stopped.aval.shape)))
    try:
        return any(form is not None for form in _through(jaxpr, {stopped: first}, inside))
    except Matters:
        return True


def _through(jaxpr: Any, known: dict[Any, ShiftForm | None], inside: Callable[[Any], Any]) -> list[ShiftForm | None]:
    def of(atom: Any) -> ShiftForm | None:
        return None if hasattr(atom, "val") else known.get(atom)

    for equation in jaxpr.eqns:
        forms = [of(atom) for atom in equation.invars]
        if all(form is None for form in forms):
            continue
        opened = inside(equation)
        if opened is not None:
            known.update(zip(equation.outvars, _through(opened[0], _given(opened[0], forms), inside), strict=True))
        else:
            known[equation.outvars[0]] = _form(equation, forms)
            if len(equation.outvars) > 1:
                raise Matters
    return [of(atom) for atom in jaxpr.outvars]


def _given(jaxpr: Any, forms: Sequence[ShiftForm | None]) -> dict[Any, ShiftForm | None]:
    return dict(zip(jaxpr.invars, forms, strict=True))


def _form(equation: Any, forms: list[ShiftForm | None]) -> ShiftForm | None:
    name, params, shape = equation.primitive.name, equation.params, equation.outvars[0].aval.shape
    if name in ELEMENTWISE:
        dims = {_stretched(form, len(shape)) for form in forms if form is not None}
        if len(dims) > 1:
            raise Matters
        return _elementwise(name, params, forms, dims.pop())
    (form,) = forms if len(forms) == 1 else (None,)
    old = equation.invars[0].aval.shape
    if form is None:
        raise Matters
    if name in RESHAPES and [n for n in old if n > 1] == [n for n in shape if n > 1]:
        runs = iter([run for run, n in zip(form.along, old, strict=True) if n > 1])
        return form._replace(along=tuple(next(runs) if n > 1 else None for n in shape))
    if name == "broadcast_in_dim":
        along: list[int | None] = [None] * len(shape)
        for place, run in zip(params["broadcast_dimensions"], form.along, strict=True):
            along[place] = run
        return form._replace(along=tuple(along))
    if name == "convert_element_type" and equation.outvars[0].aval.dtype == equation.invars[0].aval.dtype:
        return form
    if name == "reduce_sum" and form.product and all(form.along[axis] is None for axis in params["axes"]):
        return form._replace(along=tuple(run for axis, run in enumerate(form.along) if axis not in params["axes"]))
    raise Matters


def _stretched(form: ShiftForm, rank: int) -> tuple[int | None, ...]:
    if len(form.along) not in (0, rank):
        raise Matters
    return form.along or (None,) * rank


def _elementwise(
    name: str, params: Any, forms: list[ShiftForm | None], along: tuple[int | None, ...]
) -> ShiftForm | None:
    products = {form.product for form in forms if form is not None}
    if len(products) > 1:
        raise Matters
    product, c = products.pop(), [0.0 if form is None else form.c for form in forms]
    if name in ("neg", "copy"):
        return ShiftForm(product, c[0] if product or name == "copy" else -c[0], along)
    if product and name in ("abs", "sign", "log", "integer_pow"):
        exponent = params["y"] if name == "integer_pow" else 1
        return None if name == "sign" or not exponent else ShiftForm(name != "log", c[0] * exponent, along)
    if name == "exp" and not product:
        return ShiftForm(True, c[0], along)
    if name in ("mul", "div") and product:
        total = c[0] + c[1] if name == "mul" else c[0] - c[1]
    elif name in ("add", "add_any", "sub") and not product:
        total = c[0] - c[1] if name == "sub" else c[0] + c[1]
    elif name in ("add", "add_any", "sub") and c[0] == c[1]:
        return ShiftForm(True, c[0], along)
    else:
        raise Matters
    return ShiftForm(product, total, along) if total else None
